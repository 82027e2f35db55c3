"""How far apart the values of a column lie, in rows of its kind and in steps.

* `Spacing(steps, places)`: around each gap, and when the next value was due.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from statistics import median_low, mode
from typing import Final, TypeVar

_Gap = TypeVar("_Gap", int, float)
_NEAREST: Final = 9  # gaps, of which the median is how far apart values lie there
_LEAST_RETURNS: Final = 4  # of numbers after NaN, which what is lost does not do again and again
_ALIKE: Final = 2.0  # times as far
_NEARLY: Final = 0.9  # of the gaps
_IN_A_ROW: Final = (8, 3)  # gaps of one size, which what is lost does not leave in every row, or every few


class Spacing:
    """Of values at these places among the rows of their kind. `steps`: of each such row, in order where they count."""

    def __init__(self, steps: Sequence[float], places: Sequence[int]) -> None:
        """Three values at least tell how far apart they lie."""
        self.places = places
        self.gaps = [later - earlier for earlier, later in pairwise(places)]
        at = [steps[place] for place in places]
        self._in_order = all(x <= y for x, y in pairwise(steps)) and mode(y - x for x, y in pairwise(at)) > 0
        self.steps = list(steps) if self._in_order else [float(row) for row in range(len(steps))]

    @property
    def rare(self) -> bool:
        """Whether no more than half of the rows have one."""
        return 2 * len(self.gaps) <= sum(self.gaps)

    @property
    def returns(self) -> bool:
        """Whether values come again and again after rows without one."""
        return sum(gap > 1 for gap in self.gaps) >= _LEAST_RETURNS

    @property
    def even(self) -> bool:
        """Whether they come about every so many rows, of which one may be missing."""
        steps, half = self._gaps_of_steps(), len(self.gaps) / 2
        usual = median_low(steps)
        alike = sum(usual <= _ALIKE * step and step <= _ALIKE * usual for step in steps)
        if sum(gap > 1 for gap in self.gaps) >= half and alike >= _NEARLY * len(steps):
            return True
        return min(self.gaps) > 1 and max(Counter(self.gaps).values()) >= half

    def around(self) -> list[int]:
        """How many rows apart values lie around each gap: the median of those nearest to it."""
        return [median_low(near) for near in _nearest(self.gaps)]

    def usual(self) -> list[float]:
        """How many steps apart values lie around each gap, as a rule."""
        return [mode(near) for near in _nearest(self._gaps_of_steps())]

    def next_due(self, *, anywhere: bool, dense: bool) -> float:
        """The step at which a value was due after the last one; ∞ if it may still come.

        It may as long as no gap is as wide: of the last ones, where these are alike, else twice, as gaps may grow.
        `anywhere`: values may come in any rows. `dense`: they come in each of the last ones.
        """
        gaps = self._gaps_of_steps()
        lately = gaps[-_NEAREST:]
        if dense:
            return self.steps[self.places[-1]] + mode(lately)
        if anywhere:
            due = widest = max(gaps)
        elif gaps[-1] <= _ALIKE * median_low(lately):
            due, widest = mode(lately), max(lately)
        else:
            due = widest = _ALIKE * max(gaps)
        last = self.steps[self.places[-1]]
        return last + due if self.steps[-1] >= last + widest else float("inf")

    def missing(self) -> tuple[float, list[int]] | None:
        """How far apart values lie as a rule, in steps, and the rows of their kind that lack one that was due.

        0 for values in every row. None, if they have no rule. Several gaps of another size in a row are a rule anew.
        """
        dense = Counter(self.gaps).most_common(1)[0][0] == 1
        steps, gaps = self.steps, self._gaps_of_steps()
        size, count = Counter(gaps).most_common(1)[0]
        if 2 * count < len(gaps) or not self._in_order:
            if not dense:
                return None
            steps, gaps, size = list(map(float, range(len(self.steps)))), list(map(float, self.gaps)), 1.0
        found = self._between(_rules(gaps, size, _IN_A_ROW[not dense]), steps)
        if dense and found:  # else it began later
            first = steps[self.places[0]]
            found = [*(row for row in range(self.places[0]) if (first - steps[row]) % size == 0), *found]
        return 0.0 if dense else size, list({steps[row]: row for row in reversed(found)}.values())[::-1]

    def _gaps_of_steps(self) -> list[float]:
        return [self.steps[later] - self.steps[earlier] for earlier, later in pairwise(self.places)]

    def _between(self, rules: Sequence[float], steps: Sequence[float]) -> list[int]:
        """The rows without a value whose step is some times as far from the last one as its rule says.

        One that would be nearer to the next value is not due: an epoch may end there.
        """
        ends = [(start, stop, float(steps[stop])) for start, stop in pairwise(self.places)]
        ends.append((self.places[-1], len(steps), float("inf")))
        return [
            row
            for (start, stop, following), rule in zip(ends, [*rules, rules[-1]], strict=True)
            for row in range(start + 1, stop)
            if steps[start] < steps[row] <= following - rule and (steps[row] - steps[start]) % rule == 0
        ]


def _nearest(gaps: Sequence[_Gap]) -> list[Sequence[_Gap]]:
    """Of each gap those nearest to it, and itself."""
    starts = [min(max(0, at - _NEAREST // 2), max(0, len(gaps) - _NEAREST)) for at in range(len(gaps))]
    return [gaps[start : start + _NEAREST] for start in starts]


def _rules(gaps: Sequence[float], usual: float, least: int) -> list[float]:
    """By gap, how far apart values lie as a rule: as in the last of several gaps of one size in a row, or the first."""
    groups = [(size, len(list(group))) for size, group in groupby(gaps)]
    rules = [size if count >= least else 0.0 for size, count in groups]  # 0 where a step stands twice
    now, found = next(filter(None, rules), usual), list[float]()
    for rule, (_, count) in zip(rules, groups, strict=True):
        now = rule or now
        found += [now] * count
    return found
