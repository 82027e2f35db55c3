"""First losses: nothing is lost just below them, and the closed form of what exact values exceed."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from qkdemo.attention.inputs import Recipe
from qkdemo.labs.formats import Settings, choices_of, recipe_of
from qkdemo.labs.formats.stages.error_counts import tally
from qkdemo.labs.formats.stages.kinds import STAGES, STORED, Choices, drawn
from qkdemo.labs.formats.stages.overflow_thresholds import first_exceeding, first_losses
from tests.following import SMALL
from tests.strategies import settings_of


@settings(max_examples=15)
@given(settings_of(Settings, at_most=SMALL))
def test_a_stage_loses_an_entry_at_its_first_loss_and_none_just_below(state: Settings) -> None:
    inputs = drawn(recipe_of(state), causal=state.causal)
    choices = choices_of(state, state.variant)
    found = first_losses(inputs, choices)
    scales = np.unique(found[np.isfinite(found) & (found > 0.01)])
    at_and_below = np.concatenate([scales, scales * (1 - 2e-6)])
    counted = tally(inputs, torch.from_numpy(at_and_below), choices)
    lost = (counted.n_inf + counted.n_nan > 0) | (counted.n_overflow > 0)
    for place, scale in enumerate(scales):
        for f, s in np.argwhere(found == scale):
            assert lost[f, s, [place, place + len(scales)]].tolist() == [True, False], (STORED[f], STAGES[s])


@pytest.mark.parametrize("causal", [False, True])
def test_exact_values_exceed_a_format_from_the_scale_that_is_said(causal: bool) -> None:
    inputs = drawn(Recipe(n_keys=6, d_head=8), causal=causal)
    for variant in ("none", "rms"):
        choices = Choices(variant=variant)  # type: ignore[arg-type]
        found = first_exceeding(inputs, choices)
        for f, s in np.argwhere(np.isfinite(found)):
            scales = torch.tensor([found[f, s] * (1 - 1e-9), found[f, s] * (1 + 1e-9)], dtype=torch.float64)
            assert (tally(inputs, scales, choices).n_exceeding[f, s] > 0).tolist() == [False, True]


@pytest.mark.parametrize("variant", ["none", "l2"])
def test_what_was_counted_already_leads_to_the_same_first_losses(variant: str) -> None:
    inputs, choices = drawn(Recipe()), Choices(variant=variant)  # type: ignore[arg-type]
    scales = np.geomspace(0.01, 1000, 41)
    counted = tally(inputs, torch.from_numpy(scales), choices)
    f = STORED.index("float16")
    alone = first_losses(inputs, choices)[f]
    np.testing.assert_allclose(first_losses(inputs, choices, scales.tolist(), counted)[f], alone, rtol=2e-6)
