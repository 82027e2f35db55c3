"""Who waits for a worker, in which order, and for how long.

* `Line`: the runs that wait; `in_order`: whose turn it is; `refusal`: why nobody more from there may wait;
* `waits(...)`: how long each of them waits; `shared(...)`: how long a run takes that shares its worker.

A run that others wait for gives its worker up after `TURN_S` and waits again, so that a short one is never behind a
long one. Who has had no turn yet goes before who has, unless that one has waited for `HANDICAP_S` longer.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import Final

from qkdemo.messages import say
from qkdemo.runs.workers.live import Live

TURN_S: Final = 10.0
HANDICAP_S: Final = 30.0
LONGEST: Final = 200
LONGEST_OF_ADDRESS: Final = 100  # a hall may stand behind one address, and must not fill the line for others
LONGEST_OF_VISITOR: Final = 3


class Line:
    """Whoever uses it holds the pool's lock."""

    def __init__(self) -> None:
        self._waiting: list[Live] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Live]:
        return iter(self.in_order())

    def join(self, live: Live, now: float) -> None:
        """It waits from now on."""
        live.state, live.queued_at = "queued", now
        live.version += 1
        self._waiting.append(live)

    def leave(self, live: Live) -> None:
        """It waits no more, if it did."""
        if live in self._waiting:
            self._waiting.remove(live)

    def in_order(self) -> list[Live]:
        """The one whose turn is next, and those behind it."""
        return sorted(self._waiting, key=lambda live: live.queued_at + (HANDICAP_S if live.turns else 0))

    def refusal(self, visitor: str, address: str) -> str:
        """Why a run that this visitor asks for cannot wait too; nothing if it can."""
        if len(self._waiting) >= LONGEST:
            return say("live.full", count=LONGEST)
        if sum(live.asked[0] == visitor for live in self._waiting) >= LONGEST_OF_VISITOR:
            return say("live.full_visitor", count=LONGEST_OF_VISITOR)
        if address and sum(live.asked[1] == address for live in self._waiting) >= LONGEST_OF_ADDRESS:
            return say("live.full_address", count=LONGEST_OF_ADDRESS)
        return ""


def waits(busy: Sequence[float], needs: Sequence[float]) -> list[float]:
    """Seconds until each run in line has a worker.

    `busy`: how long each worker is still taken by the one it has; `needs`: what the runs in line still compute.

    >>> waits([4.0], [25.0, 1.0, 1.0])
    [4.0, 14.0, 15.0]
    """
    free = list(busy)
    heapq.heapify(free)
    found = []
    for need in needs:
        at = heapq.heappop(free)
        found.append(at)
        heapq.heappush(free, at + min(need, TURN_S))
    return found


def shared(mine: float, others: Sequence[float], workers: int) -> float:
    """Seconds until a run that still computes for `mine` is finished, if it takes turns with `others`.

    >>> shared(20.0, [5.0, 100.0], 1)
    45.0
    """
    return max(mine, (mine + sum(min(mine, other) for other in others)) / workers)
