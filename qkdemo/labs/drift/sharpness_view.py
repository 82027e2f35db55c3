"""How a gain's, a divisor's or a cap's own dial is drawn: what it buys back."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from qkdemo.charts.axes import decades
from qkdemo.charts.columns import percent, reading, words
from qkdemo.charts.panels import PlainAxis
from qkdemo.charts.spec import Drawn, Exhibit
from qkdemo.labs.drift.curves import CURVES, curve
from qkdemo.labs.drift.lab import Result, Sharpness
from qkdemo.messages import in_each_language, say
from qkdemo.notation import written


def sharpness_exhibit(sharpness: Sharpness, result: Result) -> Drawn:
    """Table and view of the exhibit that is dragged along the variant's own dial."""
    plain = tuple(float(getattr(result.plain, name)[result.at]) for name in CURVES[:4])
    shared = result.settings.own is None  # else nothing stays of it
    table, findings = (_kept_sharpness_table if shared else _sharpness_table)(sharpness, plain)
    at = float(getattr(result.settings, sharpness.dial))
    x: PlainAxis = {"ticks": decades(sharpness.values[0], sharpness.values[-1])}
    bound = say("sharpness.bound")  # another one at each place of the dial
    view: Exhibit = {
        "dial": {
            "column": "value",
            "text": "text",
            "label": say(f"dial.{sharpness.dial}.label"),
            "at": at,
            "log": True,
        },
        "finding": "finding",
        "heading": 3,
        "tiles": [],
        "panels": [
            curve(name, result, x, bound=bound if name == "max_abs_logit" else "")
            | {"title": say(f"sharpness.panel.{name}")}
            for name in CURVES[:4]
        ],
        "words": words(),
        "alt": findings[int(np.argmin(np.abs(sharpness.values - at)))],
    }
    return table, view


def _sharpness_table(sharpness: Sharpness, plain: Sequence[float]) -> tuple[pa.Table, list[str]]:
    """The table, beside what plain attention has in each of the four curves; and its findings."""
    n = len(sharpness.values)
    columns: dict[str, Any] = {"value": sharpness.values, "bound": sharpness.bound}
    for name, level in zip(CURVES[:4], plain, strict=True):
        columns[f"norm.{name}"] = getattr(sharpness, name)
        columns[f"plain.{name}"] = np.full(n, level)
    label = say(f"dial.{sharpness.dial}.label")
    columns["text"] = [written(value) for value in sharpness.values]
    columns["finding"] = [
        _finding(label, *each)
        for each in zip(columns["text"], sharpness.entropy_fraction, sharpness.top_weight, strict=True)
    ]
    return pa.table(columns), columns["finding"]


def _finding(label: str, value: str, fraction: float, top: float) -> str:
    kind = "undefined" if math.isnan(top) else "one_key" if math.isnan(fraction) else "finding"
    return say(f"sharpness.{kind}", dial=label, value=value, fraction=percent(fraction), top=reading(top))


_kept_sharpness_table: Final = in_each_language(64)(_sharpness_table)
