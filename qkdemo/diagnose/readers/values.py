"""One value of a training log, as a number or as text.

* `logged(value)`: what was logged and is not finite is told from what is no number; `is_nan(value)`; `real(value)`;
* `plain(value, mark)`: a number in a table with that mark between its cells, as Python reads it.
* `padding(rows)`, `now_and_then(rows)`: where NaN fills a row that has no value;
* `unfilled(rows, columns)`: rows that may have lost theirs.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

Pattern: TypeAlias = re.Pattern[str]
Kind: TypeAlias = tuple[frozenset[str], frozenset[str]]  # columns in which a row has a number, and NaN
_MOST_KINDS: Final = 64  # of rows in a table that NaN fills
_NEARLY: Final = 0.9  # of a column's rows
_ABOUT_HALF: Final = 0.55  # of them
_LEAST_GAPS: Final = 2
_LEAST_RETURNS: Final = 4  # of numbers after NaN, which what is lost does not do again and again
_ALIKE: Final = 2.0  # times as many rows
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


def apart(rows: Sequence[Collection[str]], has: Sequence[bool], pattern: Pattern) -> set[str]:
    """The columns of a pattern that do not nearly always stand in rows that have something. `rows`: names of each."""
    every = Counter(name for names in rows for name in names if pattern.search(str(name)))
    beside = Counter(name for names, there in zip(rows, has, strict=True) if there for name in names)
    return {name for name, count in every.items() if beside[name] < _NEARLY * count}


def now_and_then(
    rows: Sequence[Mapping[str, Any]], is_loss: Callable[[str], bool], is_measure: Callable[[str], bool]
) -> tuple[Mapping[str, frozenset[int]], Mapping[str, int]]:
    """By column, the rows in which NaN stands for no value; and, of some, how many these are.

    Only rows that have something in the column are asked: others have no value without NaN. NaN stands for none between
    numbers that come about every so many rows, of which one may be missing, or that come again and again after it while
    most rows have none: those are told, as they have no order. After the last number it does so for as many rows as
    between others, or twice as many; what is lost stays lost. In a measure of attention 0 can stand so, too, and
    numbers may come in any rows, if these are no more than half; after its last number NaN does so while a loss is a
    number, which no lost logit leaves.
    """
    found, told = dict[str, frozenset[int]](), dict[str, int]()
    names = {name for row in rows for name in row}
    measures = set(filter(is_measure, names))
    losses = [name for name in names if is_loss(name)]
    for name in measures | {name for row in rows for name, value in row.items() if is_nan(value)}:
        own = [(place, row[name]) for place, row in enumerate(rows) if row.get(name) not in (None, "")]
        measured = name in measures
        empty = [is_nan(x) or (measured and real(x) == 0) for _, x in own]
        places = [at for at, (_, x) in enumerate(own) if not empty[at] and math.isfinite(logged(x))]
        gaps = [later - earlier for earlier, later in pairwise(places)]
        if len(gaps) < _LEAST_GAPS:
            continue
        rare = 2 * len(gaps) <= places[-1] - places[0]
        usual, count = Counter(gaps).most_common(1)[0]
        even = min(gaps) > 1 and (max(gaps) <= _ALIKE * min(gaps) or 2 * count >= len(gaps))
        again = rare and sum(gap > 1 for gap in gaps) >= _LEAST_RETURNS
        if even or again or (measured and rare):
            until = _loss_stays(rows, losses, own[places[-1]][0]) if measured else 0
            if measured and rare:
                after = float(max(gaps))
            elif even or 2 * count >= len(gaps):
                after = min(max(gaps), _ALIKE * usual)
            else:  # gaps may grow from one to the next
                after = _ALIKE * max(gaps)
            end = places[-1] + after
            found[name] = frozenset(
                place for at, (place, x) in enumerate(own) if empty[at] and (at < end or (place <= until and is_nan(x)))
            )
            told |= {} if even or measured else {name: len(found[name])}
    return found, told


def _loss_stays(rows: Sequence[Mapping[str, Any]], losses: Sequence[str], since: int) -> int:
    """The last row with a loss of the training, if from `since` on none is lost; else `since`."""
    numbers = [(place, logged(rows[place].get(name))) for place in range(since, len(rows)) for name in losses]
    lost = any(math.isinf(x) for _, x in numbers)
    return since if lost else max((place for place, x in numbers if math.isfinite(x)), default=since)


class Unfilled(NamedTuple):
    """Cells of a column without a value, where it has one as a rule."""

    column: str
    cells: int
    first: float  # step
    every: int  # rows from one value to the next, as a rule


def unfilled(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, Collection[int]],
    at: Sequence[float],
    kinds: tuple[Pattern, Pattern],
) -> dict[str, Unfilled]:
    """By column, where it has no value, as pandas writes NaN; none of a column that has one whenever it should.

    `columns`: of each the rows in which its NaN stands for no value. `at`: the step of each row, NaN without one.
    `kinds`: what columns of evaluations and of rates are called.
    """
    lacking = [
        name for name, filler in columns.items() if filler or any(row.get(name, 0) in ("", None) for row in rows)
    ]
    there = [frozenset(name for name, x in row.items() if math.isfinite(real(x))) for row in rows] if lacking else []
    found = {name: _unfilled(rows, there, name, at, columns[name], kinds) for name in lacking}
    return {name: cells for name, cells in found.items() if cells is not None}


def _unfilled(
    rows: Sequence[Mapping[str, Any]],
    there: Sequence[frozenset[str]],
    column: str,
    at: Sequence[float],
    filler: Collection[int],
    kinds: tuple[Pattern, Pattern],
) -> Unfilled | None:
    """The cells of one column.

    Where most values lie several rows apart, those are looked for that are missing in between. A row is of another kind
    if it has a number of an evaluation, which does not come with each value, or in a column that mostly stands without
    this one, or lacks a rate that stands beside this one. `there`: the columns in which each row has a number.
    """
    evaluated, rate = kinds
    read = real if filler else logged  # NaN is no value, too, where it fills the column
    has = [place not in filler and not math.isnan(read(row.get(column))) for place, row in enumerate(rows)]
    every = Counter(name for names in there for name in names)
    beside = Counter(name for names, filled in zip(there, has, strict=True) if filled for name in names)
    others = {name for name, count in every.items() if beside[name] <= _ABOUT_HALF * min(count, sum(has))}
    others |= apart(there, has, evaluated)
    rates = {name for name in beside if rate.search(str(name)) and beside[name] >= _NEARLY * sum(has)}
    own = [
        place
        for place, names in enumerate(there)
        if math.isfinite(at[place])
        and (has[place] or (column in rows[place] and names and others.isdisjoint(names) and rates <= names))
    ]
    filled = [at for at, place in enumerate(own) if has[place]]
    gaps = [later - earlier for earlier, later in pairwise(filled)]
    usual, count = Counter(gaps).most_common(1)[0] if gaps else (0, 0)
    if usual == 1:
        empty = [place for place in own if not has[place]]
        empty = empty if empty and empty[-1] > own[filled[0]] else []  # or it began later
    elif 2 * count < len(gaps) or not gaps:
        return None
    else:
        ends = [*pairwise(filled), (filled[-1], len(own) - 1 + usual)]
        empty = [own[at] for start, stop in ends for at in range(start + usual, stop - usual + 1, usual)]
    return Unfilled(column, len(empty), at[empty[0]], usual) if empty else None
