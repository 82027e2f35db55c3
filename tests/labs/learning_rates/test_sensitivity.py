"""The number that is made of a curve of losses against learning rates, and the schedules behind it."""

import math

import numpy as np
import pytest

from qkdemo.labs.learning_rates.command import COMMAND
from qkdemo.labs.learning_rates.sensitivity import Point, by_side, curve, sensitivity
from qkdemo.training.schedule import SCHEDULES


def test_a_flat_curve_is_not_sensitive_and_the_number_is_the_mean_distance_from_the_best() -> None:
    flat = curve({rate: [(0.5, 2.8)] for rate in (0.01, 0.1, 1.0)})
    assert sensitivity(flat) == pytest.approx(0)
    steep = curve({0.1: [(0.0, 2.8)], 0.01: [(1.0, 2.8)], 1.0: [(2.0, 2.8)]})
    assert [point.learning_rate for point in steep] == [0.01, 0.1, 1.0]
    assert by_side(steep) == pytest.approx((1 / 4, 2 / 4))  # a decade each, half of either
    assert sensitivity(steep) == pytest.approx(0.75)
    assert sum(by_side(flat)) == pytest.approx(sensitivity(flat))
    assert sensitivity(steep[:1]) == 0


def test_it_does_not_matter_how_densely_the_rates_stand_near_a_wall() -> None:
    """A loss that is flat, then linear in ln(rate): the integral by hand, on the command's own grid and on others."""
    grid = [float(rate) for rate in COMMAND.swept["learning_rate"].split(",")]

    def loss(rate: float) -> float:
        return max(0.0, math.log(rate / 0.03))  # flat up to 0.03, then a wall

    width, wall = math.log(0.3 / 0.001), math.log(0.3 / 0.03)
    whole = wall**2 / 2 / width
    for rates in (grid, grid[::2], [0.001, 0.03, 0.3]):
        found = curve({rate: [(loss(rate), 9.0)] for rate in sorted({*rates, 0.001, 0.03, 0.3})})
        assert sensitivity(found) == pytest.approx(whole)
        assert by_side(found) == pytest.approx((0, whole))
    plain_mean = np.mean([loss(rate) for rate in grid])
    assert plain_mean > 1.3 * whole  # what an unweighted mean over this grid makes of it


@pytest.mark.parametrize("worse", [3.0, 1e9, math.inf, math.nan])
def test_no_loss_counts_as_more_than_the_one_before_training(worse: float) -> None:
    assert Point(0.1, (worse, 0.8), 2.8).mean == pytest.approx((2.8 + 0.8) / 2)


@pytest.mark.parametrize(
    ("word", "step", "rate"),
    [
        ("ramp", 1, 0.002),
        ("ramp", 50, 0.1),
        ("ramp", 100, 0.2),
        ("ramp", 700, 0.2),
        ("constant", 1, 0.01),
        ("constant", 20, 0.2),
        ("constant", 100, 0.2),
        ("cosine", 10, 0.1),
        ("cosine", 20, 0.2),
        ("cosine", 60, 0.11),
        ("cosine", 100, 0.02),
        ("cosine", 700, 0.02),
    ],
)
def test_schedules_at_the_steps_that_define_them(word: str, step: int, rate: float) -> None:
    assert SCHEDULES[word](step, 0.2, 20, 100) == pytest.approx(rate)  # type: ignore[index]


def test_without_a_warm_up_the_first_step_has_the_peak() -> None:
    assert SCHEDULES["constant"](1, 0.2, 0, 100) == 0.2
    assert SCHEDULES["cosine"](1, 0.2, 0, 100) == pytest.approx(0.2, rel=1e-3)
