"""What a map shows of the sphere: how much of it is decided, and the query's largest weight, over any two dials."""

from typing import Final

from qkdemo.labs.lab import Plane, state_by_state
from qkdemo.labs.sphere.lab import Settings, run
from qkdemo.messages import say


def _one(settings: Settings) -> dict[str, dict[str, float]]:
    result = run(settings)
    return {
        role: {
            "decided_share": side.decided,  # of a query that has a length, as the page has it
            "top_weight": float(side.weights.max()),
            "logit": float(side.logits[result.shown]),
        }
        for role, side in (("plain", result.plain), ("norm", result.twin))
    }


PLANE: Final = Plane(
    x="scale:0.1:100",
    y="gain:0.1:100",
    measures={"decided_share": "share", "top_weight": "share", "logit": "linear"},
    sides=lambda settings: {"plain": say("variant.none.name"), "norm": say("variant.l2.name")},
    read=state_by_state(_one),
    marks={"half_decided": lambda side: side["decided_share"] >= 0.5},
)
