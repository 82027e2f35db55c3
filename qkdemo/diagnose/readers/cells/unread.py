"""NaN that stands for no value, as pandas fills a table with it.

* `of_another_kind(table, columns)`: in rows of another kind than a column's own;
* `unread(table, columns, steps, losses)`: there, and between numbers that come every so many rows;
* `losses_of(table, losses, …)`: the rows with a loss of the training, and those in which it is lost.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress, pairwise
from statistics import median_low
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from qkdemo.diagnose.readers.cells.beats import off_beat
from qkdemo.diagnose.readers.cells.restarts import in_force
from qkdemo.diagnose.readers.cells.spacing import Spacing
from qkdemo.diagnose.readers.cells.table import Cells, Table

_Unread: TypeAlias = dict[str, Cells]
_LEAST: Final = 3  # numbers


class Losses(NamedTuple):
    """Rows that hold a loss of the training, be it lost, and those of them in which it is."""

    known: Cells
    lost: Cells


def of_another_kind(table: Table, columns: Iterable[str]) -> _Unread:
    """By column, the rows of another kind that hold NaN in it."""
    found = {name: _apart(table, name, table.numbers[:, table.names[name]]) for name in columns if name in table.names}
    return {name: cells for name, cells in found.items() if cells.any()}


def unread(
    table: Table, columns: Iterable[str], steps: Sequence[float], losses: Losses | None = None
) -> tuple[_Unread, dict[str, int]]:
    """By column, the rows in which NaN stands for no value; and, of some, how many are told to be read so.

    NaN does so in rows of another kind; at steps at which the column has no values; where numbers around it lie several
    rows apart; and where they come again and again after it while most rows have none: that is told, unless they come
    about every so many rows. After the last number it does so until one was due; what is lost stays lost. With `losses`
    these are measures of attention, in which 0 can stand so, too, numbers may come in any rows, if these are no more
    than half, and NaN does so beside a loss that stays finite until the next one is due: that is told, if numbers are
    not rare.
    """
    found, told, measured = _Unread(), dict[str, int](), losses is not None
    for name in columns:
        nan, zero = table.nan[:, table.names[name]], table.zero[:, table.names[name]]
        empty = nan | (zero & measured)
        if not empty.any():
            continue
        has = table.numbers[:, table.names[name]] & ~empty
        off = off_beat(has, np.array(steps))
        kind = table.of_kind(has, filled=True, off=off)
        cells, is_even = _between(has, empty & kind, steps, table.bare, anywhere=measured)
        if losses is not None:
            beside = nan & kind & _calm(losses, off)
            cells, of_told = cells | beside, beside & ~off
            if off.any():  # what is not measured in a row in which it is due is so in later ones
                cells |= empty & kind & np.logical_or.accumulate(of_told & ~_until_last(has))
        else:
            of_told = cells & ~off
        until = np.ones_like(has) if measured else _until_last(has)  # numbers come again
        if (empty & ~cells & ~off & ~_until_last(has)).any():  # else it may be lost at steps of any kind
            cells |= empty & off
        cells |= empty & ((off & _until_last(has)) | ~kind)
        if (of_told & until).any() and not is_even:
            beside_one = losses.known & ~losses.lost if losses else np.ones_like(has)
            told[name] = int((nan & cells & beside_one).sum())
        if cells.any():
            found[name] = cells
    return found, told


def losses_of(table: Table, losses: Collection[str], others: Collection[str], unread: Mapping[str, Cells]) -> Losses:
    """The rows with a loss of the training, and those in which it is lost.

    A loss of 0 beside NaN in another column is lost: so Hugging Face's Trainer logs one that was. `unread`: by column,
    where NaN stands for no value.
    """
    none = np.zeros(len(table.nan), bool)
    numbers, lost, zero = none.copy(), none.copy(), none.copy()
    for name in losses:
        column = table.names[name]
        numbers |= table.numbers[:, column]
        zero |= table.zero[:, column]
        lost |= table.lost[:, column] & ~unread.get(name, none)
    nan = table.nan[:, [table.names[name] for name in others]].any(axis=1)
    return Losses(numbers | lost, lost | (zero & nan & numbers))


def _calm(losses: Losses, off: Cells) -> Cells:
    """Of each row with a loss whether none is lost until a column is due again, nor the one after: no lost logit leaves
    that.

    `off`: the rows in which the column is not due.
    """
    rows = np.arange(len(off))
    due = np.append(np.flatnonzero(~off), len(off))
    before = due[np.searchsorted(due, rows, side="right")] - 1  # the row before the next that is due
    known = np.append(np.flatnonzero(losses.known), len(off) - 1)
    stop = known[np.minimum(np.searchsorted(known, before, side="right"), len(known) - 1)]
    lost = np.append(0, np.cumsum(losses.lost))
    found: Cells = losses.known & (lost[np.maximum(stop, rows) + 1] == lost[:-1])
    return found


def _until_last(has: Cells) -> Cells:
    """The rows up to the last one of these, and with it."""
    found: Cells = np.logical_or.accumulate(has[::-1])[::-1]
    return found


def _apart(table: Table, name: str, has: Cells) -> Cells:
    nan: Cells = table.nan[:, table.names[name]]
    return nan & ~table.of_kind(has, filled=True) if nan.any() else nan


def _between(has: Cells, empty: Cells, steps: Sequence[float], bare: Cells, *, anywhere: bool) -> tuple[Cells, bool]:
    """The empty cells, all of the kind of these values, that stand for none; and whether values come regularly.

    A `bare` row behind the last value was logged for what it lacks, if that was in each of the rows before.
    """
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
    after = [row for at, row in enumerate(rows) if places[-1] < at and spacing.steps[at] < due]
    was_filled = inside[-1] or bool(empty[: rows[places[-1]]].any())
    found[[row for row in after if was_filled or not bare[row]]] = True
    return found & empty, anywhere or spacing.even
