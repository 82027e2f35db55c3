"""The workers of a server, and what becomes of a run between the line and its rest.

* `Workshop`: hands runs to workers, lets them take turns, hears what workers say, and replaces those that die or hang.

A run that others wait for gives way after its turn. One that nobody has watched for a minute rests while others wait,
and goes on by itself when nobody does (`spare`). Whoever calls holds the pool's lock, except for `heard` and `tick`.
"""

import math
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from qkdemo.messages import later
from qkdemo.runs.budget import free_memory, plan_bytes
from qkdemo.runs.estimates import Estimates
from qkdemo.runs.kept.record import chunk_from_bytes
from qkdemo.runs.workers.job import CEILING_S
from qkdemo.runs.workers.line import TURN_S, Line
from qkdemo.runs.workers.live import RESTING, Live, StateWord, Status
from qkdemo.runs.workers.news import take
from qkdemo.runs.workers.process import WorkerProcess

UNWATCHED_S: Final = 60.0  # a run that nobody watches for so long rests while others wait
_FORGOTTEN_S: Final = 3.0  # and one that went on by itself, as soon as anybody waits
_HURRIED_S: Final = 30.0  # for so long a run that nobody watches is still slowed down to its pace
SILENT_S: Final = 12.0  # a worker whose work has not moved for so long is ended
_STARTING_S: Final = 180.0  # a worker that has not said yet that it is ready
_ATTEMPTS: Final = 3  # workers that may die of one run
_MOST_SPARE: Final = 20
_LATE_S: Final = 2.0  # between two ticks
_NEWS_TICKS: Final = 4  # between two words to those who wait


class Workshop:
    """`over(live)` is called, without the lock, when a run came to rest by itself."""

    def __init__(
        self, url: str, workers: int, lock: threading.RLock, over: Callable[[Live], None], clock: Callable[[], float]
    ) -> None:
        self.line = Line()
        self.workers = [WorkerProcess(url, self.heard, clock) for _ in range(workers)]
        self._lock, self._over, self._clock = lock, over, clock
        self._spare: list[Live] = []
        self.estimates = Estimates(self.line, self.workers, clock)
        self._closed = False
        self._ticks, self._ticked = 0, clock()

    # ---- what the pool asks for

    def enqueue(self, live: Live, until: int) -> None:
        """Train it up to that step, as soon as its turn comes."""
        live.until, live.turns, live.computed_s = until, 0, 0.0
        live.notice = live.notice if live.broken_off else ""
        live.broken_off = False
        live.watched = self._clock()
        self._forget_spare(live)
        self.line.join(live, self._clock())
        self.hand_out()

    def rest(self, live: Live, state: StateWord) -> None:
        """Let it rest after the step it is in."""
        self._forget_spare(live)
        if live.state in RESTING:
            if live.state == "paused" and state == "stopped":
                live.state = state
                live.version += 1
            return
        self.line.leave(live)
        for worker in self.workers:
            if worker.live is live:
                worker.release()
        live.state = state
        live.version += 1
        self.hand_out()

    def hand_out(self) -> None:
        """Give whoever is next to a worker that is free; with nobody waiting, what rests for others."""
        for worker in self.workers:
            if worker.live is not None or worker.leaving is not None:
                continue
            live = next((one for one in [*self.line, *self._spare] if self._can_begin(one)), None)
            if live is None:
                break
            self.line.leave(live)
            if live in self._spare and live.state in RESTING:
                live.notice = ""
            live.state = "going"
            live.version += 1
            worker.train(live, self.pace_of(live), max(1.0, CEILING_S - live.computed_s))
        self.pass_paces()

    def pace_of(self, live: Live) -> float:
        """Steps per second now: nobody who waits is held up by somebody's pace, nor by one whom nobody watches."""
        return math.inf if len(self.line) or self._unwatched(live, _HURRIED_S) else live.pace

    def pass_paces(self) -> None:
        """Tell the workers."""
        for worker in self.workers:
            if worker.live is not None:
                worker.set_pace(self.pace_of(worker.live))

    def status(self, live: Live, notice: str) -> Status:
        """How a run stands."""
        return self.estimates.status(live, self.pace_of(live), notice)

    def close(self) -> None:
        """Let every worker end, as soon as it has written what it has."""
        self._closed = True
        for worker in self.workers:
            worker.close()

    def end(self, patience_s: float) -> None:
        """End every worker: those that have not ended after `patience_s` seconds are killed. Needs no lock."""
        processes = [worker.process for worker in self.workers if worker.process is not None]
        due = time.monotonic() + patience_s
        if patience_s:
            self.close()
        for process in processes:
            try:
                process.wait(max(0.0, due - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()

    # ---- inside, with the lock held

    def _can_begin(self, live: Live) -> bool:
        """Not before the worker that it had has put down where it was, nor where memory is short for both."""
        if any(worker.leaving is live or worker.live is live for worker in self.workers):
            return False
        return not self._going() or plan_bytes(live.plan) < free_memory() // 2

    def _unwatched(self, live: Live, seconds: float) -> bool:
        return not live.watchers and self._clock() - live.watched > seconds

    def _going(self) -> list[Live]:
        return [worker.live for worker in self.workers if worker.live is not None]

    def _forget_spare(self, live: Live) -> None:
        if live in self._spare:
            self._spare.remove(live)

    def _make_spare(self, live: Live) -> None:
        """It rests for others, and goes on when nobody waits."""
        self.rest(live, "stopped")
        live.notice = later("live.rested", step=live.steps)
        self._spare = [*self._spare, live][-_MOST_SPARE:]

    def _give_way(self, worker: WorkerProcess) -> None:
        live = worker.live
        assert live is not None
        live.turns += 1
        worker.release()
        self.line.join(live, self._clock())

    # ---- as time goes by

    def tick(self) -> None:
        """Twice a second: who gives way, who rests, and which worker has died on its feet."""
        with self._lock:
            self._ticks += 1
            now = self._clock()
            late, self._ticked = now - self._ticked - _LATE_S, now
            for worker in self.workers if late > 0 else ():
                worker.heard += late  # this process was held up itself, and may not have read what they said
            if self._ticks % _NEWS_TICKS == 0:
                for live in [*self.line, *(live for live in self._going() if self.estimates.silent_s(live))]:
                    live.version += 1  # their place moves on, and nothing else
            for worker in self.workers:
                self._look_after(worker, now)
            for live in [one for one in self.line if self._unwatched(one, UNWATCHED_S)]:
                self._make_spare(live)
            self.hand_out()

    def _look_after(self, worker: WorkerProcess, now: float) -> None:
        if worker.process is not None and now - worker.heard > (SILENT_S if worker.ready else _STARTING_S):
            worker.hung = True
            worker.kill()
        live = worker.live
        if live is None or not len(self.line):
            return
        if self._unwatched(live, _FORGOTTEN_S if live in self._spare else UNWATCHED_S):
            self._make_spare(live)
        elif now - worker.since > TURN_S and live.keeps_place:
            self._give_way(worker)

    # ---- what workers say

    def heard(self, worker: WorkerProcess, told: dict[str, Any] | None, data: Sequence[bytes]) -> None:
        """A frame; None: the worker's output ended."""
        over = None
        with self._lock:
            if told is None:
                self._lost(worker)
                return
            if told["kind"] != "alive" or told["beats"] != worker.beats:
                worker.heard = self._clock()
            worker.beats = told.get("beats", worker.beats)
            worker.ready = True
            live = worker.live if worker.live is not None else worker.leaving
            if live is not None and told.get("number") == worker.number:
                match told["kind"]:
                    case "rows" if live is worker.live:
                        self._on_rows(live, told, data)
                    case "rest" | "failed" as kind:
                        (self._on_rest if kind == "rest" else self._on_failed)(worker, live, told)
                        over, worker.live, worker.leaving = worker.live, None, None
                    case _:
                        take(live, told)
            self.hand_out()
        if over is not None:
            self._over(over)

    def _on_rows(self, live: Live, told: dict[str, Any], data: Sequence[bytes]) -> None:
        if told["first"] != live.steps + 1:
            return
        now = self._clock()
        live.chunks = [*live.chunks, chunk_from_bytes(live.plan, told["first"], told["count"], *data)]
        if len(live.chunks) > 64:
            live.chunks = [live.chunk]
        if self.pace_of(live) == math.inf and live.timed:
            self.estimates.timed(live, (now - live.touched) / told["count"])
        live.touched, live.timed = now, True
        live.recorded = None
        live.version += 1

    def _on_failed(self, worker: WorkerProcess, live: Live, told: dict[str, Any]) -> None:
        self.line.leave(live)
        live.state, live.notice = "lost", later("live.failed", why=told["why"])
        live.version += 1

    def _on_rest(self, worker: WorkerProcess, live: Live, told: dict[str, Any]) -> None:
        live.computed_s += told["seconds"]
        live.keeps_place = told["saved"]
        if worker.live is not live:
            return
        self._forget_spare(live)
        live.state = "finished" if live.steps >= live.plan.steps else "paused"
        live.recorded = time.time() if live.state == "finished" and live.kept else None
        live.version += 1

    def _lost(self, worker: WorkerProcess) -> None:
        """It died, or was ended: another one takes the run up where it was recorded, if that was not too often."""
        live, hung = worker.live, worker.hung
        worker.forget()
        if self._closed:
            return
        worker.start()
        if live is not None:
            live.attempts += 1
            live.version += 1
            if live.attempts < _ATTEMPTS:
                live.notice = later("live.hung" if hung else "live.died", step=live.steps)
                live.turns = 0
                self.line.join(live, -math.inf)
            else:
                live.state, live.notice = "lost", later("live.lost", step=live.steps, count=live.attempts)
        self.hand_out()
