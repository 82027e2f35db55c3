"""Whether a page that asks for a stream comes from this server.

* `ask_nobody()`: keeps Streamlit from asking a machine elsewhere for this one's public address, to compare it.

A foreign page would make it ask, and every visitor wait for the answer. At the start it has asked already, to print
that address: before this application is loaded, which cannot change it.
"""

from streamlit import net_util


def ask_nobody() -> None:
    """Let the public address be unknown."""
    vars(net_util)["get_external_ip"] = lambda: None
