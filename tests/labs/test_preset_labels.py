"""A label that promises an outcome keeps it, not at one seed but at every one that is tried.

Labels that only say what the dials stand at ("Modular addition") promise nothing and are not tried.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest

from qkdemo.labs import cache, epsilon, placement, rope
from qkdemo.labs.training import lab as training
from qkdemo.messages import say
from qkdemo.runs.plan import outcomes
from qkdemo.training.outcome import Outcome
from qkdemo.training.telemetry import CURVES
from tests.runs.plans import trained_curves

SEEDS = range(6)
PROMISES: dict[str, tuple[str, Callable[[Outcome, Outcome, Any], bool]]] = {
    "collapse": ("A ramp to 0.2: plain attention forgets", lambda plain, norm, curves: plain.lost_at is not None),
    "gentle": (
        "A rate of 0.01: both solve it",
        lambda plain, norm, curves: plain.outcome == norm.outcome == "solved",
    ),
    "too_hot": ("A rate of 0.2: plain attention fails", lambda plain, norm, curves: plain.outcome == "failed"),
    "sharp": (
        "Solved with sharp heads",
        lambda plain, norm, curves: (
            plain.outcome == "solved"
            and plain.final_entropy_fraction < 0.5 * curves[0, 0, CURVES.index("entropy_fraction")]
        ),
    ),
}


@pytest.mark.parametrize("name", PROMISES)
def test_a_training_preset_ends_as_its_label_says_at_every_seed(name: str) -> None:
    label, holds = PROMISES[name]
    assert say(f"preset.training.{name}") == label
    for seed in SEEDS:
        plan = training.plan_of(training.PRESETS[name].but(seed=seed))
        curves = trained_curves(plan)
        plain, norm = outcomes(plan, curves)
        assert holds(plain, norm, curves), (seed, plain, norm)


def test_at_a_rate_of_0_2_the_seed_decides_what_becomes_of_rmsnorm() -> None:
    """So no label may say that it fails there, and none that it does not."""
    ends = set()
    for seed in (0, 1):
        plan = training.plan_of(training.PRESETS["too_hot"].but(seed=seed))
        ends.add(outcomes(plan, trained_curves(plan))[1].outcome)
    assert ends == {"solved", "failed"}


# Lab and preset → what its label says of the result.
LABELS: dict[str, tuple[Any, str, Callable[[Any], bool]]] = {
    "rope bound_counterexample": (rope, "Past the naive bound", lambda found: found.max_abs_logit > found.bound_naive),
    "rope not_relative": (rope, "Positions no longer relative", lambda found: not found.agree),
    "epsilon not_normalised": (
        epsilon,
        "Too small to be normalised",
        lambda found: found.share[found.rule, found.at] < epsilon.NORMALISED,
    ),
    "epsilon lost_in_float16": (
        epsilon,
        "Epsilon lost in float16",
        lambda found: found.epsilon_stored["float16"] == 0,
    ),
    "cache unit_gains_hide_it": (
        cache,
        "Unit gains hide the mistake",
        lambda found: found.label != "wrong",
    ),
    "cache one_token": (cache, "One token decides nothing", lambda found: found.label == "undecided"),
    "placement gain_permuted": (
        placement,
        "Gain permuted with W: right",
        lambda found: found.relative_score_error < 1e-12,
    ),
}


@pytest.mark.parametrize("which", LABELS)
def test_a_preset_shows_what_its_label_says_at_every_seed(which: str) -> None:
    lab, label, holds = LABELS[which]
    page, name = which.split()
    assert say(f"preset.{page}.{name}") == label
    for seed in SEEDS:
        state = lab.PRESETS[name]
        assert holds(lab.run(state.but(seed=seed))), seed


def test_unit_gains_hide_some_of_the_known_mistakes_at_every_seed() -> None:
    for seed in SEEDS:
        found = placement.mistakes_of(placement.PRESETS["hidden_by_unit_gains"].but(seed=seed))
        hidden = [one for one in found if one.with_unit_gains < 1e-12]
        assert 0 < len(hidden) < len(found)


def test_an_order_of_casts_moves_logits_by_a_rounding_and_no_more() -> None:
    for seed in SEEDS:
        off = placement.run(placement.PRESETS["cast_order"].but(seed=seed)).relative_score_error
        assert 1e-4 < off < 0.02
        assert math.isfinite(off)
