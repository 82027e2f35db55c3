"""Which rows of a log are of which run, and which of them are of an evaluation.

* `by_run(rows, name)`: the rows of every run, by its name; `LEAST_ROWS`: fewer tell nothing.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from qkdemo.diagnose.readers.columns import EVALUATED

LEAST_ROWS: Final = 6
NOTHING: Final = (None, "")  # in a cell of JSON, of CSV
_NAMES_RUNS: Final = (
    *("run", "run_id", "run_name", "experiment", "experiment_name", "trial", "trial_id", "seed"),
    *("model", "model_name", "variant", "optimizer", "optimiser"),
)
_NAMES_PARTS: Final = ("split", "phase", "mode", "stage", "subset")  # of the data: training, validation
_MOST_RUNS: Final = 1000

_Rows: TypeAlias = list[dict[str, Any]]


def by_run(rows: _Rows, name: str) -> dict[str, _Rows]:
    """By run, where columns name it and most rows are of runs that have enough; else all rows, by `name`."""
    rows = _of_training(rows)
    naming = _columns(rows, _NAMES_RUNS)
    runs: dict[str, _Rows] = {}
    for row in rows:
        runs.setdefault(", ".join(f"{column} {row.get(column)}" for column in naming), []).append(row)
    long = [len(of_run) for of_run in runs.values() if len(of_run) >= LEAST_ROWS]
    named = all(row.get(column) not in NOTHING for row in rows for column in naming)
    enough = len(long) > (not named) and sum(long) > len(rows) / 2  # a run may have ended early
    return runs if enough and 1 < len(runs) <= _MOST_RUNS else {name: rows}


def _of_training(rows: _Rows) -> _Rows:
    """The rows without those of an evaluation, if a column names these and others are left."""
    parts = _columns(rows, _NAMES_PARTS)
    return [row for row in rows if not any(EVALUATED.search(str(row.get(part)).lower()) for part in parts)] or rows


def _columns(rows: _Rows, names: Sequence[str]) -> list[str]:
    """The columns of the first row that are called so."""
    return [column for column in (rows[0] if rows else ()) if str(column).lower() in names]
