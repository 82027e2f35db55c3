"""Rises of a loss without a jump, or in noise, and what came before them; logits whose last rows do not grow."""

from typing import Any

import numpy as np
import pytest

from qkdemo.diagnose.curves.causes import run
from qkdemo.diagnose.curves.loss import loss_events
from qkdemo.diagnose.findings.examine import examine
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.samples import SAMPLES
from tests.diagnose.curves.courses import FALLING, GROWN, LOST, LOST_LATE, STEPS, log, said

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
    assert found.startswith("The loss rises, and falls again, at least in part. From about step 4")
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
    assert (
        "a spike from step 600 on, and has recovered by step 604. It has 3 other rises." in grown["attention_max_logit"]
    )
    calm = said(loss=loss, max_logit=np.full(1000, 20.0))
    assert "a spike from step 120 on, and has recovered by step 124. It has 3 other rises." in calm["one_batch"]
    alone = said(loss=np.where(LONG > 500, noisy(np.full(1000, 2.5), 0.01), loss), max_logit=np.full(1000, 20.0))
    assert "other" not in alone["one_batch"]
    updates = said(loss=loss, update_norm=np.where(LONG == 697, 9.0, 1.0))
    assert "before the loss moved. The loss has a spike from step 700 on" in updates["updates"]


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


FELL = (
    ([3.3228, 2.827, 2.7991, 2.6626, 1.6389, 0.4156, 0.0333, 0.0102, 0.0098, 0.0095, 0.2415, 0.0225], [10]),
    ([3.14, 2.913, 2.824, 2.872, 2.813, 2.541, 1.81, 0.388, 0.131, 0.079, 0.383, 0.153, 0.367, 0.148, 0.042], [10, 12]),
)


@pytest.mark.parametrize(("start", "at"), FELL)
def test_a_spike_soon_after_a_fast_fall_is_one(start: list[float], at: list[int]) -> None:
    """Of the last ten values most are those before the fall. Both are runs of the training lab, thinned."""
    loss = np.array([*start, *[0.02] * 20])
    assert [event.start for event in loss_events(loss)] == at
    assert loss_events(np.minimum.accumulate(loss)) == ()


def test_of_spikes_right_after_a_fast_fall_none_is_denied() -> None:
    assert "nor may those within a few rows of a fast fall" in said(loss=FALLING)["healthy"]


@pytest.mark.parametrize("seed", range(6))
def test_what_got_large_while_a_loss_slowly_rose_is_not_said_to_have_come_first(seed: int) -> None:
    """The loss rises from 500 on, and is clearly above its lowest at about 600; logits and updates jump at 570."""
    course = (2 + 2.3 * np.exp(-LONG / 40)) * (1 + 0.0012 * np.maximum(0, LONG - 500))
    loss, jump = noisy(course, 0.01, seed), LONG >= 570
    found = said(loss=loss, max_logit=np.where(jump, 150.0, 20.0))["rising_max_logit"]
    assert "100 or more at step 570" in found
    low = run(log(loss=loss)).events[0].begun - 1
    assert 300 < low < 530
    assert f"By then the loss may have been rising: only until about step {low} was it as low as before" in found
    assert "The log does not tell which came first." in found
    assert f"Start again from before step {low}, with" in found
    assert "rising_entropy" in said(loss=loss, entropy=np.where(jump, 0.01, 0.7))
    near = run(log(loss=loss)).events[0].start - 5
    updates = said(loss=loss, update_norm=np.where(near == LONG, 9.0, 1.0))["updates"]
    assert updates.startswith(f"The updates jumped: at step {near} their norm was 9 times the usual. By then the loss")
    assert "before the loss moved" not in updates
    before = said(loss=loss, max_logit=np.where(LONG >= 300, 150.0, 20.0))["attention_max_logit"]
    assert "Large logits came before that: the largest was 100 or more at step 300" in before


@pytest.mark.parametrize("slow", [False, True])
def test_a_loss_that_falls_again_in_part_is_not_said_to_come_back(slow: bool) -> None:
    """0.98, up to 1.9, then 1.22 from 260 on: with so much noise that a median of a few may be nearly as low as before.

    Where even medians of many rows leave that open, no more is said than that it falls again.
    """
    steps, parts = np.arange(500), 0
    course = np.interp(steps, [180, 259, 260], [0.98, 1.9, 1.22]) if slow else 0.98 + 0.24 * (steps >= 200)
    course = course + 2.5 * np.exp(-steps / 20) + (0 if slow else (steps >= 200) & (steps < 260))
    for seed in range(6):
        loss = course + 0.16 * np.random.default_rng(seed).standard_normal(500)
        words = said(loss=loss, max_logit=np.where(steps < 50, 20.0, 150.0))["attention_max_logit"]
        assert "recovers" not in words
        assert "came back" not in words
        parts += "falls again in part, and ends above " in words
        assert all(event.kind == "spike" for event in loss_events(loss - 0.24 * (steps >= 260)))
    assert parts >= 3


@pytest.mark.parametrize(("row", "factor"), [(990, 1.5), (880, 1.3)])
def test_a_late_jump_does_not_hide_that_a_loss_rose_long_before(row: int, factor: float) -> None:
    course = (2 + 2.3 * np.exp(-LONG / 40)) * (1 + 0.0012 * np.maximum(0, LONG - 400))
    loss = noisy(course, 0.01, 3) * np.where(row > LONG, 1, factor)
    words = said(loss=loss, max_logit=np.full(1000, 20.0))["not_attention"]
    assert words.startswith("The loss rises, and has not come back by the end of the log. From about step 4")
    late = said(loss=loss, max_logit=np.where(row - 60 > LONG, 20.0, 150.0))["attention_max_logit"]
    assert late.startswith("From about step 4")
    assert f"tep {row} " in late
    alone = loss / course * course[399]  # without the slow rise
    assert [event.start for event in loss_events(alone) if event.kind != "spike"] == [row]


def test_a_run_is_started_again_from_before_the_first_lasting_rise() -> None:
    """As in the bundled log: the loss is clearly above its lowest before its logits are large."""
    name, make = SAMPLES["log"]
    (cause,) = (finding for finding in examine(make(), name).findings if finding.key == "attention_max_logit")
    assert "From about step 87 on the loss is already clearly above its lowest." in cause.sentence
    assert "100 or more at step 98" in cause.sentence
    assert cause.advice.startswith("Start again from before step 87,")


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_a_loss_that_varies_the_less_the_lower_it_is_has_no_spike_but_where_one_stands_out(share: float) -> None:
    """As a fine-tuned model's has: each value of a row is a mean over examples. Every one of these was called ill."""
    course, alarms, seen = 0.1 + 1.9 * np.exp(-LONG / 200), 0, 0
    for seed in range(10):
        loss = course * np.random.default_rng(seed).gamma(share**-2, share**2, 1000)
        alarms += "cannot_tell" in said(loss=loss)
        spiky = np.where((LONG >= 300) & (LONG < 305), 3.0, loss)
        seen += "has a spike from step 300 on, and has recovered by step 305" in said(loss=spiky)["cannot_tell"]
    assert (alarms <= 1, seen) == (True, 10)


def test_a_logit_that_is_not_finite_is_no_large_one() -> None:
    """Of weights that were lost no logit is finite: beside calm ones before that shows nothing."""
    calm, late = np.linspace(10, 41, 1000), LONG >= 293
    loss = np.where(LONG >= 300, np.inf, 3 - LONG / 1000)
    words = said(loss=loss, max_logit=np.where(late, np.inf, calm))
    assert words["logits_lost"].startswith("At step 293 the largest logit is not finite.")
    assert "just before no finite one of 100 or more" in words["logits_gone"]
    assert not {"attention_max_logit", "together_max_logit", "not_attention"} & words.keys()
    for first in (293, 297):
        grown = said(loss=loss, max_logit=np.where(first <= LONG, np.inf, 10 * calm))["attention_max_logit"]
        assert "∞" not in grown
    flat = said(loss=np.full(1000, 2.8), max_logit=np.where(LONG >= 300, np.inf, calm))
    assert "stuck_calm" in flat


@pytest.mark.parametrize(("top", "end", "key"), [(10.0, 4.0, "never_below"), (20.0, 8.0, "beyond_start")])
def test_a_loss_that_ends_well_above_its_first_value_did_not_end_near_it(top: float, end: float, key: str) -> None:
    course = np.where(LONG == 0, 2.0, end + (top - end) * np.exp(-LONG / 200))
    words = said(loss=course * np.random.default_rng(0).gamma(100, 0.01, 1000))
    assert f"well above {'its first value, 2.019' if key == 'never_below' else 'the 2.019 of the start'}" in words[key]
    assert not {"stuck", "stuck_rate", "stuck_calm"} & words.keys()
