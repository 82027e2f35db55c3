"""Values that come at steps of their own, in rows of their own or beside others, in healthy runs and in lost ones."""

import json
import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qkdemo.diagnose.curves import causes
from qkdemo.diagnose.findings.finding import Finding
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.readers.logs import read_logs
from qkdemo.notation import counted

ROWS = 600
RNG = np.random.default_rng(6)
LOSS = 3 + 7.8 * np.exp(-np.arange(ROWS) / 100) + 0.03 * RNG.standard_normal(ROWS)
LOST = 403


def findings(data: bytes) -> dict[str, Finding]:
    return {x.key: x for x in of_logs([causes.run(log) for log in read_logs(data, "x")], "x").findings}


def written(rows: list[dict[str, Any]]) -> Iterator[bytes]:
    yield "\n".join(map(json.dumps, rows)).encode()
    for nan in ("", "nan"):
        yield pd.DataFrame(rows).to_csv(index=False, na_rep=nan).encode()


def logits_apart(losses: int, logits: int, where: str, *, rate: bool) -> list[dict[str, Any]]:
    """A healthy run whose logits stand in rows of their own: a callback's, before or behind that of the loss."""
    rows: list[dict[str, Any]] = []
    for at in range(ROWS):
        trained: dict[str, Any] = {"step": at, "loss": LOSS[at], "grad_norm": 0.5} if at % losses == 0 else {}
        trained |= {"lr": 1e-3} if trained and rate else {}
        measured = {"step": at, "attn/max_logit": 9 + RNG.random()} if at % logits == 0 else {}
        both = [trained | measured] if where == "beside" else [trained, measured][:: 1 if where == "behind" else -1]
        rows += filter(None, both)
    return rows


@pytest.mark.parametrize("where", ["beside", "before", "behind"])
def test_logits_in_rows_of_their_own_leave_a_healthy_run_healthy(where: str) -> None:
    for losses, logits, rate in product((1, 5, 20), (3, 10, 25, 100), (False, True)):
        for data in written(logits_apart(losses, logits, where, rate=rate)):
            assert findings(data).keys() <= {"healthy", "growth", "replaced"}, (losses, logits, rate, data[:60])


def lost_run(losses: int, norms: int, evaluated: str, *, gradient_alone: bool) -> list[dict[str, Any]]:
    """A run whose gradient is lost at a step that no cadence hits, and its loss with it, or not."""
    rows: list[dict[str, Any]] = []
    for at in range(ROWS):
        gone = at >= LOST and not gradient_alone
        row: dict[str, Any] = {"step": at, "lr": 1e-3}
        row |= {"loss": math.nan if gone else LOSS[at]} if at % losses == 0 else {}
        row |= {"grad_norm": math.nan if at >= LOST else 0.5} if at % norms == 0 else {}
        if evaluated and at % 50 == 49:
            seen = {"val_loss": math.nan if gone else 3.2}
            rows += [row | seen] if evaluated == "beside" else [row, {"step": at, **seen}]
        else:
            rows.append(row)
    return rows


@pytest.mark.parametrize("evaluated", ["", "beside", "apart"])
@pytest.mark.parametrize("gradient_alone", [False, True])
def test_of_a_lost_run_no_row_is_counted_in_which_nothing_was_due(*, gradient_alone: bool, evaluated: str) -> None:
    for losses, norms in product((1, 5, 10), (1, 5, 10)):
        rows = lost_run(losses, norms, evaluated, gradient_alone=gradient_alone)
        lines, empty, filled = map(findings, written(rows))
        due = [at for at in range(LOST, ROWS) if at % norms == 0]
        said = empty["cells_empty"].sentence
        assert f"{len(due)} rows" in said, (losses, norms, said)
        assert f"first at step {due[0]}." in said
        for found in (lines, filled):
            assert "cells_empty" not in found, (losses, norms, found["cells_empty"].sentence)
            first = next(at for at in range(LOST, ROWS) if at % losses == 0 and at % norms == 0)
            if gradient_alone:
                assert f"At step {first} the norm" in found["gradient_overflow"].sentence
            else:
                lost = next(at for at in range(LOST, ROWS) if at % losses == 0)
                assert f"At step {lost} the loss is not finite" in found["cannot_tell"].sentence


def test_a_last_row_of_counters_alone_is_no_lost_loss() -> None:
    """As LLaMA-Factory ends its log."""
    rows = [{"current_steps": at, "loss": LOSS[at], "lr": 1e-4, "epoch": at / 100} for at in range(0, ROWS, 5)]
    rows.append({"current_steps": ROWS, "epoch": 6.0, "percentage": 100.0})
    for data in written(rows):
        assert findings(data).keys() == {"healthy"}


def test_an_epoch_that_lacks_a_gradient_is_told_beside_its_evaluation() -> None:
    for lost in (range(40, 60), range(20, 40)):
        rows = [{"epoch": at, "loss": LOSS[at], "val_loss": LOSS[at], "grad_norm": 1.0} for at in range(60)]
        made = pd.DataFrame(rows)
        made.loc[list(lost), "grad_norm"] = np.nan
        said = findings(made.to_csv(index=False).encode())["cells_empty"].sentence
        assert f"grad_norm has no value in 20 rows of the training, first at step {lost[0]}." in said


def test_a_loss_of_0_before_a_summary_does_not_make_a_lost_logit_unmeasured() -> None:
    """As the Trainer logs its mean loss in the last row."""
    rows: list[dict[str, Any]] = []
    for at in range(10, 2001, 10):
        gone = at >= 1010
        rows.append({"step": at, "loss": 0.0 if gone else LOSS[at // 10], "grad_norm": math.nan if gone else 0.5})
        rows[-1] |= {"learning_rate": 1e-4, "epoch": at / 1000}
        rows += [{"step": at, "epoch": at / 1000, "attn/max_logit": math.nan if gone else 9.0}] * (at % 50 == 0)
    rows.append({"step": 2000, "epoch": 2.0, "train_loss": 4.2, "train_runtime": 60.0})
    found = findings(json.dumps({"log_history": rows}).encode())
    assert "between_nan" not in found
    assert found["logits_lost"].values["step"] == "1\u202f050"


@pytest.mark.parametrize("lost", [range(30, 60), range(20, 22)])
def test_a_loss_that_is_lost_in_rows_without_any_number_is_lost(lost: range) -> None:
    """As json.dump(history.history) of Keras: every column is lost at once, and none counts."""
    losses = [math.nan if at in lost else LOSS[at] for at in range(60)]
    history = {"loss": losses, "val_loss": losses}
    made = pd.DataFrame(history)
    lines = "\n".join(map(json.dumps, made.to_dict("records"))).encode()
    for data in (json.dumps(history).encode(), lines, made.to_csv(index=False, na_rep="nan").encode()):
        (log,) = read_logs(data, "x")
        assert np.flatnonzero(np.isinf(log.columns["loss"])).tolist() == list(lost)


@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize("apart", [False, True])
def test_a_run_that_went_on_from_an_earlier_step_counts_steps_and_not_rows(*, apart: bool, every: int) -> None:
    lost, seen = 250 * every, 5 * every
    rows: list[dict[str, Any]] = []
    for at in [*range(every, 133 * every, every), *range(120 * every, 400 * every, every)]:
        gone = at >= lost
        row = {"step": at, "lr": 1e-4, "loss": math.nan if gone else LOSS[at // every]}
        logit = {"max_logit": math.nan if gone else 9.0} if at % seen == 0 else {}
        rows += [row, {"step": at} | logit] if apart and logit else [row | logit]
    lines, empty, filled = map(findings, written(rows))
    due = range(lost, 400 * every, seen)
    said = empty["cells_empty"].sentence
    if not apart:
        assert f"max_logit are {seen} steps apart as a rule. By that one is missing in {len(due)} rows" in said
    assert f"first at step {counted(due[0])}." in said
    for found in (lines, filled):
        assert found["logits_lost"].values["step"] == counted(due[0])
        assert "cells_empty" not in found


def test_gradients_and_logits_whose_steps_do_not_nest_are_no_holes() -> None:
    rows = [
        {"step": at, "lr": 1e-4, "loss": LOSS[at]}
        | ({"grad_norm": 0.5} if at % 2 == 0 else {})
        | ({"max_logit": 9.0} if at % 5 == 0 else {})
        for at in range(400)
    ]
    for data in written(rows):
        assert findings(data).keys() == {"healthy"}


def test_a_run_whose_loss_is_lost_from_its_first_row_on_is_not_read_by_what_is_added_to_one() -> None:
    rows = [{"run": run, "step": at, "loss": LOSS[at], "z_loss": 1e-5} for run in "ab" for at in range(100)]
    rows = [row | ({"loss": math.nan} if row["run"] == "b" else {}) for row in rows]
    for data in (next(written(rows)), list(written(rows))[2]):
        said = [x.sentence for x in of_logs([causes.run(log) for log in read_logs(data, "x")], "x").findings]
        assert any("At step 0 the loss is not finite" in sentence for sentence in said)


def test_a_head_whose_logits_are_lost_is_the_worst_of_its_step() -> None:
    """As `watch` writes it: the measures of that head are "nan", and rows of its softmax undefined."""
    rows: list[dict[str, Any]] = []
    for at in range(60):
        lost = at >= 40
        rows.append({"step": at, "layer": "0", "head": 0, "max_logit": 5.0, "undefined_rows": 0.0})
        rows.append({"step": at, "layer": "1", "head": 1, "max_logit": "nan" if lost else 4.0})
        rows[-1]["undefined_rows"] = 1.0 if lost else 0.0
        rows.append({"step": at, "layer": "2", "head": 0, "max_logit": "nan", "undefined_rows": 0.0})  # sees no key
        rows.append({"step": at, "layer": None, "loss": LOSS[at]})
    found = findings("\n".join(map(json.dumps, rows)).encode())
    assert found["logits_lost"].values["step"] == "40"
    assert "head 1" in found["worst_head"].sentence


@pytest.mark.parametrize("apart", [False, True])
def test_logits_that_are_nan_beside_a_loss_are_not_lost_at_the_next_evaluation_or_the_end(*, apart: bool) -> None:
    rows: list[dict[str, Any]] = []
    for at in range(1, 401):
        logit = {"max_logit": 9.0 if at < 203 else math.nan} if at % 5 == 0 else {}
        row = {"step": at, "loss": LOSS[at], "lr": 1e-4}
        rows += [row, {"step": at} | logit] if apart and logit else [row | logit]
        rows += [{"step": at, "eval_loss": LOSS[at], "eval_runtime": 3.0}] * (at % 100 == 0)
    lines, empty, filled = map(findings, written(rows))
    assert "cells_empty" in empty
    for found in (lines, filled):
        if apart:  # a row that holds nothing else was written for that NaN
            assert found["logits_lost"].values["step"] == "205"
        else:
            assert "logits_lost" not in found
            assert found.keys() & {"between_nan", "cells_empty"}


def test_steps_that_begin_anew_are_counted_on_where_the_loss_is_lost() -> None:
    rows = [{"iter": at % 40 * 10, "loss": math.nan if at >= 150 else LOSS[at], "lr": 1e-4} for at in range(200)]
    lines, empty, filled = map(findings, written(rows))
    for found in (lines, filled):
        assert f"At step {counted(1500)} the loss is not finite" in found["cannot_tell"].sentence
        assert found.keys() == {"cannot_tell", "steps_of_passes"}
    assert empty["loss_ends"].values["until"] == counted(1990)


@pytest.mark.parametrize("written_as", ["NaN", ""])
def test_a_loss_that_is_lost_in_the_first_of_several_passes_is_lost_there(written_as: str) -> None:
    """A table of steps from 0 to 490 in each of 4 epochs, and no column that names these."""
    made = pd.DataFrame({"step": [at % 50 * 10 for at in range(200)], "loss": LOSS[:200], "lr": 1e-4})
    made.loc[31:, "loss"] = np.nan
    found = findings(made.to_csv(index=False, na_rep=written_as).encode())
    if written_as:
        assert found["cannot_tell"].values["step"] == "310"
        assert found.keys() == {"cannot_tell", "steps_of_passes"}
    else:
        assert found["loss_ends"].values["step"] == "300"


def test_runs_one_after_the_other_that_are_lost_each_are_no_passes() -> None:
    """Each begins with a finite loss."""
    rows = [{"step": at % 50 * 10, "loss": math.nan if at % 50 > 30 else LOSS[at % 50]} for at in range(200)]
    for data in written(rows):
        assert "steps_of_passes" not in findings(data)


@pytest.mark.parametrize("every", [10, 50])
def test_runs_with_an_evaluation_at_both_ends_are_no_passes(every: int) -> None:
    """In a table of them all, where NaN stands for the loss that an evaluation does not have."""
    rows = list[dict[str, Any]]()
    for _ in range(3):
        for step in range(0, 1001, every):
            rows += [{"step": step, "train_loss": LOSS[step // 10], "val_loss": math.nan}] * (step > 0)
            rows += [{"step": step, "train_loss": math.nan, "val_loss": LOSS[step // 10]}] * (step % 100 == 0)
    found = findings(pd.DataFrame(rows).to_csv(index=False, na_rep="NaN").encode())
    assert found.keys() == {"healthy", "replaced"}


def test_a_loss_that_is_lost_from_the_second_pass_on_is_lost_there() -> None:
    rows = [{"step": at % 50, "loss": math.nan if at >= 50 else LOSS[at]} for at in range(200)]
    assert findings(pd.DataFrame(rows).to_csv(index=False, na_rep="NaN").encode())["cannot_tell"].values["step"] == "50"


@pytest.mark.parametrize("logits", [50, 200])
@pytest.mark.parametrize("coarser", [5, 10, 50])
def test_what_a_restart_replaced_is_gone_from_columns_that_it_has_not_come_back_to(logits: int, coarser: int) -> None:
    """The loss is lost at step 1800; the run goes on from step 1500, and has not come as far again, or logs less."""
    rows: list[dict[str, Any]] = []
    until = {5: 1530, 10: 1750, 50: 1900}[coarser]
    for run, steps in (("first", range(10, 2000, 10)), ("second", range(1510, until, 10))):
        for at in steps:
            gone = run == "first" and at >= 1800
            row = {"step": at, "loss": math.nan if gone else LOSS[at // 10], "lr": 1e-4}
            row |= {"max_logit": math.nan if gone else 9.0, "grad_norm": 0.5} if at % logits == 0 else {}
            rows += [row] if run == "first" or at % coarser == 0 else []  # 5: two rows of the second run
    for data in written(rows):
        assert findings(data).keys() <= {"healthy", "replaced"}


@pytest.mark.parametrize("evaluations", [60, 120, 130, 240])
def test_a_lost_evaluation_before_the_next_loss_is_no_hole_between_numbers(evaluations: int) -> None:
    """As Lightning's metrics, read by pandas and written with na_rep: all is lost after step 1400."""
    rows: list[dict[str, Any]] = []
    for at in range(1, 2001):
        gone = at > 1400
        if at % 50 == 0:
            rows.append({"step": at - 1, "train_loss": math.nan if gone else LOSS[at // 10], "epoch": 0})
            rows[-1]["grad_norm"] = math.nan if gone else 0.5
        if at % evaluations == 0:
            rows.append({"step": at - 1, "val_loss": math.nan if gone else LOSS[at // 10], "epoch": 0})
    found = findings(list(written(rows))[2])
    assert f"At step {counted(1449)} the loss is not finite" in found["cannot_tell"].sentence
    assert "between_nan" not in found
