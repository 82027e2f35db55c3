"""Charts as Weights & Biases and TensorBoard save them, and runs that a column or a file names."""

import json

import pytest

from qkdemo.diagnose.readers.columns import roles
from qkdemo.diagnose.readers.logs import holds_history, read_logs
from tests.diagnose.readers.written import LOSS, NORM, ROWS, STEPS, table


def test_a_chart_has_a_run_a_curve_without_its_envelope() -> None:
    rows = [
        {"Step": s, "a - b - loss": x, "a - b - loss__MIN": x - 1, "a - b - loss__MAX": x + 1, "c - loss": 2 * x}
        for s, x in zip(STEPS, LOSS, strict=True)
    ]
    one, other = read_logs(table(rows), "chart.csv")
    assert (one.run, other.run) == ("a - b", "c")
    assert list(one.columns) == ["loss"]
    assert other.columns["loss"].tolist() == [2 * x for x in LOSS]


def test_a_chart_over_the_steps_of_a_trainer_has_its_runs_too() -> None:
    rows = [
        {
            "train/global_step": s,
            **{f"{run} - train/loss{end}": k * x for k, run in enumerate("ab", 1) for end in ("", "__MIN", "__MAX")},
        }
        for s, x in zip(STEPS, LOSS, strict=True)
    ]
    one, other = read_logs(table(rows), "chart.csv")
    assert (one.run, other.run) == ("a", "b")
    assert other.columns["train/loss"].tolist() == [2 * x for x in LOSS]
    (named,) = read_logs(table([{"step": s, "loss - total": x} for s, x in zip(STEPS, LOSS, strict=True)]), "x.csv")
    assert roles(named) == {"loss": "loss - total"}


@pytest.mark.parametrize("axis", ["Relative Time (Process)", "Relative Time (Wall)", "Wall Time", "tokens"])
def test_a_chart_over_a_time_has_its_runs_and_rows_for_steps(axis: str) -> None:
    rows = [
        {
            axis: 0.7 * s,
            **{f"{run} - train/loss{end}": k * x for k, run in enumerate("ab", 1) for end in ("", "__MIN", "__MAX")},
        }
        for s, x in zip(STEPS, LOSS, strict=True)
    ]
    plain = [{name: x for name, x in row.items() if "__" not in name} for row in rows]
    for made in (rows, plain) if axis != "tokens" else (rows,):
        logs = read_logs(table(made), "chart.csv")
        assert [(log.run, log.kind, log.steps, log.sampled) for log in logs] == [
            (run, "wandb_chart", "rows", True) for run in "ab"
        ]
        assert [list(log.columns) for log in logs] == [["train/loss"]] * 2
        assert logs[1].columns["train/loss"].tolist() == [2 * x for x in LOSS]
    counted = [
        {**row, **{f"a - _step{end}": s for end in ("", "__MIN", "__MAX")}} for s, row in zip(STEPS, rows, strict=True)
    ]
    assert read_logs(table(counted), "chart.csv")[0].step.tolist() == STEPS


def test_a_chart_of_one_run_may_leave_out_its_name() -> None:
    rows = [{"Step": s, "loss": x, "loss__MIN": x - 1, "loss__MAX": x + 1} for s, x in zip(STEPS, LOSS, strict=True)]
    (log,) = read_logs(table(rows), "chart.csv")
    assert (log.run, log.kind, log.step.tolist()) == ("chart.csv", "wandb_chart", STEPS)
    assert {name: x.tolist() for name, x in log.columns.items()} == {"loss": LOSS}


@pytest.mark.parametrize(
    ("name", "column"),
    [("run-a-tag-train_loss.csv", "train_loss"), ("loss.csv", "loss"), ("download.csv", "Value")],
)
def test_the_curve_that_tensorboards_page_saves_is_called_as_its_file(name: str, column: str) -> None:
    rows = [{"Wall time": 1.7e9 + s, "Step": s, "Value": x} for s, x in zip(STEPS, LOSS, strict=True)]
    (log,) = read_logs(table(rows), name)
    assert (log.step.tolist(), log.sampled) == (STEPS, True)
    assert {name: x.tolist() for name, x in log.columns.items()} == {column: LOSS}


def test_runs_that_a_column_names_are_runs_of_their_own() -> None:
    """One after the other, steps of the second are no restart of the first."""
    rows = [
        {"run": run, "seed": 7, "step": s, "loss": k * x}
        for k, run in enumerate("ab", 1)
        for s, x in zip(STEPS, LOSS, strict=True)
    ]
    for data in ("\n".join(map(json.dumps, rows)).encode(), json.dumps(rows).encode(), table(rows)):
        one, other = read_logs(data, "x")
        assert (one.run, other.run) == ("run a, seed 7", "run b, seed 7")
        assert [log.columns["loss"].tolist() for log in (one, other)] == [LOSS, [2 * x for x in LOSS]]
    short = [{"run": "c", "seed": 7, "step": s, "loss": 9.0} for s in STEPS[:3]]  # one that ended early
    assert [log.run[:5] for log in read_logs(table([*short, *rows]), "x")] == ["run c", "run a", "run b"]
    long, early = read_logs(table([*rows[: len(rows) // 2], *short]), "x")
    assert (long.run, long.columns["loss"].tolist(), early.run) == ("run a, seed 7", LOSS, "run c, seed 7")
    (alone,) = read_logs(("\n".join(map(json.dumps, [{"seed": 7}, *ROWS]))).encode(), "x")
    assert (alone.run, alone.columns["loss"].tolist()) == ("x", LOSS)


@pytest.mark.parametrize("part", ["split", "phase", "Mode"])
def test_rows_of_an_evaluation_that_a_column_names_are_not_those_of_the_training(part: str) -> None:
    rows = [
        {part: of, "model": model, "step": s, "loss": x + off}
        for model in ("small", "base")
        for s, x in zip(STEPS, LOSS, strict=True)
        for of, off in (("train", 0.0), ("val", 5.0))
    ]
    for data in ("\n".join(map(json.dumps, rows)).encode(), table(rows)):
        logs = read_logs(data, "x")
        assert [log.run for log in logs] == ["model small", "model base"]
        assert all(log.columns["loss"].tolist() == LOSS for log in logs)
    (alone,) = read_logs(table([{part: "val", "step": s, "loss": x} for s, x in zip(STEPS, LOSS, strict=True)]), "x")
    assert alone.columns["loss"].tolist() == LOSS


def test_an_object_of_lists_is_a_history() -> None:
    """As Keras's; of lists that have fewer numbers none knows the steps."""
    for indent in (None, 1):
        data = json.dumps({"loss": LOSS, "val_loss": NORM, "lr": [0.1], "epochs": 8}, indent=indent).encode()
        assert holds_history(data)
        (log,) = read_logs(data, "x")
        assert {name: x.tolist() for name, x in log.columns.items()} == {"loss": LOSS, "val_loss": NORM}
    rarer: dict[str, list[float]] = {"train_loss": LOSS, "epoch": [1], "val_loss": [2.0], "val_acc": [0.5]}
    (log,) = read_logs(json.dumps(rarer).encode(), "x")
    assert {name: x.tolist() for name, x in log.columns.items()} == {"train_loss": LOSS}
    for arrays in ({"gamma_q": [1.0], "q": [[1.0]], "k": [[1.0]]}, {"q": [1.0], "k": [1.0]}):
        assert not holds_history(json.dumps(arrays).encode())


def test_a_history_without_its_steps_is_known_by_its_times() -> None:
    (log,) = read_logs(table([{"_runtime": 3 * s, "loss": x} for s, x in zip(STEPS, LOSS, strict=True)]), "x")
    assert (log.kind, log.sampled, log.steps) == ("wandb_history", True, "rows")


@pytest.mark.parametrize("run", ["run_id", "Run", "run_uuid"])
def test_the_metrics_that_mlflow_saves_are_columns_of_their_runs(run: str) -> None:
    """As its page saves a chart: a row for each value, one metric after the other."""
    rows = [
        {run: of, "key": key, "value": k * x, "step": s, "timestamp": 1_700_000_000_000 + s}
        for k, of in enumerate(("ab", "cd"), 1)
        for key, column in (("train_loss", LOSS), ("grad_norm", NORM))
        for s, x in zip(STEPS, column, strict=True)
    ]
    for data in (table(rows), "\n".join(map(json.dumps, rows)).encode()):
        one, other = read_logs(data, "metrics.csv")
        assert (one.run, other.run, other.step.tolist()) == (f"{run} ab", f"{run} cd", STEPS)
        assert {name: x.tolist() for name, x in one.columns.items()} == {"train_loss": LOSS, "grad_norm": NORM}
    (alone,) = read_logs(table(rows[: len(STEPS)]), "metrics.csv")
    assert (alone.step.tolist(), alone.columns["train_loss"].tolist()) == (STEPS, LOSS)


def test_a_history_as_an_object_of_lists_is_no_summary() -> None:
    (log,) = read_logs(json.dumps({"_step": STEPS, "loss": LOSS}).encode(), "run")
    assert log.columns["loss"].tolist() == LOSS
