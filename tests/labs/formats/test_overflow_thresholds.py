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


@pytest.mark.parametrize(
    "state",
    [
        Settings(n_keys=8, d_head=16, max_subtraction=False),
        Settings(n_keys=8, d_head=16, causal=True, variant="layernorm", norm_in_format=True),
        Settings(n_keys=8, d_head=16, causal=True, variant="rms", accumulator="float16", placement="split"),
    ],
)
@pytest.mark.parametrize("plain", [True, False])
def test_first_losses_are_those_of_a_plain_bisection_over_all_vectors(state: Settings, plain: bool) -> None:
    """But where rounding makes losses come and go: there one of the two knows a safe scale above the other's."""
    inputs, choices = (
        drawn(recipe_of(state), causal=state.causal),
        choices_of(state, "none" if plain else state.variant),
    )
    found = first_losses(inputs, choices)
    low, high = np.full_like(found, 0.01), np.full_like(found, 1e38)
    finite = np.isfinite(found) & (found > 0.01)
    while (high > low * (1 + 1e-6)).any():
        middle = np.sqrt(low * high)
        scales, place = np.unique(middle[finite], return_inverse=True)
        lost = tally(inputs, torch.from_numpy(scales), choices).n_lost > 0
        lost[:, -1] = lost[:, STAGES.index("weight")]  # values do not grow with the weight scale
        f, s = np.nonzero(finite)
        fails = np.zeros_like(finite)
        fails[f, s] = lost[f, s, place]
        low, high = np.where(fails, low, middle), np.where(fails, middle, high)
        low[~finite] = high[~finite]
    same = np.isclose(found, high, rtol=2e-6)
    assert same[finite].mean() > 0.8
    scales, place = np.unique(np.minimum(found, high)[finite], return_inverse=True)
    above = np.maximum(found, high)[finite] * (1 - 2e-6)
    f, s = np.nonzero(finite)
    at, safe = (tally(inputs, torch.from_numpy(np.unique(x)), choices).n_lost > 0 for x in (scales, above))
    at[:, -1], safe[:, -1] = at[:, STAGES.index("weight")], safe[:, STAGES.index("weight")]
    comes_and_goes = at[f, s, place] & ~safe[f, s, np.unique(above, return_inverse=True)[1]]
    assert (same[finite] | comes_and_goes).all()
