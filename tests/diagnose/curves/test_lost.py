"""A loss or a gradient that is not finite, is 0 at once, or ends before the log."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from qkdemo.diagnose.curves.causes import run
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.readers.logs import read_logs
from tests.diagnose.curves.courses import FALLING, GROWN, LOST, NONE, STEPS, log, said


def test_a_gradient_that_overflows_beside_a_finite_loss_is_no_matter_of_logits() -> None:
    found = run(log(loss=FALLING, grad_norm=np.where(STEPS < 100, 1.0, LOST), max_logit=np.full(200, 8.0)))
    assert found.causes[0].key == "gradient_overflow"
    assert found.events == ()


@pytest.mark.parametrize("since", [0, 100])
@pytest.mark.parametrize("prefix", ["", "train/"])
def test_a_loss_that_the_trainer_may_have_left_out_is_not_said_to_be_finite(prefix: str, since: int) -> None:
    """Its log has a mean of the others in the place of a loss that is lost, or 0."""
    for loss in (FALLING, np.where(since > STEPS, FALLING, 0.0)):
        columns = {"loss": loss, "grad_norm": np.where(since > STEPS, 1.0, LOST)}
        columns |= {"learning_rate": np.full(200, 1e-4), "epoch": STEPS / 100}
        found = run(log(**{f"{prefix}{name}": column for name, column in columns.items()}))
        keys = {cause.key for cause in found.causes} - {"healthy", "few_losses"}
        assert keys == ({"gradient_or_loss"} if loss is FALLING else {"loss_zeros", "cannot_tell"})
        assert [event.start for event in found.events] == ([] if loss is FALLING else [since])


def test_a_trainer_whose_log_holds_a_lost_loss_leaves_none_out() -> None:
    columns = {"loss": np.where(STEPS < 150, FALLING, LOST), "grad_norm": np.where(STEPS < 140, 1.0, LOST)}
    found = run(log(**columns, learning_rate=np.full(200, 1e-4), epoch=STEPS / 100))
    assert {"gradient_overflow"} == {cause.key for cause in found.causes if cause.key.startswith("gradient")}


def test_a_loss_that_ends_before_the_log_does_is_not_called_well() -> None:
    """As pandas writes a run whose loss is NaN from step 150 on."""
    rate = np.full(200, 1e-4)
    found = run(log(loss=np.where(STEPS < 150, FALLING, np.nan), lr=rate))
    assert not found.healthy
    assert (found.causes[0].key, found.causes[0].numbers) == ("loss_ends", {"step": 149.0, "until": 199.0})
    assert run(log(loss=np.where(STEPS < 197, FALLING, np.nan), lr=rate)).healthy
    assert run(log(loss=np.where(STEPS % 10 == 0, FALLING, np.nan), lr=rate)).healthy


@pytest.mark.parametrize("beside", ["", "tokens_per_s", "val_loss"])
def test_a_loss_that_ends_before_any_column_or_step_is_not_called_well(beside: str) -> None:
    """Whatever the column is, and if rows hold nothing but their step; not, if it counts other steps, as samples."""
    found = read_logs(table(lost_from=150, rows=200, beside=beside), "a.csv")
    assert (run(found[0]).causes[0].key, run(found[0]).causes[0].numbers["until"]) == ("loss_ends", 199)
    (late,) = read_logs(table(lost_from=197, rows=200, beside=beside), "a.csv")
    assert [(cause.key, cause.numbers) for cause in run(late).causes] == [
        ("cells_empty", {"loss": 3.0}),
        ("healthy", {}),
    ]
    sparse = np.where((STEPS % 10 == 0) & (STEPS < 195), FALLING, np.nan)
    assert run(log(loss=sparse, tokens=STEPS)).healthy
    other = np.where((STEPS < 150) & (STEPS % 2 == 0), FALLING, np.nan)
    assert run(log(**{"loss": other, "loss vs samples": np.where(STEPS % 2 == 1, 1.0, np.nan)})).healthy


def table(*, lost_from: int, rows: int, beside: str) -> bytes:
    """CSV as pandas writes it, with a loss that is NaN from a row on."""
    cells = [
        ",".join([str(at), "" if at >= lost_from else str(FALLING[at]), *["1.5"] * bool(beside)]) for at in range(rows)
    ]
    return "\n".join([",".join(["step", "loss", *filter(None, [beside])]), *cells]).encode()


def test_a_chart_of_a_run_that_is_longer_says_nothing_of_the_end_of_another() -> None:
    rows = [f"{at},{FALLING[at]},,,{FALLING[at] if at < 100 else ''},," for at in range(200)]
    edges = [f"{run} - loss{edge}" for run in "ab" for edge in ("", "__MIN", "__MAX")]
    logs = read_logs("\n".join([",".join(["Step", *edges]), *rows]).encode(), "a.csv")
    assert [(len(each.step), run(each).healthy) for each in logs] == [(200, True), (100, True)]


@pytest.mark.parametrize("since", [0, 100])
def test_a_loss_that_is_0_at_once_is_taken_for_lost(since: int) -> None:
    """As the Trainer before transformers 4.38 logs it, without the norm of the gradient."""
    zeros = np.where(since > STEPS, FALLING, 0.0)
    found = run(log(loss=zeros, learning_rate=np.full(200, 1e-4), epoch=STEPS / 100))
    assert [(cause.key, cause.numbers["step"]) for cause in found.causes] == [
        ("loss_zeros", since),
        ("cannot_tell", since),
    ]
    said = [finding.sentence for finding in of_logs([found], "a").findings]
    assert all(sentence.startswith(f"From step {since} on every logged loss is exactly 0.") for sentence in said[:2])
    assert not any("the loss is not finite" in sentence for sentence in said)
    if since:
        large = run(log(loss=zeros, max_logit=GROWN))
        assert [cause.key for cause in large.causes[:2]] == ["loss_zeros", "attention_max_logit"]


def test_a_loss_that_falls_to_0_by_and_by_or_is_back_is_not_taken_for_lost() -> None:
    learnt = np.round(3 * np.exp(-STEPS / 10), 4)
    assert (learnt[-80:] == 0).all()
    assert run(log(loss=learnt)).healthy
    assert run(log(loss=np.where(STEPS == 100, 0.0, FALLING))).healthy


def test_a_loss_of_two_decimals_that_falls_below_its_last_is_not_taken_for_lost() -> None:
    """As pytorch/examples prints it: 0.12, 0.03, 0.02, 0.01 and 0.00."""
    learnt = np.where(STEPS < 60, np.round(np.maximum(6 * np.exp(-STEPS / 8), 0.01), 2), 0.0)
    assert learnt[59] == 0.01
    assert run(log(loss=learnt)).healthy
    lost = run(log(loss=np.where(STEPS < 60, np.round(FALLING, 2), 0.0)))
    assert lost.causes[0].key == "loss_zeros"


def test_a_gradient_that_a_loss_scaler_leaves_out_is_no_alarm() -> None:
    """In the first steps while it finds its scale, and once in two thousand; lost more often, or to the end, it is."""
    for lost in (STEPS < 4, STEPS == 120, (STEPS < 4) | (STEPS == 120)):
        found = run(log(loss=FALLING, grad_norm=np.where(lost, LOST, 1.0)))
        assert found.healthy
        assert (found.causes[-1].key, found.causes[-1].numbers) == ("gradient_passed", {"step": STEPS[lost][-1]})
    for lost in (STEPS > 194, (STEPS % 20 == 0) & (STEPS > 30) & (STEPS < 180)):
        found = run(log(loss=FALLING, grad_norm=np.where(lost, LOST, 1.0)))
        assert found.causes[0].key == "gradient_overflow"
    gone = run(log(loss=np.where(STEPS > 150, LOST, FALLING), grad_norm=np.where(STEPS < 4, LOST, 1.0)))
    assert [(cause.key, cause.numbers["step"]) for cause in gone.causes] == [
        ("cannot_tell", 151),
        ("gradient_passed", 3),
    ]


SURE = np.where(STEPS < 100, 0.02 * STEPS, 14.0)


@pytest.mark.parametrize(
    ("beside", "key"),
    [
        ({"rewards/margins": SURE, "rewards/accuracies": np.ones(200)}, "margin_zeros"),
        ({"mean_reward": SURE, "margin": SURE}, "margin_zeros"),
        ({"rewards/chosen": SURE, "rewards/rejected": -SURE}, "margin_zeros"),  # what margin there is, is not logged
        ({"rewards/margins": np.where(STEPS < 100, 1.0, LOST)}, "loss_zeros"),
        ({"rewards/margins": np.where(STEPS < 100, 1.0, 0.5)}, "loss_zeros"),
        ({"reward_model/loss": SURE, "margin_of_safety": SURE}, "loss_zeros"),
    ],
)
def test_a_loss_of_preferred_answers_comes_to_0_as_their_margin_grows(beside: dict[str, Any], key: str) -> None:
    """As DPO logs it in four decimals: no mean of −log σ(margin), or of a hinge, is 0 where the margin's is below 1."""
    found = run(log(loss=np.where(STEPS < 100, 0.7 - 0.005 * STEPS, 0.0), **beside))
    assert (found.causes[0].key, found.causes[0].numbers) == (key, {"step": 100.0})
    assert bool(found.events) is (key == "loss_zeros")
    if key == "margin_zeros":
        (finding,) = of_logs([found], "a").findings
        assert "margin" in finding.sentence
        assert "margin" in finding.advice
        assert "label" not in finding.sentence + finding.advice


def test_a_loss_beside_a_lost_gradient_is_said_to_be_what_is_logged() -> None:
    found = said(loss=FALLING, grad_norm=np.where(STEPS < 100, 1.0, LOST))["gradient_overflow"]
    assert found.startswith(
        "At step 100 the norm of the gradient is not finite, and the logged loss is finite. From then"
    )
    assert "If that is the whole loss, the backward pass overflowed there," in found
    assert "A loss of one process, or of one micro-batch, can be finite beside others that are not." in found


def lost_gradient(*rows: int, since: int, **beside: Any) -> str:
    """What is said of a gradient that is lost in these rows, and from one on."""
    norm = np.where(np.isin(STEPS, rows) | (since <= STEPS), LOST, 1.0)
    return next(words for key, words in said(grad_norm=norm, **beside).items() if key.startswith("gradient"))


@pytest.mark.parametrize("trainer", [False, True])
def test_of_a_gradient_that_is_lost_for_good_the_step_at_which_that_begins_is_named(trainer: bool) -> None:
    """A scaler of float16 leaves out step 3, and at step 150 the run is lost."""
    beside = {"learning_rate": np.full(200, 1e-4), "epoch": STEPS / 200} if trainer else {}
    words = lost_gradient(3, since=150, loss=FALLING, **beside)
    assert words.startswith(
        "At step 150 the norm of the gradient is not finite, and the logged loss is finite. From then"
    )
    assert (
        "From then on no logged norm is finite. "
        "Before that it was not finite in 1 row that was looked at, first at step 3. " in words
    )
    assert ("Trainer" in words) is trainer
    loss_too = lost_gradient(3, since=150, loss=np.where(STEPS > 151, LOST, FALLING), **beside)
    assert loss_too.startswith("At step 150 the norm")
    often = lost_gradient(*range(40, 120, 5), since=200, loss=FALLING, **beside)
    assert often.startswith("At step 40 the norm")
    assert "finite. That is so in 16 rows that were looked at, the last at step 115. " in often
    alone = lost_gradient(since=199, loss=FALLING, **beside)
    assert "the logged loss is finite. If" in alone


def test_a_gradient_that_passed_is_no_cause_of_a_loss_that_is_lost_long_after() -> None:
    words = lost_gradient(3, since=150, loss=np.where(STEPS >= 150, LOST, FALLING))
    assert words.startswith(
        "At step 3 a logged norm of the gradient is not finite for the last time before the loss is lost, at"
    )
    assert "Between these steps every logged one is finite, and so is every logged loss of the training." in words


def test_of_a_loss_that_is_finite_again_it_is_said_and_when_it_is_lost_for_good() -> None:
    again = "At step 3 the loss is not finite. Later it is finite again; what it did then was not looked at. "
    once = np.where(STEPS == 3, LOST, FALLING)
    assert said(loss=once)["cannot_tell"].startswith(f"{again}The log holds")
    lost = said(loss=np.where(STEPS >= 150, LOST, once))["cannot_tell"]
    assert lost.startswith(f"{again}From step 150 on no logged loss is finite. The log holds")
    assert "again" not in said(loss=np.where(STEPS >= 150, LOST, FALLING))["cannot_tell"]


@pytest.mark.parametrize("earlier", [[100], [*range(100, 110)], [180], [*range(180, 190)]])
def test_of_zeros_that_last_the_first_is_named_and_none_that_came_before(earlier: list[int]) -> None:
    zeros = np.where(np.isin(STEPS, earlier) | (STEPS >= 194), 0.0, FALLING)
    found = run(log(loss=zeros)).causes[0]
    assert (found.key, found.numbers) == ("loss_zeros", {"step": 194.0})


@pytest.mark.parametrize("beside", [True, False])
def test_a_loss_that_is_missing_in_the_middle_of_a_log_is_not_called_well(beside: bool) -> None:
    """As pandas writes one that is NaN from step 80 to 119: rows with a rate, or with nothing but their step."""
    cells = [f"{at},{'' if 80 <= at < 120 else FALLING[at]},{'0.1' * beside}" for at in range(200)]
    (table_,) = read_logs("\n".join(["step,loss,lr", *cells]).encode(), "a.csv")
    (cause,) = run(table_).causes[:1]
    assert (cause.key, cause.numbers) == ("loss_gap", {"step": 79.0, "back": 120.0})
    (finding,) = of_logs([run(table_)], "a").findings
    assert finding.level == "watch"
    assert finding.sentence.startswith("Between step 79 and step 120 the log holds no loss")


@pytest.mark.parametrize("every", ["tenth", "wider", "doubling", "drawn", "sampled"])
def test_a_loss_that_is_logged_rarely_or_in_any_rows_has_no_gap(every: str) -> None:
    rows = {
        "tenth": STEPS % 10 == 0,
        "wider": (STEPS < 10) | (STEPS % 20 == 0),  # each of the first steps, then every twentieth
        "doubling": np.isin(STEPS, 2 ** np.arange(8)),
        "drawn": np.random.default_rng(1).random(200) < 0.3,
        "sampled": (STEPS < 80) | (STEPS >= 120),
    }[every]
    one = log(loss=np.where(rows, FALLING, NONE), lr=np.full(200, 0.1))
    found = run(replace(one, sampled=every == "sampled"))
    assert "loss_gap" not in [cause.key for cause in found.causes]


def test_evaluations_that_come_more_often_than_losses_are_no_end() -> None:
    """As the Trainer logs every 500th step, and evaluates every 50th: 990 steps hold one loss, and none is lost."""
    history: list[dict[str, Any]] = [{"step": step, "eval_loss": 2.5} for step in range(50, 991, 50)]
    history.insert(10, {"step": 500, "loss": 2.4})
    (log,) = read_logs(json.dumps({"log_history": history}).encode(), "trainer_state.json")
    assert "loss_ends" not in {cause.key for cause in run(log).causes}
    history += [{"step": step, "eval_loss": 2.5} for step in range(1000, 4001, 50)]
    (log,) = read_logs(json.dumps({"log_history": history}).encode(), "trainer_state.json")
    assert "loss_ends" in {cause.key for cause in run(log).causes}
