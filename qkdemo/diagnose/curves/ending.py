"""A loss that is missing where its log goes on: pandas, and some that write JSON, leave out what is NaN.

* `of_missing(log, roles)`: the causes, none if it goes on and no cell is empty; `just_before(values, row)`: the last
  rows with a value.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.diagnose.curves.loss import Numbers
from qkdemo.diagnose.curves.other_columns import Cause
from qkdemo.diagnose.readers.columns import Log

JUST_BEFORE: Final = 5  # values that the log holds: what was so in none of them had passed
_LAST: Final = 9  # gaps before the end
_NEARLY_ALL: Final = 0.9  # of the gaps


def of_missing(log: Log, roles: Mapping[str, str]) -> list[Cause]:
    """A loss with a gap, or one that ends long before another column or the steps of rows that hold nothing else.

    Where neither is so, and of other columns, cells that are empty.
    """
    found = _of_loss(log, roles)
    lacking = {role: log.lacking[name] for role, name in roles.items() if name in log.lacking}
    if found:
        lacking.pop("loss", None)
    numbers = {role: float(empty.cells) for role, empty in lacking.items()}
    return [*found, Cause("cells_empty", 0.2, numbers)] if lacking else found


def _of_loss(log: Log, roles: Mapping[str, str]) -> list[Cause]:
    loss = log.columns.get(roles.get("loss", ""), np.empty(0))
    logged = ~np.isnan(loss)
    if not logged.any():
        return []
    until = last = int(np.flatnonzero(logged)[-1])
    empty = np.ones(len(log.step), bool)
    for name, column in log.columns.items():
        held = ~np.isnan(column)
        empty &= ~held
        if name in roles.values() or _beside(held[: last + 1], logged[: last + 1]):
            until = max([until, *np.flatnonzero(held)[-1:].tolist()])
    if empty[-1]:
        until = len(log.step) - 1
    gap = [] if log.sampled else _gap(log.step[logged])
    if np.isinf(loss[last]) or just_before(loss, until).size:
        return gap
    return [Cause("loss_ends", 0.65, {"step": float(log.step[last]), "until": float(log.step[until])}), *gap]


def _gap(step: Numbers) -> list[Cause]:
    """The longest of those between two losses, if it is far longer than nearly all others, and than both beside it."""
    gaps = np.diff(step)
    beside = np.maximum(np.append(gaps[1:], 0), np.append(0, gaps[:-1]))
    usual = np.maximum(beside, np.quantile(gaps, _NEARLY_ALL, method="lower")) if gaps.size else gaps
    wide = np.flatnonzero(gaps > JUST_BEFORE * usual)
    if not wide.size:
        return []
    at = wide[np.argmax(gaps[wide])]
    return [Cause("loss_gap", 0.45, {"step": float(step[at]), "back": float(step[at + 1])})]


def _beside(held: NDArray[np.bool_], logged: NDArray[np.bool_]) -> bool:
    """Whether a column is logged in the rows of the loss, and does not count steps of its own, as samples."""
    both = 2 * int((held & logged).sum())
    return both > 0 and both >= min(int(held.sum()), int(logged.sum()))


def just_before(values: Numbers, row: int) -> NDArray[np.intp]:
    """The last few rows, up to and with one, that hold a value; none if the column ends long before."""
    known = np.flatnonzero(~np.isnan(values[: row + 1]))
    gaps = np.diff(known, prepend=-1)[-_LAST:]  # rows from one value to the next
    usual = float(np.median(gaps)) if known.size else 1.0
    return known[-JUST_BEFORE:] if known.size and row - known[-1] <= JUST_BEFORE * usual else known[:0]
