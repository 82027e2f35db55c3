"""Worker processes, and who waits for them.

* `Pool(store, workers)`: starts runs, hands them out, replaces workers that die;
* `Live` (of `qkdemo.runs.live`): a run that somebody asked for; identical plans share one.

A visitor has one run at a time: asking for another lets the one before rest, unless somebody else asked for it too. A
series is runs one after another, so that in a queue it waits its turn after each of them.
Whoever asked first has its controls. A run that rests (paused, stopped, finished, lost) holds no worker; going on means
another job, from its last recorded state. Runs that nobody watches, and runs that others wait for, are not slowed down.
"""

import math
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from qkdemo.messages import say
from qkdemo.runs.live import DEFAULT_PACE, RESTING, Live, StateWord, Status
from qkdemo.runs.plan import Plan
from qkdemo.runs.process import WorkerProcess
from qkdemo.runs.record import chunk_from_bytes
from qkdemo.runs.series import Series
from qkdemo.runs.store import Store, StoreError, default_url

LONGEST_QUEUE: Final = 200
_ATTEMPTS: Final = 3  # workers that may die of one run
_REMEMBERED: Final = {True: 24, False: 200}  # runs kept in memory, with and without maps; those at rest dropped first
_UNWATCHED_S: Final = 30.0
_ABSENT_S: Final = 60.0  # after which somebody else may have the controls
_ABANDONED_S: Final = 60.0  # a queued run that nobody watches for so long is dropped
_SILENT_S: Final = 180.0  # a worker with a job that says nothing for so long is ended
_TICK_S: Final = 0.5
_NEWS_TICKS: Final = 4  # between two words to those who wait
_USUAL_STEP_S: Final = 0.02  # until a step was measured


class PoolError(Exception):
    """A run that cannot be started, in a sentence."""


class Pool:
    """Threads share it. Nothing here waits for a worker."""

    def __init__(self, store: Store | None, url: str | None = None, workers: int = 1) -> None:
        self.store = store
        self._url = url or (store.url if store is not None else default_url())
        self._lock = threading.RLock()
        self._lives: dict[str, Live] = {}
        self._queue: list[Live] = []
        self._series = Series()
        self._generation = 0
        self._step_s = _USUAL_STEP_S
        self._closed = threading.Event()
        self._workers = [WorkerProcess(self._url, self._heard) for _ in range(workers)]
        self._workers[0].start()
        threading.Thread(target=self._tick, daemon=True, name="pool").start()

    # ---- what visitors ask for

    def live(self, name: str) -> Live | None:
        """The run of that name, if it is in memory or in the store."""
        with self._lock:
            if name in self._lives:
                return self._lives[name]
        plan = self._plan_of(name)
        return self.look(plan) if plan is not None else None

    def look(self, plan: Plan) -> Live | None:
        """The run of `plan`, if anything is known of it; nothing is started."""
        with self._lock:
            if plan.name in self._lives:
                return self._lives[plan.name]
            live = self._recalled(plan)
            if not live.chunks:
                return None
            self._remember(live)
            return live

    def start(self, plan: Plan, visitor: str, *, pace: float = DEFAULT_PACE, again: bool = False) -> Live:
        """The run of `plan`, going on unless it is finished; `again`: from its beginning. Raises PoolError.

        Where it rests because somebody else who is there let it rest, it is only shown.
        """
        with self._lock:
            self._series.drop(visitor)
            return self._begin(plan, visitor, pace, again=again)

    def start_all(self, plans: Sequence[Plan], visitor: str) -> None:
        """The runs of `plans` one after another, as fast as it goes, but for those that are finished. Raises PoolError.

        It ends when that visitor has not been there (`attend`) for a minute.
        """
        with self._lock:
            self._refuse_if_full()
            self._series.begin(visitor, plans)
            self._go_on(visitor)

    def attend(self, visitor: str) -> None:
        """That visitor is still there, though no stream says so."""
        with self._lock:
            now = time.monotonic()
            for live in (one for one in self._lives.values() if visitor in one.visitors):
                live.watched = now
                live.owner_seen = now if live.owner == visitor else live.owner_seen
            self._series.attend(visitor)

    def _refuse_if_full(self) -> None:
        if len(self._queue) >= LONGEST_QUEUE:
            raise PoolError(say("live.full", count=LONGEST_QUEUE))

    def _go_on(self, visitor: str) -> None:
        plan = self._series.next_of(visitor, lambda plan: live.state if (live := self.look(plan)) else None)
        if plan is not None:
            self._begin(plan, visitor, math.inf)

    def _begin(self, plan: Plan, visitor: str, pace: float, *, again: bool = False) -> Live:
        with self._lock:
            live = self._lives.get(plan.name)
            if live is None or (again and live.state in RESTING):
                live = self._fresh(plan) if again else self._recalled(plan)
                live.pace = pace
            goes_on = self.owns(live, visitor) and live.state in RESTING and live.steps < plan.steps
            if goes_on and visitor not in self._series:
                self._refuse_if_full()
            self._leave_all(visitor, but=live)
            live.visitors.add(visitor)
            if self.owns(live, visitor):
                live.owner, live.owner_seen = visitor, time.monotonic()
            self._remember(live)
            if goes_on:
                live.attempts = 0
                self._enqueue(live, plan.steps)
            return live

    def owns(self, live: Live, visitor: str) -> bool:
        """Whether `visitor` has the controls: who asked first, or anybody if that one has gone."""
        with self._lock:
            gone = not live.present[live.owner] and time.monotonic() - live.owner_seen > _ABSENT_S
            return gone or live.owner in ("", visitor)

    def pause(self, live: Live, visitor: str) -> None:
        """Let it rest after the step it is in."""
        self._rest(live, visitor, "paused")

    def stop(self, live: Live, visitor: str) -> None:
        """End it after the step it is in; what is recorded stays, and it can go on."""
        self._rest(live, visitor, "stopped")

    def step(self, live: Live, visitor: str) -> None:
        """One step more."""
        with self._lock:
            if self.owns(live, visitor) and live.state in RESTING and live.steps < live.plan.steps:
                self._enqueue(live, live.steps + 1)

    def set_pace(self, live: Live, visitor: str, pace: float) -> None:
        """Steps per second from now on; ∞ is as fast as it goes."""
        with self._lock:
            if self.owns(live, visitor) and pace > 0 and live.pace != pace:
                live.pace = pace
                live.version += 1
                self._pass_pace(live)

    def leave(self, visitor: str) -> None:
        """That visitor wants nothing any more."""
        with self._lock:
            self._series.drop(visitor)
            self._leave_all(visitor, but=None)

    # ---- what watchers need

    def watch(self, live: Live, change: int, visitor: str = "") -> None:
        """One watcher more (1) or less (−1)."""
        with self._lock:
            live.watchers += change
            live.watched = time.monotonic()
            live.present[visitor] += change
            live.present = +live.present  # who has gone is not remembered
            if visitor == live.owner:
                live.owner_seen = live.watched
            self._pass_pace(live)

    def status(self, live: Live) -> Status:
        """How it stands."""
        with self._lock:
            step_s = live.step_s or self._step_s
            left, position, wait = None, 0, 0.0
            hurried = live.state == "going" and self._pace_of(live) != live.pace
            if live.state == "going":
                left = (live.until - live.steps) * max(step_s, 1 / self._pace_of(live))
            if live.state == "queued" and live in self._queue:
                position = self._queue.index(live) + 1
                ahead = self._queue[: position - 1] + [worker.live for worker in self._workers if worker.live]
                seconds = sum((one.until - one.steps) * (one.step_s or self._step_s) for one in ahead)
                wait = seconds / len(self._workers)
            told = (live.notice, live.recorded)
            return Status(live.state, live.steps, live.pace, left, position, wait, hurried, *told)

    @property
    def processes(self) -> list[int]:
        """The workers' process ids."""
        with self._lock:
            return [worker.process.pid for worker in self._workers if worker.process is not None]

    def close(self) -> None:
        """Let every worker end, as soon as it has written what it has."""
        self._closed.set()
        with self._lock:
            for worker in self._workers:
                worker.close()

    def end(self, patience_s: float) -> None:
        """End every worker: those that have not ended after `patience_s` seconds are killed."""
        self._closed.set()
        processes = [worker.process for worker in self._workers if worker.process is not None]
        due = time.monotonic() + patience_s
        if patience_s:
            self.close()
        for process in processes:
            try:
                process.wait(max(0.0, due - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()

    # ---- inside, always with the lock held

    def _fresh(self, plan: Plan) -> Live:
        self._generation += 1
        return Live(plan, owner="", generation=self._generation)

    def _plan_of(self, name: str) -> Plan | None:
        try:
            return self.store.plan(name) if self.store is not None else None
        except StoreError:
            return None

    def _recalled(self, plan: Plan) -> Live:
        """What the store has of `plan`; for a fork of which it has nothing, what it would take from the trunk."""
        live = self._fresh(plan)
        if self.store is None:
            return live
        try:
            record = self.store.read(plan)
            if record is None and plan.trunk is not None and self.store.read(plan.trunk) is not None:
                self.store.begin(plan)
                record = self.store.read(plan)
        except StoreError as error:
            live.notice = str(error)
            return live
        if record is not None and record.damaged:
            live.broken_off, live.notice = True, say("live.damaged", step=record.chunk.last)
        if record is not None and len(record.chunk.curves):
            live.chunks = [record.chunk]
            live.recorded = record.touched
            live.state = "finished" if record.finished else "stopped"
            if record.broken_off:
                live.broken_off, live.notice = True, say("live.broken_off", step=live.steps)
        return live

    def _remember(self, live: Live) -> None:
        self._lives.pop(live.plan.name, None)
        self._lives[live.plan.name] = live
        alike = [one for one in self._lives.values() if one.plan.maps == live.plan.maps]
        idle = [one for one in alike if one.state in RESTING and not one.watchers and one is not live]
        for one in idle[: max(0, len(alike) - _REMEMBERED[live.plan.maps])]:
            del self._lives[one.plan.name]

    def _enqueue(self, live: Live, until: int) -> None:
        live.until = until
        live.state = "queued"
        live.notice = live.notice if live.broken_off else ""
        live.broken_off = False
        live.version += 1
        live.watched = time.monotonic()
        self._queue.append(live)
        self._hand_out()

    def _rest(self, live: Live, visitor: str, state: StateWord) -> None:
        with self._lock:
            if self.owns(live, visitor):
                self._put_to_rest(live, state)

    def _put_to_rest(self, live: Live, state: StateWord) -> None:
        if live.state in RESTING:
            if live.state == "paused" and state == "stopped":
                live.state = state
                live.version += 1
            return
        if live in self._queue:
            self._queue.remove(live)
        for worker in self._workers:
            if worker.live is live:
                worker.order("stop")
                worker.live, worker.busy = None, True  # what it still sends is not of a run any more
        live.state = state
        live.version += 1
        self._hand_out()

    def _leave_all(self, visitor: str, but: Live | None) -> None:
        for live in self._lives.values():
            if live is but or visitor not in live.visitors:
                continue
            live.visitors.discard(visitor)
            if live.owner == visitor:
                live.owner = next(iter(live.visitors), "")
            if not live.visitors and live.watchers <= 1:
                if but is not None and live.state not in RESTING:
                    live.notice = say("live.left")
                self._put_to_rest(live, "stopped")

    def _hand_out(self) -> None:
        for worker in self._workers:
            if not self._queue:
                return
            if worker.live is None and not worker.busy:
                worker.start()
                live = self._queue.pop(0)
                live.state = "going"
                live.version += 1
                worker.train(live, self._pace_of(live))
        for worker in self._workers:
            if worker.live is not None:
                self._pass_pace(worker.live)

    def _pace_of(self, live: Live) -> float:
        unwatched = not live.watchers and time.monotonic() - live.watched > _UNWATCHED_S
        return math.inf if self._queue or unwatched else live.pace

    def _pass_pace(self, live: Live) -> None:
        for worker in self._workers:
            if worker.live is live:
                worker.set_pace(self._pace_of(live))

    # ---- what workers say

    def _heard(self, worker: WorkerProcess, told: dict[str, Any] | None, data: list[bytes]) -> None:
        """A frame; None: the worker's output ended."""
        with self._lock:
            worker.heard = time.monotonic()
            if told is None:
                self._lost(worker)
                return
            live = worker.live
            if told["kind"] != "ready" and told["number"] == worker.number and live is not None:
                getattr(self, f"_on_{told['kind']}")(worker, live, told, data)
            if told["kind"] in ("rest", "failed") and told["number"] == worker.number:
                worker.live, worker.busy = None, False
                for visitor in self._series.wanting(live.plan, live.state) if live is not None else ():
                    self._go_on(visitor)
            self._hand_out()

    def _on_rows(self, worker: WorkerProcess, live: Live, told: dict[str, Any], data: list[bytes]) -> None:
        if told["first"] != live.steps + 1:
            return
        now = time.monotonic()
        live.chunks = [*live.chunks, chunk_from_bytes(live.plan, told["first"], told["count"], *data)]
        if len(live.chunks) > 64:
            live.chunks = [live.chunk]
        if self._pace_of(live) == math.inf and live.timed:
            took = (now - live.touched) / told["count"]
            live.step_s = took if live.step_s is None else 0.8 * live.step_s + 0.2 * took
            self._step_s = live.step_s
        live.touched, live.timed = now, True
        live.recorded = None
        live.version += 1

    def _on_unkept(self, worker: WorkerProcess, live: Live, told: dict[str, Any], data: list[bytes]) -> None:
        live.kept = False
        live.notice = say("live.unkept", why=told["why"], step=told["step"])
        live.version += 1

    def _on_ceiling(self, worker: WorkerProcess, live: Live, told: dict[str, Any], data: list[bytes]) -> None:
        live.notice = say("live.ceiling", step=told["step"])

    def _on_failed(self, worker: WorkerProcess, live: Live, told: dict[str, Any], data: list[bytes]) -> None:
        live.state, live.notice = "lost", say("live.failed", why=told["why"])
        live.version += 1

    def _on_rest(self, worker: WorkerProcess, live: Live, told: dict[str, Any], data: list[bytes]) -> None:
        live.state = "finished" if live.steps >= live.plan.steps else "paused"
        live.recorded = time.time() if live.state == "finished" and live.kept and self.store is not None else None
        live.version += 1

    def _lost(self, worker: WorkerProcess) -> None:
        """Its worker died: another one takes the run up where it was recorded, if that did not happen too often."""
        live, step = worker.live, worker.live.steps if worker.live is not None else 0
        worker.forget()
        if self._closed.is_set():
            return
        worker.start()
        if live is not None:
            live.attempts += 1
            live.version += 1
            if live.attempts < _ATTEMPTS:
                live.state, live.notice = "queued", say("live.died", step=step)
                self._queue.insert(0, live)
            else:
                live.state, live.notice = "lost", say("live.lost", step=step, count=live.attempts)
        self._hand_out()

    def _tick(self) -> None:
        ticks = 0
        while not self._closed.wait(_TICK_S):
            ticks += 1
            with self._lock:
                now = time.monotonic()
                for live in self._queue if ticks % _NEWS_TICKS == 0 else ():  # their place moves on, and nothing else
                    live.version += 1
                for live in [one for one in self._queue if not one.watchers and now - one.watched > _ABANDONED_S]:
                    self._put_to_rest(live, "stopped")
                for worker in self._workers:
                    if worker.live is not None:
                        self._pass_pace(worker.live)
                    if (worker.live is not None or worker.busy) and now - worker.heard > _SILENT_S:
                        worker.kill()
