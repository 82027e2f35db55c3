"""The developer's track: the table, the code, the mistakes, and what to log."""

from typing import Final

from qkdemo.tracks.stop import Stop

STOPS: Final[tuple[Stop, ...]] = ()
