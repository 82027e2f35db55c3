"""How often one address may do something.

* `Limit(most, every_s)`: so many at once, and one more every so many seconds; `allows(address)`: whether once more;
* `here()`: the address of the visitor whose page is drawn.

A hall shares one address, so what a hall does in a minute has to pass. An IPv6 address stands for its network: whoever
has one has 2⁶⁴ of them. Addresses are forgotten as soon as they may do everything again, and never written down.
"""

import threading
import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

import streamlit as st

_MOST_KNOWN: Final = 10_000
_NETWORK: Final = 64  # bits of an IPv6 address that a provider gives


class Limit:
    """A bucket for each address, which fills again. Threads share it."""

    def __init__(self, most: int, every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._every_s, self._clock = most, every_s, clock
        self._full_at: dict[str, float] = {}  # when an address may do everything again
        self._lock = threading.Lock()

    def allows(self, address: str) -> bool:
        """Whether that address may do it now; if so, it has."""
        whose, now = network_of(address), self._clock()
        with self._lock:
            due = max(now, self._full_at.get(whose, now)) + self._every_s
            if due - now > self._most * self._every_s:
                return False
            if len(self._full_at) >= _MOST_KNOWN:
                self._full_at = {one: full for one, full in self._full_at.items() if full > now}
            self._full_at[whose] = due
            return True


def network_of(address: str) -> str:
    """What is one visitor's: an IPv4 address, however it is written, or the network of an IPv6 one.

    >>> network_of("::ffff:192.0.2.7"), network_of("2001:db8:1:2:3::4"), network_of("")
    ('192.0.2.7', '2001:db8:1:2::/64', '')
    """
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or ip_network((found, _NETWORK), strict=False))
    return str(found)


def here() -> str:
    """Where this visitor comes from; empty for this machine itself."""
    return st.context.ip_address or ""
