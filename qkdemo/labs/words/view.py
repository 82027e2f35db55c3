"""How a sentence is drawn: the table and view that the exhibit component takes.

* `words_exhibit(result)`: the exhibit, dragged along the weight scale;
* `picked(settings, pick)`: the dials that a click sets: the scale, and the word that asks.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from qkdemo.charts.axes import decades, share_axis
from qkdemo.charts.columns import percent, readings, single, vectors, words
from qkdemo.charts.panels import Arcs, Bars, Cells, Mark, Panel
from qkdemo.charts.spec import Dial, Drawn, Exhibit, Pick
from qkdemo.dials import Value
from qkdemo.floats.formats import beside_rounding
from qkdemo.labs.words.lab import Result, Settings
from qkdemo.labs.words.network import SideWord
from qkdemo.labs.words.words import explain, findings
from qkdemo.messages import in_each_language, say
from qkdemo.notation import written
from qkdemo.training.sentences import WORDS

MOST_NEXT: Final = 5  # next words that the exhibit shows


@in_each_language(64)
def words_exhibit(result: Result) -> Drawn:
    """Table and view of the exhibit."""
    table: dict[str, Any] = {
        "scale": result.scales,
        "scale.text": [f"×\u202f{written(scale)}" for scale in result.scales.tolist()],
        "finding": findings(result),
    }
    for side in result.sides:
        table |= {f"{side}.{name}": column for name, column in _columns(result, side).items()}
    return pa.table(table), _view(result)


def picked(settings: Settings, pick: Pick) -> dict[str, Value]:
    """The dials, by name, that a pick sets; a place beyond the sentence is dropped."""
    if "dial" in pick:
        return {"scale": pick["dial"]}
    at = pick.get("query", pick.get("key"))
    return {"word": at + 1} if isinstance(at, int) and at < len(settings.words) else {}


def _columns(result: Result, side: SideWord) -> dict[str, Any]:
    one, query = result.sides[side], result.settings.query
    top, largest, counting = one.top(query), one.largest_logit(query), one.counting(query)
    columns: dict[str, Any] = {
        "weights": vectors(single(one.weights)),
        "row": vectors(single(one.row(query))),
        "top": top,
        "top.text": [percent(x) for x in top.tolist()],
        "logit.text": readings(largest),
        "counting.text": readings(counting),
    }
    right = one.shares[:, [WORDS.index(word) for word in sorted(result.may_follow)]].sum(-1)
    columns["right"] = right
    best = np.argsort(-one.shares, axis=-1, kind="stable")
    for place in range(MOST_NEXT):
        columns[f"next_{place}.text"] = [
            say("words.next", word=WORDS[order[place]], share=percent(shares[order[place]]))
            if not np.isnan(shares).any()
            else say("number.undefined")
            for order, shares in zip(best.tolist(), one.shares.tolist(), strict=True)
        ]
    return columns


def _view(result: Result) -> Exhibit:
    settings = result.settings
    tiles = {"scale": "", "logit": "logit.text", "top": "top.text", "counting": "counting.text", "next": "next_0.text"}
    dial: Dial = {
        "column": "scale",
        "text": "scale.text",
        "label": say("dial.scale.label"),
        "at": settings.scale,
        "log": True,
    }
    return {
        "dial": dial,
        "finding": "finding",
        "heading": 1,
        "tiles": [
            {
                "label": say(f"words.tile.{name}"),
                "lines": [
                    {"role": side, "column": f"{side}.{column}" if column else "scale.text"} for side in result.sides
                ],
            }
            for name, column in tiles.items()
        ],
        "panels": [_arcs(result), _row(result), _next(result), *_curves(result)],
        "words": words(),
        "alt": " ".join(explain(result)),
    }


def _arcs(result: Result) -> Arcs:
    settings = result.settings
    shown = [side for side in result.sides if settings.shown in ("both", side)]
    return {
        "kind": "arcs",
        "title": say("words.panel.arcs", layer=settings.of_layer, head=settings.of_head),
        "subtitle": say(f"words.axis.arcs_{settings.shown}", word=settings.words[settings.query]),
        "wide": 12,
        "labels": list(settings.words),
        "lines": [{"role": side, "column": f"{side}.weights", "label": say(f"words.line.{side}")} for side in shown],
        "selected": settings.query,
        "key_label": say("words.word"),
    }


def _row(result: Result) -> Bars:
    settings = result.settings
    return {
        "kind": "bars",
        "title": say("words.panel.row", word=settings.words[settings.query]),
        "subtitle": say("words.axis.row"),
        "wide": 7,
        "lines": [{"role": side, "column": f"{side}.row"} for side in result.sides],
        "labels": list(settings.words),
        "selected": settings.query,
        "key_label": say("words.word"),
    }


def _next(result: Result) -> Cells:
    return {
        "kind": "cells",
        "title": say("words.panel.next"),
        "wide": 5,
        "head": ["", *(say(f"words.line.{side}") for side in result.sides)],
        "roles": [None, *result.sides],
        "rows": [
            [{"text": say("words.place", place=place + 1)}, *(f"{side}.next_{place}.text" for side in result.sides)]
            for place in range(MOST_NEXT)
        ],
        "strong": 0,
    }


def _curves(result: Result) -> list[Panel]:
    """How sharp the row is, and how much the words get that may follow, over the weight scale."""
    marks: list[Mark] = []
    for side in result.sides:
        for name, undefined in (("one_hot", False), ("lost", True)):
            at = result.first_scale(side, undefined=undefined)
            if at is not None:
                marks.append({"x": at, "label": say(f"words.mark.{name}", scale=written(at)), "role": side})
    names = ("top", "right") if result.may_follow else ("top",)
    return [
        {
            "kind": "curves",
            "title": say(f"words.panel.{name}"),
            "subtitle": say(f"words.axis.{name}"),
            "wide": 12 // len(names),
            "x": {"ticks": decades(result.scales[0], result.scales[-1], "×")},
            "y": share_axis(),
            "lines": [
                {"role": side, "column": f"{side}.{name}", "label": say(f"words.line.{side}")} for side in result.sides
            ],
            "marks": marks if name == "top" else [],
            "noise": beside_rounding(result.settings.format),
        }
        for name in names
    ]
