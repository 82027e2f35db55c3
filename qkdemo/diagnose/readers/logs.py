"""Training logs that somebody brings, as columns over steps, whatever wrote them.

* `read_logs(data, name)`: one `Log` per run in it. Raises InputError for what is no log, or too little of one;
* `holds_history(data)`: whether bytes are a log as an object of lists, and not arrays.

Read are, told by their content: `trainer_state.json`, chart exports and history of Weights & Biases, TensorBoard event
files and curves, metrics of MLflow, Lightning's `metrics.csv`, JSON lines (PaddleFleet's, and what `watch` writes), an
object of lists as Keras's history, Parquet, and lines of text as Megatron, nanoGPT, torchtitan, OLMo, Keras and the
Trainer print them.
"""

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from qkdemo.diagnose.readers.columns import EVALUATED, ROLES, Log, choices, log_of, names_loss
from qkdemo.diagnose.readers.events import is_events, read_events
from qkdemo.diagnose.readers.inputs import InputError, kind_of, sized
from qkdemo.diagnose.readers.printed import names_step, printed, printed_dicts
from qkdemo.diagnose.readers.runs import LEAST_ROWS, WATCHED, by_run, of_chart, of_watch, worst_head
from qkdemo.diagnose.readers.steps import names_steps
from qkdemo.diagnose.readers.values import plain, real
from qkdemo.messages import say

MOST_OF_A_LOG: Final = 64 << 20  # of text; as Python's numbers it takes ten times as many
_MOST_VALUES: Final = 4_000_000
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_FLAT: Final = re.compile(rb'\s*\{\s*"[^"\\]{1,100}"\s*:\s*\[\s*[^\[\s]')  # a list of numbers comes first
_ARRAYS: Final = {"q", "k", "query", "key", "mine", "reference"}
_OF_HISTORY: Final = {"_step", "_runtime", "_timestamp"}  # columns of a history of W&B
_OF_RUNS: Final = (  # columns of tables of runs: of W&B, of MLflow's page, and of mlflow.search_runs
    *({"Name", "State", "Created"}, {"Start Time", "Run ID", "Status"}),
    {"run_id", "status", "start_time"},
)
_OF_TENSORBOARD: Final = {"Wall time", "Step", "Value"}  # columns of a curve that its page saves


def read_logs(data: bytes, name: str) -> list[Log]:
    """Every run in a log, its kind told by what it holds. Raises InputError."""
    if len(data) > MOST_OF_A_LOG:
        raise InputError("large_log", name=name, most=sized(MOST_OF_A_LOG))
    if not data.strip():
        raise InputError("no_bytes", name=name)
    if is_events(data):
        logs = [log_of(name, "tensorboard", read_events(data, name), sampled=False)]
    elif data.startswith(b"PAR1"):
        logs = _of_parquet(data, name)
    else:
        logs = _of_text(data, name)
    kept = [log for log in logs if log.columns]
    if not kept:
        raise InputError("no_log", name=name)
    if all(len(log.step) < LEAST_ROWS for log in kept):
        raise InputError("short_log", name=name, rows=max(len(log.step) for log in kept), least=LEAST_ROWS)
    if all(set(log.columns) == {column for column in log.columns if EVALUATED.search(column)} for log in kept):
        raise InputError("only_evaluation", name=name)
    return kept


def _of_text(data: bytes, name: str) -> list[Log]:
    if words := kind_of(data[:32]):
        raise InputError("not_a_log", name=name, kind=words)
    text = _decoded(data, name)
    start = text.lstrip()[:1]
    if start == "{":
        return _of_json(text, name)
    if start == "[":
        return _or_lines(_of_list, text, name)
    header = text.lstrip().split("\n", 1)[0]
    printed_line = not _heads_steps(header) and (re.search(r"\d\.\d", header) or names_step(header))
    if re.search("[,;\t]", header) and not (printed_line or "\n{'" in text):
        return _or_lines(_of_csv, text, name)
    return [log_of(name, "lines", printed(text))]


def _heads_steps(header: str) -> bool:
    """Whether a line heads a table of steps or epochs: a cell is called so, and none is a number."""
    cells = [cell.strip().strip('"').lower() for cell in re.split("[,;\t]", header)]
    return any(names_steps(cell) or cell == "epoch" for cell in cells) and all(math.isnan(real(x)) for x in cells)


def _or_lines(read: Callable[[str, str], list[Log]], text: str, name: str) -> list[Log]:
    """What `read` finds; or printed lines, whose first ones may have commas, or a time or rank in brackets."""
    try:
        logs = read(text, name)
    except InputError:
        if rows := printed(text):
            return [log_of(name, "lines", rows)]
        raise
    if any(map(choices, logs)):
        return logs
    rows = printed(text)
    told = not any(log.columns for log in logs) or any(names_loss(column) for row in rows for column in row)
    return [log_of(name, "lines", rows)] if told else logs


def _of_list(text: str, name: str) -> list[Log]:
    return _by_run(_records(_loaded(text, name)), name, "json")


def _decoded(data: bytes, name: str) -> str:
    """UTF-8; UTF-16, which a shell of Windows writes; or an older code page, whose numbers are the same."""
    try:
        return data.decode("utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")
    except UnicodeDecodeError:
        if _CONTROL.search(data):
            raise InputError("not_a_log", name=name, kind=say("input.kind.unknown")) from None
        return data.decode("latin-1")


def _of_json(text: str, name: str) -> list[Log]:
    if not _is_json(text.lstrip().split("\n", 1)[0]):
        return [log_of(name, "lines", printed(text)) if printed_dicts(text) else _of_whole_json(text, name)]
    lines = [(line, name, at) for at, line in enumerate(text.splitlines(), 1) if line.strip()]
    cut = not _is_json(lines[-1][0])  # as while a run goes on
    loaded = [_loaded(*line) for line in (lines[:-1] if cut else lines)]
    if len(loaded) == 1 and (any(isinstance(x, list) for x in loaded[0].values()) or _is_summary(loaded[0])):
        return [_of_whole_json(text, name)]
    *logs, last = _by_run(_records(loaded), name, "jsonl")
    return [*logs, replace(last, cut=cut)]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _by_run(rows: list[dict[str, Any]], name: str, kind: str) -> list[Log]:
    return [_of_rows(of_run, run, kind) for run, of_run in by_run(rows, name).items()]


def _of_rows(rows: list[dict[str, Any]], name: str, kind: str) -> Log:
    """A log of rows, of `kind` unless their columns are those of `watch` or of a history of W&B."""
    if any(row.keys() >= WATCHED for row in rows):
        return log_of(name, "watch", of_watch(rows), where=worst_head(rows))
    if rows and not _OF_HISTORY.isdisjoint(rows[0]):
        return log_of(name, "wandb_history", rows, sampled=True)
    return log_of(name, kind, rows)


def _of_whole_json(text: str, name: str) -> Log:
    loaded = _loaded(text, name)
    history = loaded.get("log_history") if isinstance(loaded, dict) else None
    if isinstance(history, list):
        return log_of(name, "trainer_state", _records(history))
    if _is_summary(loaded):
        raise InputError("summary_of_run", name=name)
    if columns := _of_lists(loaded):
        return log_of(
            name, "json", [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        )
    raise InputError("no_log", name=name)


def _is_summary(loaded: Any) -> bool:
    """Whether an object is what W&B keeps beside a history: the last value of each metric."""
    return isinstance(loaded, dict) and any(isinstance(loaded.get(name), int | float) for name in _OF_HISTORY)


def holds_history(data: bytes) -> bool:
    """Whether bytes are a JSON object of flat lists, {"loss": [2.1, …], "val_loss": [2.2, …]}, and no arrays."""
    if len(data) > MOST_OF_A_LOG or not _FLAT.match(data[:200]):
        return False
    try:
        lists = _of_lists(json.loads(data))
    except (ValueError, RecursionError):
        return False
    return bool(lists) and not lists.keys() & _ARRAYS


def _of_lists(loaded: Any) -> dict[str, list[Any]]:
    """Its lists of one length, that of a loss of the training or of most: what is logged less often counts other steps.

    None if a list is nested.
    """
    lists = {name: x for name, x in loaded.items() if isinstance(x, list)} if isinstance(loaded, dict) else {}
    if any(isinstance(value, list | dict) for x in lists.values() for value in x):
        return {}
    lengths = Counter(map(len, lists.values()))
    losses = {len(x) for column, x in lists.items() if names_loss(column)}
    length = max(lengths, key=lambda length: (length in losses, lengths[length], length), default=0)
    return {name: x for name, x in lists.items() if len(x) == length}


def _loaded(text: str, name: str, line: int = 1) -> Any:
    """JSON that begins in a line of a file."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError):
            line += error.lineno - 1
        raise InputError("log_json", name=name, line=line) from None


def _records(rows: Any) -> list[dict[str, Any]]:
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _of_parquet(data: bytes, name: str) -> list[Log]:
    try:
        about = parquet.read_metadata(io.BytesIO(data))
        groups = [about.row_group(at) for at in range(about.num_row_groups)]
        counts = [group.num_rows for group in groups]
        if min(counts, default=0) < 0 or sum(counts) != about.num_rows:
            raise InputError("bad_parquet", name=name)  # memory is taken for what a group says of itself
        values = about.num_rows * about.num_columns  # a constant column of any length takes a few bytes
        if values > _MOST_VALUES:
            raise InputError("many_values", name=name, count=values, most=_MOST_VALUES)
        table = parquet.read_table(io.BytesIO(data))
        rows = table.to_pylist()
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        raise InputError("bad_parquet", name=name) from None
    if {"run", "variant", "seed"} <= set(table.column_names):  # what `python -m qkdemo train --parquet` wrote
        return _of_own(rows)
    return _by_run(rows, name, "parquet")


def _of_own(rows: list[dict[str, Any]]) -> list[Log]:
    runs: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        numbers = {name: value for name, value in row.items() if name not in ("run", "variant", "seed")}
        runs.setdefault(f"{row['variant']}, seed {row['seed']}, run {row['run']}", []).append(numbers)
    return [log_of(run, "own", of_run) for run, of_run in runs.items()]


def _of_csv(text: str, name: str) -> list[Log]:
    try:
        mark = next(mark for mark in ",;\t" if mark in text.lstrip().split("\n", 1)[0])
        reader = csv.DictReader(io.StringIO(text), delimiter=mark, skipinitialspace=True)
        reader.fieldnames = [column.strip() for column in reader.fieldnames or ()]
        rows = list(reader)
        header = [column for column in reader.fieldnames or () if column]
    except csv.Error:
        raise InputError("bad_csv", name=name) from None
    if len(set(header)) < len(header):
        raise InputError("column_twice", name=name, column=repr(next(x for x in header if header.count(x) > 1)))
    rows = [{key: plain(value, mark) for key, value in row.items()} for row in rows]
    if any(set(header) >= columns for columns in _OF_RUNS):
        raise InputError("table_of_runs", name=name)
    if runs := of_chart(rows, header, name):
        return [log_of(run, "wandb_chart", of_run, sampled=True) for run, of_run in runs.items()]
    if set(header) == _OF_TENSORBOARD:
        return [_of_curve(rows, name)]
    return _by_run(rows, name, "csv")


def _of_curve(rows: list[dict[str, Any]], name: str) -> Log:
    """The one curve that TensorBoard's page saves, as `run-RUN-tag-TAG.csv`: its column is called as its file is."""
    tag = name.rpartition("/")[2].rpartition("-tag-")[2].removesuffix(".csv")
    column = tag if any(pattern.search(tag) for pattern in ROLES.values()) else "Value"
    return log_of(name, "csv", [{"step": row["Step"], column: row["Value"]} for row in rows], sampled=True)
