"""NaN that stands for no value, as pandas fills a table with it.

* `of_another_kind(table, columns)`: in rows of another kind than a column's own;
* `unread(table, columns, steps, calm)`: there, and between numbers that come every so many rows;
* `are_calm(table, losses, …)`: rows with a loss that is not lost, nor the next.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress, pairwise
from statistics import median_low
from typing import Final, TypeAlias

import numpy as np

from qkdemo.diagnose.readers.cells.restarts import in_force
from qkdemo.diagnose.readers.cells.spacing import Spacing
from qkdemo.diagnose.readers.cells.table import Cells, Table

_Unread: TypeAlias = dict[str, Cells]
_LEAST: Final = 3  # numbers


def of_another_kind(table: Table, columns: Iterable[str]) -> _Unread:
    """By column, the rows of another kind that hold NaN in it."""
    found = {name: _apart(table, name, table.numbers[:, table.names[name]]) for name in columns if name in table.names}
    return {name: cells for name, cells in found.items() if cells.any()}


def unread(
    table: Table, columns: Iterable[str], steps: Sequence[float], calm: Sequence[bool] = ()
) -> tuple[_Unread, dict[str, int]]:
    """By column, the rows in which NaN stands for no value; and, of some, how many are told to be read so.

    NaN does so in rows of another kind; where numbers around it lie several rows apart; and where they come again and
    again after it while most rows have none: that is told, unless they come about every so many rows. After the last
    number it does so until one was due; what is lost stays lost. With `calm` these are measures of attention, in which
    0 can stand so, too, numbers may come in any rows, if these are no more than half, and NaN does so in rows that are
    calm: that is told, if numbers are not rare.
    """
    found, told, measured = _Unread(), dict[str, int](), bool(calm)
    for name in columns:
        nan, zero = table.nan[:, table.names[name]], table.zero[:, table.names[name]]
        empty = nan | (zero & measured)
        if not empty.any():
            continue
        has = table.numbers[:, table.names[name]] & ~empty
        kind = table.of_kind(has, filled=True)
        cells, is_even = _between(has, empty & kind, steps, anywhere=measured)
        if measured:
            beside = nan & kind & np.array(calm)
            cells, of_told = cells | beside, beside
        else:
            of_told = cells
        until = len(has) if measured else len(has) - int(has[::-1].argmax())  # numbers come again
        if of_told[:until].any() and not is_even:
            told[name] = int(of_told.sum())
        cells |= empty & ~kind
        if cells.any():
            found[name] = cells
    return found, told


def are_calm(table: Table, losses: Collection[str], others: Collection[str], unread: Mapping[str, Cells]) -> list[bool]:
    """Of each row, whether its loss of the training is a number, and the next one as well.

    No lost logit leaves that. A loss of 0 beside NaN in another column is no number: so Hugging Face's Trainer logs one
    that was lost. `unread`: by column, where NaN stands for no value.
    """
    none = np.zeros(len(table.nan), bool)
    numbers, lost, zero = none.copy(), none.copy(), none.copy()
    for name in losses:
        column = table.names[name]
        numbers |= table.numbers[:, column]
        zero |= table.zero[:, column]
        lost |= table.lost[:, column] & ~unread.get(name, none)
    nan = table.nan[:, [table.names[name] for name in others]].any(axis=1)
    good = numbers & ~lost & ~(zero & nan)
    following, calm = list[bool](), list[bool]()
    for is_known, is_good in zip((numbers | lost)[::-1].tolist(), good[::-1].tolist(), strict=True):
        following = [is_good, *following[:1]] if is_known else following
        calm.append(is_known and all(following))
    return calm[::-1]


def _apart(table: Table, name: str, has: Cells) -> Cells:
    nan: Cells = table.nan[:, table.names[name]]
    return nan & ~table.of_kind(has, filled=True) if nan.any() else nan


def _between(has: Cells, empty: Cells, steps: Sequence[float], *, anywhere: bool) -> tuple[Cells, bool]:
    """The empty cells, all of the kind of these values, that stand for none; and whether values come regularly."""
    rows, found = np.flatnonzero(has | empty).tolist(), np.zeros_like(has)
    rows = list(compress(rows, in_force([steps[row] for row in rows])))
    places = np.flatnonzero(has[rows]).tolist()
    if len(places) < _LEAST:
        return found, False
    spacing = Spacing([steps[row] for row in rows], places)
    anywhere = anywhere and spacing.rare
    again = anywhere or (spacing.rare and spacing.returns)
    inside = [again or around > 1 for around in spacing.around()]
    found[:] = median_low(spacing.gaps) > 1  # in rows that others have replaced
    found[rows] = False
    found[rows[: places[0]]] = inside[0]
    for (start, stop), usual, is_filled in zip(pairwise(places), spacing.usual(), inside, strict=True):
        due = np.inf if is_filled else spacing.steps[start] + usual
        found[[row for at, row in enumerate(rows[start:stop], start) if spacing.steps[at] < due]] = True
    due = spacing.next_due(anywhere=anywhere, dense=not inside[-1])
    found[[row for at, row in enumerate(rows) if places[-1] < at and spacing.steps[at] < due]] = True
    return found & empty, anywhere or spacing.even
