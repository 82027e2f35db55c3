"""Rows as a table of text: for the eye in a terminal, and for awk in a pipe.

* `table(rows, exact, noise, plainly=..., room=...)`: a header line and one line per row, the columns below each other;
* `finite(value)`: what JSON can hold of a report.

Counts keep every digit. Other numbers have four significant digits, unless `exact` names their column. A difference
below the `noise` of its column is rounding, and its digits the machine's: no more is said of it, and in a pipe it is 0.
A terminal has `room`: long names are cut there, and columns that do not fit are counted below the table.
"""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from qkdemo.messages import say
from qkdemo.notation import counted, plain, power, written

_ALL_DIGITS: Final = 9  # of a dial: nobody types more
_LONGEST: Final = 32  # of a text where there is little room
_GAP: Final = "  "


def table(
    rows: Sequence[Mapping[str, Any]],
    exact: Collection[str] = (),
    noise: Mapping[str, float] = MappingProxyType({}),
    *,
    plainly: bool = False,
    room: int = 0,
) -> str:
    """The columns are those of the first row. `plainly`: ASCII numbers that other programs read, and - for none.

    `room`: how many characters a line may have; 0: any number.

    >>> print(table([{"n": 1048576, "slope": 0.0013616, "bound": None}], plainly=True))
          n     slope  bound
    1048576  0.001362      -
    """
    if not rows:
        return ""
    names = list(rows[0])
    cell = _plain if plainly else _pretty
    cells = [names, *([cell(row[name], noise.get(name, 0.0), exact=name in exact) for name in names] for row in rows)]
    if room:
        cells = [[text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in line] for line in cells]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    fit = _how_many_fit(widths, room) if room else len(widths)
    lines = [_GAP.join(cell.rjust(width) for cell, width in zip(line[:fit], widths, strict=False)) for line in cells]
    if fit < len(names):
        lines.append(say("command.columns", fit=fit, all=len(names)))
    return "\n".join(lines)


def finite(value: Any) -> Any:
    """JSON has no ∞ and no NaN: they are written as the words inf, -inf and nan."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [finite(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _how_many_fit(widths: Sequence[int], room: int) -> int:
    """How many of the columns a line has room for, the first one at least."""
    ends = itertools.accumulate(widths, lambda end, width: end + len(_GAP) + width)
    return max(1, sum(end <= room for end in ends))


def _pretty(value: Any, noise: float, *, exact: bool) -> str:
    match value:
        case None:
            return "–"
        case bool() | str():
            return str(value)
        case int():
            return counted(value)
        case float() if abs(value) < noise:
            return f"< {power(noise)}"
        case _:
            return written(value, _ALL_DIGITS) if exact else written(value)


def _plain(value: Any, noise: float, *, exact: bool) -> str:
    match value:
        case None:
            return "-"
        case float() if abs(value) < noise:
            return "0"
        case float() if not exact and math.isfinite(value):
            return f"{value + 0.0:.4g}"  # a negative zero is zero
        case bool() | str():
            return str(value)
        case _:
            return plain(value)
