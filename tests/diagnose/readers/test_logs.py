"""Every kind of log gives the same columns; what is no log gets a sentence."""

import io
import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from qkdemo.diagnose.readers.columns import roles
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.readers.logs import read_logs
from tests.diagnose.readers.written import LOSS, NORM, ROWS, STEPS, events, lines, record, table

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
