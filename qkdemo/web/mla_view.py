"""How a latent-attention result is drawn: the table and the view that the exhibit component takes.

* `mla_exhibit(result)`: dragged along the context;
* `picked(settings, pick)`: the dials that a click in it sets.
"""

from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from qkdemo.labs.mla import COSTS, Logits, ReadingWord, Result, Settings, cost, explain, findings, run, size_text
from qkdemo.notation import written
from qkdemo.settings import Value
from qkdemo.strings import say
from qkdemo.web.axes import decades, log_axis
from qkdemo.web.columns import codes, vectors, words
from qkdemo.web.exhibit import Pick

View = dict[str, Any]
_ROLES: Final[dict[ReadingWord, str]] = {
    "naive": "plain",
    "absorbed": "norm",
    "full_keys": "other",
    "without_norm": "bound",
}
_SIDES: Final[tuple[ReadingWord, ...]] = ("naive", "absorbed")
_MIB: Final = 2.0**20


def mla_exhibit(result: Result) -> tuple[pa.Table, View]:
    """Table and view."""
    return _table(result.settings.but(query=0, key=0), tuple(result.contexts.tolist())), _view(result)


def picked(settings: Settings, pick: Pick) -> dict[str, Value]:
    """The dials, by name, that a pick sets: a context of the curves, or query and key of a cell."""
    if "dial" in pick:
        return {"context": round(pick["dial"])}
    return {name: min(int(pick[name]), settings.n_keys - 1) for name in ("query", "key") if name in pick}


@lru_cache(maxsize=64)
def _table(settings: Settings, contexts: tuple[int, ...]) -> pa.Table:
    result, count = run(settings), len(contexts)
    head, _, _ = result.shown
    columns: dict[str, Any] = {
        "context": np.array(contexts, dtype=np.float64),
        "context.text": [written(context, 6) for context in contexts],
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


def _view(result: Result) -> View:
    settings = result.settings
    x = {"ticks": decades(1, 100_000)}
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
            *(
                _heat(name, role, result)
                for name, role in (("explicit", "plain"), ("absorbed", "norm"), ("without_norm", "other"))
            ),
            _logit(result),
            _costs(),
        ],
        "words": words() | {"hint": say("mla.hint")},
        "alt": " ".join(explain(result)),
    }


def _tiles(settings: Settings) -> list[View]:
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


def _curves(name: str, result: Result, x: View) -> View:
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


def _heat(name: str, role: str, result: Result) -> View:
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
        "selected": [query, key],
        "query_label": say("mla.query"),
        "key_label": say("mla.key"),
    }


def _logit(result: Result) -> View:
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
        "head": ["", *({"text": say(f"mla.short.{word}")} for word in _SIDES)],
        "roles": [None, *(_ROLES[word] for word in _SIDES)],
        "rows": [
            [{"text": say(f"mla.row.{name}")}, *({"text": written(float(x[head, query, key]))} for x in found)]
            for name, found in parts.items()
        ],
        "strong": 2,
    }


def _costs() -> View:
    return {
        "kind": "cells",
        "title": say("mla.panel.costs"),
        "wide": 12,
        "head": ["", *({"text": say(f"mla.head.{name}")} for name in ("flops", "cache", "formed"))],
        "roles": [None] * 4,
        "rows": [
            [{"text": say(f"choice.reading.{word}")}, *(f"{name}.text.{word}" for name in ("flops", "cache", "formed"))]
            for word in COSTS
        ],
        "strong": list(COSTS).index("absorbed"),
    }
