"""Statements found in tutorials and interviews, put to the test."""

from typing import Final

from qkdemo.tracks.stop import Stop

STOPS: Final[tuple[Stop, ...]] = ()
