"""An epsilon result in words: `findings(result)`, a headline per size; `explain(result)`, the current vector."""

import math
from typing import Final

import numpy as np

from qkdemo.floats.formats import dtype_name
from qkdemo.labs.epsilon.lab import Result, norm_dtype
from qkdemo.messages import say
from qkdemo.notation import written

NORMALISED: Final = 0.99  # share of the expected length from which a vector counts as normalised
TOO_LONG: Final = 1.02  # and up to which it does: bfloat16 leaves a per cent


def findings(result: Result) -> list[str]:
    """The headline at every size: how far the chosen rule normalises such a vector."""
    shares, settings = result.share[result.rule], result.settings
    return [
        say(f"epsilon.{_state(share)}", size=written(size), share=written(100 * share, 3), format=settings.format)
        for size, share in zip(result.sizes.tolist(), shares.tolist(), strict=True)
    ]


def explain(result: Result) -> list[str]:
    """How far the current vector is normalised, where that ends, the slope, and the zero vector."""
    settings, rule, at = result.settings, result.rule, result.at
    here = result.slope[rule, at]
    values = {
        "epsilon": written(settings.epsilon),
        "threshold": written(result.threshold, 3),
        "steepest": written(result.steepest, 3),
        "slope": written(here, 3),
        "most": written(_most(result), 3),
        "format": settings.format,
        "computed": dtype_name(norm_dtype(settings)),
    }
    lost = result.lost and settings.rule != "absent"
    slope = "undefined" if math.isnan(here) else "infinite" if math.isinf(here) else _stop(result)
    zero, steep = result.zero_output[rule], result.zero_slope[rule]
    there = "no_slope" if math.isnan(steep) else "infinite" if math.isinf(steep) else "fine"
    kind = "undefined" if math.isnan(zero) else there
    return [
        findings(result)[at],
        say(f"epsilon.{'lost' if lost else f'rule.{settings.rule}'}", **values),
        say(f"epsilon.slope.{slope}", **values),
        say(f"epsilon.zero.{kind}", slope=written(steep, 3)),
    ]


def _stop(result: Result) -> str:
    """What stops the slope as the vector shrinks: epsilon, the numbers of the format, or nothing.

    Below a root it is epsilon until no square is left: the root has no slope at 0.
    """
    slopes = result.slope[result.rule]
    ends, begins = (not np.isfinite(side).all() for side in (slopes[: result.at], slopes[result.at :]))
    if not result.threshold:
        return "endless"
    if result.settings.rule == "floored_root":
        return "squares_first" if ends and _most(result) < result.steepest / 2 else "squares"
    if ends:
        return "overflow_gap" if np.isfinite(slopes[0]) else "overflow"
    return "stopped_below" if begins else "stopped"


def _most(result: Result) -> float:
    """The largest slope at any size that is no ∞."""
    slopes = result.slope[result.rule]
    return float(slopes[np.isfinite(slopes)].max(initial=0))


def _state(share: float) -> str:
    if math.isfinite(share):
        return "short" if share <= NORMALISED else "normalised" if share <= TOO_LONG else "long"
    return "undefined" if math.isnan(share) else "overflow"
