"""Logs of every kind are read to the same columns; what is no log, or too little of one, gets its sentence."""

import csv
import io
import json
import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from qkdemo.diagnose.readers.columns import roles
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.readers.logs import holds_history, read_logs

LOSS = [2.5, 2.0, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25]  # exact in every format
NORM = [1.0, 1.5, 2.0, 1.0, 1.5, 2.0, 1.0, 0.5]
STEPS = [10 * at for at in range(1, 9)]


def varint(x: int) -> bytes:
    out = bytearray()
    while x > 0x7F:
        out.append(x & 0x7F | 0x80)
        x >>= 7
    return bytes([*out, x])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def record(event: bytes) -> bytes:
    return struct.pack("<Q", len(event)) + bytes(4) + event + bytes(4)


def events(*, tensors: bool = False, samples: int = 0) -> bytes:
    """TensorBoard 1 wrote simple values, 2 and PyTorch 2's writers tensors; Megatron each curve over samples, too."""
    out = record(b"\x09" + bytes(8) + field(3, b"brain.Event:2"))
    for step, loss, norm in zip(STEPS, LOSS, NORM, strict=True):
        values = b""
        for tag, x in (("train/loss", loss), ("train/grad_norm", norm)):
            number = struct.pack("<f", x)
            shown = field(8, b"\x08\x01" + field(4, number)) if tensors else b"\x15" + number
            values += field(1, field(1, tag.encode()) + shown)
        out += record(b"\x10" + varint(step) + field(5, values))
        if samples:
            again = field(1, field(1, b"train/loss vs samples") + b"\x15" + struct.pack("<f", loss))
            out += record(b"\x10" + varint(step * samples) + field(5, again))
    return out


def table(rows: list[dict[str, Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def lines(pattern: str) -> bytes:
    numbers = zip(STEPS, LOSS, NORM, strict=True)
    return "\n".join(["starting", *(pattern.format(s=s, l=x, g=g) for s, x, g in numbers), "done"]).encode()


ROWS = [{"step": s, "loss": x, "grad_norm": g} for s, x, g in zip(STEPS, LOSS, NORM, strict=True)]
PARQUET = io.BytesIO()
parquet.write_table(
    pa.Table.from_pylist([{"_step": r["step"], "loss": r["loss"], "grad_norm": r["grad_norm"]} for r in ROWS]), PARQUET
)
KINDS: dict[str, tuple[bytes, str]] = {
    "trainer_state": (
        json.dumps({"log_history": [*ROWS, {"eval_loss": 1.0, "step": 80}]}, indent=1).encode(),
        "trainer_state",
    ),
    "one line": (json.dumps({"log_history": ROWS}).encode(), "trainer_state"),
    "JSON lines": ("\n".join(json.dumps(row) for row in ROWS).encode(), "jsonl"),
    "history": ("\n".join(json.dumps({"_step": r["step"], **r}) for r in ROWS).encode(), "wandb_history"),
    "Parquet": (PARQUET.getvalue(), "wandb_history"),
    "list": (json.dumps(ROWS).encode(), "json"),
    "Lightning": (
        table(
            [{"epoch": 0, "step": r["step"], "loss": r["loss"], "grad_norm": ""} for r in ROWS]
            + [{"epoch": 0, "step": r["step"], "loss": "", "grad_norm": r["grad_norm"]} for r in ROWS]
        ),
        "csv",
    ),
    "events": (events(), "tensorboard"),
    "tensor events": (events(tensors=True), "tensorboard"),
    "events of Megatron": (events(samples=256), "tensorboard"),
    "cut events": (events() + record(b"\x10\x05")[:-6], "tensorboard"),
    "Megatron": (
        lines(" [2026-01-01] iteration {s:8d}/ 100 | lm loss: {l:.6E} | loss scale: 1.0 | grad norm: {g:.3f} |"),
        "lines",
    ),
    "Megatron from its first line on": (
        lines("[2026-01-01 10:00:00] iteration {s}/ 100 | lm loss: {l:.6E} | grad norm: {g:.3f} |").split(b"\n", 1)[1],
        "lines",
    ),
    "nanoGPT": (lines("iter {s}: loss {l:.4f}, grad norm {g:.4f}, time 12.5ms"), "lines"),
    "torchtitan": (
        lines("[rank0] \x1b[31mstep: {s:2}  \x1b[32mloss: {l:7.4f}  \x1b[33mgrad_norm: {g:.4f}\x1b[39m"),
        "lines",
    ),
    "pasted": (lines("step {s} : loss = {l} | grad_norm = {g}"), "lines"),
    "tensors": (lines("Step {s} Loss: tensor({l}, device='cuda:0') Grad_norm: tensor({g})"), "lines"),
    "a count before a name": (lines("Epoch 1 Step {s}/100 - loss: {l} grad_norm={g}"), "lines"),
    "capitals": (lines("Step {s} Loss {l} Grad norm {g}"), "lines"),
    "in brackets": (lines("[{s}/100] loss: {l}, grad_norm: {g}"), "lines"),
    "it": (lines("it {s}: train loss {l}, grad norm {g}"), "lines"),
    "batch": (lines("batch {s}/900 | loss {l} | grad_norm: {g}"), "lines"),
    "word language model": (
        lines("| epoch   1 | {s:5d}/  900 batches | ms/batch 12.34 | loss {l} | grad norm {g}"),
        "lines",
    ),
    "a bar": (lines("{s}%|███  | {s}/100 [00:01<00:10,  9.1it/s, loss={l}, grad_norm={g}]"), "lines"),
    "fairseq": (lines("epoch 001:   {s} / 1000 loss={l}, ppl=9, num_updates={s}, gnorm={g}"), "lines"),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_gives_the_same_columns(name: str) -> None:
    data, kind = KINDS[name]
    (log,) = read_logs(data, "run")
    assert log.kind == kind
    assert log.step.tolist() == STEPS
    known = roles(log)
    assert log.columns[known["loss"]].tolist() == LOSS
    assert log.columns[known["grad_norm"]].tolist() == NORM
    assert log.sampled == (kind == "wandb_history")


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


def test_what_watch_wrote_and_what_was_noted_below_it_are_one_run() -> None:
    """Steps of notes lie between those that were measured: no restart."""
    rows = [{"step": s, "layer": "a", "head": 0, "max_logit": 8.0} for s in range(0, 60, 10)]
    noted = [{"step": s, "loss": 3.0} for s in range(60)]
    (log,) = read_logs("\n".join(map(json.dumps, [*rows, *noted])).encode(), "attention.jsonl")
    assert log.columns["loss"].tolist() == [3.0] * 60


@pytest.mark.parametrize("nan", [math.nan, "NaN"])
def test_nan_that_fills_a_table_is_no_value_and_a_loss_that_is_lost_is(nan: Any) -> None:
    """As json.dumps writes the history of a run as pandas has it, and to_csv with na_rep: rows of two kinds in one."""
    trained = [{"_step": s, "loss": x, "lr": 0.1, "eval_loss": nan} for s, x in zip(STEPS, LOSS, strict=True)]
    evaluated = [{"_step": s + 5, "loss": nan, "lr": nan, "eval_loss": 1.0} for s in STEPS[::2]]
    rows = sorted([*trained, *evaluated], key=lambda row: row["_step"])
    lost = [{**row, "loss": nan} if row["_step"] == 60 else row for row in rows]
    for made in (lambda rows: "\n".join(map(json.dumps, rows)).encode(), table):
        (log,), (other,) = (read_logs(made(x), "run") for x in (rows, lost))
        assert not any(np.isinf(column).any() for column in log.columns.values())
        assert other.step[np.isinf(other.columns["loss"])].tolist() == [60]


def test_steps_that_begin_anew_in_each_epoch_are_counted_on() -> None:
    rows = [{"epoch": e, "step": s, "loss": 3.0 - e - s / 100} for e in range(3) for s in range(0, 60, 10)]
    between = [
        x for row in rows for x in (row, *([{"epoch": row["epoch"], "eval_loss": 1.0}] if row["step"] == 50 else []))
    ]
    for each in (rows, between, [{"lr": 0.1}, *rows]):
        (log,) = read_logs(table(each), "x.csv")
        assert log.steps == "epochs"
        assert log.step.tolist() == list(range(0, 180, 10))
        assert log.columns["loss"].tolist() == [row["loss"] for row in rows]
    resumed = [{"epoch": s / 60, "step": s, "loss": 3.0} for s in (*range(60), *range(40, 60))]
    (log,) = read_logs(table(resumed), "x.csv")
    assert (log.steps, len(log.step)) == ("named", 60)
    (log,) = read_logs(table([{"update": 100 * s, "loss": 3.0} for s in range(9)]), "x.csv")
    assert (log.steps, log.step.tolist()) == ("rows", list(range(9)))


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("attention/model.layers.{}.self_attn/max_abs_logit", "attention/*/max_abs_logit"),
        ("train/layer_{}_max_logit", "train/layer_*_max_logit"),
    ],
)
def test_of_a_column_for_each_layer_the_worst_layer_is_looked_at(name: str, read: str) -> None:
    """As `watch` writes to TensorBoard or Weights & Biases; the first layer alone is calm."""
    rows = [
        {
            "step": s,
            "loss": x,
            **{name.format(layer): sign * s * (layer + 1) for layer, sign in ((0, 1), (1, 1), (10, -1))},
        }
        for s, x in zip(STEPS, LOSS, strict=True)
    ]
    rows[3].pop(name.format(10))
    (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "run")
    assert roles(log)["max_logit"] == read
    assert log.columns[read].tolist() == [11 * s if s != STEPS[3] else 2 * s for s in STEPS]


def test_what_watch_writes_is_read_as_the_worst_head_of_a_step() -> None:
    rows = [
        {"step": s, "layer": layer, "head": head, "max_logit": -x * (head + 1), "entropy_fraction": 0.5 + head / 10}
        for s, x in zip(STEPS, LOSS, strict=True)
        for layer in ("a", "b")
        for head in (0, 1)
    ]
    (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "attention.jsonl")
    known = roles(log)
    assert log.columns[known["max_logit"]].tolist() == [2 * x for x in LOSS]
    assert log.columns[known["entropy"]].tolist() == [0.5] * 8


def test_what_watch_wrote_is_the_same_as_a_table() -> None:
    """As pandas writes it on, with rows that were noted between those of heads."""
    rows = [
        {"step": s, "layer": "a", "head": head, "max_logit": -x * (2 - head), "entropy_fraction": 0.5 + head / 10}
        for s, x in zip(STEPS, LOSS, strict=True)
        for head in (0, 1)
    ]
    noted = [{"step": s, "loss": x} for s, x in zip(STEPS, LOSS, strict=True)]
    noted += [{"step": s, "update_norm": x} for s, x in zip(STEPS, NORM, strict=True)]
    for data in ("\n".join(map(json.dumps, rows + noted)).encode(), table(rows + noted)):
        (log,) = read_logs(data, "attention")
        assert (log.kind, log.where) == ("watch", "head 0 of a")
        for role, wanted in (("max_logit", [2 * x for x in LOSS]), ("loss", LOSS), ("update_norm", NORM)):
            assert log.columns[roles(log)[role]].tolist() == wanted


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


@pytest.mark.parametrize("fill", [math.nan, 0.0])
def test_a_measure_of_attention_that_comes_in_any_rows_is_not_lost_between_them(fill: float) -> None:
    """At doubling steps, and with some left out."""
    for at in ((1, 2, 4, 8, 16, 32, 64), (0, 10, 20, 50, 60, 70)):
        rows = [{"step": s, "loss": 2.0, "attn_entropy": 0.5 if s in at else fill} for s in range(72)]
        (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "x")
        entropy = log.columns["attn_entropy"]
        assert log.step[~np.isnan(entropy)].tolist() == list(at)


@pytest.mark.parametrize("odd", ["x", [1], {"a": 1}, True], ids=str)
@pytest.mark.parametrize("name", ["max_logit", "entropy_fraction", "q_norm_max", "k_norm_max"])
def test_a_row_without_a_layer_puts_nothing_in_place_of_a_measure(name: str, odd: object) -> None:
    beside, head = {"step": 1, name: odd}, {"step": 1, "layer": "a", "head": 0, "max_logit": 2.0, name: 0.5}
    rows = [{**head, "step": s} for s in STEPS] + [beside, head, {"step": 1, "loss": 3.0}]
    (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "attention.jsonl")
    assert all(column.dtype == np.float64 for column in log.columns.values())


def test_what_is_not_finite_is_told_from_what_is_missing() -> None:
    rows = [dict(row) for row in ROWS]
    rows[3]["loss"] = math.nan
    del rows[4]["loss"]
    for data in ("\n".join(map(json.dumps, rows)).encode(), table(rows)):
        (log,) = read_logs(data, "run")
        loss = log.columns["loss"]
        assert np.isinf(loss[3])
        assert np.isnan(loss[4])


@pytest.mark.parametrize("lost", ["NAN", "INF", "-nan", "-nan(ind)", "NaN", "Infinity", "tensor(nan)"])
def test_a_loss_that_is_lost_is_read_however_a_program_writes_it(lost: str) -> None:
    """Megatron's format E has capitals: lm loss: NAN."""
    printed = lines("iteration {s}/ 100 | lm loss: {l} | grad norm: {g} |").replace(b"loss: 2.", b"loss: 3.")
    last = f"iteration 90/ 100 | lm loss: {lost} | grad norm: 1.0 |"
    tables = [table([*ROWS, {"step": 90, "loss": lost}])] if "tensor" not in lost else []
    for data in (printed + f"\n{last}".encode(), *tables):
        (log,) = read_logs(data, "x")
        assert np.flatnonzero(np.isinf(log.columns[roles(log)["loss"]])).tolist() == [len(LOSS)]


@pytest.mark.parametrize("every", [2, 3, 10])
def test_nan_between_numbers_that_come_every_few_rows_is_no_value(every: int) -> None:
    """As whoever writes a table by hand fills it. A number that is lost is lost where the next would come.

    While the loss is a number nothing was lost: measuring ended.
    """
    steps = range(6 * every)

    def column(last: int, fill: float = math.nan, loss: float = 1.0) -> list[float]:
        rows = [{"step": s, "loss": 1.0 if s < last else loss, "max_logit": fill} for s in steps]
        for row in rows[:last:every]:
            row["max_logit"] = float(row["step"])
        logs = [read_logs(data, "x")[0] for data in ("\n".join(map(json.dumps, rows)).encode(), table(rows))]
        assert np.array_equal(logs[0].columns["max_logit"], logs[1].columns["max_logit"], equal_nan=True)
        return logs[0].columns["max_logit"].tolist()

    assert not any(map(math.isinf, column(len(steps))))
    assert np.array_equal(column(len(steps), 0.0)[1:], column(len(steps))[1:], equal_nan=True)  # the first one is a 0
    assert column(4 * every, 0.0)[4 * every :] == [0.0] * 2 * every
    assert not any(map(math.isinf, column(4 * every)))
    lost = column(4 * every, loss=math.nan)
    assert [s for s, x in zip(steps, lost, strict=True) if math.isinf(x)] == list(steps)[4 * every :]


def test_a_loss_that_is_lost_where_logits_were_measured_is_lost() -> None:
    rows = [{"step": s, "loss": 1.0, "max_logit": 9.0 if s % 5 == 0 else math.nan} for s in range(60)]
    rows[20]["loss"] = math.nan
    for data in ("\n".join(map(json.dumps, rows)).encode(), table(rows)):
        (log,) = read_logs(data, "x")
        assert np.flatnonzero(np.isinf(log.columns["loss"])).tolist() == [20]
        assert not np.isinf(log.columns["max_logit"]).any()


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


def test_what_a_loss_is_scaled_by_is_no_loss_and_an_entropy_that_names_attention_is_its() -> None:
    for beside in ("loss_scale", "loss scale", "loss/weight", "loss_std", "router_z_loss"):
        for name in ("reduced_train_loss", "cross_entropy"):
            (log,) = read_logs(
                table([{"step": s, beside: 65536.0, name: x} for s, x in zip(STEPS, LOSS, strict=True)]), "x"
            )
            assert roles(log) == {"loss": name}
    (alone,) = read_logs(table([{"step": s, "loss_scale": 65536.0} for s in STEPS]), "x")
    assert roles(alone) == {}
    for other, own in (("entropy", "attn/entropy_mean"), ("max_score", "attention/max_score")):
        (log,) = read_logs(table([{"step": s, other: 0.5, own: x} for s, x in zip(STEPS, LOSS, strict=True)]), "x")
        assert list(roles(log).values()) == [own]


def test_the_norm_of_a_gain_of_a_norm_is_no_length_of_q() -> None:
    for name in ("grad/layers.0.q_norm.weight", "param_norm/attn.q_norm", "attn.q_norm.weight/norm"):
        (log,) = read_logs(table([{"step": s, "loss": x, name: x} for s, x in zip(STEPS, LOSS, strict=True)]), "x")
        assert "q_norm" not in roles(log), name


def test_a_column_is_known_by_what_people_call_it() -> None:
    names = {
        "loss": ("train/loss", "lm loss", "loss", "train_loss", "train/CrossEntropyLoss", "cross_entropy"),
        "max_logit": ("attention/max_logit", "qk_max", "max_attn_score", "attn/layer3/max_abs_logit"),
        "entropy": ("attn_entropy", "train/entropy"),
        "grad_norm": ("grad_norm", "grad norm", "train/grad_norm", "global_norm"),
        "lr": ("lr", "learning rate", "train/learning_rate", "lr-AdamW"),
        "update_norm": ("update_norm", "train/update norm"),
        "q_norm": ("q_norm", "attn/q_norm_max"),
    }
    for role, words in names.items():
        for word in words:
            rows = [{"step": s, word: x} for s, x in zip(STEPS, LOSS, strict=True)]
            (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "run")
            assert roles(log) == {role: word}, word


@pytest.mark.parametrize("other", ["critic/score/max", "z_loss/output_logits_max", "policy_entropy", "router/entropy"])
def test_a_score_or_an_entropy_of_something_else_is_not_that_of_attention(other: str) -> None:
    """A reward of 1 is not "no large logits"; a norm of q and k bounds no output logit."""
    rows = [{"step": s, "loss": x, other: 180.0} for s, x in zip(STEPS, LOSS, strict=True)]
    (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "run")
    assert roles(log) == {"loss": "loss"}


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("step;loss\n{rows}", "utf-8"),
        ("step\tloss\n{rows}", "utf-8"),
        ("step,loss,café\n{rows}", "latin-1"),
        ("step,loss\n{rows}", "utf-16"),
        ("step,loss\n{rows}", "utf-8-sig"),
    ],
)
def test_a_table_is_read_as_other_programs_and_systems_write_it(text: str, encoding: str) -> None:
    """Semicolons with decimal commas, tabs, code pages, and what a shell of Windows writes into a file."""
    mark = next(mark for mark in ";\t," if mark in text)
    rows = [
        mark.join((str(s), str(x).replace(".", "," if mark == ";" else "."))) for s, x in zip(STEPS, LOSS, strict=True)
    ]
    (log,) = read_logs(text.format(rows="\n".join(rows)).encode(encoding), "run.csv")
    assert log.step.tolist() == list(STEPS)
    assert log.columns["loss"].tolist() == pytest.approx(list(LOSS))


def test_a_run_that_went_on_from_an_earlier_step_replaces_what_it_had_logged_from_there_on() -> None:
    """Steps 0 to 59, then from 40 on again; rows of an evaluation under steps of their own take nothing away."""
    first = [{"step": s, "loss": 3.0 - s / 50} for s in range(60)]
    second = [{"step": s, "loss": 5.0} for s in range(40, 50)]
    (log,) = read_logs("\n".join(map(json.dumps, first + second)).encode(), "run.jsonl")
    assert log.step.tolist() == list(range(50))
    assert log.columns["loss"][39:41].tolist() == [3.0 - 39 / 50, 5.0]
    beside = [{"step": 1, "eval_loss": 2.0}, {"step": 2, "loss": 2.0}]
    (log,) = read_logs("\n".join(map(json.dumps, first + beside)).encode(), "run.jsonl")
    assert len(log.step) == 60
    (turned,) = read_logs("\n".join(map(json.dumps, first[::-1])).encode(), "run.jsonl")
    assert turned.columns["loss"].tolist() == [row["loss"] for row in first]


WRONG: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "run is empty"),
    "two columns": (b"step,loss,loss\n" + b"1,2,3\n" * 9, "has two columns 'loss'"),
    "prose": (b"Dear all,\nthe run failed.\n", "no numbers over steps were found in a form that is read here"),
    "table of runs of MLflow": (
        b"Start Time,Duration,Run ID,Name,Status,loss\n" + b"2026-01-01,9s,ab,cat,FINISHED,1.5\n" * 9,
        "is a table of runs",
    ),
    "what mlflow.search_runs gives": (
        b"run_id,experiment_id,status,start_time,metrics.loss\n" + b"ab,0,FINISHED,2026-01-01,1.5\n" * 9,
        "is a table of runs",
    ),
    "summary": (
        json.dumps({"_step": 80, "_runtime": 9.5, "loss": 0.25}).encode(),
        "Bring what was logged step by step",
    ),
    "summary with lists": (
        json.dumps({"seen": [1, 2, 3], "_step": 80, "_timestamp": 1.7e9, "loss": 0.25}, indent=1).encode(),
        "is the summary of a run of Weights & Biases, with the last value of each metric. Bring what was logged",
    ),
    "table of runs": (b'"Name","State","Created","loss"\n"a","finished","today",1.5\n' * 9, "is a table of runs"),
    "five rows": (table(ROWS[:5]), "has more than 5 logged steps; at least 6 are needed"),
    "five steps of many rows": (
        table([{"step": s, "loss": 1.0 + row} for s in STEPS[:5] for row in range(9)]),
        "has more than 5 logged steps",
    ),
    "evaluation": (
        table([{"step": s, "eval_loss": x} for s, x in zip(STEPS, LOSS, strict=True)]),
        "only columns of an evaluation",
    ),
    "cut JSON": (json.dumps({"log_history": ROWS}).encode()[:-20], "from line 1 on cannot be read as such"),
    "broken line": (
        "\n".join([*map(json.dumps, ROWS[:3]), "", '{"step": 4, ', *map(json.dumps, ROWS[3:])]).encode(),
        "begins as JSON does, and from line 5 on cannot be read as such: is it cut off, damaged there, or some",
    ),
    "broken indented": (
        json.dumps({"log_history": ROWS}, indent=1).replace('"loss"', "loss", 1).encode(),
        "and from line 5 on",
    ),
    "pickle": (b"\x80\x04\x95" + bytes(40), "could run anything"),
    "bytes": (bytes(range(256)), "of a kind that is not known here"),
    "Parquet cut": (PARQUET.getvalue()[:-40], "cannot be read"),
    "events damaged": (events()[:60] + b"\xff" * 80, "that is damaged"),
    "wide": (table([{"step": s, **{f"c{at}": 1.0 for at in range(2100)}} for s in STEPS]), "at most 2000 are read"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_log_gets_its_sentence(name: str) -> None:
    data, sentence = WRONG[name]
    with pytest.raises(InputError) as error:
        read_logs(data, "run")
    assert sentence in str(error.value)


@given(data=st.binary(max_size=300))
def test_any_bytes_are_a_log_or_get_a_sentence(data: bytes) -> None:
    for mess in (data, events()[:60] + data, b"step,loss\n" + data, b"PAR1" + data):
        try:
            logs = read_logs(mess, "run")
        except InputError as error:
            logs = [str(error)]  # type: ignore[list-item]
        assert logs


def test_a_parquet_file_that_claims_more_than_is_read_is_refused_before_it_is_unpacked() -> None:
    out = io.BytesIO()
    parquet.write_table(pa.table({"_step": pa.array(np.zeros(4_000_001, np.int8))}), out)
    assert len(out.getvalue()) < 20_000
    with pytest.raises(InputError, match="holds 4000001 values"):
        read_logs(out.getvalue(), "x.parquet")


OTHERS = ["z_loss", "z loss", "train/Z loss", "aux_loss", "load_balancing loss", "router loss", "mtp loss", "kl/loss"]


@pytest.mark.parametrize("other", OTHERS)
def test_what_is_added_to_a_loss_is_not_taken_for_it_where_there_is_another(other: str) -> None:
    rows = [{"step": s, "train/total lm loss": x, other: 0.1} for s, x in zip(STEPS, LOSS, strict=True)]
    (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "run")
    assert roles(log)["loss"] == "train/total lm loss"
    crossed = [{"step": s, "cross entropy loss": x, other: 0.1} for s, x in zip(STEPS, LOSS, strict=True)]
    (log,) = read_logs("\n".join(map(json.dumps, crossed)).encode(), "run")
    assert roles(log)["loss"] == "cross entropy loss"
    (alone,) = read_logs("\n".join(json.dumps({"step": s, "z loss": 0.1}) for s in STEPS).encode(), "run")
    assert roles(alone) == {"loss": "z loss"}


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


def test_a_lost_loss_beside_rows_with_nothing_in_its_place_was_logged() -> None:
    """As Lightning's CSVLogger writes the rate in rows of its own, and the Trainer evaluations after each loss."""
    steps = range(49, 2000, 50)
    lost = {599, 1199}
    lines = ["epoch,lr-Adam,step,train_loss"]
    lines += [line for at in steps for line in (f",0.001,{at},", f"0,,{at},{'nan' if at in lost else 2.5}")]
    (log,) = read_logs("\n".join(lines).encode(), "metrics.csv")
    assert set(log.step[np.isinf(log.columns["train_loss"])]) == lost
    losses = [{"step": at, "loss": math.nan if at in lost else 2.5} for at in steps]
    history = [row for each in losses for row in (each, {"step": each["step"], "eval_loss": 2.4})]
    (log,) = read_logs(json.dumps({"log_history": history}).encode(), "trainer_state.json")
    assert set(log.step[np.isinf(log.columns["loss"])]) == lost
