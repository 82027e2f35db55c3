"""What a map shows of the epsilon lab: what the chosen rule leaves of a vector, over any two dials."""

from typing import Final

from qkdemo.labs.epsilon.lab import Settings, run
from qkdemo.labs.lab import Plane, state_by_state
from qkdemo.messages import say

_SHORT: Final = 0.9  # of the length that a normalised vector should have


def _one(settings: Settings) -> dict[str, dict[str, float]]:
    result = run(settings)
    at = result.rule, result.at
    return {"norm": {"length_share": float(result.share[at]), "gradient": float(result.slope[at])}}


PLANE: Final = Plane(
    x="size",
    y="epsilon",
    measures={"length_share": "share", "gradient": "log"},
    sides=lambda settings: {"norm": say(f"choice.rule.{settings.rule}")},
    read=state_by_state(_one),
    marks={"shortened": lambda side: side["length_share"] < _SHORT},
)
