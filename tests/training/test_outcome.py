"""What became of a run: words with definitions."""

import math
from typing import Any

import numpy as np
import pytest

from qkdemo.training.outcome import (
    FAILURES,
    Incident,
    ends_of,
    failed_from,
    incidents,
    outcome_of,
    solved_below,
    word_for,
)
from qkdemo.training.settings import Settings
from qkdemo.training.tasks import TASKS
from qkdemo.training.telemetry import CURVES, Telemetry

HALF = math.log(16) / 2


def telemetry(loss: list[float], **other: list[float]) -> Telemetry:
    flat = [1.0] * len(loss)
    arrays: dict[str, Any] = {
        name: np.array(other.get(name, flat), dtype=np.float32)[:, None] for name in CURVES if name != "loss"
    }
    maps = np.zeros((len(loss), 1, 0, 1, 1, 1), dtype=np.float16)
    return Telemetry(first_step=1, loss=np.array(loss, dtype=np.float32)[:, None], maps=maps, **arrays)


@pytest.mark.parametrize(
    ("final", "word"),
    [
        (0.0, "solved"),
        (0.0999, "solved"),
        (0.1, "partly"),
        (HALF - 1e-6, "partly"),
        (HALF, "failed"),
        (50.0, "failed"),
        (math.inf, "failed"),
        (math.nan, "failed"),
    ],
)
def test_solved_is_below_a_tenth_and_failed_from_half_of_chance(final: float, word: str) -> None:
    assert word_for(final, TASKS["copy"]) == word


def test_losses_are_counted_from_the_floor_of_the_task() -> None:
    floor = TASKS["noisy_copy"].floor
    assert floor is not None
    assert solved_below(TASKS["noisy_copy"]) == floor + 0.1
    assert word_for(floor + 0.05, TASKS["noisy_copy"]) == "solved"
    assert failed_from(TASKS["noisy_copy"]) == pytest.approx((floor + math.log(16)) / 2)


def test_of_a_task_without_a_known_floor_nothing_is_solved_and_chance_is_failure() -> None:
    chance = TASKS["text"].chance()
    assert word_for(0.0, TASKS["text"]) == "partly"
    assert word_for(chance - 0.01, TASKS["text"]) == "partly"
    assert word_for(chance, TASKS["text"]) == "failed"


def test_the_final_loss_is_the_mean_of_the_last_twenty_steps() -> None:
    outcome = outcome_of(Settings(), telemetry([5.0] * 10 + [0.0] * 10 + [0.19] * 10))
    assert outcome.final_loss == pytest.approx(0.095)
    assert outcome.outcome == "solved"


def test_a_run_that_learnt_and_lost_it_has_learnt_first() -> None:
    logits = [1.0] * 29 + [101.0] * 3 + [5000.0] * 28
    outcome = outcome_of(Settings(), telemetry([2.8] * 10 + [0.09] * 20 + [2.8] * 30, max_abs_logit=logits))
    assert (outcome.outcome, outcome.learnt_first, outcome.learnt_at) == ("failed", True, 11)
    assert (outcome.first_step_logit_over_100, outcome.max_abs_logit) == (30, 5000)
    assert (outcome.diverged_at, outcome.spikes, outcome.non_finite_at) == (31, 0, None)


def test_a_run_that_never_learnt_has_not_learnt_first() -> None:
    outcome = outcome_of(Settings(), telemetry([2.8] * 40))
    assert (outcome.outcome, outcome.learnt_first, outcome.learnt_at) == ("failed", False, None)
    assert (outcome.first_step_logit_over_100, outcome.diverged_at) == (None, None)


@pytest.mark.parametrize(
    ("losses", "found"),
    [
        ([2.5, 2.45, 2.9, 2.44, 2.41], [("spike", 2, 3)]),
        ([1.7, 11.46, 11.75, 11.5, 11.48], [("divergence", 1, None)]),
        ([2.7, 2.5, 2.3, math.nan], [("non_finite", 3, None)]),
        ([2.7, math.nan, 2.3, 2.2], [("non_finite", 1, None)]),  # and what comes after means nothing
        ([2.7, 2.5, math.inf], [("non_finite", 2, None)]),
        ([1.0, 3.0, 5.0, math.nan], [("divergence", 1, None), ("non_finite", 3, None)]),
        ([2.7, 2.5, 2.3, 2.2, 2.1], []),
        ([2.5, 2.6, 2.4, 2.55, 2.5], []),  # noise
        ([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6], [("divergence", 3, None)]),  # slow
        ([1.0, 2.0, 1.0, 2.0, 1.0], [("spike", 1, 2), ("spike", 3, 4)]),
        ([0.0] * 100 + [2.0, 2.0], []),  # too late to tell
        ([0.0] * 100 + [2.0] * 6, [("divergence", 100, None)]),
        ([2.0], []),
        ([], []),
    ],
)
def test_spikes_divergence_and_non_finite_losses_are_told_apart(losses: list[float], found: list[Any]) -> None:
    assert incidents(losses) == [Incident(*each) for each in found]


def test_nan_is_counted_as_non_finite_and_not_as_no_spike() -> None:
    outcome = outcome_of(Settings(), telemetry([2.7, 0.05, 0.05, math.nan, math.nan]))
    assert (outcome.outcome, outcome.non_finite_at, outcome.spikes) == ("failed", 4, 0)
    assert outcome.learnt_first
    assert math.isnan(outcome.final_loss)


LEARNT = [2.7] * 30 + [0.05] * 40


@pytest.mark.parametrize(
    ("loss", "end"),
    [
        ([2.7] * 30 + [0.05] * 70, "solved"),
        ([2.7] * 30 + [0.5] * 70, "partly"),
        (LEARNT + [2.7] * 30, "lost"),
        ([2.7] * 30 + [1.0] * 40 + [2.7] * 30, "diverged"),
        ([2.7] * 100, "chance"),
        ([2.7] * 50 + [2.0] * 50, "slow"),
        (LEARNT + [math.nan] * 30, "non_finite"),
        (LEARNT + [2.7] * 29 + [math.inf], "non_finite"),
    ],
)
def test_every_run_has_one_end_and_those_that_failed_say_how(loss: list[float], end: Any) -> None:
    outcome = outcome_of(Settings(), telemetry(loss))
    assert outcome.end == end
    assert (outcome.outcome == "failed") == (end in FAILURES)
    counts = ends_of([outcome])
    assert counts[end] == sum(counts.values()) == 1


def test_the_collapse_is_the_last_time_that_the_task_was_lost_and_the_warning_is_counted_from_it() -> None:
    twice = LEARNT + [2.7] * 30 + [0.05] * 40 + [2.7] * 40
    outcome = outcome_of(Settings(), telemetry(twice, max_abs_logit=[5.0] * 60 + [150.0] * 120))
    assert outcome.lost_at == 151  # 140 steps and the half of twenty; the first time was at 81
    assert (outcome.first_step_logit_over_100, outcome.warned) == (61, 90)
    assert outcome_of(Settings(), telemetry([2.7] * 30)).warned is None
