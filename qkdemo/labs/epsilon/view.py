"""How an epsilon result is drawn: the table and view that the exhibit component takes.

* `epsilon_exhibit(settings)`: the exhibit, dragged along the size of the vector;
* `picked(pick)`: the dial that a click sets.
"""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from qkdemo.attention.norms import RuleWord
from qkdemo.charts.axes import decades, log_axis
from qkdemo.charts.columns import reading, words
from qkdemo.charts.panels import Axis, Cells, Curves, Mark, Role, Text
from qkdemo.charts.spec import Drawn, Exhibit, Pick
from qkdemo.dials import Value
from qkdemo.floats.formats import FORMATS, beside_rounding
from qkdemo.labs.epsilon.lab import RULE_WORDS, Result, Settings, formats, run
from qkdemo.labs.epsilon.words import explain, findings
from qkdemo.messages import in_each_language, say
from qkdemo.notation import written

_OTHERS: Final[tuple[Role, Role]] = ("other", "bound")  # roles of the rules that are neither chosen nor absent
_CHOSEN: Final[tuple[Role, Role]] = ("right", "left")  # the chosen rule, and none
_SEEN: Final = 1e-3  # relative difference below which two curves lie on each other
_TOP: Final = 1.25  # share of the expected length that the axis reaches: narrow formats overshoot


def epsilon_exhibit(settings: Settings) -> Drawn:
    """Table and view of the exhibit."""
    return _drawn(settings)


@in_each_language(64)
def _drawn(settings: Settings) -> Drawn:
    result, narrow = run(settings), formats(settings)
    table: dict[str, Any] = {
        "size": result.sizes,
        "size.text": [written(size) for size in result.sizes.tolist()],
        "finding": findings(result),
    }
    for rule, word in enumerate(RULE_WORDS):
        for name in ("share", "slope", "divisor"):
            column = getattr(result, name)[rule]
            table |= {f"{word}.{name}": column, f"{word}.{name}.text": [reading(x) for x in column.tolist()]}
    for kind, other in narrow.items():
        for name in ("share", "slope"):
            table[f"{kind}.{name}.text"] = [reading(x) for x in getattr(other, name)[result.rule].tolist()]
    return pa.table(table), _view(result, narrow)


def picked(pick: Pick) -> dict[str, Value]:
    """The dial, by name, that a pick sets."""
    return {"size": pick["dial"]} if "dial" in pick else {}


def _view(result: Result, narrow: Mapping[Any, Result]) -> Exhibit:
    settings = result.settings
    shown = _lines(settings.rule)
    tiles = [role for role in _CHOSEN if role in shown]
    return {
        "dial": {
            "column": "size",
            "text": "size.text",
            "label": say("dial.size.label"),
            "at": settings.size,
            "log": True,
        },
        "finding": "finding",
        "heading": 1,
        "tiles": [
            {
                "label": say(f"epsilon.tile.{name}"),
                "lines": [
                    {"role": role, "column": "size.text" if name == "size" else f"{shown[role]}.{name}.text"}
                    for role in tiles
                ],
            }
            for name in ("size", "divisor", "share", "slope")
        ],
        "panels": [
            _curve(
                result, "share", {"log": False, "domain": (0, _TOP), "ticks": [(x, written(x)) for x in (0, 0.5, 1)]}
            ),
            _curve(result, "slope", log_axis(result.slope)),
            _rules(result),
            _formats(result, narrow),
        ],
        "words": words(),
        "alt": " ".join(explain(result)),
    }


def _lines(chosen: RuleWord) -> dict[Role, RuleWord]:
    """Role → rule: the chosen one, none, and two others. The two floors are one line: their numbers are the same."""
    shown: dict[Role, RuleWord] = {"right": chosen}
    if chosen != "absent":
        shown["left"] = "absent"
    floors = ("floor", "floored_root")
    others: list[RuleWord] = [
        word for word in RULE_WORDS[:3] if word != chosen and not (word in floors and chosen in floors)
    ]
    roles: tuple[Role, ...] = _OTHERS if chosen != "absent" else (*_OTHERS, "left")
    return shown | dict(zip(roles, others, strict=True))


def _curve(result: Result, name: str, y: Axis) -> Curves:
    settings = result.settings
    marks: list[Mark] = []
    if result.threshold > result.sizes[0]:
        mark = say(f"epsilon.{'mark_l2' if settings.norm == 'l2' else 'mark'}.{settings.rule}")
        kept = result.epsilon_stored[settings.format] if settings.norm_in_format else settings.epsilon
        if written(kept, 3) != written(settings.epsilon, 3):
            mark = say("epsilon.as_stored", mark=mark)
        marks.append({"x": result.threshold, "label": f"{mark} = {written(result.threshold, 3)}", "role": "right"})
    return {
        "kind": "curves",
        "title": say(f"epsilon.panel.{name}"),
        "subtitle": say(f"epsilon.axis.{name}"),
        "wide": 6,
        "x": {"ticks": decades(result.sizes[0], result.sizes[-1])},
        "y": y,
        "lines": [
            {"role": role, "column": f"{word}.{name}", "label": say(f"epsilon.line.{word}")}
            for role, word in _lines(settings.rule).items()
        ],
        "marks": marks,
        "noise": max(_SEEN, beside_rounding(settings.format)),
        "labels": "apart",
    }


def _rules(result: Result) -> Cells:
    heads = ("length", "slope", "zero", "zero_slope")
    zeros = zip(result.zero_output.tolist(), result.zero_slope.tolist(), strict=True)
    return {
        "kind": "cells",
        "title": say("epsilon.panel.rules"),
        "wide": 6,
        "head": ["", *(say(f"epsilon.head.{name}") for name in heads)],
        "roles": [None] * 5,
        "rows": [
            [
                say(f"choice.rule.{word}"),
                f"{word}.share.text",
                f"{word}.slope.text",
                *(Text(text=reading(x)) for x in zero),
            ]
            for word, zero in zip(RULE_WORDS, zeros, strict=True)
        ],
        "strong": result.rule,
    }


def _formats(result: Result, narrow: Mapping[Any, Result]) -> Cells:
    return {
        "kind": "cells",
        "title": say("epsilon.panel.formats"),
        "wide": 6,
        "head": ["", *(say(f"epsilon.head.{name}") for name in ("stored", "length", "slope"))],
        "roles": [None] * 4,
        "rows": [
            [word, {"text": written(result.epsilon_stored[word], 3)}, f"{word}.share.text", f"{word}.slope.text"]
            for word in narrow
        ],
        "strong": list(FORMATS).index(result.settings.format),
    }
