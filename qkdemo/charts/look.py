"""How a sweep is looked at on paper: at one row, and perhaps not all of it.

* `Look`: which row, how much is shown, and predictions to be marked; `row_of(...)`, `whole(...)`: one of them;
* `numbers`, `vector`, `cell`: what stands in a table of an exhibit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.charts.panels import Entry
from qkdemo.charts.spec import Exhibit, Guess


@dataclass(frozen=True)
class Look:
    """How a panel is looked at: the row of the cursor, the first and last row that may be seen, predictions."""

    row: int
    first: int
    last: int
    guesses: Sequence[Guess] = ()


def whole(table: pa.Table, view: Exhibit) -> Look:
    """All of it, at the value where the dial stands."""
    return Look(row_of(table, view, view["dial"]["at"]), 0, table.num_rows - 1)


def row_of(table: pa.Table, view: Exhibit, value: float) -> int:
    """The row whose dial is nearest to `value`."""
    return int(np.argmin(np.abs(numbers(table, view["dial"]["column"]) - value)))


def numbers(table: pa.Table, column: str) -> NDArray[np.float64]:
    """A scalar column."""
    found: NDArray[np.float64] = table.column(column).to_numpy().astype(np.float64)
    return found


def vector(table: pa.Table, column: str, row: int) -> list[float]:
    """The list in one row of a vector column."""
    found: list[float] = table.column(column)[row].as_py()
    return found


def cell(table: pa.Table, entry: Entry, row: int) -> str:
    """What a cell shows: the text of a column, a constant, or a word that names no column."""
    if not isinstance(entry, str):
        return entry["text"]
    return str(table.column(entry)[row].as_py()) if entry in table.column_names else entry
