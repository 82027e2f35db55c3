"""What a map shows of the rotary lab: both orders over any two dials."""

from typing import Final

from qkdemo.labs.lab import Plane, state_by_state
from qkdemo.labs.rope.lab import Settings, run
from qkdemo.messages import say

_ROUNDING: Final = 1e-9  # relative, above a bound


def _one(settings: Settings) -> dict[str, dict[str, float]]:
    result = run(settings)
    return {
        role: {
            "max_abs_logit": float(order.largest[result.at]),
            "logit": float(order.logit[result.at]),
            "lengths": float(order.length[result.at]),
            "bound": result.bound_naive,
        }
        for role, order in (("left", result.norm_rotary), ("right", result.rotary_norm))
    }


PLANE: Final = Plane(
    x="position",
    y="distance",
    measures={"logit": "linear", "max_abs_logit": "log", "lengths": "log"},
    sides=lambda settings: {"left": say("choice.order.norm_rotary"), "right": say("choice.order.rotary_norm")},
    read=state_by_state(_one),
    marks={"above_simple_bound": lambda side: side["max_abs_logit"] > side["bound"] * (1 + _ROUNDING)},
)
