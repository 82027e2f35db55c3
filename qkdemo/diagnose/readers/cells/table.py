"""Which cells of a log's table hold a number, and which rows are of the kind in which a column has its values.

* `Table(rows, names)`: numbers and NaN in it; `Table.of_kind(has, …)`: the rows of a column's kind; `Table.bare`: rows
  with no numbers but learning rates and what counts on, such as steps, epochs and times;
* `asked(names, rows, roles)`: the columns of a log that are looked at.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.diagnose.readers.values import is_nan, logged

Cells: TypeAlias = NDArray[np.bool_]
_SELDOM: Final = 0.55  # of the values of the rarer of two columns
_NEARLY: Final = 0.9  # of a column's values
_MOST_CELLS: Final = 40_000_000  # of a table
_LEAST_ASKED: Final = 20  # columns


class Table:
    """Rows and columns of a log. `rate`: what columns of learning rates are called, of which a training logs each."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], names: Sequence[str], rate: re.Pattern[str]) -> None:
        """Arrays of rows × columns."""
        self.names = {name: at for at, name in enumerate(names)}
        values = np.full((len(rows), len(names)), np.nan)
        self.nan = np.zeros_like(values, bool)
        self.named = np.zeros_like(values, bool)  # whether a row names the column, be its cell empty
        self._rates = np.array([bool(rate.search(str(name))) for name in names], bool)
        for place, row in enumerate(rows):
            for name, value in row.items():
                if (at := self.names.get(name)) is None:
                    continue
                self.named[place, at] = True
                values[place, at] = number = logged(value)
                if math.isinf(number):
                    self.nan[place, at] = is_nan(value)
        self.numbers, self.lost, self.zero = np.isfinite(values), np.isinf(values), values == 0
        counts = np.array([_never_falls(column) for column in values.T], bool) | self._rates
        self.bare = ~_any(self.numbers, ~counts)

    def of_kind(self, has: Cells, *, filled: bool, off: Cells | None = None) -> Cells:
        """Of each row whether it is of the kind in which a column `has` values; rows that have one are.

        Another kind has a number in a column that seldom has one together with this one, as that of an evaluation; or
        it lacks a rate that nearly always stands beside this one. Rows behind the last value do not tell what seldom
        is: there this one may be lost; nor do those `off` its beat, in which it is not due. `filled`: NaN has to fill
        such columns elsewhere, and that rate here.
        """
        some = np.ones(len(has), bool) if filled else _any(self.numbers)
        if not has.any():
            return some
        until = int(np.flatnonzero(has)[-1]) + 1
        due = slice(None) if off is None else ~off[:until]
        every, both = self.numbers[:until][due].sum(axis=0), self.numbers[:until][has[:until]].sum(axis=0)
        apart = both <= _SELDOM * np.minimum(every, has.sum())
        beside = self._rates & (both >= _NEARLY * has.sum())
        if filled:
            apart &= self.nan.any(axis=0)
        lacking = _any(self.nan if filled else ~self.numbers, beside)
        return (some & ~_any(self.numbers, apart) & ~lacking) | has


def asked(names: Sequence[str], rows: int, roles: Sequence[re.Pattern[str]]) -> list[str]:
    """Columns whose cells are asked for NaN: of a huge log those first that have a role."""
    most = max(_LEAST_ASKED, _MOST_CELLS // max(rows, 1))
    if len(names) <= most:
        return list(names)
    first = sorted(range(len(names)), key=lambda at: not any(role.search(str(names[at])) for role in roles))
    return [names[at] for at in sorted(first[:most])]


def _never_falls(values: NDArray[np.float64]) -> bool:
    known = values[np.isfinite(values)]
    return bool(np.all(known[1:] >= known[:-1]))


def _any(cells: Cells, columns: Cells | slice = slice(None)) -> Cells:
    """Of each row whether one of these cells is so."""
    found: Cells = np.any(cells[:, columns], axis=1)
    return found
