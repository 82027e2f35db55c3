"""What the table of an exhibit says where its dial stands.

* `Row(table, view)`: `at`, the row; `text(entry)`, `number(column)`, `vector(column)`: what stands there;
* `place(value)`: how far along the dial a value lies, 0 to 1, as `exhibit/rows/sweep.js` lays it out.
"""

import math
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.charts.panels import Entry
from qkdemo.charts.spec import Exhibit


class Row:
    """See above; `places` are those of all rows."""

    def __init__(self, table: pa.Table, view: Exhibit) -> None:
        self._table = table
        dial = view["dial"]
        self._values = self.numbers(dial["column"])
        self._log, self._from = dial["log"], float(self._values[0])
        self.places: NDArray[np.float64] = np.array([self.place(value) for value in self._values.tolist()])
        self.at = int(np.abs(self.places - self.place(dial["at"])).argmin())

    def place(self, value: float) -> float:
        """From 0 at the first row to 1 at the last."""
        first, last = self._scaled(self._from), self._scaled(float(self._values[-1]))
        return (self._scaled(value) - first) / ((last - first) or 1)

    def _scaled(self, value: float) -> float:
        if not self._log:
            return value
        if self._from <= 0:
            return math.log1p(value)
        return math.log(value) if value > 0 else -math.inf

    def text(self, entry: Entry) -> str:
        """The words of a string column here; a constant is one."""
        if isinstance(entry, dict):
            return entry["text"]
        return str(self._table.column(entry)[self.at].as_py() or "") if self._has(entry) else entry

    def longest(self, entry: Entry) -> str:
        """The longest words of that column anywhere."""
        if isinstance(entry, dict) or not self._has(entry):
            return self.text(entry)
        return max((text or "" for text in self._table.column(entry).to_pylist()), key=len, default="")

    def numbers(self, column: str) -> NDArray[np.float64]:
        """[rows]"""
        found = self._table.column(column).to_numpy()
        return np.asarray(found, dtype=np.float64)

    def number(self, column: str) -> float:
        """A scalar column here."""
        return float(self._table.column(column)[self.at].as_py())

    def vector(self, column: str) -> list[Any]:
        """A vector column here."""
        found: list[Any] = self._table.column(column)[self.at].as_py()
        return found

    def _has(self, column: str) -> bool:
        return column in self._table.column_names
