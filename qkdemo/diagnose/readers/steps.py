"""Steps of a log: which column counts them, and those that begin anew, as within each epoch, counted on.

* `names_steps(column)`, `steps_among(names, rows, loss)`: the column; `CALLS`: one of W&B's own; `last_known(steps)`;
* `rows_counted(rows, …)`: places of rows, where no column counts;
* `counted_on(steps, epochs, losses)`: steps of all rows, and the word of `Log.steps` for how they are counted.

An epoch begins at the first step again; a run that is started anew goes back by a bit, or to its first loss, too.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from qkdemo.diagnose.readers.values import logged, real

_STEPS: Final = (
    *("step", "_step", "global_step", "iteration", "iter", "train/global_step", "trainer/global_step"),
    *("steps", "train_step", "train/step", "training_step", "num_updates", "current_steps", "iterations"),
)
CALLS: Final = "_step"  # of wandb.log, whatever was logged
_NO_NAME: Final = re.compile(r"|Unnamed: \d+|index", re.IGNORECASE)  # of the index that pandas writes
_NEARLY: Final = 0.9  # of a column's rows
_LEAST_TURNS: Final = 2  # of passes that nothing names: a single one may be a run that was started once more


def names_steps(column: Any) -> bool:
    """Whether a column counts steps, by its name."""
    return str(column).lower() in _STEPS


def steps_among(names: Sequence[str], rows: Sequence[Mapping[str, Any]], loss: Sequence[float]) -> str | None:
    """The column that counts steps: calls of W&B only if no other has a number wherever there is a loss."""
    named = [name for name in names if names_steps(name)]
    logged_at = [row for row, value in zip(rows, loss, strict=True) if not math.isnan(value)]
    own = [name for name in named if name != CALLS and all(math.isfinite(real(row.get(name))) for row in logged_at)]
    return next(iter(own if CALLS in named and own and logged_at else named), None)


def rows_counted(
    rows: Sequence[Mapping[str, Any]],
    unread: Mapping[str, NDArray[np.bool_]],
    epoch: str | None,
    is_loss: Callable[[Any], bool],
    evaluated: re.Pattern[str],
) -> list[float]:
    """The place of each row among those of the training; a row of an evaluation alone has that of the one before.

    That is a row without a loss of the training, and with a number of an evaluation that, until the last loss, mostly
    stands in such rows. An index in a column without a name is no value. `unread`: by column, of each row whether NaN
    stands for no value. `is_loss`, `evaluated`: what a loss of the training, and columns of an evaluation, are called.
    """
    told = [
        [
            name
            for name, value in row.items()
            if name != epoch and not _NO_NAME.fullmatch(str(name)) and not math.isnan(logged(value))
            if name not in unread or not unread[name][place]
        ]
        for place, row in enumerate(rows)
    ]
    has = [any(map(is_loss, names)) for names in told]
    until = len(has) - has[::-1].index(True) if any(has) else 0  # a loss that is lost leaves its evaluations
    alone = _apart(told[:until], has[:until], evaluated)
    if any(has):
        trains = [filled or alone.isdisjoint(names) for filled, names in zip(has, told, strict=True)]
    else:
        trains = [not names or any(not evaluated.search(str(name)) for name in names) for names in told]
    places = accumulate(trains if any(trains) else [True] * len(rows))
    return [max(float(place - 1), 0.0) for place in places]


def _apart(rows: Sequence[Collection[str]], has: Sequence[bool], pattern: re.Pattern[str]) -> set[str]:
    """The columns of a pattern that do not nearly always stand in rows that have something. `rows`: names of each."""
    every = Counter(name for names in rows for name in names if pattern.search(str(name)))
    beside = Counter(name for names, there in zip(rows, has, strict=True) if there for name in names)
    return {name for name, count in every.items() if beside[name] < _NEARLY * count}


def last_known(steps: Sequence[float]) -> list[float]:
    """A row of W&B without a step of its own is of the last one, as its charts show it."""
    found: list[float] = []
    for step in steps:
        found.append(step if math.isfinite(step) or not found else found[-1])
    return found


def counted_on(
    steps: Sequence[float], epochs: Sequence[float], losses: Sequence[float]
) -> tuple[list[float], Literal["named", "epochs", "passes"]]:
    """Steps as they are, or those of an epoch after those of the epochs before it. NaN is what a row does not have."""
    if _begin_anew(steps, epochs):
        return _one_after_the_other(steps, epochs), "epochs"
    if passes := _passes(steps, losses):
        return _one_after_the_other(steps, passes), "passes"
    return list(steps), "named"


def _begin_anew(steps: Sequence[float], epochs: Sequence[float]) -> bool:
    """Whether steps fall where the epoch rises.

    A run that was started anew falls without a rise, steps of the whole run rise with the epoch: never both at once.
    """
    known = [(step, epoch) for step, epoch in zip(steps, epochs, strict=True) if math.isfinite(step + epoch)]
    turns = {(later[0] < earlier[0], later[1] > earlier[1]) for earlier, later in pairwise(known)}
    whole = all(epoch.is_integer() for _, epoch in known)
    return whole and (True, True) in turns and not {(True, False), (False, True)} <= turns


def _passes(steps: Sequence[float], losses: Sequence[float]) -> list[float]:
    """The pass of each row, where nothing names an epoch: steps go from one first to one last, and the loss goes on.

    None, if the loss begins anew as well: then these are runs of their own. One that is lost from the first turn on, or
    before it, goes on: a run of its own begins with a loss.
    """
    both = enumerate(zip(steps, losses, strict=True))
    rows = [at for at, (step, loss) in both if math.isfinite(step) and not math.isnan(loss)]  # a lost one is of a pass
    turns = [(before, after) for before, after in pairwise(rows) if steps[after] < steps[before]]
    last, first = {steps[before] for before, _ in turns}, {steps[after] for _, after in turns}
    if len(turns) < _LEAST_TURNS or len(last) > 1 or first != {steps[rows[0]]}:
        return []
    known = [turn for turn in turns if all(math.isfinite(losses[row]) for row in turn)]
    goes_on = sum(abs(losses[after] - losses[before]) for before, after in known)
    lost = not any(math.isfinite(loss) for loss in losses[turns[0][1] :])
    if not lost and goes_on >= sum(abs(losses[after] - losses[rows[0]]) for _, after in known):
        return []
    begun = {after for _, after in turns}
    behind = range(rows[-1] + 1, len(steps))  # rows that hold no loss any more
    begun |= {row for row in behind if steps[row] in first and steps[row] < steps[row - 1]}
    passes, now = list[float](), 0.0
    for at in range(len(steps)):
        now += at in begun
        passes.append(now)
    return passes


def _one_after_the_other(steps: Sequence[float], epochs: Sequence[float]) -> list[float]:
    """Every step plus the length of the epochs before; a row that names none is of that of the row before it."""
    there = [step for step in steps if math.isfinite(step)]
    gap = next((later - earlier for earlier, later in pairwise(there) if later > earlier), 1.0)
    length = max(there) - min(there) + gap
    first = now = next(filter(math.isfinite, epochs))
    counted = list[float]()
    for step, epoch in zip(steps, epochs, strict=True):
        now = epoch if math.isfinite(epoch) else now
        counted.append(step + (now - first) * length)
    return counted
