"""How a cache result is drawn: the table and the view that the exhibit component takes.

* `cache_exhibit(result)`: dragged along the decoding steps;
* `picked(settings, pick)`: the dials that a click in it sets.
"""

from typing import Any, Final, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.charts.axes import linear_axis
from qkdemo.charts.columns import gap, single, vectors, words
from qkdemo.charts.panels import Axis, Cells, Curves, PlainAxis, Role
from qkdemo.charts.spec import Drawn, Exhibit, Pick, Tile
from qkdemo.dials import Value
from qkdemo.floats.formats import beside_rounding
from qkdemo.labs.cache.decoding import WayWord
from qkdemo.labs.cache.lab import Result, Settings, run
from qkdemo.labs.cache.words import explain, findings
from qkdemo.messages import in_each_language, say
from qkdemo.notation import superscript

_WAYS: Final[tuple[WayWord, ...]] = get_args(WayWord)
_ROLES: Final[tuple[Role, Role]] = ("left", "right")
_TILES: Final = {"keys": "key_error", "logits": "logit_error", "weights": "weight_error"}
_AT_MOST: Final = 8  # ticks along the steps


def cache_exhibit(result: Result) -> Drawn:
    """Table and view."""
    return _table(result.settings.but(step=0)), _view(result)


def picked(settings: Settings, pick: Pick) -> dict[str, Value]:
    """The dials, by name, that a pick sets: a step of the curves, or the key of a bar."""
    if "dial" in pick:
        return {"step": round(pick["dial"])}
    return {"key": min(int(pick["key"]), settings.n_keys - 1)} if "key" in pick else {}


@in_each_language(64)
def _table(settings: Settings) -> pa.Table:
    result, steps = run(settings), range(settings.n_keys)
    _, head, key = result.shown
    floor = _floor(result)
    columns: dict[str, Any] = {
        "step": np.arange(settings.n_keys, dtype=np.float64),
        "step.text": [str(step) for step in steps],
        "finding": findings(result),
        "verdict": [_verdict(result)] * settings.n_keys,
    }
    for way in _WAYS:
        one = run(settings.but(way=way))
        columns[f"error.{way}"] = np.where(one.weight_error < one.noise, floor, np.maximum(one.weight_error, floor))
        columns[f"off.{way}"] = _gaps(one, one.weight_error)
    for name, field in _TILES.items():
        columns[f"tile.{name}"] = _gaps(result, getattr(result, field))
    sides = ((result.fresh_weights, result.fresh_channels), (result.cached_weights, result.cached_channels))
    for role, (weights, channels) in zip(_ROLES, sides, strict=True):
        columns[f"{role}.row"] = vectors(single(weights[head]))
        columns[f"{role}.channels"] = np.where(np.arange(settings.n_keys) < key, np.nan, channels[head, :, key])
    return pa.table(columns)


def _gaps(result: Result, errors: NDArray[np.float64]) -> list[str]:
    exact = result.label == "exact"  # bit for bit: what is 0 is 0 on any machine
    return [gap(x, 0.0 if exact else result.noise, 3) for x in errors.tolist()]


def _floor(result: Result) -> float:
    """Where the axis of errors writes 0: two decades under the least error there is that is more than rounding."""
    each = [run(result.settings.but(way=way)) for way in _WAYS]
    errors = np.concatenate([one.weight_error[one.weight_error > one.noise] for one in each])
    least: float = 10.0 ** (np.floor(np.log10(errors.min())) - 2) if errors.size else 1e-3
    return least


def _view(result: Result) -> Exhibit:
    step, head, key = result.shown
    names = [say("cache.fresh"), say("cache.cached")]
    last = result.settings.n_keys - 1
    x: PlainAxis = {"ticks": [(float(at), str(at)) for at in range(0, last + 1, max(1, -(-last // _AT_MOST)))]}
    tiles: list[Tile] = [
        {"label": say(f"cache.tile.{name}"), "lines": [{"role": "right", "column": f"tile.{name}"}]} for name in _TILES
    ]
    return {
        "dial": {
            "column": "step",
            "text": "step.text",
            "label": say("dial.step.label"),
            "at": float(step),
            "log": False,
        },
        "finding": "finding",
        "heading": 1,
        "tiles": [*tiles, {"label": say("cache.tile.verdict"), "lines": [{"role": "right", "column": "verdict"}]}],
        "panels": [
            _errors(result, x),
            _ways(result),
            {
                "kind": "bars",
                "title": say("cache.panel.bars", head=head),
                "subtitle": say("cache.axis.bars"),
                "wide": 6,
                "lines": [{"role": role, "column": f"{role}.row"} for role in _ROLES],
                "labels": [str(position) for position in range(last + 1)],
                "selected": key,
                "key_label": say("cache.key"),
            },
            {
                "kind": "curves",
                "title": say("cache.panel.channels", key=key),
                "subtitle": say("cache.axis.channels"),
                "wide": 6,
                "x": x,
                "y": _channel_axis(result, head, key),
                "lines": [
                    {"role": role, "column": f"{role}.channels", "label": name}
                    for role, name in zip(_ROLES, names, strict=True)
                ],
                "marks": [],
                "noise": beside_rounding(result.settings.format),
            },
        ],
        "words": words() | {"hint": say("cache.hint")},
        "alt": " ".join(explain(result)),
    }


def _errors(result: Result, x: PlainAxis) -> Curves:
    chosen = result.settings.way
    others = [way for way in _WAYS if way != chosen]
    return {
        "kind": "curves",
        "title": say("cache.panel.error"),
        "subtitle": say("cache.axis.error"),
        "wide": 5,
        "x": x,
        "y": _error_axis(_floor(result)),
        "lines": [
            {
                "role": "right" if way == chosen else "other",
                "column": f"error.{way}",
                "label": say(f"cache.short.{way}"),
                "texts": f"off.{way}",
            }
            for way in (chosen, *others)
        ],
        "marks": [],
        "noise": beside_rounding(result.settings.format),
    }


def _error_axis(floor: float) -> Axis:
    """From 0, at the foot, over the decades that there are, to 1."""
    lowest = round(np.log10(floor)) + 1
    powers = range(0, lowest - 1, -max(1, round(-lowest / 4)))
    ticks = [(10.0**power, f"10{superscript(power)}" if power else "1") for power in powers]
    return {"log": True, "domain": (floor, 1), "ticks": [(floor, "0"), *ticks]}


def _channel_axis(result: Result, head: int, key: int) -> Axis:
    most = max(float(channels[head, key:, key].max()) for channels in (result.fresh_channels, result.cached_channels))
    return linear_axis(0, most)


def _ways(result: Result) -> Cells:
    settings = result.settings
    return {
        "kind": "cells",
        "title": say("cache.panel.ways"),
        "wide": 7,
        "head": ["", {"text": say("cache.head.verdict")}, {"text": say("cache.head.off")}],
        "roles": [None, None, None],
        "rows": [
            [
                {"text": say(f"choice.way.{way}")},
                {"text": _verdict(run(settings.but(way=way)))},
                f"off.{way}",
            ]
            for way in _WAYS
        ],
        "strong": _WAYS.index(settings.way),
    }


def _verdict(result: Result) -> str:
    return say(f"cache.verdict.{result.label}", step=result.from_step)
