"""How often one address may do something.

* `Limit(most, every_s)`: so many at once, and one more every so many seconds; `allows(address)`: whether once more.

A hall shares one address, so what a hall does in a minute has to pass. Addresses are those of `serving.networks`. They
are forgotten as soon as they may do everything again.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

_MOST_KNOWN: Final = 10_000
_ROUNDING_S: Final = 1e-6  # of sums of seconds since the machine started


class Limit:
    """A bucket for each address, which fills again. Threads share it."""

    def __init__(self, most: int, every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._every_s, self._clock = most, every_s, clock
        self._full_at: dict[str, float] = {}  # when an address may do everything again
        self._lock = threading.Lock()

    def allows(self, address: str) -> bool:
        """Whether that address may do it now; if so, it has."""
        now = self._clock()
        with self._lock:
            wait = max(self._full_at.get(address, now) - now, 0.0)
            if wait > (self._most - 1) * self._every_s + _ROUNDING_S:
                return False
            if len(self._full_at) >= _MOST_KNOWN:
                self._full_at = {one: full for one, full in self._full_at.items() if full > now}
            self._full_at[address] = now + wait + self._every_s
            return True
