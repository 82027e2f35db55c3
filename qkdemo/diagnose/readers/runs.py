"""Which rows of a log are of which run, and which of them are of an evaluation.

* `by_run(rows, name)`: the rows of every run, by its name; `LEAST_ROWS`: fewer tell nothing;
* `of_metrics(rows)`: rows of MLflow, each of one metric, as rows with a column for each metric;
* `of_chart(rows, header, name)`: the same of a chart of Weights & Biases, which has a column for each run;
* `of_watch(rows)`, `worst_head(rows)`: the worst head of each step, where `watch` wrote one row a head.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from qkdemo.diagnose.readers.cells.restarts import restarts, without_replaced
from qkdemo.diagnose.readers.columns import EVALUATED, names_loss, names_main_loss
from qkdemo.diagnose.readers.steps import names_steps
from qkdemo.diagnose.readers.values import is_nan, real
from qkdemo.messages import say

LEAST_ROWS: Final = 6
NOTHING: Final = (None, "")  # in a cell of JSON, of CSV
_NAMES_RUNS: Final = (
    *("run", "run_id", "run_uuid", "run_name", "experiment", "experiment_name", "trial", "trial_id", "seed"),
    *("model", "model_name", "variant", "optimizer", "optimiser"),
)
_OF_METRIC: Final = {"key", "value", "step"}  # columns of what MLflow saves of metrics, beside a run and a time
_NAMES_PARTS: Final = ("split", "phase", "mode", "stage", "subset")  # of the data: training, validation
_MOST_RUNS: Final = 1000
_AXES: Final = {"Step", "Relative Time (Process)", "Relative Time (Wall)", "Wall Time"}  # of charts
_EDGES: Final = ("__MIN", "__MAX")  # the least and the largest of what a point of a chart stands for
WATCHED: Final = {"layer", "head", "max_logit"}  # columns of what `watch` writes
_CHOSEN: Final[dict[str, Callable[[float, float], float]]] = {  # which head's is the worst
    "max_logit": lambda *pair: max(map(abs, pair)),
    "entropy_fraction": min,
    "q_norm_max": max,
    "k_norm_max": max,
}
_MEASURED: Final = {"step", *WATCHED, *_CHOSEN}  # columns read as measures, also where a row puts something else there

_Rows: TypeAlias = list[dict[str, Any]]


def by_run(rows: _Rows, name: str) -> dict[str, _Rows]:
    """By run, where columns name it and most rows are of runs that have enough; else all rows, by `name`."""
    rows = _of_training(of_metrics(rows))
    naming = _columns(rows, _NAMES_RUNS)
    runs: dict[str, _Rows] = {}
    for row in rows:
        runs.setdefault(", ".join(f"{column} {row.get(column)}" for column in naming), []).append(row)
    long = [len(of_run) for of_run in runs.values() if len(of_run) >= LEAST_ROWS]
    named = all(row.get(column) not in NOTHING for row in rows for column in naming)
    enough = len(long) > (not named) and sum(long) > len(rows) / 2  # a run may have ended early
    return _with_own(runs) if enough and 1 < len(runs) <= _MOST_RUNS else {name: rows}


def _with_own(runs: dict[str, _Rows]) -> dict[str, _Rows]:
    """Every run without the columns that only others have: a table of them all has an empty cell there, or NaN.

    NaN may as well be what this run logged: such a column stays, and is empty; but of losses only where no other is.
    """
    has = {run: {column for row in rows for column, x in row.items() if _is_value(x)} for run, rows in runs.items()}
    every = {column for columns in has.values() for column in columns}
    found = dict[str, _Rows]()
    for run, rows in runs.items():
        others = every - has[run]
        losses = set(filter(names_loss, others))
        if not any(map(names_main_loss, has[run])):
            others -= losses
        nan = {column for row in rows for column in others - losses if is_nan(row.get(column))}
        found[run] = [
            {column: None if column in nan else x for column, x in row.items() if column not in others - nan}
            for row in rows
        ]
    return found


def _is_value(x: Any) -> bool:
    return x not in NOTHING and not is_nan(x)


def _of_training(rows: _Rows) -> _Rows:
    """The rows without those of an evaluation, if a column names these and others are left."""
    parts = _columns(rows, _NAMES_PARTS)
    return [row for row in rows if not any(EVALUATED.search(str(row.get(part)).lower()) for part in parts)] or rows


def _columns(rows: _Rows, names: Sequence[str]) -> list[str]:
    """The columns of the first row that are called so."""
    return [column for column in (rows[0] if rows else ()) if str(column).lower() in names]


def of_metrics(rows: _Rows) -> _Rows:
    """The same, but where each row holds the value of one metric that it names: that is in a column called so."""
    if not rows or not rows[0].keys() >= _OF_METRIC:
        return rows
    kept = [column for column in rows[0] if names_steps(column) or str(column).lower() in _NAMES_RUNS]
    return [{name: row.get(name) for name in kept} | {str(row.get("key")): row.get("value")} for row in rows]


def of_chart(rows: _Rows, header: Sequence[str], name: str) -> dict[str, _Rows]:
    """By run, its curves from columns `run - metric`, without their edges; none, if these columns are no chart's.

    Over a time, or another axis that counts no steps, rows have none, unless the run has a curve of them.
    """
    edges = {column for column in header if column.endswith(_EDGES) and column[: -len(_EDGES[0])] in header}
    steps = next(filter(names_steps, header), None)
    if not edges and (_AXES.isdisjoint(header) or not any(" - " in column for column in header)):
        return {}
    runs: dict[str, dict[str, str]] = {}  # metric → column
    for column in header[1:]:
        run, mark, metric = column.rpartition(" - ")
        if column != steps and column not in edges and (mark or f"{column}{_EDGES[0]}" in edges):
            runs.setdefault(run or name, {})[metric] = column
    at = {} if steps is None else {"step": steps}
    return {
        run: [
            {metric: row[column] for metric, column in (at | curves).items()}
            for row in rows
            if any(row[column] not in NOTHING for column in curves.values())  # others are of longer runs
        ]
        for run, curves in runs.items()
    }


def of_watch(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What `watch` wrote, one row a step: the worst head of each measure."""
    steps: dict[float, dict[str, Any]] = {}
    for row in _in_force(rows):
        at = real(row.get("step"))
        if math.isnan(at):
            continue
        into = steps.setdefault(at, {"step": at})
        for name, choose in _CHOSEN.items():
            value = _logit(row) if name == "max_logit" else real(row.get(name))
            if not math.isnan(value):
                into[name] = value if name not in into else choose(into[name], value)
        if row.get("layer") in NOTHING:  # what was noted beside
            into |= {name: x for name, x in row.items() if name not in _MEASURED and x not in NOTHING}
    return [steps[at] for at in sorted(steps)]  # in any other order a step that comes late is no restart


def worst_head(rows: Iterable[Mapping[str, Any]]) -> str:
    """Where the largest |logit| of the last step that was measured is."""
    heads = [row for row in _in_force(rows) if row.keys() >= WATCHED and not math.isnan(_logit(row))]
    last = max((real(row.get("step")) for row in heads), default=math.nan)
    worst = max(
        (row for row in heads if real(row.get("step")) == last),
        key=lambda row: abs(_logit(row)),
        default=None,
    )
    return "" if worst is None else say("log.head", head=worst["head"], layer=worst["layer"])


def _in_force(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows without those that a restart has replaced, as the heads' have it: what is noted beside may come late."""
    kept = list(rows)
    points = [(real(row.get("step")), math.nan, place) for place, row in enumerate(kept)]
    heads = [point for point in points if kept[point[2]].get("layer") not in NOTHING and math.isfinite(point[0])]
    each = [point for at, point in enumerate(heads) if not at or heads[at - 1][0] != point[0]]
    return [kept[place] for *_, place in without_replaced(points, restarts(each))]


def _logit(row: Mapping[str, Any]) -> float:
    """The largest logit of a head; ∞ where one is not finite: then `watch` counts rows whose softmax is undefined."""
    return math.inf if real(row.get("undefined_rows")) > 0 else real(row.get("max_logit"))
