"""What a finished pair of twins teaches beyond which of them won: where the remedy changes nothing, and why.

* `lessons(plan, curves)`: sentences, each from the numbers of the run itself; none where there is nothing to add.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.runs.plan import Plan, outcomes
from qkdemo.training.outcome import LAST_STEPS, Outcome, solved_below
from qkdemo.training.tasks import TASKS, TaskWord
from qkdemo.training.telemetry import CURVES

_AT_CHANCE: Final = 0.95  # a final loss of that share of chance has not left it
_SAME: Final = 0.02  # of chance: losses that differ by less are called the same
_LARGER: Final = 1.5  # times the twin's largest logit, to be called larger
_SHARPER: Final = 0.7  # of the entropy fraction of the first step, to be called sharp
_ONE_SYMBOL: Final[frozenset[TaskWord]] = frozenset(("copy", "noisy_copy"))  # tasks that one key answers


def lessons(plan: Plan, curves: NDArray[np.float32]) -> list[str]:
    """Sentences about a pair that was trained to its end without a fork; `curves` from step 1 on."""
    runs = plan.legs[0].runs
    if len(plan.legs) > 1 or len(runs) != 2 or runs[1].variant == "none" or len(curves) < plan.steps:
        return []
    plain, twin = outcomes(plan, curves)
    said = [_of_losses(plan, plain, twin), _of_sharp_heads(plan, curves, plain, twin)]
    return [sentence for sentence in said if sentence]


def _of_losses(plan: Plan, plain: Outcome, twin: Outcome) -> str:
    """Where the remedy makes no difference, or one that is no rescue from a collapse."""
    run = plan.legs[0].runs[1]
    chance = TASKS[run.task].chance()
    gap = plain.final_loss - twin.final_loss
    values = {
        "variant": say(f"variant.{run.variant}.name"),
        "plain": written(plain.final_loss, 3),
        "twin": written(twin.final_loss, 3),
        "gap": written(abs(gap), 2),
        "chance": written(chance, 3),
        "plain_logit": written(plain.max_abs_logit, 2),
        "twin_logit": written(twin.max_abs_logit, 2),
        "last": LAST_STEPS,
        "times": written(plain.max_abs_logit / twin.max_abs_logit, 2) if twin.max_abs_logit else "∞",
        "solved": written(solved_below(TASKS[run.task]), 3) if TASKS[run.task].floor is not None else "",
    }
    key = _key(plain, twin, chance)
    return say(f"lessons.{key}", **values) if key else ""


def _key(plain: Outcome, twin: Outcome, chance: float) -> str:
    """Which lesson both ends teach; none where they teach nothing of the kind."""
    gap = plain.final_loss - twin.final_loss
    larger = math.inf > plain.max_abs_logit > _LARGER * twin.max_abs_logit > 0
    stuck = [end.final_loss >= _AT_CHANCE * chance for end in (plain, twin)]
    key = ""
    if not math.isfinite(gap):  # of a loss that is no number nothing is compared
        key = "" if any(math.isfinite(end.final_loss) for end in (plain, twin)) else "both_not_finite"
    elif plain.outcome == twin.outcome == "solved":
        key = "both_solve_larger" if larger else "both_solve"
    elif all(stuck) and plain.learnt_first and twin.learnt_first:
        key = "both_collapse"
    elif all(stuck) and not (plain.learnt_first or twin.learnt_first):
        key = "both_at_chance" if larger else "both_at_chance_alike"
    elif not any(stuck) and "solved" not in (plain.outcome, twin.outcome):
        key = _between(gap, chance, calm=all(end.lost_at is None and end.diverged_at is None for end in (plain, twin)))
    return key


def _between(gap: float, chance: float, *, calm: bool) -> str:
    """Of two runs that end between solved and chance; `calm`: neither forgot its task or diverged."""
    if abs(gap) < _SAME * chance:
        return "same_gap"
    return "costs" if gap < 0 else "gap" if calm else ""


def _of_sharp_heads(plan: Plan, curves: NDArray[np.float32], plain: Outcome, twin: Outcome) -> str:
    """Low entropy is not the disease: a side that solves its task with sharp heads."""
    run = plan.legs[0].runs[1]
    first = curves[0, :, CURVES.index("entropy_fraction")]
    sides = [(plain, twin, float(first[0]), "lessons.plain"), (twin, plain, float(first[1]), "lessons.twin")]
    sharp = [
        side for side in sides if side[0].outcome == "solved" and side[0].final_entropy_fraction < _SHARPER * side[2]
    ]
    if run.task not in _ONE_SYMBOL or not sharp:
        return ""
    mine, other, before, key = min(sharp, key=lambda side: side[0].final_entropy_fraction)
    return say(
        "lessons.sharp_beside_failed" if other.outcome == "failed" else "lessons.sharp",
        side=say(key, variant=say(f"variant.{run.variant}.name")),
        before=written(before, 2),
        after=written(mine.final_entropy_fraction, 2),
        slope=written(mine.final_softmax_slope, 2),
        last=LAST_STEPS,
        other=written(other.final_softmax_slope, 2),
    )
