"""Rises of a loss without a jump, or in noise, and what came before them; logits whose last rows do not grow."""

from typing import Any

import numpy as np
import pytest

from qkdemo.diagnose.curves.causes import run
from qkdemo.diagnose.curves.loss import loss_events
from qkdemo.diagnose.findings.of_logs import of_logs
from tests.diagnose.curves.test_causes import FALLING, GROWN, LOST, LOST_LATE, STEPS, log, said

LONG = np.arange(1000.0)


def noisy(course: Any, share: float, seed: int = 0) -> Any:
    return course * np.exp(share * np.random.default_rng(seed).standard_normal(len(course)))


@pytest.mark.parametrize("seed", range(6))
def test_a_lasting_rise_of_three_times_the_noise_is_no_spike_that_recovers(seed: int) -> None:
    """Of single values hardly one is four times the noise above what was usual; their median stays up."""
    steps = np.arange(500.0)
    noise = 0.1 * np.random.default_rng(seed).standard_normal(500)
    loss = 1 + 3.5 * np.exp(-steps / 50) + 0.3 * (steps >= 300) + noise
    events = loss_events(loss)
    assert [event.kind for event in events if event.kind != "spike"] == ["divergence"]
    assert loss_events(loss - 0.3 * (steps >= 300)) == ()


@pytest.mark.parametrize("seed", range(4))
def test_a_rise_without_a_jump_counts_where_it_comes_back_and_where_the_log_ends(seed: int) -> None:
    base = 2.5 + 7 * np.exp(-LONG / 150)
    hump = noisy(base * (1 + np.exp(-(((LONG - 600) / 90) ** 2))), 0.01, seed)
    (event,) = loss_events(hump)
    assert (event.kind, event.slow) == ("spike", True)
    assert 420 < event.start < 520
    assert 680 < event.stop < 790
    ending = noisy(base * np.exp(0.008 * np.maximum(0, LONG - 905)), 0.01, seed)
    (event,) = loss_events(ending)
    assert (event.kind, event.slow) == ("rise", True)
    assert 905 < event.start < 935
    jump = noisy(base, 0.01, seed)
    jump[600:620] += 3
    assert [(event.kind, event.slow) for event in loss_events(jump)] == [("spike", False)]


def test_a_rise_without_a_jump_that_passes_is_said_to_recover_and_its_cause_is_looked_for() -> None:
    hump = noisy((2.5 + 7 * np.exp(-LONG / 150)) * (1 + np.exp(-(((LONG - 600) / 90) ** 2))), 0.01)
    found = said(loss=hump, max_logit=np.where(LONG < 300, 20.0, 120.0))["attention_max_logit"]
    assert found.startswith("The loss rises, and recovers. From about step 4")
    assert "100 or more at step 300" in found
    calm = said(loss=hump, max_logit=np.full(1000, 20.0))
    assert "a longer warm-up" in calm["not_attention"]


@pytest.mark.parametrize("seed", range(12))
def test_before_a_slow_rise_is_all_that_came_before_the_loss_was_clearly_above_its_lowest(seed: int) -> None:
    """Logits reach 100 at 500; the loss is flat until 600, and its lowest value by chance can be at 450."""
    course = (2.5 + 7 * np.exp(-LONG / 70)) * (1 + np.clip((LONG - 600) / 400, 0, 1) * 0.5)
    found = run(log(loss=noisy(course, 0.015, seed), max_logit=10 * np.exp(LONG / 500 * np.log(10))))
    assert found.causes[0].key == "attention_max_logit"
    assert 600 < found.causes[0].numbers["step"] < 720


def test_of_several_spikes_that_which_large_logits_preceded_is_spoken_of() -> None:
    loss = 2.5 + 8 * np.exp(-LONG / 80) + 0.03 * np.random.default_rng(0).standard_normal(1000)
    for at in (120, 600, 700, 860):
        loss[at : at + 4] += [4, 5, 3, 1]
    grown = said(loss=loss, max_logit=20 * np.exp(LONG / 300))
    assert "a spike at step 600, and recovers. It has 3 other rises." in grown["attention_max_logit"]
    calm = said(loss=loss, max_logit=np.full(1000, 20.0))
    assert "a spike at step 120, and recovers. It has 3 other rises." in calm["one_batch"]
    alone = said(loss=np.where(LONG > 500, noisy(np.full(1000, 2.5), 0.01), loss), max_logit=np.full(1000, 20.0))
    assert "other" not in alone["one_batch"]
    updates = said(loss=loss, update_norm=np.where(LONG == 697, 9.0, 1.0))
    assert "before the loss moved. The loss has a spike at step 700" in updates["updates"]


def test_a_bound_of_rises_names_the_noise() -> None:
    logits = np.full(200, 120.0)
    spiky = np.where(np.isin(STEPS, (100, 140)), FALLING + 0.6, FALLING)
    assert "four times its noise may not count" in said(loss=FALLING)["healthy"]
    assert "four times its noise may not count" in said(loss=spiky)["small_spikes"]
    assert "and four times its noise)" in said(loss=FALLING, max_logit=logits)["large_logits"]


@pytest.mark.parametrize("seed", range(4))
def test_logits_whose_last_rows_do_not_grow_are_not_said_to_pass_100(seed: int) -> None:
    rise = 5 * np.exp(LONG * np.log(16) / 800)
    courses = {
        "falls": np.where(LONG < 800, rise, 80 - 30 * (LONG - 800) / 200),
        "flat": np.where(LONG < 700, rise, rise[700]),
        "grows": 5 * np.exp(LONG * np.log(12) / 1000),
        "grows more slowly": 5 + 55 * LONG / 1000,
    }
    for name, course in courses.items():
        keys = said(loss=2.5 + 8 * np.exp(-LONG / 80), max_logit=noisy(course, 0.03, seed))
        assert ("growing_logits" in keys) is name.startswith("grows"), name
    assert "It has grown over the later two thirds" in keys["growing_logits"]


def test_a_logit_that_is_clipped_at_100_is_written_as_100() -> None:
    assert "is about 100 in" in said(loss=FALLING, max_logit=np.minimum(100, 20 * np.exp(STEPS / 60)))["large_logits"]


def test_growth_of_logits_that_are_large_is_not_in_order() -> None:
    loss = np.where(STEPS == 100, 2.5, FALLING)
    findings = of_logs([run(log(loss=loss, max_logit=8 * np.exp(STEPS / 50)))], "x").findings
    (grown,) = (finding for finding in findings if finding.key == "growth")
    assert findings[0].key == "one_batch"
    assert grown.level == "watch"


def test_before_the_first_row_of_a_log_there_is_nothing_to_start_from() -> None:
    large = np.full(200, 300.0)
    assert (
        "Start anew, or from before the log begins, with"
        in said(loss=LOST_LATE, max_logit=large)["attention_max_logit"]
    )
    one_hot = {"loss": FALLING, "entropy": np.full(200, 0.05)}
    assert "Start anew, or from before the log begins, with" in said(**one_hot, max_logit=large)["nearly_one_hot"]
    assert "Start again from before step 93, with" in said(**one_hot, max_logit=GROWN)["nearly_one_hot"]
    lost = np.full(200, LOST)
    assert "start anew, or from before the log begins" in said(loss=lost, max_logit=large)["together_max_logit"]


def test_a_gradient_that_is_lost_beside_a_loss_is_said_to_be_beside_one_that_is_finite() -> None:
    found = said(loss=FALLING, grad_norm=np.where(STEPS < 100, 1.0, LOST))["gradient_overflow"]
    assert "is not finite, and the loss is finite:" in found
