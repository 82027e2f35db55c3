"""Where other devices find this server.

* `reachable(address)`: an address that names this machine only to itself, as the machine's network knows it.

Nothing is sent: the system is asked from which of its own addresses it would send.
"""

import socket
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import streamlit as st

LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_EVERYWHERE: Final = frozenset({None, "", "0.0.0.0", "::"})  # noqa: S104 (read, not bound)
_OUTSIDE: Final = "192.0.2.1"  # an address of no machine: RFC 5737, section 3


def reachable(address: str) -> str:
    """The address with this machine's own in its network; as it is if it names another machine, or nothing is known."""
    parts = urlsplit(address)
    listens = st.get_option("server.address") in _EVERYWHERE
    own = own_address() if parts.hostname in LOCAL and listens and _beside(st.context.ip_address) else None
    return address if own is None else urlunsplit(parts._replace(netloc=f"{own}:{parts.port}" if parts.port else own))


def _beside(visitor: str | None) -> bool:
    """Whether the browser runs on this machine, not on one that forwards a port of its own here."""
    return visitor in (None, "::ffff:127.0.0.1")  # Streamlit writes None for the usual loopback addresses


def own_address() -> str | None:
    """This machine's address in its network; None if it is in none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect((_OUTSIDE, 9))  # of a datagram's socket: chooses a route, sends nothing
        except OSError:
            return None
        own = ip_address(asked.getsockname()[0])
    return None if own.is_loopback or own.is_unspecified else str(own)
