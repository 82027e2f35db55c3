"""What a map shows of the cost lab: the share of operations that a norm adds, over any two dials."""

from typing import Final

from qkdemo.labs.cost.lab import PartWord, Settings, run
from qkdemo.labs.lab import Plane, state_by_state
from qkdemo.messages import say

_PARTS: Final[dict[str, PartWord]] = {"left": "softcap", "norm": "rms"}
_NOTICED: Final = 0.01  # of the operations


def _one(settings: Settings) -> dict[str, dict[str, float]]:
    parts = {part.part: part for part in run(settings).parts}
    return {
        role: {"operations_share": parts[word].share, "bytes_moved": float(parts[word].bytes_moved)}
        for role, word in _PARTS.items()
    }


PLANE: Final = Plane(
    x="n_keys",
    y="d_head",
    measures={"operations_share": "log", "bytes_moved": "log"},
    sides=lambda settings: {role: say(f"choice.part.{word}") for role, word in _PARTS.items()},
    read=state_by_state(_one),
    marks={"noticed": lambda side: side["operations_share"] >= _NOTICED},
)
