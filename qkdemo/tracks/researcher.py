"""The researcher's track: definitions and bounds with their conditions, evidence and its limits."""

from typing import Final

from qkdemo.tracks.stop import Stop

STOPS: Final[tuple[Stop, ...]] = ()
