"""Cells without a value: those of rows of another kind, and those in which NaN was, as pandas writes it."""

import io
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from qkdemo.diagnose.curves import causes
from qkdemo.diagnose.findings.finding import Report
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.readers.cells.lacking import lacking
from qkdemo.diagnose.readers.cells.table import Table
from qkdemo.diagnose.readers.columns import ROLES
from qkdemo.diagnose.readers.logs import read_logs

RNG = np.random.default_rng(0)
ROWS = 400
LOSS = 2 + 8 * np.exp(-np.arange(ROWS) / 40) + 0.03 * RNG.standard_normal(ROWS)


def run_of(lost: list[int], *, every: int = 1, **columns: Any) -> pd.DataFrame:
    """A run whose loss was NaN in these steps, and is logged every so many rows."""
    made = pd.DataFrame({"step": np.arange(ROWS), "loss": LOSS, "lr": np.linspace(1e-3, 0, ROWS), **columns})
    made.loc[np.arange(ROWS) % every != 0, "loss"] = np.nan
    made.loc[lost, "loss"] = np.nan
    return made


def as_parquet(made: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    made.to_parquet(file)
    return file.getvalue()


WRITTEN: dict[str, Callable[[pd.DataFrame], bytes]] = {
    "csv": lambda made: made.to_csv(index=False).encode(),
    "csv with its index": lambda made: made.to_csv().encode(),
    "json lines": lambda made: made.to_json(orient="records", lines=True).encode(),
    "parquet": as_parquet,
}


def examined(data: bytes) -> Report:
    return of_logs([causes.run(log) for log in read_logs(data, "x")], "x")


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize(
    ("lost", "every"),
    [
        ([399], 1),  # a script that stops at NaN
        ([397, 398, 399], 1),
        ([200, 201, 202], 1),
        (sorted(RNG.choice(ROWS, 40, replace=False).tolist()), 1),
        ([390], 10),
        ([200, 210], 10),
    ],
)
def test_empty_cells_among_losses_are_told(*, written: str, lost: list[int], every: int) -> None:
    report = examined(WRITTEN[written](run_of(lost, every=every)))
    (said,) = (each.sentence for each in report.findings if each.key == "cells_empty")
    many = len(lost) > 1
    if every == 1:
        counted = f"{len(lost)} {'rows' if many else 'row'} of the training"
        assert f"loss has no value in {counted}, first at step {lost[0]}. Some" in said
    else:
        missing = f"one is missing in {len(lost)} {'rows' if many else 'row'}, first at step {lost[0]}. Some"
        assert f"Values of loss are 10 steps apart as a rule. By that {missing}" in said
    assert not report.healthy
    assert "healthy" not in {each.key for each in report.findings}


@pytest.mark.parametrize("written", WRITTEN)
def test_a_table_with_rows_of_other_kinds_has_no_empty_cells(written: str) -> None:
    """Evaluations, a learning rate and a last summary in rows of their own; a loss every ten rows of norms."""
    rows = [{"step": at, "loss": LOSS[at], "grad_norm": 1.0} for at in range(ROWS)]
    rows += [{"step": at, "eval_loss": LOSS[at], "eval_runtime": 2.0} for at in range(49, ROWS, 50)]
    rows += [{"step": at, "lr-AdamW": 1e-3} for at in range(0, ROWS, 7)]
    rows += [{"step": ROWS, "train_loss": 2.5, "train_runtime": 60.0}]
    kinds = pd.DataFrame(sorted(rows, key=lambda row: row["step"]))
    assert {each.key for each in examined(WRITTEN[written](kinds)).findings} == {"healthy"}
    for made in (run_of([], every=10), run_of([], val_loss=LOSS), run_of([])):
        assert examined(WRITTEN[written](made)).healthy


def test_empty_cells_of_gradients_and_logits_are_told() -> None:
    lost = np.isin(np.arange(ROWS), [250, 251])
    made = run_of([], grad_norm=np.where(lost, np.nan, 1.0), max_logit=np.where(np.arange(ROWS) > 300, np.nan, 8.0))
    made.loc[3, "grad_norm"] = np.inf
    report = examined(made.to_csv(index=False).encode())
    said = {each.key: each.sentence for each in report.findings}
    assert "grad_norm has no value in 2 rows of the training, first at step 250." in said["cells_empty"]
    assert "max_logit has no value in 99 rows of the training, first at step 301." in said["cells_empty"]
    assert "Every later one is finite" in said["gradient_passed"]  # of those that are logged


@pytest.mark.parametrize("written", WRITTEN)
def test_without_steps_rows_of_evaluations_are_not_counted_in_a_table(written: str) -> None:
    rows: list[dict[str, float]] = []
    for at in range(ROWS):
        rows.append({"epoch": at / 40, "loss": 9.0 if at == 250 else LOSS[at], "lr": 1e-3})
        rows += [{"epoch": (at + 1) / 40, "eval_loss": LOSS[at]}] * (at % 10 == 9)
    data = WRITTEN[written](pd.DataFrame(rows))
    assert "spike at step 250," in examined(data).findings[0].sentence
    alone = "\n".join(map(json.dumps, rows)).encode()
    assert "spike at step 250," in examined(alone).findings[0].sentence


def test_of_epochs_in_a_table_of_keras_the_last_one_is_told() -> None:
    """As pd.DataFrame(history.history).to_csv() has them, after TerminateOnNaN."""
    ended = [*LOSS[:40], np.nan]
    made = pd.DataFrame({"accuracy": [0.5] * 41, "loss": ended, "val_accuracy": [0.5] * 41, "val_loss": ended})
    (said,) = (each.sentence for each in examined(made.to_csv().encode()).findings if each.key == "cells_empty")
    assert "loss has no value in 1 row of the training, first at step 40." in said


def lacks(cells: list[Any], unread: tuple[int, ...] = ()) -> tuple[float, ...] | None:
    rows = [{"loss": x, "lr": 1.0} for x in cells]
    table = Table(rows, ["loss", "lr"], ROLES["lr"])
    found = lacking(table, "loss", np.isin(range(len(rows)), unread), range(len(rows)))
    return found and found[1:]


def test_cells_are_empty_where_others_stand_as_far_apart() -> None:
    assert lacks([1, 2, "", 3, 4, None]) == (2, 2, 0)
    assert lacks(["", 1, 2, "", 3]) == (2, 0, 0)
    assert lacks(["", "", 1, 2, 3]) is None  # it began later
    assert lacks([1, "", 2, "", "", "", 3, "", "", 4]) is None
    assert lacks([1, "", 2, "", 3, "", 4, "", "", "", 5]) == (1, 8, 2)
    assert lacks([1, "", 2, "", 3, "", 4, "", "", 5]) is None  # an epoch ends there
    assert lacks([1, math.nan, 2, math.nan, 3, math.nan, 4, *[math.nan] * 3, 5], (1, 3, 5, 7, 8, 9)) == (1, 8, 2)
    assert lacks([1, 2, 3]) is None
    table = Table([{"loss": 1}, {"val": 2}, {"loss": 3}], ["loss", "val"], ROLES["lr"])
    assert lacking(table, "loss", np.zeros(3, bool), range(3)) is None


@pytest.mark.parametrize(("log_steps", "eval_steps"), [(10, 25), (20, 50), (10, 50), (50, 20)])
def test_a_healthy_history_of_the_trainer_by_step_has_no_empty_cells(log_steps: int, eval_steps: int) -> None:
    """Of evaluations every other one falls on a step that is logged; the last row of LLaMA-Factory holds null."""
    rows: list[dict[str, Any]] = []
    for at in range(1, 2001):
        if at % log_steps == 0:
            rows.append({"step": at, "loss": 2.0, "grad_norm": 1.0, "learning_rate": 1e-4})
        if at % eval_steps == 0:
            rows.append({"step": at, "eval_loss": 2.0, "eval_runtime": 3.0})
    by_step = pd.DataFrame(rows).groupby("step").first().reset_index()
    pivot = by_step.drop(columns=["learning_rate", "eval_runtime"])
    for made in (by_step, pivot):
        assert "cells_empty" not in {each.key for each in examined(made.to_csv(index=False).encode()).findings}
    logged = [*({"current_steps": at, "loss": 2.0, "lr": 1e-4} for at in range(10, 1000, 10))]
    last = {"current_steps": 990, "loss": None, "lr": None, "percentage": 100.0}
    lines = "\n".join(map(json.dumps, [*logged, last])).encode()
    assert "cells_empty" not in {each.key for each in examined(lines).findings}


@pytest.mark.parametrize("lost", [[500], [500, 510], [300, 310, 320, 700]])
@pytest.mark.parametrize("column", ["loss", "grad_norm", "max_logit"])
def test_numbers_every_few_rows_between_nan_are_told_where_they_are_missing(column: str, lost: list[int]) -> None:
    """As with na_rep="NaN": what NaN stands for cannot be told there, but a number was due."""
    steps = np.arange(1000)
    falling = 2 + 8 * np.exp(-steps / 100)
    made = pd.DataFrame({"step": steps, "loss": falling, "lr": 1e-3})
    made[column] = np.where((steps % 10 == 0) & ~np.isin(steps, lost), falling, np.nan)
    for data in (made.to_csv(index=False, na_rep="NaN"), made.to_csv(index=False)):
        found = {each.key: each.sentence for each in examined(data.encode()).findings}
        assert set(found) <= {"cells_empty", "growth"}
        rows = f"{len(lost)} {'row' if len(lost) == 1 else 'rows'}"
        assert f"By that one is missing in {rows}, first at step {lost[0]}." in found["cells_empty"]


@pytest.mark.parametrize("beside", ["lr", "time"])
def test_a_row_of_an_evaluation_may_hold_a_rate_or_a_time(beside: str) -> None:
    rows: list[dict[str, float]] = []
    for at in range(ROWS):
        rows.append({"loss": 9.0 if at == 250 else LOSS[at], beside: 1e-3})
        rows += [{"eval_loss": LOSS[at], beside: 1e-3}] * (at % 10 == 9)
    assert "spike at step 250," in examined(pd.DataFrame(rows).to_csv(index=False).encode()).findings[0].sentence


def test_what_is_lost_to_the_end_between_nan_is_said_to_be_lost_and_not_empty() -> None:
    steps = np.arange(1000)
    norms = np.where((steps % 10 == 0) & (steps < 650), 1.0, np.nan)
    made = pd.DataFrame({"step": steps, "loss": 2 + 8 * np.exp(-steps / 100), "lr": 1e-3, "grad_norm": norms})
    found = {each.key: each.sentence for each in examined(made.to_csv(index=False, na_rep="NaN").encode()).findings}
    assert "cells_empty" not in found
    assert "At step 650 the norm of the gradient is not finite" in found["gradient_overflow"]


def json_lines(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join(map(json.dumps, rows)).encode()


def as_table(rows: list[dict[str, Any]]) -> bytes:
    """As pyarrow writes dictionaries of which one lacks a key."""
    file = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


@pytest.mark.parametrize("write", [json_lines, as_table])
@pytest.mark.parametrize("column", ["grad_norm", "loss"])
@pytest.mark.parametrize("evaluated", [False, True])
def test_rows_that_lack_a_column_do_not_change_what_nan_stands_for_in_others(
    *, write: Callable[[list[dict[str, Any]]], bytes], column: str, evaluated: bool
) -> None:
    """A script that logs float("nan") between its numbers; rows of evaluations have other keys."""
    rows: list[dict[str, Any]] = []
    for at in range(ROWS):
        rows += [{"step": at, "note": 1.0}] * (at == 15)
        row = {"step": at, "loss": LOSS[at], "lr": 1e-3, "grad_norm": 1.0}
        rows.append(row | ({column: math.nan} if at % 10 else {}))
        rows += [{"step": at, "eval_loss": LOSS[at]}] * (evaluated and at % 50 == 49)
    report = examined(write(rows))
    assert report.healthy
    assert {each.key for each in report.findings} <= {"healthy", "replaced"}


NOW_AND_THEN: dict[str, Callable[[int], bool]] = {
    "timm": lambda at: at % 100 % 30 == 0 or at % 100 == 99,  # the last batch of an epoch, too
    "the first ten rows": lambda at: at < 10 or at % 10 == 0,
    "powers of 1.2": lambda at: at in {int(1.2**power) for power in range(40)},
}


@pytest.mark.parametrize("when", NOW_AND_THEN)
@pytest.mark.parametrize("column", ["grad_norm", "loss"])
def test_nan_in_most_rows_with_numbers_after_it_again_and_again_is_no_lost_value(when: str, column: str) -> None:
    named = np.array([NOW_AND_THEN[when](at) for at in range(ROWS)])
    made = run_of([], grad_norm=1.0)
    made[column] = np.where(named, made[column], np.nan)
    found = {each.key: each for each in examined(made.to_csv(index=False, na_rep="NaN").encode()).findings}
    assert set(found) in ({"healthy", "between_nan"}, {"loss_ends", "between_nan"})  # as its gaps grow
    assert int(found["between_nan"].values["count"]) == (~named).sum()


def test_a_loss_that_is_lost_to_the_end_after_an_irregular_start_is_lost() -> None:
    named = np.array([(at < 10 or at % 10 == 0) and at < 250 for at in range(ROWS)])
    made = run_of([])
    made["loss"] = np.where(named, made["loss"], np.nan)
    (event,) = (each for each in examined(made.to_csv(index=False, na_rep="NaN").encode()).tables["events"])
    assert (event["kind"], event["from"]) == ("non_finite", 250)


def test_a_gradient_that_a_scaler_loses_now_and_then_is_not_taken_for_unlogged() -> None:
    norms = np.where(np.arange(ROWS) % 7 == 3, np.nan, 1.0)
    found = {x.key for x in examined(run_of([], grad_norm=norms).to_csv(index=False, na_rep="NaN").encode()).findings}
    assert "between_nan" not in found
    assert found & {"gradient_overflow", "gradient_or_loss"}


@pytest.mark.parametrize("written", WRITTEN)
def test_a_column_without_any_value_is_named(written: str) -> None:
    lost = run_of([], grad_norm=1.0, max_logit=8.0)
    lost["loss"] = np.nan
    found = {each.key: each for each in examined(WRITTEN[written](lost)).findings}
    assert "logits_alone" in found
    assert found["empty_column"].values["column"] == "loss"
    gone = {each.key: each for each in examined(WRITTEN[written](run_of([], grad_norm=np.nan))).findings}
    assert set(gone) == {"healthy", "empty_column"}
    assert gone["empty_column"].values["column"] == "grad_norm"


def test_of_columns_for_each_layer_the_one_with_the_most_empty_cells_is_told() -> None:
    lost = np.arange(ROWS) > 390
    layers = {f"attn/layer{at}/max_logit": np.where(lost & (at == 1), np.nan, 8.0) for at in range(3)}
    report = examined(run_of([], **layers).to_csv(index=False).encode())
    (said,) = (each.sentence for each in report.findings if each.key == "cells_empty")
    assert "attn/layer1/max_logit has no value in 9 rows of the training, first at step 391." in said


def test_an_evaluation_that_stands_in_half_of_the_rows_is_still_one() -> None:
    """41 evaluations, of which 21 fall on a row that is logged."""
    rows: list[dict[str, Any]] = []
    for at in range(0, 2001, 10):
        rows.append({"step": at, "loss": LOSS[at // 10], "lr": 1e-3} | ({"fid": 3.0} if at % 100 == 0 else {}))
        rows += [{"step": at + 5, "fid": 3.0}] * (at % 100 == 50)
    assert {x.key for x in examined(pd.DataFrame(rows).to_csv(index=False).encode()).findings} == {"healthy"}


@pytest.mark.parametrize("rows", [25_000, 60_000])
def test_of_a_long_log_the_last_gradient_before_the_loss_is_lost_is_found(rows: int) -> None:
    norms, loss = np.ones(rows), 2 + 8 * np.exp(-np.arange(rows) / 4000)
    norms[[5, 77, rows - 3001, *range(rows - 900, rows)]] = np.inf
    loss[rows - 900 :] = np.inf
    made = pd.DataFrame({"step": np.arange(rows), "loss": loss, "grad_norm": norms})
    (log,) = read_logs(made.to_csv(index=False).encode(), "x")
    (passed,) = (cause for cause in causes.run(log).causes if cause.key == "gradient_passed")
    assert passed.numbers == {"step": rows - 3001, "until": rows - 900}


@pytest.mark.parametrize(
    "values",
    [[f"tensor({x:.4f}, device='cuda:0')" for x in LOSS], [f"tensor({x:.4f})" for x in LOSS]],
)
def test_a_number_that_pytorch_printed_of_a_tensor_is_read(values: list[str]) -> None:
    made = run_of([])
    made["loss"] = values
    (log,) = read_logs(made.to_csv(index=False).encode(), "x")
    assert np.allclose(log.columns["loss"], LOSS, atol=1e-4)


@pytest.mark.parametrize("values", [[1.0, 2.0], {"mean": 1.0}, "sft"])
def test_a_column_of_something_else_than_numbers_is_not_said_to_be_empty(values: Any) -> None:
    rows = [{"step": at, "loss": LOSS[at], "grad_norm": values, "max_logit": values} for at in range(ROWS)]
    assert {each.key for each in examined(json_lines(rows)).findings} == {"healthy"}


MEASURED: dict[str, Callable[[int], bool]] = {
    "twice": lambda at: at % 200 == 0,
    "once": lambda at: at == 0,
    "late": lambda at: at >= 150,
    "early": lambda at: at < 150,
    "never": lambda at: False,
}


@pytest.mark.parametrize("when", MEASURED)
def test_nan_of_a_logit_beside_a_loss_that_goes_on_is_read_as_not_measured(when: str) -> None:
    named = np.array([MEASURED[when](at) for at in range(ROWS)])
    made = run_of([], max_logit=np.where(named, 8.0, np.nan))
    found = {each.key: each for each in examined(made.to_csv(index=False, na_rep="nan").encode()).findings}
    assert set(found) == {"healthy", "between_nan"}
    assert int(found["between_nan"].values["count"]) == (~named).sum()


@pytest.mark.parametrize("after", [0, 1])
def test_nan_of_a_logit_just_before_the_loss_is_lost_is_a_lost_logit(after: int) -> None:
    rows = [{"step": at, "loss": math.nan if at >= 200 + after else LOSS[at]} for at in range(ROWS)]
    rows = [row | {"max_logit": math.nan if row["step"] >= 200 else 8.0} for row in rows]
    (log,) = read_logs(json_lines(rows), "x")
    assert np.flatnonzero(np.isinf(log.columns["max_logit"]))[0] == 200


def test_what_another_run_of_a_table_has_is_not_lost_in_this_one() -> None:
    """As pd.concat leaves them: two runs, one without a gradient and a logit, whose loss may be called otherwise."""
    full, bare = run_of([], grad_norm=1.0, max_logit=8.0).assign(run="a"), run_of([]).assign(run="b")
    for other in (bare, bare.rename(columns={"loss": "train_loss"})):
        both = pd.concat([other, full])
        report = examined(both.to_csv(index=False).encode())
        assert {each.key for each in report.findings} == {"healthy"}
        written = examined(both.to_csv(index=False, na_rep="NaN").encode())
        empty = [each for each in written.findings if each.key == "empty_column"]  # it may be lost from the first row
        assert {(each.values["run"], each.values["column"]) for each in empty} == {
            ("run b: ", "grad_norm"),
            ("run b: ", "max_logit"),
        }
        assert {each.key for each in written.findings} == {"healthy", "empty_column"}


def scaled(*, lost: list[int], norms: list[int]) -> list[dict[str, Any]]:
    """A loss that is NaN in some steps, and a gradient that is in others."""
    rows = [{"step": at, "loss": math.nan if at in lost else LOSS[at], "lr": 1e-3} for at in range(ROWS)]
    return [row | {"grad_norm": math.nan if row["step"] in norms else 1.0} for row in rows]


@pytest.mark.parametrize(("lost", "norms"), [([100, 200, 300], [2, 5, 150]), (list(range(250, ROWS)), [2])])
def test_a_loss_that_is_lost_beside_a_finite_gradient_is_lost_wherever_gradients_are(
    lost: list[int], norms: list[int]
) -> None:
    rows = scaled(lost=lost, norms=norms)
    for data in (json_lines(rows), pd.DataFrame(rows).to_csv(index=False, na_rep="NaN").encode()):
        (log,) = read_logs(data, "x")
        assert np.flatnonzero(np.isinf(log.columns["loss"])).tolist() == lost
        assert np.flatnonzero(np.isinf(log.columns["grad_norm"])).tolist() == norms
        assert examined(data).tables["events"][0]["from"] == lost[0]


def test_a_loss_of_0_beside_a_lost_gradient_is_no_gradient_that_passed() -> None:
    """As the Trainer logs a step whose loss was lost."""
    rows = [
        {"step": at, "loss": LOSS[at], "grad_norm": 1.0, "learning_rate": 1e-3, "epoch": at / ROWS}
        for at in range(ROWS)
    ]
    rows[200] |= {"loss": 0.0, "grad_norm": math.nan}
    found = {each.key for each in examined(json.dumps({"log_history": rows}).encode()).findings}
    assert "gradient_or_loss" in found
    assert "gradient_passed" not in found


def test_of_a_long_log_the_largest_logit_and_the_lowest_entropy_are_looked_at() -> None:
    rows = 50_000
    logit, entropy = np.full(rows, 8.0), np.full(rows, 0.5)
    logit[10_001], entropy[20_003] = -5000.0, 0.01
    made = pd.DataFrame({"step": np.arange(rows), "attn_max_logit": logit, "attn_entropy": entropy})
    (log,) = read_logs(made.to_csv(index=False).encode(), "x")
    found = causes.run(log)
    assert len(found.log.step) < found.all_rows
    assert np.abs(found.log.columns["attn_max_logit"]).max() == 5000
    assert found.log.columns["attn_entropy"].min() == 0.01


@pytest.mark.parametrize(("since", "level"), [(200, "watch"), (195, "bad")])
def test_logits_that_are_lost_after_the_loss_are_no_cause_of_it(since: int, level: str) -> None:
    at = np.arange(ROWS)
    made = run_of([], max_logit=np.where(at >= since, np.inf, 8.0))
    made["loss"] = np.where(at >= 200 - (level == "watch"), np.nan, LOSS)
    levels = {x.key: x.level for x in examined(made.to_csv(index=False, na_rep="NaN").encode()).findings}
    assert levels["logits_lost"] == level
