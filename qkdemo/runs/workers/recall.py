"""The runs that a server knows: those in memory, and what the store has of others.

* `Recall(store)`: `find` in memory, `read` from the store, `remember`; `plan_of(name)`; `shipped(plan)`: a run that
  came with the app, which stands beside the one that was trained here;
* `why`: why the store cannot be asked at present; `ask_again`: whether it can be by now, and what it then says.

What is in memory is bounded by its bytes; runs at rest that nobody watches are dropped first, the oldest of them. A
store that is away or locked is asked again every few seconds, and nobody waits for it twice meanwhile.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Final, TypeVar

from qkdemo.messages import later
from qkdemo.runs.kept.record import cut, widened
from qkdemo.runs.kept.shipped import shipped
from qkdemo.runs.kept.store import Record, Store, StoreError
from qkdemo.runs.plan import Plan
from qkdemo.runs.workers.live import RESTING, Live

KEPT_BYTES: Final = 192 << 20
KEPT_RUNS: Final = 250
RETRY_S: Final = 3.0
_Told = TypeVar("_Told")


class Recall:
    """`find` and `remember` need the pool's lock. What asks the store may wait for it, and needs none."""

    def __init__(self, store: Store | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.lives: dict[str, Live] = {}
        self._shipped: dict[str, Live] = {}
        self.why = ""
        self._store, self._clock = store, clock
        self._failed_at = clock()
        self._generations = count(1)

    def find(self, plan: Plan) -> Live | None:
        """The run of `plan`, if it is in memory."""
        return self.lives.get(plan.name)

    def fresh(self, plan: Plan) -> Live:
        """A run of `plan` without any step."""
        now = self._clock()
        generation = next(self._generations)
        return Live(plan, owner="", generation=generation, owner_seen=now, watched=now, touched=now)

    def shipped(self, plan: Plan) -> Live | None:
        """The run of `plan` that came with the app, if there is one; the same for all who look at it."""
        record = shipped().record(plan)
        if record is not None and plan.name not in self._shipped:
            live = self.fresh(plan)
            play(live, record)
            self._shipped.setdefault(plan.name, live)
        return self._shipped.get(plan.name)

    def read(self, plan: Plan) -> Live:
        """What the store has of `plan`; for a fork of which it has nothing, what it would take from the trunk."""
        live = self.fresh(plan)
        try:
            record = self.record(plan)
        except StoreError:
            live.unread = True
            return live
        if record is None or record.chunk.last < plan.legs[-1].after:
            record = _of_shipped_trunk(plan) or record
        if record is not None:
            play(live, record)
        return live

    def record(self, plan: Plan) -> Record | None:
        """What the store has of `plan`. Raises StoreError, at once if it could not be asked a moment ago."""
        return self._asked(lambda store: _record(store, plan))

    def plan_of(self, name: str) -> Plan | None:
        """The plan of that name, if the store has it and can say so."""
        try:
            return self._asked(lambda store: store.plan(name))
        except StoreError:
            return None

    def ask_again(self) -> bool:
        """Ask a store that could not be asked; whether it can be now."""
        if self.why and self._clock() - self._failed_at >= RETRY_S:
            self.plan_of("")
        return not self.why

    def caught_up(self) -> Iterator[tuple[Live, Record]]:
        """What the store has more of runs that it could not be asked of, now that it can; call it without the lock."""
        unread = [live for live in list(self.lives.values()) if live.unread]
        if not self.ask_again():
            return
        for live in unread:
            with suppress(StoreError):
                record = self.record(live.plan)
                live.unread = False
                live.version += 1
                if record is not None and record.chunk.last > live.steps:
                    yield live, record

    def _asked(self, ask: Callable[[Store], _Told]) -> _Told | None:
        if self._store is None:
            return None
        if self.why and self._clock() - self._failed_at < RETRY_S:
            raise StoreError(self.why)
        try:
            told = ask(self._store)
        except StoreError as error:
            self.why, self._failed_at = str(error), self._clock()
            raise
        self.why = ""
        return told

    def remember(self, live: Live) -> None:
        """Keep it in memory, and drop what is too much."""
        self.lives.pop(live.plan.name, None)
        self.lives[live.plan.name] = live
        size, number = sum(one.size for one in self.lives.values()), len(self.lives)
        idle = [one for one in self.lives.values() if one.state in RESTING and not one.watchers and one is not live]
        for one in idle:
            if size <= KEPT_BYTES and number <= KEPT_RUNS:
                break
            del self.lives[one.plan.name]
            size, number = size - one.size, number - 1


def play(live: Live, record: Record) -> None:
    """Show what is recorded."""
    live.unread, live.notice = False, ""
    live.version += 1
    if record.damaged:
        live.broken_off, live.notice = True, later("live.damaged", step=record.chunk.last)
    if not len(record.chunk.curves):
        return
    live.chunks = [record.chunk]
    live.recorded, live.shipped = record.touched, record.shipped
    live.state = "finished" if record.finished else "stopped"
    if record.broken_off and not record.damaged:
        live.broken_off, live.notice = True, later("live.broken_off", step=live.steps)


def _of_shipped_trunk(plan: Plan) -> Record | None:
    """What a fork has in common with a run that came with the app. Here it is trained again, unseen, to go on from."""
    trunk = shipped().record(plan.trunk) if plan.trunk is not None else None
    if trunk is None:
        return None
    chunk = widened(plan, cut(trunk.chunk, plan.legs[-1].after))
    return replace(trunk, plan=plan, chunk=chunk, ending="stopped", shipped=False)


def _record(store: Store, plan: Plan) -> Record | None:
    record = store.read(plan)
    if record is not None or plan.trunk is None:
        return record
    trunk = store.read(plan.trunk)
    if trunk is None:
        return None
    try:
        store.begin(plan)
    except StoreError:  # locked or full, but it can be read
        return trunk.as_far_as(plan)
    return store.read(plan)
