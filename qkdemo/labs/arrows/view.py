"""How the shares are drawn on paper, and where a track reads them: the page itself draws the arrows (`web/arrows`).

* `arrows_exhibit(result)`: every key's share on both sides, dragged along the weight scale.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from qkdemo.charts.columns import single, vectors, words
from qkdemo.charts.panels import Bars, Role
from qkdemo.charts.spec import Dial, Drawn
from qkdemo.labs.arrows.lab import N_KEYS, Result, word_of
from qkdemo.labs.arrows.words import explain, findings
from qkdemo.messages import say
from qkdemo.notation import written

_ROLES: Final[tuple[Role, Role]] = ("plain", "norm")


def arrows_exhibit(result: Result) -> Drawn:
    """Table and view."""
    winner = result.plain.winner(result.at)
    table = pa.table(
        {
            "scale": np.array(result.scales),
            "scale.text": [f"×{written(scale)}" for scale in result.scales],
            "finding": findings(result),
            **{
                f"{role}.row": vectors(single(side.shares))
                for role, side in (("plain", result.plain), ("norm", result.twin))
            },
        }
    )
    panel: Bars = {
        "kind": "bars",
        "title": say("arrows.bars", query=say("arrows.word.query")),
        "subtitle": say("arrows.sides"),
        "wide": 6,
        "lines": [{"role": role, "column": f"{role}.row", "label": say(f"arrows.ui.{role}_title")} for role in _ROLES],
        "labels": [word_of(key) for key in range(N_KEYS)],
        "selected": winner,
        "key_label": say("drift.key"),
    }
    dial: Dial = {
        "column": "scale",
        "text": "scale.text",
        "label": say("arrows.ui.scale"),
        "at": result.settings.scale,
        "log": True,
    }
    return table, {
        "dial": dial,
        "finding": "finding",
        "tiles": [],
        "panels": [panel],
        "words": words(),
        "alt": " ".join(explain(result)),
    }
