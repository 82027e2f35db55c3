"""Cells of a column without a value, where it has one as a rule: pandas writes NaN as nothing.

* `lacking(table, column, unread, steps)`: how many, and where the first is.
"""

from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from qkdemo.diagnose.readers.cells.beats import off_beat
from qkdemo.diagnose.readers.cells.restarts import in_force
from qkdemo.diagnose.readers.cells.spacing import Spacing
from qkdemo.diagnose.readers.cells.table import Cells, Table


class Lacking(NamedTuple):
    """Cells of a column without a value, where it has one as a rule."""

    column: str
    cells: int
    first: float  # step
    every: float  # steps from one value to the next, as a rule; 0 where each row has one


def lacking(table: Table, column: str, unread: Cells, steps: Sequence[float]) -> Lacking | None:
    """The cells of one column; None if it has a value whenever it should, or no rule by which it does.

    `unread`: the rows in which its NaN stands for no value. `steps`: of each row, NaN without one. From a value on that
    is lost to the end no row is asked.
    """
    at = table.names[column]
    has = table.numbers[:, at] & ~unread
    lost = table.lost[:, at] & ~unread
    known = np.isfinite(np.array(steps))
    if not (has & known).any():
        return None
    last = int(np.flatnonzero(has)[-1])
    until = next((row for row in range(last, len(lost)) if lost[row]), len(lost))
    off = off_beat(has, np.array(steps))
    kind = (table.of_kind(has, filled=False, off=off) & table.named[:, at]) | lost
    rows = [row for row in np.flatnonzero(kind & known).tolist() if row < until]
    rows = list(compress(rows, in_force([steps[row] for row in rows])))
    places = [place for place, row in enumerate(rows) if has[row] or lost[row]]
    if len(places) < 2:
        return None
    missing = Spacing([steps[row] for row in rows], places).missing()
    if missing is None or not missing[1]:
        return None
    every, empty = missing
    return Lacking(column, len(empty), steps[rows[empty[0]]], every)
