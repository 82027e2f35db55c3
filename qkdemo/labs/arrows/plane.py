"""What a map shows of the arrows: both sides over any two dials, lengths and angles among them."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from qkdemo.labs.arrows.lab import Settings, Side, run
from qkdemo.labs.lab import Columns, Plane, along
from qkdemo.messages import say

_ALONE: Final = 0.99  # of the attention, from which on one key counts as having it all


def _over_scales(settings: Settings, scales: Sequence[float]) -> dict[str, Columns]:
    found = run(settings, scales)
    return {"plain": _columns(found.plain), "norm": _columns(found.twin)}


def _columns(side: Side) -> Columns:
    return {
        "top_weight": side.shares.max(-1),
        "counting": side.counting,
        "entropy": side.entropy,
        "max_abs_logit": np.abs(side.logits).max(-1),
        "undefined_rows": np.isnan(side.shares).any(-1).astype(np.float64),
    }


PLANE: Final = Plane(
    x="scale",
    y="gain",
    measures={"top_weight": "share", "counting": "linear", "entropy": "linear", "max_abs_logit": "log"},
    sides=lambda settings: {"plain": say("variant.none.name"), "norm": say("variant.l2.name")},
    read=along("scale", _over_scales),
    swept="scale",
    marks={
        "alone": lambda side: side["top_weight"] >= _ALONE,
        "undefined": lambda side: side["undefined_rows"] > 0,
    },
)
