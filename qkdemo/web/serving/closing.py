"""How the server ends: within three seconds after Ctrl-C or SIGTERM, also while runs are watched.

* `lifespan`: what `st.App` has around its life; from the signal on the streams say that the server is restarting, and
  end; the workers write what they have, and end.

The server behind Streamlit waits for every answer that is under way, and the stream of a run has no end of its own.
What does not end by itself in time (a client that does not read, a thread in the store) is left behind.
"""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Final

from qkdemo.messages import say
from qkdemo.web.components import register
from qkdemo.web.training import stream as live

GRACE_S: Final = 2.0  # from the signal until what still goes on is left behind
_WORKERS_S: Final = 1.0  # for them to end, after the streams have
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """From the start of the server to its end."""
    register()
    loop = asyncio.get_running_loop()
    with _heard(lambda: loop.call_soon_threadsafe(live.farewell)):
        yield
    live.close_pool(_WORKERS_S)


@contextmanager
def _heard(begin: Callable[[], object]) -> Iterator[None]:
    """While it lasts the first signal also calls `begin`, before whoever heeded signals until now hears of it."""
    if threading.current_thread() is not threading.main_thread():  # a test's server hears no signals
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    told = threading.Event()

    def hear(number: int, frame: FrameType | None) -> None:
        if not told.is_set():
            told.set()
            _leave_behind_after(GRACE_S, number)
            begin()
        heeded = before[signal.Signals(number)]
        if callable(heeded):
            heeded(number, frame)

    for number in _SIGNALS:
        signal.signal(number, hear)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave_behind_after(seconds: float, number: int) -> None:
    def leave() -> None:
        logging.getLogger(__name__).warning(say("server.left_behind"))
        live.close_pool(0.0)
        os._exit(128 + number)

    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    timer.start()
