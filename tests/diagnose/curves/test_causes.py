"""What a loss is put down to: only what was seen before it moved."""

import numpy as np
import pytest

from qkdemo.diagnose.curves.causes import run
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.readers.columns import Log
from tests.diagnose.curves.courses import FALLING, FLAT, GROWN, LOST_LATE, NONE, STEPS, log, noise, said
from tests.diagnose.forty_runs import HEALTHY, ILL, diagnosed


def test_logits_are_blamed_only_if_they_were_large_before_the_loss_moved() -> None:
    first = run(log(loss=LOST_LATE, max_logit=GROWN))
    assert first.causes[0].key == "attention_max_logit"
    assert first.causes[0].numbers["since"] == 93
    assert first.causes[0].numbers["step"] == 150
    calm = run(log(loss=LOST_LATE, max_logit=10 + 0.1 * noise(3)))
    assert calm.causes[0].key == "not_attention"
    after = run(log(loss=LOST_LATE, max_logit=np.where(STEPS < 160, 10, 5000)))
    assert after.causes[0].key == "not_attention"


def test_large_logits_that_had_passed_long_before_the_loss_moved_are_not_blamed() -> None:
    once = np.where((STEPS > 20) & (STEPS < 40), 300.0, 8.0)
    found = run(log(loss=LOST_LATE, max_logit=once)).causes[0]
    assert found.key == "logits_passed"
    assert (found.numbers["last_large"], found.numbers["logit"], found.numbers["step"]) == (39, 8, 150)
    again = run(log(loss=LOST_LATE, max_logit=np.where(STEPS > 120, 900.0, once))).causes[0]
    assert (again.key, again.numbers["since"], again.numbers["logit"]) == ("attention_max_logit", 121, 900)
    briefly = run(log(loss=LOST_LATE, max_logit=np.where((STEPS > 120) & (STEPS % 3 > 0), 900.0, once))).causes[0]
    assert (briefly.key, briefly.numbers["since"]) == ("attention_max_logit", 121)  # a gap of a row is none


def test_an_entropy_that_was_low_long_before_the_loss_moved_is_not_blamed() -> None:
    once = np.where((STEPS > 20) & (STEPS < 40), 0.01, 0.7)
    assert run(log(loss=LOST_LATE, entropy=once)).causes[0].key == "entropy_alone"
    assert run(log(loss=LOST_LATE, entropy=once, max_logit=np.full(200, 8.0))).causes[0].key == "not_attention"


def test_logits_that_are_logged_rarely_count_and_those_of_a_column_that_ended_do_not() -> None:
    rarely = np.where(STEPS % 40 == 0, GROWN, NONE)
    assert run(log(loss=LOST_LATE, max_logit=rarely)).causes[0].key == "attention_max_logit"
    ended = np.where(STEPS < 100, GROWN, NONE)
    assert run(log(loss=LOST_LATE, max_logit=ended)).causes[0].key == "cannot_tell"


def test_what_shows_in_the_same_row_of_a_log_did_not_come_first() -> None:
    jumped = np.where(STEPS < 150, 10, 5000)
    found = run(log(loss=LOST_LATE, max_logit=jumped)).causes[0]
    assert (found.key, found.numbers["since"], found.numbers["step"]) == ("together_max_logit", 150, 150)
    gone = np.where(STEPS < 150, 0.7, 0.01)
    assert run(log(loss=LOST_LATE, entropy=gone)).causes[0].key == "together_entropy"
    earlier = np.where(STEPS < 149, 0.7, 0.01)
    assert run(log(loss=LOST_LATE, max_logit=jumped, entropy=earlier)).causes[0].key == "attention_entropy"
    (said,) = (
        finding
        for finding in of_logs([run(log(loss=LOST_LATE, max_logit=jumped))], "a").findings
        if finding.level == "bad"
    )
    assert "does not tell which came first" in said.sentence
    assert "logits came before" not in said.sentence


def test_an_entropy_that_is_gone_is_enough() -> None:
    found = run(log(loss=LOST_LATE, attn_entropy=np.where(STEPS < 100, 0.7, 0.01)))
    assert found.causes[0].key == "attention_entropy"


def test_without_logits_nobody_can_tell() -> None:
    assert run(log(loss=LOST_LATE)).causes[0].key == "cannot_tell"


def test_updates_that_jumped_first_are_named() -> None:
    updates = np.where(STEPS == 145, 9.0, 1.0)
    found = run(log(loss=LOST_LATE, update_norm=updates, max_logit=np.full(200, 8.0)))
    assert found.causes[0].key == "updates"
    assert found.causes[0].numbers["times"] == 9


def test_a_healthy_run_is_healthy_and_one_on_its_way_is_warned() -> None:
    assert run(log(loss=FALLING, max_logit=8 + 0.1 * noise(3))).healthy
    on_its_way = run(log(loss=FALLING, max_logit=5 * np.exp(STEPS / 80)))
    assert on_its_way.causes[0].key == "growing_logits"
    assert run(log(loss=FALLING, max_logit=GROWN)).causes[0].key == "large_logits"


def test_large_logits_with_one_hot_attention_are_said_before_the_loss_has_an_event() -> None:
    entropy = np.linspace(0.9, 0.05, 200)
    assert run(log(loss=FALLING, max_logit=GROWN, entropy=entropy)).causes[0].key == "nearly_one_hot"


def test_entropy_alone_that_is_not_gone_decides_nothing() -> None:
    assert run(log(loss=LOST_LATE, entropy=np.full(200, 0.3))).causes[0].key == "entropy_alone"


@pytest.mark.parametrize(("name", "seeds"), [("plain, ramp", 1), ("RMSNorm, ramp", 1)])
def test_runs_of_the_training_lab_are_told_apart(name: str, seeds: int) -> None:
    """Two of the forty; `python -m tests.diagnose.forty_runs` does them all."""
    settings, right = ILL[name] if name in ILL else (HEALTHY[name], ("healthy", "small_spikes"))
    assert all(result.causes[0].key in right for result in diagnosed(settings, seeds))


def test_a_low_entropy_counts_though_no_logit_is_large() -> None:
    found = run(log(loss=FLAT, max_logit=np.full(200, 60.0), entropy=np.full(200, 0.02)))
    assert found.causes[0].key == "stuck_one_hot"


def test_what_was_logged_only_after_the_loss_rose_tells_nothing_of_before() -> None:
    loss, late = FALLING.copy(), np.where(STEPS < 150, NONE, 0.3)
    loss[140:] = 3.0
    assert run(log(loss=loss, max_logit=late, entropy=late)).causes[0].key == "cannot_tell"


def test_updates_that_jumped_after_logits_were_large_did_not_come_first() -> None:
    updates = np.where(STEPS == 145, 9.0, 1.0)
    found = said(loss=LOST_LATE, update_norm=updates, max_logit=GROWN)
    assert "The updates jumped, too: at step 145" in found["updates"]
    assert "Large logits came before that" in found["attention_max_logit"]
    alone = said(loss=LOST_LATE, update_norm=updates, max_logit=np.full(200, 8.0))
    assert "The updates jumped first: at step 145" in alone["updates"]


def test_logits_that_were_large_from_the_first_row_on_are_said_to_be() -> None:
    found = said(loss=LOST_LATE, max_logit=np.full(200, 300.0))["attention_max_logit"]
    assert "already in the first row that holds it, at step 0, and the loss did this only at step 150" in found
    assert "values before that" not in found
    grown = said(loss=LOST_LATE, max_logit=GROWN)["attention_max_logit"]
    assert "100 or more at step 93, and in none of its last values before that, at most five." in grown
    passed = said(loss=LOST_LATE, max_logit=np.where((STEPS > 40) & (STEPS < 50), 300.0, GROWN))["attention_max_logit"]
    assert "at step 93, and in none of the five values before that; it had been so earlier, first at step 41." in passed
    gone = said(loss=LOST_LATE, entropy=np.full(200, 0.01))["attention_entropy"]
    assert "already in the first row that holds it, at step 0" in gone


def test_updates_jumped_too_where_any_measure_of_attention_was_bad_before() -> None:
    """The entropy is gone at 50, the updates jump at 140, the logits are large from 145 on, the loss moves at 150."""
    found = said(
        loss=LOST_LATE,
        max_logit=np.where(STEPS < 145, 60.0, 150.0),
        entropy=np.where(STEPS < 50, 0.6, 0.03),
        update_norm=np.where(STEPS == 140, 9.0, 1.0),
    )
    assert "jumped, too" in found["updates"]
    assert "Start again from before step 50" in found["attention_max_logit"]


@pytest.mark.parametrize("largest", [99.994, 99.996, 99.99999])
@pytest.mark.parametrize("before", [99.0, 130.0])
def test_a_logit_just_below_100_is_not_written_as_100(largest: float, before: float) -> None:
    """No sentence says that the largest was 100, and that none reached 100."""
    logits = np.where(STEPS < 60, before, largest)
    loss = FALLING + np.where(STEPS >= 120, 3.0, 0)
    finding = of_logs([run(log(loss=loss, max_logit=logits))], "x").findings[0]
    assert finding.key == ("logits_passed" if before > 100 else "not_attention")
    told = float(str(finding.values["logit"]))
    assert told == pytest.approx(largest, rel=1e-4)
    assert told < 100
    assert told >= largest or before < 100  # said to be at most


def test_large_logits_of_a_few_rows_are_told() -> None:
    logits = np.full(200, NONE)
    logits[::50] = 500.0
    keys = {finding.key for finding in of_logs([run(log(loss=FALLING, max_logit=logits))], "x").findings}
    assert "large_logits" in keys
    assert "healthy" not in keys


def test_the_step_at_which_a_logit_gets_large_is_told_from_the_last_of_the_log() -> None:
    found = Log(
        run="run",
        kind="csv",
        step=10_000_000 + 5 * STEPS,
        columns={"loss": FALLING, "max_logit": 60 * np.exp(0.002 * STEPS)},
    )
    (growing,) = (x for x in of_logs([run(found)], "x").findings if x.key == "growing_logits")
    assert "at about step 1.00013·10⁷." in growing.sentence  # not 1·10⁷, where the log begins: ln(100/60)/0.0004 on
