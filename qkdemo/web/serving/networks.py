"""Where a visitor comes from, as far as limits are about it: one notion for pages, streams and whatever is counted.

* `network_of(host)`: what is one visitor's; `here()`: of the visitor whose page is drawn; `address_in(request)`: of one
  that asks for something else.

A hall shares one address. An IPv6 address stands for its network: whoever has one has 2⁶⁴ of them. This machine itself
has none: no limit of streams or waiting runs for each address holds for it. They are never written down.
"""

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

import streamlit as st
from starlette.requests import Request

_NETWORK: Final = 64  # bits of an IPv6 address that a provider gives


def network_of(host: str) -> str:
    """An IPv4 address, however it is written, or the network of an IPv6 one; empty for this machine itself.

    >>> network_of("::ffff:192.0.2.7"), network_of("2001:db8:1:2:3::4"), network_of("::1"), network_of("")
    ('192.0.2.7', '2001:db8:1:2::/64', '', '')
    """
    try:
        found = ip_address(host)
    except ValueError:
        return host
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or found
    if found.is_loopback:
        return ""
    return str(ip_network((found, _NETWORK), strict=False)) if isinstance(found, IPv6Address) else str(found)


def here() -> str:
    """Of the visitor whose page is drawn."""
    return network_of(st.context.ip_address or "")


def address_in(request: Request) -> str:
    """Of whoever sent `request`."""
    return network_of(request.client.host) if request.client is not None else ""
