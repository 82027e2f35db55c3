"""An error that happens again and again is logged once.

* `log_once()`: from now on; the tenth, the hundredth, the thousandth time say so in a line.

When descriptors run out, the event loop reports every connection that it could not take, with a traceback: hundreds of
thousands of lines in a minute, which fill a disk and hide what happened before them.
"""

import logging
from typing import Final

from qkdemo.messages import say

_WHOSE: Final = (
    "asyncio",
    "uvicorn.error",
    "streamlit.web.server.starlette.starlette_websocket",
    "streamlit.runtime.runtime",
)
_MOST: Final = 1000  # different ones that are remembered


class Repeats(logging.Filter):
    """Lets an error pass when it is new, and a line about it at every power of ten."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[object, ...], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        if record.levelno < logging.ERROR:
            return True
        key = (record.name, record.levelno, record.msg, _cause(record))
        if key not in self._seen and len(self._seen) >= _MOST:
            self._seen.pop(next(iter(self._seen)))
        times = self._seen[key] = self._seen.get(key, 0) + 1
        if times == 1:
            return True
        if str(times).strip("0") != "1":
            return False
        first = record.getMessage().splitlines()[0]
        record.msg, record.args = say("server.again", times=times, error=first), ()
        record.exc_info = record.exc_text = record.stack_info = None
        return True


def log_once() -> None:
    """Put it before the loggers of the server."""
    repeats = Repeats()
    for name in _WHOSE:
        logging.getLogger(name).addFilter(repeats)


def _cause(record: logging.LogRecord) -> tuple[object, ...]:
    error = record.exc_info[1] if record.exc_info else None
    return (type(error), error.errno) if isinstance(error, OSError) else (type(error), str(error))
