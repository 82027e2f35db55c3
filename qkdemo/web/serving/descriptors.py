"""How many files and connections this process may have open.

* `raise_limit()`: as many as the system lets it ask for; returns how many that are;
* `too_few(limit)`: a sentence, if that is less than a hall needs.

A tab holds four descriptors (its socket and what it loads), and one more while it watches a run. Many systems begin a
process with 1,024, of which two hundred tabs that are loaded anew take more.
"""

from contextlib import suppress
from typing import Final

from qkdemo.messages import say

HALL: Final = 200  # visitors that one process carries
OF_A_TAB: Final = 5
_OF_THE_SERVER: Final = 100  # libraries, the store, workers, what listens
_OF_MACOS: Final = 10_240  # OPEN_MAX: as many as it gives a process whose hard limit is infinite


def raise_limit() -> int | None:
    """The number of descriptors there may be from now on; None where the system has no such limit, or says none."""
    try:
        import resource  # noqa: PLC0415  Windows has none
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, max(soft, _OF_MACOS)):
        with suppress(OSError, ValueError):  # macOS has a lower limit than the one it tells, and says so only now
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
            break
    return None if soft == resource.RLIM_INFINITY else soft


def too_few(limit: int | None) -> str:
    """What whoever starts the server has to know, in a line; empty if the limit is high enough."""
    if limit is None or limit >= _OF_THE_SERVER + HALL * OF_A_TAB:
        return ""
    return say("server.descriptors", limit=limit, visitors=max(0, limit - _OF_THE_SERVER) // OF_A_TAB, hall=HALL)
