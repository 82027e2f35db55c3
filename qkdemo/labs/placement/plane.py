"""What a map shows of the placement lab: how far the two pipelines are apart, over any two dials."""

from typing import Final

from qkdemo.labs.lab import Plane, state_by_state
from qkdemo.labs.placement.diagnosis import EXACT
from qkdemo.labs.placement.lab import Settings, run
from qkdemo.messages import say

_NUMBERS: Final = ("relative_score_error", "relative_raw_error", "largest_weight_difference", "relative_output_error")


def _one(settings: Settings) -> dict[str, dict[str, float]]:
    result = run(settings)
    numbers = {name: float(getattr(result, name)) for name in _NUMBERS}
    exactly = result if settings.format == "float64" else run(settings.but(format="float64"))
    same = result.verdict.cause == "same" and exactly.relative_output_error < EXACT  # the verdict is of logits alone
    return {"right": numbers | {"same": float(same)}}


PLANE: Final = Plane(
    x="gain_spread",
    y="head_spread",
    measures={
        "relative_score_error": "log",
        "largest_weight_difference": "share",
        "relative_output_error": "log",
        "relative_raw_error": "log",
    },
    sides=lambda settings: {"right": say("map.side.apart")},
    read=state_by_state(_one),
    marks={"another_function": lambda side: side["same"] == 0},
)
