"""Runs that visitors want one after another.

* `Series`: which ones, for whom, and whether they are still there. It starts nothing itself.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

from qkdemo.runs.plan import Plan
from qkdemo.runs.workers.live import StateWord

ABSENT_S: Final = 60.0  # after which nothing more of a series is started
_OVER: Final = ("finished", "lost")  # states after which the next one comes


class Series:
    """At most one series for each visitor. Whoever uses it holds the pool's lock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._plans: dict[str, tuple[Plan, ...]] = {}
        self._passed: dict[str, int] = {}  # how many are over
        self._addresses: dict[str, str] = {}
        self._seen: dict[str, float] = {}

    def begin(self, visitor: str, plans: Sequence[Plan], address: str = "") -> None:
        """That visitor wants these plans, in order, and nothing that they wanted before."""
        self._plans[visitor], self._passed[visitor], self._addresses[visitor] = tuple(plans), 0, address
        self._seen[visitor] = self._clock()

    def drop(self, visitor: str) -> None:
        """That visitor wants none any more."""
        self._plans.pop(visitor, None)
        self._passed.pop(visitor, None)
        self._addresses.pop(visitor, None)
        self._seen.pop(visitor, None)

    def __contains__(self, visitor: str) -> bool:
        return visitor in self._plans

    def address_of(self, visitor: str) -> str:
        """From where that visitor asked."""
        return self._addresses.get(visitor, "")

    def attend(self, visitor: str) -> None:
        """That visitor is still there."""
        if visitor in self._plans:
            self._seen[visitor] = self._clock()

    def next_of(self, visitor: str) -> Plan | None:
        """The first plan that is not over; None, and the series is forgotten, if all are or the visitor has gone."""
        plans, at = self._plans.get(visitor, ()), self._passed.get(visitor, 0)
        if at < len(plans) and self._clock() - self._seen[visitor] < ABSENT_S:
            return plans[at]
        self.drop(visitor)
        return None

    def is_over(self, visitor: str, plan: Plan, state: StateWord) -> bool:
        """Whether `plan`, which stands so, needs nothing more; then the next one is that visitor's next."""
        over = state in _OVER
        if over and self._plans.get(visitor, ())[self._passed.get(visitor, 0) :][:1] == (plan,):
            self._passed[visitor] += 1
        return over

    def still_wants(self, visitor: str, plans: Sequence[Plan]) -> bool:
        """Whether some of `plans` are in that visitor's series, and not over."""
        left = self._plans.get(visitor, ())[self._passed.get(visitor, 0) :]
        return any(plan in left for plan in plans)

    def stuck(self, plan: Plan) -> list[str]:
        """Whose series is at `plan`."""
        return [who for who, plans in self._plans.items() if plans[self._passed[who] :][:1] == (plan,)]

    def wanting(self, plan: Plan, state: StateWord) -> list[str]:
        """Whose series goes on when `plan` has come to rest in that state."""
        return [visitor for visitor, plans in self._plans.items() if plan in plans] if state in _OVER else []
