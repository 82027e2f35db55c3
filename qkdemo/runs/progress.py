"""What a training command leaves besides its report.

* `ProgressLine`: how far it is, on stderr;
* `write_whole(file, data)`: a file, or what stood there; `refuse_unwritable(file)`: asked before the work.
"""

import sys
import time
from pathlib import Path
from typing import Final

from qkdemo.dials import SettingsError
from qkdemo.messages import say

_BAR: Final = 24  # characters
_LINES: Final = 10  # how many are written where a line cannot be rewritten


class ProgressLine:
    """Called with run-steps done and to do: rewrites one line on a terminal, elsewhere writes ten."""

    def __init__(self, words: str = "command.progress") -> None:
        self._words = words
        self._begun: tuple[float, int] | None = None  # when it was first called, and what was done then
        self._written = -1

    def __call__(self, done: int, total: int) -> None:
        """Shows it; what is left only when something was done meanwhile, from which that is known."""
        now, said = time.monotonic(), say(self._words, done=done, total=total)
        began, first = self._begun = self._begun or (now, done)
        if first < done < total:
            left = (now - began) * (total - done) / (done - first)
            said = say("command.left", progress=said, left=round(left))
        full = round(_BAR * done / total)
        text = f"[{'#' * full}{'.' * (_BAR - full)}] {said}"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{text}\033[K" + ("\n" if done == total else ""))
        elif _LINES * done // total > self._written:
            self._written = _LINES * done // total
            sys.stderr.write(text + "\n")
        sys.stderr.flush()


def refuse_unwritable(file: str) -> None:
    """Raises SettingsError if `file` cannot be written: before the work, not after it. Leaves nothing behind."""
    path = Path(file)
    missing = not path.exists()
    try:
        with path.open("ab"):
            pass
        if missing:
            path.unlink()
    except OSError as error:
        raise SettingsError(say("command.unwritable", file=file, reason=error.strerror)) from error


def write_whole(file: str, data: bytes) -> str:
    """Writes `data` to `file`; returns a sentence if that fails, and leaves what stood there as it was."""
    path = Path(file).resolve()
    beside = path.with_name(path.name + ".part") if path.is_file() or not path.exists() else None
    try:
        (beside or path).write_bytes(data)
        if beside is not None:
            beside.replace(path)
    except OSError as error:
        if beside is not None:
            beside.unlink(missing_ok=True)
        return say("command.unwritable", file=file, reason=error.strerror or error)
    return ""
