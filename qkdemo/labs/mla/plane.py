"""What a map shows of the latent-attention lab: what a decoding step costs without QK norm and with it, absorbed."""

from typing import Final

from qkdemo.labs.lab import Plane, state_by_state
from qkdemo.labs.mla.costs import ReadingWord
from qkdemo.labs.mla.lab import Settings, cost
from qkdemo.messages import say

_READINGS: Final[dict[str, ReadingWord]] = {"left": "without_norm", "right": "absorbed"}


def _one(settings: Settings) -> dict[str, dict[str, float]]:
    costs = {role: cost(settings, word, settings.context) for role, word in _READINGS.items()}
    return {role: {"cache_bytes": float(each.cache_bytes), "flops": float(each.flops)} for role, each in costs.items()}


PLANE: Final = Plane(
    x="context",
    y="n_heads",
    measures={"flops": "log", "cache_bytes": "log"},
    sides=lambda settings: {role: say(f"choice.reading.{word}") for role, word in _READINGS.items()},
    read=state_by_state(_one),
)
