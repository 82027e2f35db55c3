"""Runs that visitors want one after another.

* `Series`: which ones, for whom, and whether they are still there. It starts nothing itself.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

from qkdemo.runs.live import StateWord
from qkdemo.runs.plan import Plan

_ABSENT_S: Final = 60.0  # after which nothing more of a series is started
_OVER: Final = ("finished", "lost")  # states after which the next one comes


class Series:
    """At most one series for each visitor. Whoever uses it holds the pool's lock."""

    def __init__(self) -> None:
        self._plans: dict[str, tuple[Plan, ...]] = {}
        self._seen: dict[str, float] = {}

    def begin(self, visitor: str, plans: Sequence[Plan]) -> None:
        """That visitor wants these plans, in order, and nothing that they wanted before."""
        self._plans[visitor] = tuple(plans)
        self._seen[visitor] = time.monotonic()

    def drop(self, visitor: str) -> None:
        """That visitor wants none any more."""
        self._plans.pop(visitor, None)
        self._seen.pop(visitor, None)

    def __contains__(self, visitor: str) -> bool:
        return visitor in self._plans

    def attend(self, visitor: str) -> None:
        """That visitor is still there."""
        if visitor in self._plans:
            self._seen[visitor] = time.monotonic()

    def next_of(self, visitor: str, state_of: Callable[[Plan], StateWord | None]) -> Plan | None:
        """The first plan that is not over; None, and the series is forgotten, if all are or the visitor has gone."""
        if time.monotonic() - self._seen.get(visitor, -_ABSENT_S) < _ABSENT_S:
            for plan in self._plans[visitor]:
                if state_of(plan) not in _OVER:
                    return plan
        self.drop(visitor)
        return None

    def wanting(self, plan: Plan, state: StateWord) -> list[str]:
        """Whose series goes on when `plan` has come to rest in that state."""
        return [visitor for visitor, plans in self._plans.items() if plan in plans] if state in _OVER else []
