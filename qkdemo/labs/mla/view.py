"""How a latent-attention result is drawn: the table and the view that the exhibit component takes.

* `mla_exhibit(result)`: dragged along the context;
* `other_ways_exhibit(result)`: what is done instead of QK norm, dragged along the scale of the projections;
* `picked(settings, pick)`, `picked_scale(pick)`: the dials that a click in it sets.
"""

from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from qkdemo.charts.axes import decades, log_axis
from qkdemo.charts.columns import codes, vectors, words
from qkdemo.charts.panels import Cells, Curves, Heat, PlainAxis, Role, Text
from qkdemo.charts.spec import Drawn, Exhibit, Pick, Tile
from qkdemo.dials import Value
from qkdemo.labs.mla.baselines import METHODS, MethodWord
from qkdemo.labs.mla.costs import COSTS, ReadingWord
from qkdemo.labs.mla.lab import Logits, Result, Settings, cost, other_rows, run
from qkdemo.labs.mla.words import explain, explain_other_ways, findings, other_ways, size_text
from qkdemo.messages import in_each_language, say
from qkdemo.notation import counted, written

_ROLES: Final[dict[ReadingWord, Role]] = {
    "naive": "left",
    "absorbed": "right",
    "full_keys": "other",
    "without_norm": "plain",
}
_HEATS: Final[dict[str, Role]] = {"explicit": "left", "absorbed": "right", "without_norm": "plain"}
_SIDES: Final[tuple[ReadingWord, ...]] = ("naive", "absorbed")
_MIB: Final = 2.0**20


def mla_exhibit(result: Result) -> Drawn:
    """Table and view."""
    return _table(result.settings.but(query=0, key=0), tuple(result.contexts.tolist())), _view(result)


def picked(settings: Settings, pick: Pick) -> dict[str, Value]:
    """The dials, by name, that a pick sets: a context of the curves, or query and key of a cell."""
    if "dial" in pick:
        return {"context": round(pick["dial"])}
    return {name: min(int(pick[name]), settings.n_keys - 1) for name in ("query", "key") if name in pick}


@in_each_language(64)
def _table(settings: Settings, contexts: tuple[int, ...]) -> pa.Table:
    result, count = run(settings), len(contexts)
    head, _, _ = result.shown
    columns: dict[str, Any] = {
        "context": np.array(contexts, dtype=np.float64),
        "context.text": [counted(context) for context in contexts],
        "finding": findings(result),
    }
    for word, found in result.by_context.items():
        columns[f"flops.{word}"] = np.array([item.flops for item in found], dtype=np.float64)
        columns[f"memory.{word}"] = np.array([(item.cache_bytes + item.formed_bytes) / _MIB for item in found])
        columns[f"flops.text.{word}"] = [written(item.flops, 3) for item in found]
        columns[f"cache.text.{word}"] = [size_text(item.cache_bytes) for item in found]
        columns[f"formed.text.{word}"] = [size_text(item.formed_bytes) for item in found]
    for name, logits in _shown_logits(result).items():
        columns[f"heat.{name}"] = vectors(np.broadcast_to(_heat_codes(logits, head), (count, *logits.all.shape[1:])))
    return pa.table(columns)


def _heat_codes(logits: Logits, head: int) -> Any:
    return codes(logits.weights[head])


def _shown_logits(result: Result) -> dict[str, Logits]:
    return {"explicit": result.explicit, "absorbed": result.absorbed, "without_norm": result.without_norm}


def _view(result: Result) -> Exhibit:
    settings = result.settings
    x: PlainAxis = {"ticks": decades(1, 100_000)}
    return {
        "dial": {
            "column": "context",
            "text": "context.text",
            "label": say("dial.context.label"),
            "at": float(settings.context),
            "log": True,
        },
        "finding": "finding",
        "heading": 1,
        "tiles": _tiles(settings),
        "panels": [
            _curves("flops", result, x),
            _curves("memory", result, x),
            *(_heat(name, role, result) for name, role in _HEATS.items()),
            _logit(result),
            _costs(),
        ],
        "words": words() | {"hint": say("mla.hint")},
        "alt": " ".join(explain(result)),
    }


def _tiles(settings: Settings) -> list[Tile]:
    numbers = {word: say("mla.numbers", count=cost(settings, word, 1).cache_bytes // 2) for word in _SIDES}
    columns: dict[str, dict[ReadingWord, Any]] = {
        "context": dict.fromkeys(_SIDES, "context.text"),
        "numbers": {word: {"text": text} for word, text in numbers.items()},
        **{name: {word: f"{name}.text.{word}" for word in _SIDES} for name in ("cache", "formed", "flops")},
    }
    return [
        {
            "label": say(f"mla.tile.{name}"),
            "lines": [{"role": _ROLES[word], "column": column} for word, column in found.items()],
        }
        for name, found in columns.items()
    ]


def _curves(name: str, result: Result, x: PlainAxis) -> Curves:
    values = [
        item.flops if name == "flops" else (item.cache_bytes + item.formed_bytes) / _MIB
        for found in result.by_context.values()
        for item in found
    ]
    return {
        "kind": "curves",
        "title": say(f"mla.panel.{name}"),
        "subtitle": say(f"mla.axis.{name}"),
        "wide": 6,
        "x": x,
        "y": log_axis(np.array(values, dtype=np.float64)),
        "lines": [
            {"role": role, "column": f"{name}.{word}", "label": say(f"mla.short.{word}")}
            for word, role in _ROLES.items()
        ],
        "marks": [],
    }


def _heat(name: str, role: Role, result: Result) -> Heat:
    _, query, key = result.shown
    n = result.settings.n_keys
    return {
        "kind": "heat",
        "title": say(f"mla.panel.{name}"),
        "wide": 3,
        "role": role,
        "column": f"heat.{name}",
        "rows": n,
        "columns": n,
        "selected": (query, key),
        "query_label": say("mla.query"),
        "key_label": say("mla.key"),
    }


def _logit(result: Result) -> Cells:
    head, query, key = result.shown
    sides = (result.explicit, result.absorbed)
    parts = {
        "content": [s.content for s in sides],
        "rotary": [s.rotary for s in sides],
        "logit": [s.all for s in sides],
    }
    return {
        "kind": "cells",
        "title": say("mla.panel.logit", query=query, key=key, head=head),
        "wide": 3,
        "head": ["", *(Text(text=say(f"mla.short.{word}")) for word in _SIDES)],
        "roles": [None, *(_ROLES[word] for word in _SIDES)],
        "rows": [
            [{"text": say(f"mla.row.{name}")}, *(Text(text=written(float(x[head, query, key]))) for x in found)]
            for name, found in parts.items()
        ],
        "strong": 2,
    }


def _costs() -> Cells:
    return {
        "kind": "cells",
        "title": say("mla.panel.costs"),
        "wide": 12,
        "head": ["", *(Text(text=say(f"mla.head.{name}")) for name in ("flops", "cache", "formed"))],
        "roles": [None] * 4,
        "rows": [
            [{"text": say(f"choice.reading.{word}")}, *(f"{name}.text.{word}" for name in ("flops", "cache", "formed"))]
            for word in COSTS
        ],
        "strong": list(COSTS).index("absorbed"),
    }


_METHOD_ROLES: Final[dict[MethodWord, Role]] = {
    "nothing": "plain",
    "latent_norm": "left",
    "qk_clip": "other",
    "rates": "right",
    "qk_norm": "norm",
}
_CURVES: Final[dict[str, tuple[MethodWord, ...]]] = {
    "largest": ("nothing", "latent_norm", "qk_clip", "qk_norm"),  # rates let logits grow as normalised latents do
    "moved": ("nothing", "latent_norm", "rates", "qk_norm"),
}
_COUNTS: Final = {"step": "step_flops", "cached": "cached_numbers", "training": "training_flops"} | {
    "update": "update_flops"
}


def other_ways_exhibit(result: Result) -> Drawn:
    """Table and view of what is done instead of QK norm."""
    found = result.alternatives
    columns: dict[str, Any] = {
        "scale": found.scales,
        "scale.text": ["×" + written(scale) for scale in found.scales.tolist()],
        "finding": other_ways(result),
    }
    for name, methods in _CURVES.items():
        columns |= {f"{name}.{word}": getattr(found, name)[word] for word in methods}
    return pa.table(columns), {
        "dial": {
            "column": "scale",
            "text": "scale.text",
            "label": say("dial.projections.label"),
            "at": result.settings.projections,
            "log": True,
        },
        "finding": "finding",
        "heading": 2,
        "tiles": [],
        "panels": [*(_ways(name, result) for name in _CURVES), _needs(result), _costs_of_ways(result)],
        "words": words() | {"hint": say("other_ways.hint")},
        "alt": " ".join(explain_other_ways(result)),
    }


def picked_scale(pick: Pick) -> dict[str, Value]:
    """The scale of the projections that a pick sets."""
    return {"projections": pick["dial"]} if "dial" in pick else {}


def _ways(name: str, result: Result) -> Curves:
    values = np.concatenate([getattr(result.alternatives, name)[word] for word in _CURVES[name]])
    return {
        "kind": "curves",
        "title": say(f"other_ways.panel.{name}"),
        "subtitle": say(f"other_ways.axis.{name}"),
        "wide": 6,
        "x": {"ticks": decades(0.1, 100, "×")},
        "y": log_axis(values),
        "lines": [
            {"role": _METHOD_ROLES[word], "column": f"{name}.{word}", "label": say(f"method.{word}")}
            for word in _CURVES[name]
        ],
        "marks": [],
    }


def _needs(result: Result) -> Cells:
    """What each way bounds, and whether it forms keys and stays in the function."""
    return _ways_table(
        "needs",
        [
            (
                row["method"],
                [
                    say(f"bounds.{row['method']}"),
                    say(f"keys.{row['keys']}"),
                    say(f"stays.{'yes' if row['stays'] else 'no'}"),
                ],
            )
            for row in other_rows(result)
        ],
        ("bounds", "keys", "stays"),
    )


def _costs_of_ways(result: Result) -> Cells:
    rows = other_rows(result)
    texts = [(row["method"], [_count(cast(float, row[column])) for column in _COUNTS.values()]) for row in rows]
    return _ways_table("costs", texts, tuple(_COUNTS))


def _count(x: float) -> str:
    """Every digit, and the half that a mean may have."""
    return counted(x) if isinstance(x, int) else written(x, 9)


def _ways_table(name: str, rows: list[tuple[Any, list[str]]], heads: tuple[str, ...]) -> Cells:
    return {
        "kind": "cells",
        "title": say(f"other_ways.panel.{name}"),
        "wide": 6,
        "head": ["", *(Text(text=say(f"other_ways.head.{head}")) for head in heads)],
        "roles": [None] * (1 + len(heads)),
        "rows": [[{"text": say(f"method.{method}")}, *(Text(text=text) for text in texts)] for method, texts in rows],
        "strong": METHODS.index("qk_norm"),
    }
