"""Drift's curves over a dial, and their axes."""

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from qkdemo.charts.axes import log_axis, share_axis
from qkdemo.charts.panels import Axis, Curves, Line, PlainAxis, Role
from qkdemo.floats.formats import beside_rounding
from qkdemo.labs.drift.lab import Result
from qkdemo.messages import say
from qkdemo.notation import written

CURVES: Final = ("max_abs_logit", "entropy_fraction", "softmax_slope", "top_weight", "raw_lost", "logit_lost")
ROLES: Final[tuple[Role, Role]] = ("plain", "norm")


def curve(name: str, result: Result, x: PlainAxis, *, bound: str = "", **values: str) -> Curves:
    """Both sides of one measure, with what bounds it, if it is named; `values` go into its title."""
    sides = (result.plain, result.twin)
    lines: list[Line] = [
        {"role": role, "column": f"{role}.{name}", "label": say(f"variant.{side.variant}.short")}
        for role, side in zip(ROLES, sides, strict=True)
    ]
    if bound and math.isfinite(result.twin.bound):
        lines.append({"role": "bound", "column": "bound", "label": bound})
    return {
        "kind": "curves",
        "title": say(f"drift.panel.{name}", **values),
        "subtitle": say(f"drift.axis.{name}"),
        "wide": 6,
        "x": x,
        "y": _AXES[name](result),
        "lines": lines,
        "marks": [],
        "noise": beside_rounding(result.settings.format),
    }


def lost(result: Result, x: PlainAxis) -> Curves:
    """The share of raw products that the format loses, and of logits where that is another share."""
    panel = curve("raw_lost", result, x, format=result.settings.format) | {"wide": 4}
    sides = (result.plain, result.twin)
    if not any(share.any() for side in sides for share in (side.raw_lost, side.logit_lost)):
        panel["title"] = say("drift.panel.nothing_lost", format=result.settings.format)
    for role, side in zip(ROLES, sides, strict=True):
        if not np.array_equal(side.raw_lost, side.logit_lost):
            panel["lines"].append({"role": "other", "column": f"{role}.logit_lost", "label": say("drift.logits")})
        if result.scales[0] <= side.first_raw_loss <= result.scales[-1]:
            label = say("drift.first", scale=written(side.first_raw_loss))
            panel["marks"].append({"x": side.first_raw_loss, "label": label, "role": role})
    return panel


def _share_axis(_: Result) -> Axis:
    return share_axis()


def _logit_axis(result: Result) -> Axis:
    sizes = [side.max_abs_logit for side in (result.plain, result.twin)]
    values = np.concatenate([*sizes, [result.twin.bound]])
    return log_axis(values)


def _slope_axis(result: Result) -> Axis:
    """From 0 to the slope of even attention, which is the most there can be: (1/n)(1 − 1/n)."""
    n = result.settings.n_keys
    peak = max(np.nanmax(side.softmax_slope, initial=0) for side in (result.plain, result.twin))
    top = max((1 - 1 / n) / n, float(peak))
    return {"log": False, "domain": (0, top * 1.05), "ticks": [(x, written(x, 2)) for x in (0, top / 2, top)]}


_AXES: Final[dict[str, Callable[[Result], Axis]]] = {
    "max_abs_logit": _logit_axis,
    "entropy_fraction": _share_axis,
    "softmax_slope": _slope_axis,
    "top_weight": _share_axis,
    "raw_lost": _share_axis,
}
