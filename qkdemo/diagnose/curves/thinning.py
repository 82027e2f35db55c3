"""A log that is too long, with fewer of its rows: `thinned(log, roles)`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.diagnose.curves.loss import lost_for_good
from qkdemo.diagnose.readers.columns import Log

MOST_ROWS: Final = 20_000


def thinned(log: Log, roles: Mapping[str, str]) -> Log:
    """A log of more than MOST_ROWS rows with about that many of them; it then counts as sampled.

    Rows are spread evenly among those that hold a value, for each set of columns that are logged together: of no column
    all rows go. The rows stay in which what is not finite begins, ends, and is last before the loss is lost for good.
    """
    if len(log.step) <= MOST_ROWS:
        return log
    named = [log.columns[name] for name in set(roles.values()) if name in log.columns]
    patterns = {
        there.tobytes(): there for column in named or log.columns.values() if (there := ~np.isnan(column)).any()
    }
    each = MOST_ROWS // max(1, len(patterns))
    kept = [_spread(np.flatnonzero(there), each) for there in patterns.values()]
    until = lost_for_good(log.columns.get(roles.get("loss", ""), np.empty(0)))
    for column in named:
        lost, there = np.flatnonzero(np.isinf(column)), np.flatnonzero(~np.isnan(column))
        since = lost_for_good(column)
        kept += [lost[:1], lost[-1:], lost[lost < until][-1:], there[there >= since][:1], there[there < since][-1:]]
    rows = np.unique(np.concatenate(kept))
    columns = {name: column[rows] for name, column in log.columns.items()}
    return replace(log, step=log.step[rows], columns=columns, sampled=True)


def _spread(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    chosen: NDArray[np.int64] = rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int)]
    return chosen
