"""What a visitor has said on the way through a track, as one short text that a link can carry.

`power!,,8.5,!` says, stop by stop: chose `power` and saw the answer; nothing yet; estimates 8.5, not shown yet; saw
the answer without a prediction. Answers stand in the slots of their stops, not in the order of the track.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qkdemo.notation import plain
from qkdemo.tracks.stop import Choose, Stop

_SHOWN: Final = "!"
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")


@dataclass(frozen=True)
class Said:
    """What was predicted at a stop, and whether the answer has been shown."""

    guess: str | float | None = None
    shown: bool = False


Progress = tuple[Said, ...]  # one for each stop


def written_progress(progress: Progress, stops: Sequence[Stop]) -> str:
    """The text of a progress, short for one that has hardly begun."""
    parts = [""] * _slots(stops)
    for said, stop in zip(progress, stops, strict=True):
        parts[stop.slot] = _text(said)
    return ",".join(parts).rstrip(",")


def read_progress(text: str, stops: Sequence[Stop]) -> Progress:
    """The progress that `text` writes, in the order of `stops`; what is no answer to its stop is left out."""
    slots = _slots(stops)
    parts = [*text.split(",")[:slots], *[""] * slots]
    said = ((parts[stop.slot], stop) for stop in stops)
    return tuple(Said(_guess(part.removesuffix(_SHOWN), stop), part.endswith(_SHOWN)) for part, stop in said)


def _slots(stops: Sequence[Stop]) -> int:
    return 1 + max(stop.slot for stop in stops)


def with_said(progress: Progress, at: int, said: Said) -> Progress:
    """The same progress with another entry."""
    return (*progress[:at], said, *progress[at + 1 :])


def _text(said: Said) -> str:
    guess = "" if said.guess is None else said.guess if isinstance(said.guess, str) else plain(said.guess)
    return guess + (_SHOWN if said.shown else "")


def _guess(text: str, stop: Stop) -> str | float | None:
    if isinstance(stop.ask, Choose):
        return text if text in stop.ask.words else None
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if stop.ask.low <= number <= stop.ask.high else None
