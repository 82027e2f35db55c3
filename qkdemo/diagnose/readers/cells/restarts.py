"""What a run logged before it went back to an earlier step, and logged anew.

* `restarts(points)`: where that was, by the points of one column; `without_replaced(points, starts)`: what is left;
* `continued(points)`: a curve by its steps; `in_force(steps)`: rows behind which no later one goes back.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from statistics import median
from typing import Final, TypeAlias

Point: TypeAlias = tuple[float, float, int]  # step, value, row
_Start: TypeAlias = tuple[float, int]  # step, row
_MOST: Final = 100
_ROWS_OF_ONE: Final = 20
_IN_ORDER: Final = 3  # rows


def restarts(points: Sequence[Point]) -> list[_Start]:
    """The step and the row from which on a run went on anew, as the points of its loss have them; none in no order.

    A few points in order from there on tell that; at the end fewer do, if they go back by more than a few rows.
    """
    if len(points) < _IN_ORDER:
        return []
    far = _IN_ORDER * median(abs(later - earlier) for (earlier, *_), (later, *_) in pairwise(points))
    return _starts(points, lambda x, newest: len(x) == _IN_ORDER or (len(x) > 1 and newest - x[0] > far))


def without_replaced(points: Sequence[Point], starts: Sequence[_Start]) -> list[Point]:
    """The points of a column that no such start has replaced. `starts`: by their rows."""
    rows = [row for _, row in starts]
    least = [*accumulate((step for step, _ in reversed(starts)), min, initial=math.inf)][::-1]  # from a start on
    return [point for point in points if point[0] < least[bisect_right(rows, point[2])]]


def continued(points: Sequence[Point]) -> dict[float, tuple[float, int]]:
    """A curve by its steps: the last value and its row. What a run logged before it went back to a step is gone.

    A few rows in order below the newest one are such a restart; one alone may count other steps, as of an evaluation.
    Where steps fall more often than a run is started anew, the rows are in no order, and all of them count.
    """
    starts = _starts(points, lambda x, newest: len(x) == _IN_ORDER and x[-1] <= newest)
    return {step: (value, row) for step, value, row in without_replaced(points, starts)}


def in_force(steps: Sequence[float]) -> list[bool]:
    """Of each row whether no later one goes back behind it; where that is so of few, rows are in no order: of all.

    >>> in_force([0, 10, 20, 30, 10, 20, 30])  # started anew from a checkpoint at step 0
    [True, True, False, False, True, True, True]
    """
    found, least = list[bool](), math.inf
    for step in reversed(steps):
        found.append(step <= least)
        least = min(least, step)
    return found[::-1] if 2 * sum(found) >= len(found) else [True] * len(found)


def _starts(points: Sequence[Point], is_one: Callable[[Sequence[float], float], bool]) -> list[_Start]:
    """Where steps fall, and the next few of them, in order, are those of a restart, beside the newest step before."""
    steps, newest, found = [step for step, *_ in points], -math.inf, list[_Start]()
    falls = sum(later < earlier for earlier, later in pairwise(steps))
    if falls > min(_MOST, max(1, len(steps) // _ROWS_OF_ONE)):
        return []
    for at, (step, _, row) in enumerate(points):
        following = steps[at : at + _IN_ORDER]
        anew = step < newest and is_one(following, newest) and sorted(following) == following
        found += [(step, row)] if anew else []
        newest = step if anew else max(newest, step)
    return found
