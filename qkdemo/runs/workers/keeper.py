"""Writes down what a job does, step by step, wherever it can be kept.

* `Keeper(plan, store, parking, emit)`: `keep` for every chunk, `end` when the job comes to rest.

A store that takes nothing is said once (`unkept`) and tried again every few seconds; what it missed is kept in memory
meanwhile, and written as soon as it takes it (`kept`).
"""

import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from qkdemo.runs.budget import state_bytes
from qkdemo.runs.kept.parking import Parking
from qkdemo.runs.kept.record import Chunk, after, joined_chunks, state_to_bytes
from qkdemo.runs.kept.store import Store, StoreError
from qkdemo.runs.plan import Plan
from qkdemo.runs.trainers import Course

Emit: TypeAlias = Callable[[str, dict[str, Any], tuple[bytes, ...]], None]  # kind of frame, what it says, bytes

STATE_BYTES: Final = 8 << 20  # for all states of one run in the store; larger ones are parked
_STATE_EVERY: Final = 25  # steps, at least
_RETRY_S: Final = 5.0
_PARK_EVERY_S: Final = 60.0  # of computing


class Keeper:
    """Of one job. It raises nothing for a store or a disk that fails."""

    def __init__(
        self,
        plan: Plan,
        store: Store | None,
        parking: Parking | None,
        emit: Emit,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan, self._store, self._parking, self._emit, self._clock = plan, store, parking, emit, clock
        self._last: int | None = None  # step that is recorded; None: the store has not said
        self._missed: list[Chunk] = []
        self._failed_at: float | None = None
        self._parked_at = time.process_time()
        size = plan.width * state_bytes(plan.legs[0].runs[0])
        self._every = max(_STATE_EVERY, -(-plan.steps * size // STATE_BYTES))
        self._small = size <= STATE_BYTES
        self._write(None)

    def keep(self, chunk: Chunk, course: Course) -> None:
        """Record a chunk, and now and then a state."""
        if self._store is not None:
            self._missed.append(chunk)
            if self._failed_at is None or self._clock() - self._failed_at >= _RETRY_S:
                self._write(course)
        if not self._small and time.process_time() - self._parked_at > _PARK_EVERY_S:
            self._park(course)

    def end(self, course: Course, *, told: bool) -> bool:
        """Record where a run comes to rest, and, if it was `told` to, how; whether it can go on from there."""
        self._write(course)
        finished = course.step >= self._plan.steps
        saved = False
        try:
            if self._store is not None and self._failed_at is None:
                if self._small:
                    self._store.keep_state(self._plan, course.step, state_to_bytes(course.trainers.state))
                    saved = True
                if told or finished:
                    self._store.end(self._plan, "finished" if finished else "stopped")
        except StoreError as error:
            self._fail(error)
        if finished and not self._plan.maps:
            if self._parking is not None:
                self._parking.drop(self._plan)  # nobody forks one of many runs at once
            return True
        return saved or self._park(course) or finished

    def _write(self, course: Course | None) -> None:
        """Write what is not written yet, if the store takes it."""
        if self._store is None:
            return
        try:
            if self._last is None:
                self._store.begin(self._plan)
                record = self._store.read(self._plan)
                self._last = record.chunk.last if record is not None else 0
            chunk = after(joined_chunks(self._plan, self._missed), self._last)
            if chunk.first > self._last + 1:  # what lies between was made while the store was away, by another job
                self._store = None
                return
            if len(chunk.curves) and course is not None:
                self._store.append(self._plan, chunk, self._state_due(chunk, course))
                self._last = chunk.last
            self._missed = []
        except StoreError as error:
            self._fail(error)
            return
        if self._failed_at is not None:
            self._failed_at = None
            self._emit("kept", {}, ())

    def _fail(self, error: StoreError) -> None:
        if self._failed_at is None:
            self._emit("unkept", {"why": str(error), "step": self._last or 0}, ())
        self._failed_at = self._clock()

    def _state_due(self, chunk: Chunk, course: Course) -> bytes | None:
        ends = chunk.last in {leg.after for leg in self._plan.legs}
        due = ends or chunk.last // self._every > (chunk.first - 1) // self._every
        return state_to_bytes(course.trainers.state) if due and self._small else None

    def _park(self, course: Course) -> bool:
        parked = self._parking is not None and self._parking.park(self._plan, course.trainers)
        self._parked_at = time.process_time()
        return parked
