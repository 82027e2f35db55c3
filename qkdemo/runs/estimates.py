"""How long runs take and wait on this machine, from what their steps took so far.

* `Estimates(line, workers, clock)`: `status(live, ...)`: how a run stands, with the seconds that it still needs;
* `timed(live, took)`: a step took so long.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

from qkdemo.runs.budget import step_seconds
from qkdemo.runs.workers.line import TURN_S, Line, shared, waits
from qkdemo.runs.workers.live import Live, Status
from qkdemo.runs.workers.process import WorkerProcess

_STRANGE_S: Final = 5.0  # silence of a worker that its page speaks of
_AGED: Final = 0.8  # of what was known of the speed, when it is measured again
_SLOWNESS: Final = (0.1, 100.0)  # within which it is believed


class Estimates:
    """Whoever uses it holds the pool's lock."""

    def __init__(self, line: Line, workers: Sequence[WorkerProcess], clock: Callable[[], float]) -> None:
        self.slowness = 1.0  # how many times longer a step takes here than `budget` says
        self._line, self._workers, self._clock = line, workers, clock

    def timed(self, live: Live, took: float) -> None:
        """A step of `live` took so many seconds."""
        live.step_s = took if live.step_s is None else _AGED * live.step_s + (1 - _AGED) * took
        expected = step_seconds(live.plan.legs[live.plan.leg_of(live.steps)].runs)
        slowness = min(max(live.step_s / expected, _SLOWNESS[0]), _SLOWNESS[1])
        self.slowness = _AGED * self.slowness + (1 - _AGED) * slowness

    def status(self, live: Live, pace: float, notice: str) -> Status:
        """How `live` stands, which goes at `pace` now."""
        left, position, wait, silent = None, 0, 0.0, 0.0
        if live.state == "going":
            left, silent = self._left_s(live, pace), self.silent_s(live)
        if live.state == "queued":
            position, wait = self._wait_of(live)
        hurried = live.state == "going" and pace != live.pace
        told = (hurried, silent, notice, live.recorded, live.shipped)
        return Status(live.state, live.steps, live.pace, left, position, wait, *told)

    def silent_s(self, live: Live) -> float:
        """For how long its worker has said nothing, if that is strange: one that starts has nothing to say yet."""
        mine = [worker for worker in self._workers if worker.live is live and worker.ready]
        silence = max((self._clock() - worker.heard for worker in mine), default=0.0)
        return silence if silence > _STRANGE_S else 0.0

    def _need(self, live: Live) -> float:
        """Seconds that it still computes."""
        runs = live.plan.legs[live.plan.leg_of(live.steps + 1)].runs
        return (live.until - live.steps) * (live.step_s or step_seconds(runs) * self.slowness)

    def _left_s(self, live: Live, pace: float) -> float:
        """Seconds until a run that goes on is finished, in turns with those that wait."""
        computing = self._need(live)
        if not len(self._line):
            return max(computing, (live.until - live.steps) / pace)
        going = [worker.live for worker in self._workers if worker.live is not None]
        others = [self._need(one) for one in [*self._line, *going] if one is not live]
        return shared(computing, others, len(self._workers))

    def _wait_of(self, live: Live) -> tuple[int, float]:
        """The place of a run in line, from 1, and for how many seconds it still waits."""
        order = self._line.in_order()
        at = order.index(live)
        busy = [self._taken_s(worker) for worker in self._workers]
        return at + 1, waits(busy, [self._need(one) for one in order[: at + 1]])[at]

    def _taken_s(self, worker: WorkerProcess) -> float:
        """For how many seconds it is still with the run that it has, as others wait."""
        live = worker.live
        if live is None:
            return 0.0
        turn = max(0.0, TURN_S - (self._clock() - worker.since)) if live.keeps_place else math.inf
        return min(self._need(live), turn)
