"""How a drift result is drawn: the tables and views that the exhibit component takes.

* `drift_exhibit(result)`: the main exhibit, dragged along the weight scale;
* `picked(settings, pick)`: the dials that a click in the main exhibit sets.

Here, and nowhere else, the lab's numbers become texts and colour codes. Tables do not depend on where the
cursor stands, so they are made once for all visitors.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.attention.variants import VARIANTS
from qkdemo.charts.axes import decades
from qkdemo.charts.columns import codes, reading, readings, single, span, vectors, words
from qkdemo.charts.panels import Arrows, Bars, Cells, Entry, Heat, PlainAxis, Pooled, Role, Text
from qkdemo.charts.spec import Drawn, Exhibit, Pick, Tile
from qkdemo.dials import Value
from qkdemo.labs.drift.curves import CURVES, ROLES, curve, lost
from qkdemo.labs.drift.lab import Result, Settings, run
from qkdemo.labs.drift.scale_sweep import SHOWN_BARS, SHOWN_CELLS, Side, arm_keys
from qkdemo.labs.drift.words import explain, findings
from qkdemo.messages import in_each_language, language, say
from qkdemo.notation import written

_ROUNDED: Final = 0.02  # of a bound: what rounding to 16 bits adds to a logit
_REACH: Final = 3  # the frame of the arrows is three times as wide as arms at scale 1 are long


def drift_exhibit(result: Result) -> Drawn:
    """Table and view of the main exhibit."""
    settings, scales = result.settings.but(scale=1), tuple(result.scales)
    if settings.own is None:
        return _kept_table(settings, scales), _drift_view(result)
    key = ("table", language.get(), settings, scales)
    return settings.own.once(key, lambda: _drift_table(settings, scales)), _drift_view(result)


def _drift_table(settings: Settings, scales: tuple[float, ...]) -> pa.Table:
    """The table for these scales; `settings.scale` is not read."""
    result = run(settings, scales)
    texts = [f"×{written(scale)}" for scale in scales]
    columns = _kept_columns if settings.own is None else _side_columns
    return pa.table(
        {
            "scale": np.array(scales),
            "scale.text": texts,
            "finding": findings(result),
            "bound": np.full(len(scales), result.twin.bound),
            **{f"plain.{name}": column for name, column in columns(result.plain).items()},
            **{f"norm.{name}": column for name, column in columns(result.twin).items()},
        }
    )


_kept_table: Final = in_each_language(64)(_drift_table)


def _side_columns(side: Side) -> dict[str, Any]:
    """A side's columns."""
    texts = {name: readings(getattr(side, name)) for name in ("max_abs_logit", "softmax_slope")}
    pair = {name: readings(getattr(side, name)) for name in ("q_norm", "k_norm", "cosine", "logit")}
    logits = texts["max_abs_logit"]
    if math.isfinite(side.bound):
        sizes = zip(logits, side.max_abs_logit.tolist(), strict=True)
        logits = [
            f"{logit} {_beside(size, side.bound)} {written(side.bound)}" if math.isfinite(size) else logit
            for logit, size in sizes
        ]
    return {
        **{name: single(getattr(side, name)) for name in CURVES},
        "arm": single(side.q_norm),
        "arm.text": [say("drift.ring", length=length) for length in pair["q_norm"]],
        "arms": vectors(single(side.arms)),
        "angles": vectors(np.nan_to_num(side.angles).astype(np.float32)),
        "row": vectors(single(np.where(side.row < 0, 0, side.row))),
        "heat": vectors(codes(side.weights)),
        "tile.norms": readings(side.q_norm * side.k_norm),
        "tile.logit": logits,
        "tile.entropy": [
            say("drift.of", part=written(part, 3), most=written(most, 3)) if math.isfinite(part) else reading(part)
            for part, most in zip(side.entropy.tolist(), side.most_entropy.tolist(), strict=True)
        ],
        "tile.slope": texts["softmax_slope"],
        **{f"pair.{name}": written_out for name, written_out in pair.items()},
    }


def _beside(size: float, bound: float) -> str:
    """How a logit stands to its bound, which a narrow format may round it to just above, and a norm in it far above."""
    return "≤" if size <= bound else "≈" if size <= bound * (1 + _ROUNDED) else ">"


_kept_columns: Final = in_each_language(128)(_side_columns)  # the same side is the same object


def picked(settings: Settings, pick: Pick) -> dict[str, Value]:
    """The dials, by name, that a pick in the main exhibit sets: cells and bars may stand for several keys."""
    if "dial" in pick:
        return {"scale": pick["dial"]}
    n, last = settings.n_keys, settings.n_keys - 1
    if "query" in pick:
        width = math.ceil(n / SHOWN_CELLS)
        return {name: min(int(pick[name]) * width, last) for name in ("query", "key") if name in pick}
    if "key" in pick:
        return {"key": min(int(pick["key"]) * math.ceil(n / SHOWN_BARS), last)}
    return {}


def _drift_view(result: Result) -> Exhibit:
    settings = result.settings
    head, query, key = result.shown
    x: PlainAxis = {"ticks": decades(result.scales[0], result.scales[-1], sign="×")}
    names = [say(f"variant.{side.variant}.short") for side in (result.plain, result.twin)]
    bound = say("drift.bound", bound=written(result.twin.bound))
    tiles = ("norms", "logit", "entropy", "slope")
    scale_tile: Tile = {
        "label": say("drift.tile.scale"),
        "lines": [{"role": role, "column": "scale.text"} for role in ROLES],
    }
    view: Exhibit = {
        "dial": {
            "column": "scale",
            "text": "scale.text",
            "label": say("dial.scale.label"),
            "at": settings.scale,
            "log": True,
        },
        "finding": "finding",
        "heading": 1,
        "tiles": [
            scale_tile,
            *(
                Tile(
                    label=say(f"drift.tile.{name}"),
                    lines=[{"role": role, "column": f"{role}.tile.{name}"} for role in ROLES],
                )
                for name in tiles
            ),
        ],
        "panels": [
            *(curve(name, result, x, bound=bound if name == "max_abs_logit" else "") for name in CURVES[:4]),
            *(
                _heat(role, say("drift.panel.heat", variant=name), side, query, key)
                for role, name, side in zip(ROLES, names, (result.plain, result.twin), strict=True)
            ),
            _bars(result, names, query, key),
            _cells(result, names, query, key),
            *(
                _arrows(role, say("drift.panel.arrows", variant=name), side, result.scales, key)
                for role, name, side in zip(ROLES, names, (result.plain, result.twin), strict=True)
            ),
            lost(result, x),
        ],
        "words": words(),
        "alt": " ".join(explain(result)),
    }
    if settings.n_heads > 1:  # curves and tiles are of all heads, the other pictures of one
        for panel in view["panels"]:
            if panel["kind"] != "curves":
                panel["title"] = say("drift.panel.of_head", title=panel["title"], head=head)
    return view


def _heat(role: Role, title: str, side: Side, query: int, key: int) -> Heat:
    rows, columns = side.weights.shape[-2:]
    width = math.ceil(side.n_keys / SHOWN_CELLS)
    panel: Heat = {
        "kind": "heat",
        "title": title,
        "subtitle": say("drift.axis.heat", width=width) if width > 1 else "",
        "wide": 3,
        "role": role,
        "column": f"{role}.heat",
        "rows": rows,
        "columns": columns,
        "selected": (query // width, key // width),
        "query_label": say("drift.query"),
        "key_label": say("drift.key"),
    }
    if width > 1:
        panel["pooled"] = _pooled(width, side.n_keys)
    return panel


def _bars(result: Result, names: Sequence[str], query: int, key: int) -> Bars:
    n, shown = result.settings.n_keys, result.plain.row.shape[-1]
    width = math.ceil(n / SHOWN_BARS)
    pooled = _pooled(width, n)
    panel: Bars = {
        "kind": "bars",
        "title": say("drift.panel.bars", query=query),
        "subtitle": say("drift.axis.bars", width=width) if width > 1 else "",
        "wide": 3,
        "lines": [
            {"role": role, "column": f"{role}.row", "label": name} for role, name in zip(ROLES, names, strict=True)
        ],
        "labels": [span(bar, pooled) for bar in range(shown)],
        "selected": key // width,
        "key_label": say("drift.key"),
    }
    if width > 1:
        panel["pooled"] = pooled
    return panel


def _pooled(each: int, of: int) -> Pooled:
    return {"each": each, "of": of, "queries": say("drift.queries"), "keys": say("drift.keys")}


def _cells(result: Result, names: Sequence[str], query: int, key: int) -> Cells:
    factors = [Text(text=_factor_in_words(result, side)) for side in (result.plain, result.twin)]
    masked = result.settings.causal and key > query
    logits: list[Entry] = [{"text": say("drift.masked")} if masked else f"{role}.pair.logit" for role in ROLES]
    labels = {"q_norm": "‖q‖", "k_norm": "‖k‖", "cosine": "cos θ"}
    rows: list[list[Entry]] = [[label, *(f"{role}.pair.{name}" for role in ROLES)] for name, label in labels.items()]
    return {
        "kind": "cells",
        "title": say("drift.panel.cells", query=query, key=key),
        "wide": 3,
        "head": ["", *names],
        "roles": [None, *ROLES],
        "rows": [
            *rows,
            [say("drift.factor"), *factors],
            [say("drift.logit"), *logits],
        ],
        "strong": len(rows) + 1,
    }


def _factor_in_words(result: Result, side: Side) -> str:
    variant = VARIANTS[side.variant]
    kind = "softcap" if variant.capped else variant.dial if variant.dial in ("gain", "temperature") else "root"
    return say(f"factor.{kind}", d=result.settings.d_head, factor=written(side.factor))


def _arrows(role: Role, title: str, side: Side, scales: NDArray[np.float64], key: int) -> Arrows:
    usual = float(side.q_norm[int(np.argmin(np.abs(scales - 1)))])
    steady = bool(np.ptp(side.q_norm[scales >= 1]) < 1e-3 * usual)
    keys, said = arm_keys(side.n_keys, key), say("drift.axis.arrows")
    some = len(keys) < side.n_keys
    panel: Arrows = {
        "kind": "arrows",
        "title": title,
        "subtitle": say("drift.axis.some_arrows", shown=len(keys), said=said) if some else said,
        "wide": 4,
        "role": role,
        "angles": f"{role}.angles",
        "lengths": f"{role}.arms",
        "query": f"{role}.arm",
        "selected": keys.index(key),
        "reach": _REACH * usual if math.isfinite(usual) and usual > 0 else 1.0,
        "ring": usual if steady else None,
        "label": f"{role}.arm.text",
    }
    return panel | {"keys": keys} if some else panel
