"""The beginner's track: no formula, from two arrows to the one dial that buys sharpness back."""

from typing import Final

from qkdemo.labs import drift
from qkdemo.notation import written
from qkdemo.tracks.stop import Choose, Estimate, Evidence, Stop, closest

FRESH: Final = drift.Settings(scale=1)


def _growth(found: drift.Result) -> Evidence:
    before = drift.run(FRESH, [FRESH.scale]).plain.max_abs_logit[0]
    after = found.plain.max_abs_logit[found.at]
    ratio = after / before
    k = found.settings.scale / FRESH.scale
    answer = closest(ratio, {"same": 1, "times": k, "twice": 2 * k, "square": k * k})
    return Evidence(answer, {"before": written(before), "after": written(after), "ratio": written(ratio)})


def _winner(found: drift.Result) -> Evidence:
    top = found.plain.top_weight[found.at]
    fresh = drift.run(FRESH, [FRESH.scale]).plain.top_weight[0]
    return Evidence(float(top), {"top": written(100 * top, 3), "fresh": written(100 * fresh, 3)})


STOPS: Final = (
    Stop(
        name="growth",
        lab=drift,
        start=FRESH,
        state=FRESH.but(scale=8),
        ask=Choose(("same", "times", "twice", "square")),
        evidence=_growth,
        points=(1, 2),
        focus="max_abs_logit",
    ),
    Stop(
        name="winner",
        lab=drift,
        start=FRESH,
        state=FRESH.but(scale=8),
        ask=Estimate(0.05, 1, "plain.top_weight"),
        evidence=_winner,
        points=(3,),
        focus="top_weight",
    ),
)
