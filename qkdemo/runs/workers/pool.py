"""What visitors ask of the workers, and what they may.

* `Pool(store, workers)`: starts runs, and hands each out as a `Live`; identical plans share one.

A visitor has one run at a time: asking for another lets the one before rest, unless somebody else asked for it too. A
series is runs one after another, so that in a line it waits its turn after each of them.
Whoever asked first has its controls. A run that rests (paused, stopped, finished, lost) holds no worker; going on means
another job, from its last recorded state. Runs that nobody watches, and runs that others wait for, are not slowed down.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from qkdemo.messages import later, say
from qkdemo.runs.budget import beyond_memory, seconds_of
from qkdemo.runs.kept.shipped import shipped
from qkdemo.runs.kept.store import Store, default_url
from qkdemo.runs.plan import Plan
from qkdemo.runs.workers.live import DEFAULT_PACE, RESTING, Live, StateWord, Status
from qkdemo.runs.workers.recall import Recall, play
from qkdemo.runs.workers.series import Series
from qkdemo.runs.workers.workshop import Workshop

_ABSENT_S: Final = 60.0  # after which somebody else may have the controls
_TICK_S: Final = 0.5


class PoolError(Exception):
    """A run that cannot be started, in a sentence."""


class Pool:
    """Threads share it. Nothing here waits for a worker, and nothing waits for the store with the lock held."""

    def __init__(
        self,
        store: Store | None,
        url: str | None = None,
        workers: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._recall = Recall(store, clock)
        self._series = Series(clock)
        self.url = url or (store.url if store is not None else default_url())
        self._shop = Workshop(self.url, workers, self._lock, self._rested, clock)
        self._closed = threading.Event()
        self._shop.workers[0].start()
        threading.Thread(target=self._keep_time, daemon=True, name="pool").start()

    # ---- what visitors ask for

    def live(self, name: str) -> Live | None:
        """The run of that name, if it is in memory or in the store; else one that came with the app."""
        with self._lock:
            if name in self._recall.lives:
                return self._recall.lives[name]
        plan = self._recall.plan_of(name)
        return self.look(plan) if plan is not None else self.shipped_named(name)

    def shipped(self, plan: Plan) -> Live | None:
        """The finished run of `plan` that came with the app, if there is one. It is there whatever is trained here."""
        return self._recall.shipped(plan)

    def shipped_named(self, name: str) -> Live | None:
        """The one of that name."""
        plan = shipped().plan(name)
        return self.shipped(plan) if plan is not None else None

    def look(self, plan: Plan) -> Live | None:
        """The run of `plan`, if anything is known of it; nothing is started."""
        live = self._known(plan)
        with self._lock:
            found = self._recall.find(plan)
            if found is None and not live.chunks and not live.notice:
                return None
            self._recall.remember(found or live)
            return found or live

    def start(
        self, plan: Plan, visitor: str, *, pace: float = DEFAULT_PACE, again: bool = False, address: str = ""
    ) -> Live:
        """The run of `plan`, going on unless it is finished; `again`: from its beginning. Raises PoolError.

        Where it rests because somebody else who is there let it rest, it is only shown.
        """
        known = self._known(plan)
        with self._lock:
            self._series.drop(visitor)
            return self._begin(known, (visitor, address), pace, again=again)

    def show(self, plan: Plan, visitor: str, why: str) -> Live:
        """The run of `plan`, which is that visitor's, as it stands; `why` it is not started is said on its page."""
        known = self._known(plan)
        with self._lock:
            live = self._recall.find(plan) or known
            if live.state in RESTING and live.steps < plan.steps:
                live.notice = live.notice or why
            live.visitors.add(visitor)
            live.owner = live.owner or visitor
            self._recall.remember(live)
            return live

    def start_all(self, plans: Sequence[Plan], visitor: str, address: str = "") -> None:
        """The runs of `plans` one after another, as fast as it goes, but for those that are finished. Raises PoolError.

        It ends when that visitor has not been there (`attend`) for a minute.
        """
        with self._lock:
            self._refuse(visitor, address)
            self._series.begin(visitor, plans, address)
        self._go_on(visitor)

    def still_wants(self, visitor: str, plans: Sequence[Plan]) -> bool:
        """Whether some of `plans` are yet to be trained in that visitor's series."""
        with self._lock:
            return self._series.still_wants(visitor, plans)

    def attend(self, visitor: str) -> None:
        """That visitor is still there, though no stream says so."""
        with self._lock:
            now = self._clock()
            for live in (one for one in self._recall.lives.values() if visitor in one.visitors):
                live.watched = now
                live.owner_seen = now if live.owner == visitor else live.owner_seen
            self._series.attend(visitor)

    def owns(self, live: Live, visitor: str) -> bool:
        """Whether `visitor` has the controls: who asked first, or anybody if that one has gone."""
        with self._lock:
            gone = not live.present[live.owner] and self._clock() - live.owner_seen > _ABSENT_S
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
                self._shop.enqueue(live, live.steps + 1)

    def set_pace(self, live: Live, visitor: str, pace: float) -> None:
        """Steps per second from now on; ∞ is as fast as it goes."""
        with self._lock:
            if self.owns(live, visitor) and pace > 0 and live.pace != pace:
                live.pace = pace
                live.version += 1
                self._shop.pass_paces()

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
            live.watched = self._clock()
            live.present[visitor] += change
            live.present = +live.present  # who has gone is not remembered
            if visitor == live.owner:
                live.owner_seen = live.watched
            self._shop.pass_paces()

    def status(self, live: Live) -> Status:
        """How it stands."""
        with self._lock:
            return self._shop.status(live, live.notice or (self.away if live.unread else ""))

    @property
    def away(self) -> str:
        """Why recorded runs cannot be shown at present, in a sentence; nothing if they can."""
        return say("live.away", why=self._recall.why) if self._recall.why else ""

    def seconds_of(self, plans: Sequence[Plan]) -> float:
        """How long these plans take here, one after another, with nobody else waiting."""
        return sum(map(seconds_of, plans)) * self._shop.estimates.slowness

    @property
    def processes(self) -> list[int]:
        """The workers' process ids."""
        with self._lock:
            return [worker.process.pid for worker in self._shop.workers if worker.process is not None]

    def close(self) -> None:
        """Let every worker end, as soon as it has written what it has."""
        self._closed.set()
        with self._lock:
            self._shop.close()

    def end(self, patience_s: float) -> None:
        """End every worker: those that have not ended after `patience_s` seconds are killed."""
        self._closed.set()
        self._shop.end(patience_s)

    def _known(self, plan: Plan) -> Live:
        """The run of `plan` from memory, else from the store; call it without the lock."""
        with self._lock:
            live = self._recall.find(plan)
        return live or self._recall.read(plan)

    def _begin(self, known: Live, asked: tuple[str, str], pace: float, *, again: bool = False) -> Live:
        with self._lock:
            (visitor, _), plan = asked, known.plan
            live = self._recall.find(plan)
            if live is None or (again and live.state in RESTING):
                live = self._recall.fresh(plan) if again else known
                live.pace = pace
            goes_on = self.owns(live, visitor) and live.state in RESTING and live.steps < plan.steps
            if goes_on and visitor not in self._series:
                self._refuse(*asked)
            if goes_on and (why := beyond_memory(plan)):
                raise PoolError(why)
            self._leave_all(visitor, but=live)
            live.visitors.add(visitor)
            if self.owns(live, visitor):
                live.owner, live.owner_seen = visitor, self._clock()
            self._recall.remember(live)
            if goes_on:
                live.attempts, live.asked = 0, asked
                self._shop.enqueue(live, plan.steps)
            return live

    def _refuse(self, visitor: str, address: str) -> None:
        if why := self._shop.line.refusal(visitor, address):
            raise PoolError(why)

    def _rest(self, live: Live, visitor: str, state: StateWord) -> None:
        with self._lock:
            if self.owns(live, visitor):
                self._shop.rest(live, state)

    def _leave_all(self, visitor: str, but: Live | None) -> None:
        for live in self._recall.lives.values():
            if live is but or visitor not in live.visitors:
                continue
            live.visitors.discard(visitor)
            if live.owner == visitor:
                live.owner = next(iter(live.visitors), "")
            if not live.visitors and live.watchers <= 1:
                if but is not None and live.state not in RESTING:
                    live.notice = later("live.left")
                self._shop.rest(live, "stopped")

    def _rested(self, live: Live) -> None:
        """It came to rest by itself: the series that wait for it go on."""
        with self._lock:
            visitors = self._series.wanting(live.plan, live.state)
            if live.state == "paused":  # at the ceiling: what comes after it waits for a hand
                for visitor in self._series.stuck(live.plan):
                    self._series.drop(visitor)
        for visitor in visitors:
            self._go_on(visitor)

    def _go_on(self, visitor: str) -> None:
        """The next run of that visitor's series."""
        while (plan := self._series.next_of(visitor)) is not None:
            known = self._known(plan)
            with self._lock:
                live = self._recall.find(plan) or known
                if self._series.is_over(visitor, plan, live.state):
                    continue
                try:
                    live = self._begin(live, (visitor, self._series.address_of(visitor)), math.inf)
                except PoolError as error:
                    live.notice = str(error)
                if live.state in RESTING:  # refused, or somebody else let it rest
                    self._series.drop(visitor)
                return

    def _keep_time(self) -> None:
        while not self._closed.wait(_TICK_S):
            self.tick()

    def tick(self) -> None:
        """Twice a second: turns, rests, workers that hang; and what the store could not be asked before."""
        self._shop.tick()
        for live, record in self._recall.caught_up():
            with self._lock:
                active = live.state not in RESTING
                if active:
                    self._shop.rest(live, "stopped")
                play(live, record)
                if active and live.steps < live.until:
                    self._shop.enqueue(live, live.until)
