"""What a worker says about its run besides the steps, and what the run's page then says.

* `take(live, told)`: a frame of a kind that changes no state: `unkept`, `kept`, `ceiling`; others are left alone.
"""

from collections.abc import Mapping
from typing import Any

from qkdemo.messages import later
from qkdemo.runs.workers.live import Live


def take(live: Live, told: Mapping[str, Any]) -> None:
    """The store failed, or takes it again; or the run has computed for as long as one may."""
    match told["kind"]:
        case "unkept":
            live.kept, live.notice = False, later("live.unkept", why=told["why"], step=told["step"])
        case "kept":
            live.kept, live.notice = True, ""
        case "ceiling":
            live.notice = later("live.ceiling", step=told["step"])
        case _:
            return
    live.version += 1
