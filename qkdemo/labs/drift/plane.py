"""What a map shows of the drift lab: plain attention beside the remedy, over any two dials.

The two number formats of its lines are asked whatever format is chosen: where float16 loses the first score, and where
an entry of q or k is too large for float8_e4m3fn, in which keys are kept.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from qkdemo.floats.formats import ALL_FORMATS
from qkdemo.labs.drift.lab import Result, Settings, run, state_of
from qkdemo.labs.drift.scale_sweep import Side
from qkdemo.labs.drift.state import scores_at
from qkdemo.labs.drift.words import DECIDED
from qkdemo.labs.lab import Columns, Plane, along
from qkdemo.messages import say

_NEAR: Final = 0.01  # of a bound: who is no farther from it has reached it; a logit that overflows is far
_MEASURES: Final = ("entropy_fraction", "max_abs_logit", "top_weight", "softmax_slope", "entropy", "raw_lost")


def _over_scales(settings: Settings, scales: Sequence[float]) -> dict[str, Columns]:
    at = np.argsort(scales, kind="stable")
    back, ascending = np.argsort(at, kind="stable"), [scales[index] for index in at]
    found, halved = run(settings, ascending), run(settings.but(format="float16"), ascending)
    sides = {"plain": (found.plain, halved.plain), "norm": (found.twin, halved.twin)}
    if settings.variant == "none":
        del sides["norm"]
    return {role: _columns(found, side, half, back) for role, (side, half) in sides.items()}


def _columns(found: Result, side: Side, half: Side, order: NDArray[np.int64]) -> Columns:
    columns = {name: getattr(side, name) for name in _MEASURES}
    columns |= {
        "bound": np.full(len(found.scales), side.bound),
        "undefined_rows": side.undefined_rows,
        "lost_in_float16": half.raw_lost,
        "largest_entry": _largest_entry(found, side),
    }
    return {name: np.asarray(column, dtype=np.float64)[order] for name, column in columns.items()}


def _largest_entry(found: Result, side: Side) -> NDArray[np.float64]:
    """Of q and k as they enter the product."""
    settings = found.settings if side is found.twin else found.settings.but(variant="none", norm_in_format=False)
    if settings.variant in ("none", "softcap"):
        largest = max(float(x.abs().max()) for x in state_of(settings).base)
        return found.scales * largest
    made = scores_at(state_of(settings), torch.tensor(found.scales))
    size = torch.maximum(made.q.abs().amax((-3, -2, -1)), made.k.abs().amax((-3, -2, -1)))
    return size.double().cpu().numpy()


def _bounded(side: Columns) -> NDArray[np.bool_]:
    largest, bound = side["max_abs_logit"], side["bound"]
    with np.errstate(invalid="ignore"):  # ∞ − ∞, where nothing bounds what overflows
        near: NDArray[np.bool_] = np.isfinite(bound) & (np.abs(largest - bound) <= _NEAR * bound)
    return near


PLANE: Final = Plane(
    x="scale:0.1:1000",
    y="gain:0.1:100",
    measures={
        "entropy_fraction": "share",
        "max_abs_logit": "log",
        "top_weight": "share",
        "softmax_slope": "log",
        "entropy": "linear",
        "raw_lost": "share",
    },
    sides=lambda settings: {
        role: say(f"variant.{word}.name")
        for role, word in {"plain": "none", "norm": settings.variant}.items()
        if (role, word) != ("norm", "none")
    },
    read=along("scale", _over_scales),
    swept="scale",
    marks={
        "decided": lambda side: side["entropy_fraction"] < DECIDED,
        "bounded": _bounded,
        "float16": lambda side: side["lost_in_float16"] > 0,
        "float8": lambda side: side["largest_entry"] >= ALL_FORMATS["float8_e4m3fn"].limit,
        "undefined": lambda side: side["undefined_rows"] > 0,
    },
)
