"""Where a curve over learning rates stops solving its task: its right wall, of the mean and of every seed alone.

* `Curve`: one remedy over all rates; `Wall`: where it ends; `wall_of(curve, settings)`, `seed_walls(curve, settings)`;
* `how_far(curve, settings)`: a wall in words, with what single seeds say.

A wall lies between two rates that were tried. Where, nobody knows: a loss can jump from nothing to chance in between.
"""

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
    """Where a curve stops solving its task, from its lowest point to the right: at the earliest beyond `last_solved`.

    `not_solved` is the next rate that was tried; None if the task is solved up to the highest one.
    """

    last_solved: float
    not_solved: float | None


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
            return Wall(rates[at], rates[at + 1])
    return Wall(rates[-1], None)


def how_far(curve: Curve, settings: Settings) -> str:
    """Up to which rate a curve's mean is solved, and up to which its single seeds are; nothing if it never is."""
    wall = wall_of(curve, settings)
    if wall is None:
        return ""
    if wall.not_solved is None:
        return say("rates.at_least", rate=written(wall.last_solved))
    far = say("rates.between", rate=written(wall.last_solved), beyond=written(wall.not_solved))
    alone = sorted(seed_walls(curve, settings), key=lambda one: one.last_solved if one is not None else 0.0)
    if len(alone) == 1:
        return far
    low, high = (_of_seed(one) for one in (alone[0], alone[-1]))
    return say("rates.by_seed" if low != high else "rates.by_seed_alike", far=far, low=low, high=high)


def _of_seed(wall: Wall | None) -> str:
    if wall is None:
        return say("rates.no_rate")
    rate = written(wall.last_solved)
    return rate if wall.not_solved is not None else say("rates.at_least", rate=rate)
