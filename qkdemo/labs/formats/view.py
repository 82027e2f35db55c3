"""How a formats result is drawn: the table and view that the exhibit component takes.

* `formats_exhibit(result)`: the pipeline, one stage's entries, the ladder and the losses, dragged along the scale;
* `picked(settings, pick)`: the dials that a click sets: a stage of a format and side, or an entry of it;
* `OPENED`: the page opens with these stages in one format, that of the dial; the rest unfolds.

What follows the weight scale stands in the table, which `formats_table` makes.
"""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from qkdemo.charts.axes import decades, share_axis
from qkdemo.charts.columns import words
from qkdemo.charts.panels import Cells, Curves, Entry, Grid, Heat, Mark, Role
from qkdemo.charts.spec import Drawn, Exhibit, Pick, Tile, TileLine
from qkdemo.dials import Value
from qkdemo.labs.formats.entry_texts import PARTS, details, title
from qkdemo.labs.formats.lab import Result, Settings, Side, Sweep, sweep
from qkdemo.labs.formats.stages.kinds import IN_NORM, OVER_KEYS, STAGES, STORED
from qkdemo.labs.formats.table import COUNTED, TILES, formats_table, heat_ramp
from qkdemo.labs.formats.words import already, explain, onset, stage_name
from qkdemo.messages import say

_ROLES: Final[tuple[Role, Role]] = ("plain", "norm")
_SIDES: Final = ("plain", "normalised")
_HIGHEST: Final = 1000.0  # of the dial
_LADDER: Final = 2  # the panel that says where an entry sits
OPENED: Final = ("raw_product", "scaled", "weight", "weighted_values")  # the stages that the page opens with


def formats_exhibit(result: Result) -> Drawn:
    """Table and view of the exhibit, on a server whose addresses begin with `base`."""
    swept = sweep(result.settings)
    # where the cursor stands changes nothing in the table, unless it stands between the sweep's own positions
    at_stop = result.settings.but(scale=1)
    settings = at_stop if len(sweep(at_stop).scales) == len(swept.scales) else result.settings
    return formats_table(settings), _view(result, swept)


def picked(settings: Settings, pick: Pick) -> dict[str, Value]:
    """The dials, by name, that a pick sets."""
    if "dial" in pick:
        return {"scale": pick["dial"]}
    if "row" not in pick:
        return {name: int(pick[name]) for name in ("query", "key") if name in pick}
    row, column = int(pick["row"]), int(pick.get("column", 0))
    if row >= len(STORED) * len(_SIDES) or column >= len(STAGES):
        return {}
    stage = STAGES[column]
    side = "normalised" if stage in IN_NORM else _SIDES[row % len(_SIDES)]
    return {"storage": STORED[row // len(_SIDES)], "side": side, "stage": stage}


def _view(result: Result, swept: Sweep) -> Exhibit:
    settings = result.settings
    label = say("dial.scale.label")
    found: Exhibit = {
        "dial": {"column": "scale", "text": "scale.text", "label": label, "at": settings.scale, "log": True},
        "finding": "finding",
        "heading": 1,
        "tiles": list(_tiles(settings)),
        "panels": [
            _grid(result),
            _heat(result, swept) | {"folded": 4},
            _ladder(result) | {"rest": True},
            *(_counts(result, role, side) | {"rest": True} for role, side in zip(_ROLES, result.sides, strict=True)),
            *(_losses(result, swept, word) | {"folded": 8, "rest": word != settings.storage} for word in STORED),
            _worn(result, swept) | {"rest": True},
        ],
        "words": words(),
        "alt": " ".join(explain(result)),
    }
    if settings.stage in OPENED:  # a stage that is looked at is on the page
        found["fold"] = {"more": say("formats.fold.more"), "less": say("formats.fold.less")}
    return found


def _tiles(settings: Settings) -> Iterator[Tile]:
    lines: list[TileLine] = [{"role": role, "column": "scale.text"} for role in _ROLES]
    yield {"label": say("formats.tile.scale"), "lines": lines}
    for name in TILES:
        lines = [{"role": role, "column": f"tile.{name}.{role}"} for role in _ROLES]
        yield {"label": say(f"formats.tile.{name}", format=settings.storage), "lines": lines}


def _names(result: Result) -> list[str]:
    return [say(f"variant.{side.variant}.short") for side in result.sides]


def _grid(result: Result) -> Grid:
    settings = result.settings
    side = _SIDES.index("normalised" if settings.stage in IN_NORM else settings.side)
    return {
        "kind": "grid",
        "title": say("formats.panel.grid"),
        "subtitle": f"{say('formats.axis.grid')} {say('formats.axis.look')}",
        "on_paper": say("formats.axis.grid"),
        "wide": 12,
        "corner": say("formats.corner"),
        "head": [
            {"text": say(f"stage.{stage}.head"), "label": stage_name(stage), "rest": stage not in OPENED}
            for stage in STAGES
        ],
        "rows": [
            {
                "text": word if role == "plain" else say("formats.twin_row", side=name),
                "label": say("formats.row", format=word, side=name),
                "role": role,
                "column": f"grid.{word}.{role}",
                "tones": f"tone.{word}.{role}",
                "rest": word != settings.storage,
            }
            for word in STORED
            for role, name in zip(_ROLES, _names(result), strict=True)
        ],
        "selected": (len(_SIDES) * STORED.index(settings.storage) + side, STAGES.index(settings.stage)),
    }


def _heat(result: Result, swept: Sweep) -> Heat:
    shown = result.shown
    rows, columns = shown.values.shape
    across = "key" if shown.stage in OVER_KEYS else "channel" if columns > 1 else ""
    down = "key" if shown.stage.startswith("k_") else "query"
    name = say(f"variant.{shown.variant}.short")
    drawn = say("formats.axis.heat_hidden" if shown.hidden.any() else "formats.axis.heat")
    if across == "channel" and columns < result.settings.d_head:
        drawn = say("formats.axis.some", last=columns - 1, of=result.settings.d_head, said=drawn)
    return {
        "kind": "heat",
        "title": say("formats.panel.heat", stage=stage_name(shown.stage), side=name, format=shown.storage),
        "subtitle": f"{drawn}; {say('formats.axis.point')}",
        "on_paper": drawn,
        "wide": 3,
        "role": "plain" if shown.variant == "none" else "norm",
        "column": "heat",
        "rows": rows,
        "columns": columns,
        "selected": (shown.row, shown.column),
        "query_label": say(f"formats.place.{down}"),
        "key_label": say(f"formats.place.{across}") if across else "",
        "ramp": heat_ramp(result, swept),
        "details": details(result, _LADDER),
    }


def _ladder(result: Result) -> Cells:
    shown = result.shown
    blank: list[Entry] = [{"text": ""}] * (len(PARTS) - 1)
    held: list[Entry] = [say("formats.ladder.held"), "entry.held", *blank]
    exact: list[Entry] = [say("formats.ladder.exact"), "entry.exact", *blank]
    stored: list[list[Entry]] = [[word, *(f"{part}.{word}" for part in PARTS)] for word in STORED]
    return {
        "kind": "cells",
        "title": title(shown.stage, shown.row, shown.column),
        "subtitle": say("formats.axis.ladder"),
        "wide": 9,
        "breaks": [PARTS.index("bits") + 1, PARTS.index("decimal") + 1],
        "head": ["", *(say(f"formats.ladder.{part}") for part in PARTS)],
        "roles": [None] * (1 + len(PARTS)),
        "rows": [exact, *stored, held],
        "strong": 1 + STORED.index(shown.storage),
    }


def _counts(result: Result, role: Role, side: Side) -> Cells:
    settings = result.settings
    s = STAGES.index(settings.stage)
    n, name = int(side.tally.n[0, s, 0]), say(f"variant.{side.variant}.short")
    key = "counts" if n else "no_counts"
    parts = (*COUNTED, "max_rel_error")
    return {
        "kind": "cells",
        "title": say(f"formats.panel.{key}", stage=stage_name(settings.stage), side=name, n=n),
        "wide": 6,
        "head": ["", *(say(f"formats.count.{part}") for part in parts)],
        "roles": [None, *(role for _ in parts)],
        "rows": [[word, *(f"{part}.{word}.{role}" for part in parts)] for word in STORED],
        "strong": STORED.index(settings.storage),
    }


def _losses(result: Result, swept: Sweep, word: str) -> Curves:
    """The share that one format loses of the shown stage, marked where it begins."""
    f, s = [str(each) for each in STORED].index(word), STAGES.index(result.settings.stage)
    firsts = [float(side.first_loss[f, s]) for side in result.sides]
    marks: list[Mark] = [
        {"x": first, "label": say(f"formats.first{already(first)}", scale=onset(first)), "role": role}
        for role, first in zip(_ROLES, firsts, strict=True)
        if first <= _HIGHEST
    ]
    first = min((first for first in firsts if math.isfinite(first)), default=math.inf)
    before = np.array(swept.scales) < first
    early = any((counted.n_lost[f, s] > 0)[before].any() for counted in (swept.plain, swept.twin))
    key = "losing" if marks else "later" if math.isfinite(first) else "never"
    if not any(counted.n[f, s].any() for counted in (swept.plain, swept.twin)):
        key = "absent"
    more = "_early" if early else already(first)
    title = say(f"formats.panel.{key}{more}", format=word, scale=onset(first), stage=_stage(result))
    panel = _curve(result, swept, f"lost.{word}", title, say("formats.axis.lost", stage=_stage(result)))
    return panel | {"marks": marks}


def _worn(result: Result, swept: Sweep) -> Curves:
    word = result.settings.storage
    title = say("formats.panel.worn", format=word)
    return _curve(result, swept, f"worn.{word}", title, say("formats.axis.worn", stage=_stage(result)))


def _stage(result: Result) -> str:
    return stage_name(result.settings.stage)


def _curve(result: Result, swept: Sweep, column: str, title: str, subtitle: str) -> Curves:
    named = zip(_ROLES, _names(result), strict=True)
    return {
        "kind": "curves",
        "title": title,
        "subtitle": subtitle,
        "wide": 4,
        "x": {"ticks": decades(swept.scales[0], swept.scales[-1], sign="×")},
        "y": share_axis(),
        "lines": [{"role": role, "column": f"{column}.{role}", "label": name} for role, name in named],
        "marks": [],
    }
