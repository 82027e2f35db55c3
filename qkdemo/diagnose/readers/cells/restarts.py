"""What a run logged before it went back to an earlier step, and logged anew.

* `restarts(points)`: where that was, by the points of one column; `without_replaced(points, starts)`: what is left;
* `continued(points)`: a curve by its steps.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Final, TypeAlias

Point: TypeAlias = tuple[float, float, int]  # step, value, row
_MOST: Final = 100
_ROWS_OF_ONE: Final = 20
_IN_ORDER: Final = 3  # rows


def restarts(points: Sequence[Point]) -> list[tuple[float, int]]:
    """The step and the row from which on a run went on anew, as the points of its loss have them; none in no order.

    A few points in order from there on tell that; at the end fewer do, if they go back by more than a few rows.
    """
    steps, newest, found = [step for step, *_ in points], -math.inf, list[tuple[float, int]]()
    if len(steps) < _IN_ORDER or not _are_few(steps):
        return []
    far = _IN_ORDER * median(abs(later - earlier) for earlier, later in pairwise(steps))
    for at, (step, _, row) in enumerate(points):
        following = steps[at : at + _IN_ORDER]
        told = len(following) == _IN_ORDER or (len(following) > 1 and newest - step > far)
        anew = step < newest and told and sorted(following) == following
        found += [(step, row)] if anew else []
        newest = step if anew else max(newest, step)
    return found


def without_replaced(
    points: Mapping[str, list[Point]], starts: Sequence[tuple[float, int]]
) -> Mapping[str, list[Point]]:
    """By column, the points that no such start has replaced."""
    if not starts:
        return points
    return {
        name: [(step, x, row) for step, x, row in each if not any(row < at and step >= since for since, at in starts)]
        for name, each in points.items()
    }


def continued(points: Sequence[Point]) -> dict[float, tuple[float, int]]:
    """A curve by its steps: the last value and its row. What a run logged before it went back to a step is gone.

    A few rows in order below the newest one are such a restart; one alone may count other steps, as of an evaluation.
    Where steps fall more often than a run is started anew, the rows are in no order, and all of them count.
    """
    steps = [step for step, *_ in points]
    anew = _are_few(steps)
    curve: dict[float, tuple[float, int]] = {}
    newest = -math.inf
    for at, (step, value, place) in enumerate(points):
        following = steps[at : at + _IN_ORDER]
        in_order = len(following) == _IN_ORDER and sorted(following) == following and following[-1] <= newest
        if anew and step < newest and in_order:
            curve = {old: kept for old, kept in curve.items() if old < step}
            newest = step
        curve[step] = (value, place)
        newest = max(newest, step)
    return curve


def _are_few(steps: Sequence[float]) -> bool:
    """Whether steps fall no more often than a run is started anew."""
    falls = sum(later < earlier for earlier, later in pairwise(steps))
    return falls <= min(_MOST, max(1, len(steps) // _ROWS_OF_ONE))
