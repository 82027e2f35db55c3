"""What became of a run, in words that have definitions.

* `Outcome`, `outcome_of(...)`: solved, partly or failed, and the numbers behind it;
* `ends_of(outcomes)`: how many ended how, those that failed by how they failed: every run has one end;
* `course(...)`, `Side`: how a run stands after each of its steps, and whether it lost again what it had learnt;
* `incidents(losses)`: rises of the loss that recovered (spikes), that did not (divergence), and non-finite losses.

Definitions, with *final* the mean over a run's last 20 steps, and losses counted from the task's floor:
solved: the final loss is below 0.1. Failed: it is at least half-way to chance, or not finite. Partly: in between. Of a
task whose floor nobody knows nothing is solved, and failed is who ends no better than chance. A run *learnt first*
if the loss of some step, on a batch drawn afresh, was below 0.1.

A run that failed has one of five ends, the first that is true of it. *Non-finite*: its loss became infinite or no
number. *Lost*: it had learnt the task and lost it, at the step that is called its collapse, `lost_at`. *Diverged*: its
loss rose and stayed up. *Chance*: it ends at nine tenths of chance or more. *Slow*: it ends below that, at most
half-way down.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from qkdemo.floats.float_text import shortest
from qkdemo.training.settings import Settings
from qkdemo.training.tasks import TASKS, Task
from qkdemo.training.telemetry import Telemetry

OutcomeWord: TypeAlias = Literal["solved", "partly", "failed"]
SideWord: TypeAlias = Literal["unlearnt", "learnt", "lost", "back"]
IncidentWord: TypeAlias = Literal["spike", "divergence", "non_finite"]
EndWord: TypeAlias = Literal["solved", "partly", "lost", "diverged", "chance", "slow", "non_finite"]

ENDS: Final = get_args(EndWord)
FAILURES: Final = ENDS[2:]  # the ends of those that failed
LAST_STEPS: Final = 20
SOLVED: Final = 0.1  # nats
LARGE_LOGIT: Final = 100.0
_RISE: Final = 0.25  # nats above the lowest loss so far: where an incident begins, if that is more than
_RELATIVE_RISE: Final = 0.15  # of that lowest loss
_SHORTEST_DIVERGENCE: Final = 3  # steps; of a long record a twentieth
_AT_CHANCE: Final = 0.9  # a loss of nine tenths of chance is called back at chance
_DECIDED_SHARE: Final = 20


@dataclass(frozen=True)
class Outcome:
    """One run's end. Steps are counted from 1; None: it never happened."""

    outcome: OutcomeWord
    end: EndWord
    learnt_first: bool
    learnt_at: int | None
    final_loss: float
    max_abs_logit: float  # of the whole run
    final_entropy_fraction: float
    final_softmax_slope: float
    first_step_logit_over_100: int | None
    spikes: int
    lost_at: int | None  # its collapse: when the task, once learnt, was last lost; the loss began to rise before
    diverged_at: int | None  # since when the loss stands high and does not come back
    non_finite_at: int | None

    @property
    def warned(self) -> int | None:
        """How many steps before the collapse the largest logit passed 100; None if one of the two never happened."""
        large = self.first_step_logit_over_100
        return self.lost_at - large if self.lost_at is not None and large is not None else None


@dataclass(frozen=True)
class Incident:
    """A rise of the loss: the first index at which it was high, and the first at which it no longer was.

    `end` is None if it never came back.
    """

    kind: IncidentWord
    start: int
    end: int | None


def outcome_of(settings: Settings, telemetry: Telemetry, run: int = 0) -> Outcome:
    """The outcome of column `run` of a telemetry that starts with the run."""
    task, loss = TASKS[settings.task], telemetry.loss[:, run].astype(np.float64)
    largest = telemetry.max_abs_logit[:, run]
    final = slice(max(0, len(loss) - LAST_STEPS), None)
    final_loss = float(loss[final].mean())
    found = incidents(loss.tolist())
    learnt = _first(loss < solved_below(task)) if task.floor is not None else None
    first = {kind: next((one.start + 1 for one in found if one.kind == kind), None) for kind in get_args(IncidentWord)}
    lost = max((side.since for side in course(task, loss, largest) if side.word == "lost"), default=None)
    outcome = Outcome(
        outcome=word_for(final_loss, task),
        end="solved",
        learnt_first=learnt is not None,
        learnt_at=learnt,
        final_loss=final_loss,
        max_abs_logit=float(shortest(largest.max(keepdims=True))[0]),
        final_entropy_fraction=float(telemetry.entropy_fraction[final, run].mean(dtype=np.float64)),
        final_softmax_slope=float(telemetry.softmax_slope[final, run].mean(dtype=np.float64)),
        first_step_logit_over_100=_first(largest > LARGE_LOGIT),
        spikes=sum(incident.kind == "spike" for incident in found),
        lost_at=lost,
        diverged_at=first["divergence"],
        non_finite_at=first["non_finite"],
    )
    return replace(outcome, end=_end_of(outcome, task))


def _end_of(run: Outcome, task: Task) -> EndWord:
    if run.outcome != "failed":
        return run.outcome
    if run.non_finite_at is not None:
        return "non_finite"
    if run.lost_at is not None:
        return "lost"
    if run.diverged_at is not None:
        return "diverged"
    return "chance" if run.final_loss >= _AT_CHANCE * task.chance() else "slow"


def ends_of(outcomes: Sequence[Outcome]) -> dict[EndWord, int]:
    """How many runs came to which end; together they are all of them."""
    return {word: sum(outcome.end == word for outcome in outcomes) for word in ENDS}


def word_for(final_loss: float, task: Task) -> OutcomeWord:
    """Solved, partly or failed."""
    if not final_loss < failed_from(task):  # also where it is NaN
        return "failed"
    return "solved" if task.floor is not None and final_loss < solved_below(task) else "partly"


def solved_below(task: Task) -> float:
    """The loss below which a task with a known floor is solved."""
    assert task.floor is not None
    return task.floor + SOLVED


def failed_from(task: Task) -> float:
    """The loss from which on a run failed: half-way from the floor to chance; chance itself if there is no floor."""
    return task.chance() if task.floor is None else (task.floor + task.chance()) / 2


def incidents(losses: Sequence[float]) -> list[Incident]:
    """What befell a loss curve, in order; it ends with the first loss that is not finite.

    An incident begins where the loss stands more than 0.25 nats, and more than 15 %, above the lowest so far. It is a
    spike if the loss comes back below that line, and a divergence if it does not, however slowly it rises. One that
    begins in the last moments (less than a twentieth of the record, at least three steps) is not decided yet, and left
    out.

    >>> incidents([2.5, 2.45, 2.9, 2.44, 2.41])
    [Incident(kind='spike', start=2, end=3)]
    >>> incidents([1.7, 11.46, 11.75, 11.5, 11.48])
    [Incident(kind='divergence', start=1, end=None)]
    >>> incidents([2.7, 2.1, float('nan')])
    [Incident(kind='non_finite', start=2, end=None)]
    """
    found: list[Incident] = []
    lowest, start = np.inf, None
    for at, loss in enumerate(losses):
        if not np.isfinite(loss):
            if start is not None:
                found.append(Incident("divergence", start, None))
            return [*found, Incident("non_finite", at, None)]
        high = loss > lowest + max(_RISE, _RELATIVE_RISE * lowest)
        if high and start is None:
            start = at
        elif not high and start is not None:
            found.append(Incident("spike", start, at))
            start = None
        lowest = min(lowest, loss)
    decided = max(_SHORTEST_DIVERGENCE, len(losses) // _DECIDED_SHARE)
    if start is not None and len(losses) - start >= decided:
        found.append(Incident("divergence", start, None))
    return found


@dataclass(frozen=True)
class Side:
    """How one twin stands after a step. Steps are counted from 1."""

    word: SideWord
    since: int
    large_at: int | None  # when its largest logit passed 100
    high: bool  # whether the mean of 20 steps is half-way to chance, or above it


def course(task: Task, loss: NDArray[np.floating[Any]], largest: NDArray[np.float32]) -> list[Side]:
    """How a twin stands after every step.

    It has *learnt* at the first loss below 0.1 (above the task's floor). It has *lost* it again once the mean of 20
    steps, which had come down, is half-way to chance; and is *back* at the next loss below 0.1. Each step's verdict
    depends on the steps up to it alone.
    """
    finite = np.nan_to_num(loss.astype(np.float64), nan=1e9, posinf=1e9)
    total = np.concatenate([[0.0], np.cumsum(finite)])
    steps = np.arange(1, len(loss) + 1)
    mean = (total[steps] - total[np.maximum(steps - LAST_STEPS, 0)]) / np.minimum(steps, LAST_STEPS)
    learnt, failed = solved_below(task) if task.floor is not None else -np.inf, failed_from(task)
    sides: list[Side] = []
    word: SideWord = "unlearnt"
    since, large_at, settled = 0, None, False
    for step, now, before, logit in zip(steps.tolist(), finite.tolist(), mean.tolist(), largest.tolist(), strict=True):
        if large_at is None and logit > LARGE_LOGIT:
            large_at = step
        if word in ("unlearnt", "lost") and now < learnt:
            word, since, settled = ("learnt" if word == "unlearnt" else "back"), step, False
        elif word in ("learnt", "back"):
            settled = settled or before < failed
            if settled and before >= failed:
                word, since = "lost", step
        sides.append(Side(word, since, large_at, before >= failed))
    return sides


def _first(happened: NDArray[np.bool_]) -> int | None:
    """The step, counted from 1, at which it first happened."""
    return int(happened.argmax()) + 1 if happened.any() else None


def summary(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many of them came to what."""
    return {
        **{word: sum(outcome.outcome == word for outcome in outcomes) for word in ("solved", "partly", "failed")},
        "learnt_first": sum(outcome.learnt_first for outcome in outcomes),
        "spiked": sum(outcome.spikes > 0 for outcome in outcomes),
        "diverged": sum(outcome.diverged_at is not None for outcome in outcomes),
        "non_finite": sum(outcome.non_finite_at is not None for outcome in outcomes),
        **{f"failed_{word}": count for word, count in ends_of(outcomes).items() if word in FAILURES},
    }
