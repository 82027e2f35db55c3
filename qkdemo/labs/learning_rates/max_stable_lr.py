"""Where a curve over learning rates stops solving its task: its right wall, of the mean and of every seed alone.

* `Curve`: one remedy over all rates; `Wall`: where it ends; `wall_of(curve, settings)`, `seed_walls(curve, settings)`;
* `about(curve, settings)`, `factor_words(...)`: a wall, and how much farther one gets, with what single seeds say.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from qkdemo.labs.learning_rates.sensitivity import Point
from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.training.outcome import Outcome, solved_below
from qkdemo.training.settings import RemedyWord, Settings
from qkdemo.training.tasks import TASKS


@dataclass(frozen=True, eq=False)
class Curve:
    """One remedy over all rates; None where its runs are not finished."""

    variant: RemedyWord
    points: tuple[Point | None, ...]
    outcomes: tuple[tuple[Outcome, ...], ...]  # per rate, one per seed; none where they are not finished

    @property
    def found(self) -> list[Point]:
        """The points there are, in order of the rate."""
        return [point for point in self.points if point is not None]

    @property
    def all_outcomes(self) -> list[Outcome]:
        """Those of every run that is finished."""
        return [outcome for some in self.outcomes for outcome in some]


@dataclass(frozen=True)
class Wall:
    """Where a curve stops solving its task, from its lowest point to the right.

    `at` is where the line between the mean losses crosses the limit of *solved*, over the rate's logarithm; None if it
    is solved up to the highest rate tried.
    """

    last_solved: float
    at: float | None


def wall_of(curve: Curve, settings: Settings) -> Wall | None:
    """The right wall of a curve; None if it solves its task at no rate, or nobody knows when it is solved."""
    found = curve.found
    return _wall([point.learning_rate for point in found], [point.mean for point in found], _best(found), settings)


def seed_walls(curve: Curve, settings: Settings) -> tuple[Wall | None, ...]:
    """The right wall of every seed alone, sought from the same rate on as that of the mean."""
    found = curve.found
    rates = [point.learning_rate for point in found]
    by_seed = zip(*([point.capped(loss) for loss in point.final_losses] for point in found), strict=True)
    return tuple(_wall(rates, losses, _best(found), settings) for losses in by_seed)


def _best(points: Sequence[Point]) -> int:
    return min(range(len(points)), key=lambda at: points[at].mean, default=0)


def _wall(rates: Sequence[float], losses: Sequence[float], best: int, settings: Settings) -> Wall | None:
    task = TASKS[settings.task]
    if task.floor is None or not losses:
        return None
    limit = solved_below(task)
    if not losses[best] < limit:
        return None
    for at in range(best, len(rates) - 1):
        if not losses[at + 1] < limit:
            share = (limit - losses[at]) / (losses[at + 1] - losses[at])
            return Wall(rates[at], rates[at] * (rates[at + 1] / rates[at]) ** share)
    return Wall(rates[-1], None)


def about(curve: Curve, settings: Settings) -> str:
    """How far a curve's mean is solved, and from where to where its single seeds are; nothing if it never is."""
    wall, alone = wall_of(curve, settings), seed_walls(curve, settings)
    if wall is None:
        return ""
    if wall.at is None:
        return written(wall.last_solved)
    rate = written(wall.at, 2)
    if len(alone) == 1:
        return rate
    last = curve.found[-1].learning_rate
    ends = sorted((wall.at or math.inf) if wall is not None else 0.0 for wall in alone)
    texts = [
        say("rates.no_rate")
        if end == 0
        else written(end, 2)
        if end < math.inf
        else say("rates.beyond", rate=written(last))
        for end in (ends[0], ends[-1])
    ]
    return _by_seed(rate, *texts)


def factor_words(factor: float, plain: Curve, twin: Curve, settings: Settings) -> str:
    """How many times farther the wider one gets, and so seed by seed, where each has a wall of its own."""
    number = written(max(factor, 1 / factor), 2)
    pairs = list(zip(seed_walls(plain, settings), seed_walls(twin, settings), strict=True))
    alone = [b.at / a.at for a, b in pairs if a is not None and b is not None and a.at is not None and b.at is not None]
    if len(alone) < len(pairs) or len(pairs) == 1:
        return number
    ends = sorted(one if factor >= 1 else 1 / one for one in alone)
    return _by_seed(number, written(ends[0], 2), written(ends[-1], 2))


def _by_seed(number: str, low: str, high: str) -> str:
    """A number of the means, with what the seeds say: from where to where, or all the same as far as it is written."""
    return say("rates.by_seed" if low != high else "rates.by_seed_alike", number=number, low=low, high=high)
