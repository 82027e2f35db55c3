"""One value of a training log, as a number or as text.

* `logged(value)`: what was logged and is not finite is told from what is no number; `is_nan(value)`; `real(value)`;
* `plain(value, mark)`: a number in a table with that mark between its cells, as Python reads it.
* `padding(rows)`: where NaN fills a row that has no value; `unfilled(rows, column)`: rows that may have lost theirs.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

Kind: TypeAlias = tuple[frozenset[str], frozenset[str]]  # columns in which a row has a number, and NaN
_MOST_KINDS: Final = 64  # of rows in a table that NaN fills
_MOSTLY: Final = 2 / 3  # of the values of a column lie as many rows apart
_NAN: Final = re.compile(  # C writes -nan, and on Windows -nan(ind); Lightning's bar nan.0
    r"[+-]?nan(\(\w{0,20}\)|\.0{0,9})?", re.IGNORECASE
)
_THOUSANDS: Final = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_COMMA: Final = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_NOT_FINITE: Final = re.compile(rf"{_NAN.pattern}|[+-]?inf(inity|\.0{{0,9}})?", re.IGNORECASE)


def logged(value: Any) -> float:
    """A value of a log: ∞ for what was logged and is not finite, NaN for what is no number."""
    if isinstance(value, float) and not math.isfinite(value):
        return math.inf
    if isinstance(value, str) and _NOT_FINITE.fullmatch(value.strip()):
        return math.inf
    return real(value)


def real(value: Any) -> float:
    """A number, also one written as text; NaN for what is none."""
    if isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def is_nan(value: Any) -> bool:
    """Whether a value is NaN, also one written as text."""
    return (isinstance(value, float) and math.isnan(value)) or (
        isinstance(value, str) and bool(_NAN.fullmatch(value.strip()))
    )


def plain(value: Any, mark: str) -> Any:
    """A number without the commas between its thousands; beside semicolons a comma stands before decimals."""
    if not isinstance(value, str):
        return value
    if mark == ";" and _COMMA.fullmatch(value):
        return value.replace(",", ".")
    return value.replace(",", "") if mark == "," and _THOUSANDS.fullmatch(value.strip()) else value


# ---- cells without a value


def kind_of_row(row: Mapping[str, Any]) -> Kind:
    """The columns in which a row has a number, and in which NaN."""
    numbers = {name: logged(value) for name, value in row.items()}
    nan = frozenset(name for name, value in row.items() if is_nan(value))
    return frozenset(name for name, x in numbers.items() if math.isfinite(x)), nan


def padding(rows: Sequence[Mapping[str, Any]]) -> Mapping[Kind, frozenset[str]]:
    """By kind of row, the columns in which NaN stands for no value: that row has a number where others have their NaN.

    So a table of rows of two kinds is written, those of the training and those of its evaluations. A loss that is lost
    leaves NaN beside numbers that are in every row.
    """
    kinds: set[Kind] = set()
    for row in rows:
        if any(map(is_nan, row.values())):
            kinds.add(kind_of_row(row))
        if len(kinds) > _MOST_KINDS:
            return {}
    return {
        (there, nan): frozenset().union(*(nan & other for other, gone in kinds if there & gone)) for there, nan in kinds
    }


def unfilled(rows: Sequence[Mapping[str, Any]], column: str) -> list[int]:
    """Rows of a table in which a column's cell is empty where it has a number as a rule, as pandas writes NaN.

    Rows with a number in a column that mostly stands without this one are of another kind, as those of an evaluation.
    """
    if not any(row.get(column, 0) in ("", None) for row in rows):
        return []
    there = [frozenset(name for name, x in row.items() if not math.isnan(logged(x))) for row in rows]
    every = Counter(name for names in there for name in names)
    beside = Counter(name for names in there if column in names for name in names)
    others = {name for name, count in every.items() if 2 * beside[name] < min(count, every[column])}
    own = [place for place, names in enumerate(there) if column in rows[place] and others.isdisjoint(names)]
    filled = [at for at, place in enumerate(own) if column in there[place]]
    gaps = [later - earlier for earlier, later in pairwise(filled)]
    usual, count = Counter(gaps).most_common(1)[0] if gaps else (0, 0)
    if not gaps or count < _MOSTLY * len(gaps):
        return []
    ends = [*pairwise(filled), (filled[-1], len(own))]
    return [own[at] for start, stop in ends for at in range(start + usual, stop, usual)]
