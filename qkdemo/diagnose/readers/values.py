"""One value of a training log, as a number or as text.

* `logged(value)`: what was logged and is not finite is told from what is no number; `is_nan(value)`; `real(value)`;
* `plain(value, mark)`: a number in a table with that mark between its cells, as Python reads it.
* `padding(rows)`, `now_and_then(rows)`: where NaN fills a row that has no value;
* `unfilled(rows, columns)`: rows that may have lost theirs.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from statistics import median_low, mode
from typing import Any, Final, NamedTuple, TypeAlias

Pattern: TypeAlias = re.Pattern[str]
Kind: TypeAlias = tuple[frozenset[str], frozenset[str]]  # columns in which a row has a number, and NaN
_MOST_KINDS: Final = 64  # of rows in a table that NaN fills
_NEARLY: Final = 0.9  # of a column's rows
_ABOUT_HALF: Final = 0.55  # of them
_LEAST_GAPS: Final = 2
_LEAST_RETURNS: Final = 4  # of numbers after NaN, which what is lost does not do again and again
_ALIKE: Final = 2.0  # times as many rows
_NEAREST: Final = 9  # gaps, of which the median is how far apart values lie there
_IN_A_ROW: Final = (8, 3)  # gaps of one size, which what is lost does not leave in every row, or every few
_NAN: Final = re.compile(  # C writes -nan, and on Windows -nan(ind); Lightning's bar nan.0
    r"[+-]?nan(\(\w{0,20}\)|\.0{0,9})?", re.IGNORECASE
)
_TENSOR: Final = re.compile(r"tensor\(\s*([^\s,()\[\]]+)\s*(,.*)?\)", re.DOTALL)  # as PyTorch prints one number
_THOUSANDS: Final = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_COMMA: Final = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_NOT_FINITE: Final = re.compile(rf"{_NAN.pattern}|[+-]?inf(inity|\.0{{0,9}})?", re.IGNORECASE)


def logged(value: Any) -> float:
    """A value of a log: ∞ for what was logged and is not finite, NaN for what is no number."""
    value = _bare(value)
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
        return float(_bare(value))
    except (TypeError, ValueError, OverflowError):
        return math.nan


def is_nan(value: Any) -> bool:
    """Whether a value is NaN, also one written as text."""
    value = _bare(value)
    return (isinstance(value, float) and math.isnan(value)) or (
        isinstance(value, str) and bool(_NAN.fullmatch(value.strip()))
    )


def _bare(value: Any) -> Any:
    """The number in what PyTorch prints of a tensor with one."""
    printed = _TENSOR.fullmatch(value.strip()) if isinstance(value, str) and "tensor(" in value else None
    return printed[1] if printed else value


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

    So a table of rows of two kinds is written, those of the training and those of its evaluations: these two seldom
    have a number in one row. A loss that is lost leaves NaN beside numbers that are in every row.
    """
    if not any(is_nan(value) for row in rows for value in row.values()):
        return {}
    kinds = Counter(map(kind_of_row, rows))
    gone = {kind for kind in kinds if kind[1]}
    if len(gone) > _MOST_KINDS:
        return {}
    every = Counter[str]()
    for (there, _), count in kinds.items():
        every.update(dict.fromkeys(there, count))

    def are_apart(one: str, other: str) -> bool:
        both = sum(count for (there, _), count in kinds.items() if one in there and other in there)
        return both <= _ABOUT_HALF * min(every[one], every[other])

    return {
        (there, nan): frozenset(
            name
            for name in nan
            if any(name in other and any(are_apart(name, x) for x in there & lost) for other, lost in gone)
        )
        for there, nan in gone
    }


def apart(rows: Sequence[Collection[str]], has: Sequence[bool], pattern: Pattern) -> set[str]:
    """The columns of a pattern that do not nearly always stand in rows that have something. `rows`: names of each."""
    every = Counter(name for names in rows for name in names if pattern.search(str(name)))
    beside = Counter(name for names, there in zip(rows, has, strict=True) if there for name in names)
    return {name for name, count in every.items() if beside[name] < _NEARLY * count}


def now_and_then(
    rows: Sequence[Mapping[str, Any]], padded: Mapping[str, Collection[int]], calm: Sequence[bool] = ()
) -> tuple[dict[str, set[int]], dict[str, int]]:
    """By column, the rows in which NaN stands for no value; and, of some, how many these are.

    Only rows that have something in the column are asked: others have no value without NaN. NaN stands for none where
    the numbers around it lie several rows apart, or come again and again after it while most rows have none: that is
    told, unless they come about every so many rows. `padded`: of each column that is asked, the rows of another kind,
    which do not count as such. With `calm` these are measures of attention, in which 0 can stand so, too, numbers may
    come in any rows, if these are no more than half, and NaN does so in rows that are calm: that is told, if numbers
    are not rare.
    """
    found, told, measured = dict[str, set[int]](), dict[str, int](), bool(calm)
    filled = {name for row in rows for name, value in row.items() if is_nan(value)}
    for name in sorted(padded) if measured else sorted(filled.intersection(padded)):
        own = [(place, row[name]) for place, row in enumerate(rows) if row.get(name) not in (None, "")]
        empty = [is_nan(x) or (measured and real(x) == 0) for _, x in own]
        places = [at for at, (_, x) in enumerate(own) if not empty[at] and math.isfinite(logged(x))]
        spans, is_even = _spans(places, [place not in padded[name] for place, _ in own], anywhere=measured)
        found[name] = {own[at][0] for start, stop in spans for at in range(start, stop) if empty[at]}
        found[name] |= {place for place, x in own if measured and is_nan(x) and calm[place]}
        told |= {name: len(found[name])} if found[name] and not is_even else {}
    return found, told


def _spans(places: Sequence[int], counts: Sequence[bool], *, anywhere: bool) -> tuple[list[tuple[int, int]], bool]:
    """From where to where NaN stands for no value; and whether numbers, at these places, come every so many rows.

    `counts`: of each row whether it is of their kind. `anywhere`: whether they may come in any rows.
    """
    gaps = [later - earlier for earlier, later in pairwise(places)]
    if len(gaps) < _LEAST_GAPS:
        return [], False
    before = [0, *accumulate(counts)]
    own = [before[later] - before[earlier] for earlier, later in pairwise(places)]
    rare = 2 * len(gaps) <= sum(own)
    again = rare and (anywhere or sum(gap > 1 for gap in gaps) >= _LEAST_RETURNS)
    inside = [again or around > 1 for around in _apart(own)]
    spans = [(0, places[0], inside[0]), *((*span, x) for span, x in zip(pairwise(places), inside, strict=True))]
    spans.append((places[-1], _to_the_next(gaps, places[-1], len(counts), anywhere=anywhere and rare), inside[-1]))
    half = 2 * max(Counter(gaps).values()) >= len(gaps)
    is_even = min(gaps) > 1 and (max(gaps) <= _ALIKE * min(gaps) or half)
    return [(start, stop) for start, stop, is_filled in spans if is_filled], is_even or (anywhere and rare)


def _apart(gaps: Sequence[int]) -> list[int]:
    """How far apart values lie around each gap: the median of those nearest to it."""
    starts = [min(max(0, at - _NEAREST // 2), max(0, len(gaps) - _NEAREST)) for at in range(len(gaps))]
    return [median_low(gaps[start : start + _NEAREST]) for start in starts]


def _to_the_next(gaps: Sequence[int], last: int, end: int, *, anywhere: bool) -> int:
    """The place where a number was due after the last one; the end of the log, if it may still come.

    It may as long as no gap is as wide, of the last ones, where these are alike. Else gaps may grow: twice as wide.
    """
    lately = gaps[-_NEAREST:]
    if anywhere:
        due = widest = max(gaps)
    elif gaps[-1] <= _ALIKE * median_low(lately):
        due, widest = mode(lately), max(lately)
    else:
        due = widest = int(_ALIKE * max(gaps))
    return end if last + widest >= end else last + due


def are_calm(rows: Sequence[Mapping[str, Any]], losses: Sequence[str], others: Collection[str]) -> list[bool]:
    """Of each row, whether the next losses of the training, its own one among them, are numbers: two, or the last.

    No lost logit leaves that. A loss of 0 beside NaN in another column is no number: so Hugging Face's Trainer logs one
    that was lost.
    """
    following, calm = list[bool](), list[bool]()
    for row in reversed(rows):
        known = [x for name in losses if not math.isnan(x := logged(row.get(name)))]
        lost = 0 in known and any(is_nan(x) for name, x in row.items() if name in others)
        following = [not lost and all(map(math.isfinite, known)), *following[:1]] if known else following
        calm.append(bool(following) and all(following))
    return calm[::-1]


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

    Where most values lie several rows apart, those are looked for that are missing in between; several gaps of another
    size in a row are no missing values. A row is of another kind if it has a number of an evaluation, which does not
    come with each value, or in a column that mostly stands without this one, or lacks a rate that stands beside this
    one. From a value on that is lost to the end no row is asked. `there`: the columns in which each row has a number.
    """
    evaluated, rate = kinds
    has = [place not in filler and not math.isnan(logged(row.get(column))) for place, row in enumerate(rows)]
    lost = _lost_to_the_end([logged(row.get(column)) if has[place] else math.nan for place, row in enumerate(rows)])
    every = Counter(name for names in there for name in names)
    beside = Counter(name for names, filled in zip(there, has, strict=True) if filled for name in names)
    others = {name for name, count in every.items() if beside[name] <= _ABOUT_HALF * min(count, sum(has))}
    others |= apart(there, has, evaluated)
    rates = {name for name in beside if rate.search(str(name)) and beside[name] >= _NEARLY * sum(has)}
    own = [
        place
        for place, names in enumerate(there[:lost])
        if math.isfinite(at[place])
        and (has[place] or (column in rows[place] and names and others.isdisjoint(names) and rates <= names))
    ]
    filled = [at for at, place in enumerate(own) if has[place]]
    gaps = [later - earlier for earlier, later in pairwise(filled)]
    usual, count = Counter(gaps).most_common(1)[0] if gaps else (0, 0)
    if not gaps or (usual > 1 and 2 * count < len(gaps)):
        return None
    sizes = _as_a_rule(gaps, usual)
    ends = [*pairwise(filled), (filled[-1], len(own) - 1 + sizes[-1])]
    empty = [
        own[at]
        for (start, stop), step in zip(ends, [*sizes, sizes[-1]], strict=True)
        for at in range(start + step, stop - step + 1, step)
    ]
    if usual == 1 and empty:  # else it began later
        empty = [*own[: filled[0]], *empty]
    return Unfilled(column, len(empty), at[empty[0]], usual) if empty else None


def _as_a_rule(gaps: Sequence[int], usual: int) -> list[int]:
    """By gap, how far apart values lie as a rule: as in the last of several gaps of one size in a row, or the first."""
    groups = [(size, len(list(group))) for size, group in groupby(gaps)]
    rules = [size if count >= _IN_A_ROW[usual > 1] else 0 for size, count in groups]
    now, found = next(filter(None, rules), usual), list[int]()
    for rule, (_, count) in zip(rules, groups, strict=True):
        now = rule or now
        found += [now] * count
    return found


def _lost_to_the_end(values: Sequence[float]) -> int:
    """The place of the first value that is not finite after the last that is; behind all if there is none."""
    last = next((at for at in reversed(range(len(values))) if math.isfinite(values[at])), -1)
    return next((at for at in range(last + 1, len(values)) if math.isinf(values[at])), len(values))
