"""How fast a logit grows, with an interval that holds, and when it reaches a limit."""

import math

import numpy as np
import pytest

from qkdemo.diagnose.curves.causes import run
from qkdemo.diagnose.curves.growth import growth, slope
from qkdemo.diagnose.readers.logs import read_logs
from qkdemo.diagnose.samples import SAMPLES
from tests.diagnose.curves.courses import FALLING, STEPS, log, noise


def test_the_interval_of_a_slope_holds_its_truth_nineteen_times_in_twenty() -> None:
    x, held = np.arange(60.0), 0
    for seed in range(200):
        _, low, high = slope(x, 0.02 * x + 0.3 * np.random.default_rng(seed).standard_normal(60))
        held += low <= 0.02 <= high
    assert 0.9 <= held / 200 <= 0.99


def test_rows_that_vary_together_widen_the_interval_of_a_slope() -> None:
    """It holds its truth in nine of ten draws; counted as independent they hold it in two of three."""
    x, held = np.arange(120.0), 0
    for seed in range(100):
        noise = np.random.default_rng(seed).standard_normal(170)
        for at in range(1, len(noise)):
            noise[at] += 0.6 * noise[at - 1]
        _, low, high = slope(x, 0.02 * x + noise[50:])
        held += low <= 0.02 <= high
    assert 0.82 <= held / 100 <= 0.99


def test_the_interval_of_the_example_is_about_that_of_a_bootstrap_of_blocks() -> None:
    name, make = SAMPLES["log"]
    (example,) = read_logs(make(), name)
    x, y = (column[100:] for column in (example.step, np.log(example.columns["max_logit"])))  # the later two thirds
    rate, low, high = slope(x, y)
    rest, dice, block = y - rate * x, np.random.default_rng(0), 15
    redrawn = []
    for _ in range(200):
        starts = dice.integers(0, len(x) - block + 1, size=math.ceil(len(x) / block))
        blocks = np.concatenate([rest[at : at + block] for at in starts])[: len(x)]
        redrawn.append(slope(x, rate * x + blocks)[0])
    least, most = np.quantile(redrawn, (0.025, 0.975))
    assert (high - low) / (most - least) == pytest.approx(1, abs=0.3)


def test_growth_says_when_a_limit_will_be_reached() -> None:
    found = growth(STEPS, 2 * np.exp(STEPS / 100))
    assert found is not None
    assert found.rate == pytest.approx(0.01)
    assert found.large_at == pytest.approx(100 * math.log(50), rel=0.02)
    assert found.limit_at == pytest.approx(100 * math.log(65504 / 2), rel=0.02)
    assert found.grows
    still = growth(STEPS, 5 + 0.1 * noise(3))
    assert still is not None
    assert not still.grows
    assert still.large_at is None


@pytest.mark.parametrize(("share", "by"), [(1.0, "norms"), (0.5, "both"), (0.0, "alignment")])
def test_growth_is_put_down_to_norms_or_alignment(share: float, by: str) -> None:
    logit, length = np.exp(STEPS / 50), np.exp(share * STEPS / 100)
    found = growth(STEPS, logit, length, length)
    assert found is not None
    assert found.by == by


def test_a_limit_that_was_passed_once_and_left_again_is_ahead() -> None:
    logit = 20 * np.exp(STEPS / 150)
    logit[5] = 150.0
    (cause,) = (cause for cause in run(log(loss=FALLING, max_logit=logit)).causes if cause.key == "growing_logits")
    assert cause.numbers["large_at"] == pytest.approx(150 * math.log(5), rel=0.05)
