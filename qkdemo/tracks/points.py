"""The points of the subject that the app teaches, by number; their sentences stand under `point.<number>`."""

from typing import Final

POINTS: Final = tuple(range(1, 36))
