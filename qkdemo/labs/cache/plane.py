"""What a map shows of the cache lab: errors of decoding with the cache, over any two dials."""

from typing import Final

from qkdemo.labs.cache.lab import Settings, run
from qkdemo.labs.lab import Plane, state_by_state
from qkdemo.messages import say


def _one(settings: Settings) -> dict[str, dict[str, float]]:
    result = run(settings)
    step = result.shown[0]
    errors = {name: float(getattr(result, name)[step]) for name in ("weight_error", "logit_error", "key_error")}
    return {"right": errors | {"wrong": float(result.label == "wrong")}}


PLANE: Final = Plane(
    x="gain_spread",
    y="head_spread",
    measures={"logit_error": "log", "weight_error": "share", "key_error": "log"},
    sides=lambda settings: {"right": say(f"choice.way.{settings.way}")},
    read=state_by_state(_one),
    marks={"another_function": lambda side: side["wrong"] > 0},
)
