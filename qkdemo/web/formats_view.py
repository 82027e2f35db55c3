"""How a formats result is drawn: the table and view that the exhibit component takes.

* `formats_exhibit(result)`: the pipeline, one stage's entries, the ladder and the losses, dragged along the scale;
* `picked(settings, pick)`: the dials that a click sets: a stage of a format and side, or an entry of it.

Here, and nowhere else, the lab's numbers become texts and colour codes.
"""

import math
from collections.abc import Iterator
from dataclasses import fields
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.bits import Rung
from qkdemo.fates import Tally
from qkdemo.labs.formats import (
    Result,
    Settings,
    Side,
    Sweep,
    explain,
    fate,
    ladder,
    leaked,
    onset,
    run,
    stage_name,
    sweep,
)
from qkdemo.notation import written
from qkdemo.settings import Value
from qkdemo.stages import IN_NORM, OVER_KEYS, STAGES, STORED, StageWord
from qkdemo.strings import say
from qkdemo.web.axes import View, decades, share_axis
from qkdemo.web.columns import codes, vectors, words
from qkdemo.web.exhibit import Pick

_ROLES: Final = ("plain", "norm")
_SIDES: Final = ("plain", "normalised")
_LOUDEST: Final = 3
_TOLD_APART: Final = 9  # digits that tell neighbouring float32 numbers apart
_HIGHEST: Final = 1000.0  # of the dial
_COUNTED: Final = ("n_inf", "n_nan", "n_overflow", "n_zero", "n_merged")
_TILES: Final[dict[str, tuple[StageWord, ...]]] = {
    "entering": ("q_entering", "k_entering"),
    "raw_product": ("raw_product",),
    "scaled": ("scaled",),
    "weight": ("weight",),
}


def formats_exhibit(result: Result) -> tuple[pa.Table, View]:
    """Table and view of the exhibit."""
    swept = sweep(result.settings)
    # where the cursor stands changes nothing in the table, unless it stands between the sweep's own positions
    base = result.settings.but(scale=1)
    settings = base if len(sweep(base).scales) == len(swept.scales) else result.settings
    return _table(settings), _view(result, swept)


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


@lru_cache(maxsize=64)
def _table(settings: Settings) -> pa.Table:
    result, swept = run(settings), sweep(settings)
    texts = [f"×{written(scale)}" for scale in swept.scales]
    return pa.table(
        {
            "scale": np.array(swept.scales),
            "scale.text": texts,
            "finding": _findings(result, swept),
            "heat": vectors(_heat_codes(result, swept)),
            **_grid_columns(swept.plain, swept.twin),
            **_count_columns(swept.plain, swept.twin, settings.stage),
            **_tile_columns(swept, STORED.index(settings.storage)),
            **_ladder_columns(result, swept),
        }
    )


def _findings(result: Result, swept: Sweep) -> list[str]:
    """Which stage of the chosen format fails first, from where on, and what becomes of the twin, at each scale."""
    sides = [("plain", result.plain, swept.plain), ("twin", result.twin, swept.twin)]
    return [
        " ".join(sentence for each in sides for sentence in _said(result.settings, *each, at, scale))
        for at, scale in enumerate(swept.scales)
    ]


def _said(settings: Settings, which: str, side: Side, counted: Tally, at: int, scale: float) -> Iterator[str]:
    """What the headline says of one side at one scale."""
    f = STORED.index(settings.storage)
    key, values = fate(counted, f, at)
    values |= {"side": say(f"variant.{side.variant}.short"), "scale": written(scale)}
    if key == "lost":
        first = float(side.first_loss[f, int(str(values["s"]))])
        if scale >= first:
            key, values = "lost_since", values | {"since": onset(first)}
    yield say(f"formats.finding.{which}.{key}", **values)
    if leak := leaked(counted, f, at, settings):
        yield say(f"formats.finding.{which}.leaked", **values | leak)


@lru_cache(maxsize=64)
def _grid_columns(plain: Tally, twin: Tally) -> dict[str, list[str]]:
    """Per format and side: the texts of its stages, and their tones."""
    columns: dict[str, list[str]] = {}
    for role, counted in zip(_ROLES, (plain, twin), strict=True):
        lists = {field.name: getattr(counted, field.name).tolist() for field in fields(Tally)}
        for f, word in enumerate(STORED):
            of_format = {name: values[f] for name, values in lists.items()}
            cells = [
                [_cell({name: values[s][at] for name, values in of_format.items()}) for s in range(len(STAGES))]
                for at in range(counted.n.shape[-1])
            ]
            columns[f"grid.{word}.{role}"] = ["\t".join(text for text, _ in row) for row in cells]
            columns[f"tone.{word}.{role}"] = ["".join(str(tone) for _, tone in row) for row in cells]
    return columns


def _cell(of: dict[str, float]) -> tuple[str, int]:
    """The worst that happened to one stage, and how loud it is."""
    if not of["n"]:
        return say("formats.cell.none"), 0
    for name, tone in (("n_lost", _LOUDEST), ("n_zero", 2), ("n_merged", 1)):
        if of[name]:
            key = name
            if name == "n_lost":
                key = "n_nan" if of["n_nan"] > of["n_inf"] else "n_inf" if of["n_inf"] else "n_overflow"
                key = "all_nan" if of["n_nan"] == of["n"] else key
            return say(f"formats.cell.{key}", n=of[name]), tone
    return _error(of["max_rel_error"], 1), 0


def _error(x: float, digits: int) -> str:
    return say("formats.cell.none") if math.isnan(x) else written(x, digits)


def _count_columns(plain: Tally, twin: Tally, stage: StageWord) -> dict[str, Any]:
    """Everything that is counted of one stage, and the share that is lost."""
    s = STAGES.index(stage)
    columns: dict[str, Any] = {}
    for role, counted in zip(_ROLES, (plain, twin), strict=True):
        for f, word in enumerate(STORED):
            n = counted.n[f, s]
            known = n > 0
            for name in _COUNTED:
                found = getattr(counted, name)[f, s].tolist()
                columns[f"{name}.{word}.{role}"] = [
                    str(x) if some else say("formats.cell.none") for x, some in zip(found, known, strict=True)
                ]
            errors = counted.max_rel_error[f, s].tolist()
            columns[f"max_rel_error.{word}.{role}"] = [_error(x, 2) for x in errors]
            with np.errstate(invalid="ignore"):
                columns[f"lost.{word}.{role}"] = counted.n_lost[f, s] / n
                columns[f"worn.{word}.{role}"] = (counted.n_zero[f, s] + counted.n_merged[f, s]) / n
    return columns


def _tile_columns(swept: Sweep, f: int) -> dict[str, list[str]]:
    columns = {}
    for role, counted in zip(_ROLES, (swept.plain, swept.twin), strict=True):
        for name, stages in _TILES.items():
            places = [STAGES.index(stage) for stage in stages]
            lost, of = (x[f, places].sum(0).tolist() for x in (counted.n_lost, counted.n))
            pairs = zip(lost, of, strict=True)
            columns[f"tile.{name}.{role}"] = [say("formats.of", part=lost, n=n) for lost, n in pairs]
    return columns


def _heat_codes(result: Result, swept: Sweep) -> NDArray[np.uint8]:
    """Sizes on a logarithmic scale over the whole sweep: from a fifth of the colour to all of it; zero is none."""
    sizes = np.abs(swept.values)
    usual = np.isfinite(sizes) & (sizes > 0) & ~result.shown.hidden
    shares = np.where(np.isfinite(sizes), 0.0, np.nan)
    if usual.any():
        exponents = np.log(sizes, where=usual, out=np.zeros_like(sizes))
        low, high = exponents[usual].min(), exponents[usual].max()
        shares = np.where(usual, 0.2 + 0.8 * (exponents - low) / ((high - low) or 1), shares)
    return codes(np.where(result.shown.hidden, -1, shares**2))


def _ladder_columns(result: Result, swept: Sweep) -> dict[str, list[str]]:
    """The shown entry's exact value in each of the formats, at each scale, and what the pipeline holds of it."""
    row, column = result.shown.row, result.shown.column
    exact = swept.exact[:, row, column].tolist()
    columns: dict[str, list[str]] = {
        "entry.exact": [written(x, _TOLD_APART) for x in exact],
        "entry.held": [written(x, _TOLD_APART) for x in swept.values[:, row, column].tolist()],
    }
    rungs = [ladder(result.settings, x) for x in exact]
    for f, word in enumerate(STORED):
        texts = [_rung_texts(of_scale[f]) for of_scale in rungs]
        columns |= {f"{name}.{word}": [text[name] for text in texts] for name in texts[0]}
    return columns


def _rung_texts(rung: Rung) -> dict[str, str]:
    none = say("formats.cell.none")
    below, above = written(rung.below, _TOLD_APART), written(rung.above, _TOLD_APART)
    decimal = rung.decimal if math.isfinite(rung.stored) else written(rung.stored)
    return {
        "stored": written(rung.stored, _TOLD_APART),
        "neighbours": none if math.isnan(rung.below) else say("formats.ladder.pair", below=below, above=above),
        "spacing": none if math.isnan(rung.spacing) else written(rung.spacing, 6),
        "bits": f"{rung.sign} {rung.exponent} {rung.mantissa}",
        "decimal": decimal.replace("-", "−"),
    }


def _view(result: Result, swept: Sweep) -> View:
    settings = result.settings
    label = say("dial.scale.label")
    return {
        "dial": {"column": "scale", "text": "scale.text", "label": label, "at": settings.scale, "log": True},
        "finding": "finding",
        "heading": 1,
        "tiles": list(_tiles(settings)),
        "panels": [
            _grid(result),
            _heat(result),
            _ladder(result),
            *(_counts(result, role, side) for role, side in zip(_ROLES, result.sides, strict=True)),
            *(_losses(result, swept, word) for word in STORED),
            _worn(result, swept),
        ],
        "words": words(),
        "alt": " ".join(explain(result)),
    }


def _tiles(settings: Settings) -> Iterator[View]:
    lines = [{"role": role, "column": "scale.text"} for role in _ROLES]
    yield {"label": say("formats.tile.scale"), "lines": lines}
    for name in _TILES:
        lines = [{"role": role, "column": f"tile.{name}.{role}"} for role in _ROLES]
        yield {"label": say(f"formats.tile.{name}", format=settings.storage), "lines": lines}


def _names(result: Result) -> list[str]:
    return [say(f"variant.{side.variant}.short") for side in result.sides]


def _grid(result: Result) -> View:
    settings = result.settings
    side = _SIDES.index("normalised" if settings.stage in IN_NORM else settings.side)
    return {
        "kind": "grid",
        "title": say("formats.panel.grid"),
        "subtitle": say("formats.axis.grid"),
        "wide": 12,
        "corner": say("formats.corner"),
        "head": [{"text": say(f"stage.{stage}.head"), "label": stage_name(stage)} for stage in STAGES],
        "rows": [
            {
                "text": word if role == "plain" else say("formats.twin_row", side=name),
                "label": say("formats.row", format=word, side=name),
                "role": role,
                "column": f"grid.{word}.{role}",
                "tones": f"tone.{word}.{role}",
            }
            for word in STORED
            for role, name in zip(_ROLES, _names(result), strict=True)
        ],
        "selected": [len(_SIDES) * STORED.index(settings.storage) + side, STAGES.index(settings.stage)],
    }


def _heat(result: Result) -> View:
    shown = result.shown
    rows, columns = shown.values.shape
    across = "key" if shown.stage in OVER_KEYS else "channel" if columns > 1 else ""
    down = "key" if shown.stage.startswith("k_") else "query"
    name = say(f"variant.{shown.variant}.short")
    return {
        "kind": "heat",
        "title": say("formats.panel.heat", stage=stage_name(shown.stage), side=name, format=shown.storage),
        "subtitle": say("formats.axis.heat"),
        "wide": 3,
        "role": "plain" if shown.variant == "none" else "norm",
        "column": "heat",
        "rows": rows,
        "columns": columns,
        "selected": [shown.row, shown.column],
        "query_label": say(f"formats.place.{down}"),
        "key_label": say(f"formats.place.{across}") if across else "",
    }


def _ladder(result: Result) -> View:
    shown = result.shown
    parts = ("stored", "neighbours", "spacing", "bits", "decimal")
    values = {"row": shown.row, "column": shown.column, "stage": stage_name(shown.stage)}
    blank = {"text": ""}
    held = [say("formats.ladder.held"), "entry.held", *[blank] * (len(parts) - 1)]
    exact = [say("formats.ladder.exact"), "entry.exact", *[blank] * (len(parts) - 1)]
    return {
        "kind": "cells",
        "title": say("formats.panel.ladder", **values),
        "subtitle": say("formats.axis.ladder"),
        "wide": 9,
        "breaks": [parts.index("bits") + 1, parts.index("decimal") + 1],
        "head": ["", *(say(f"formats.ladder.{part}") for part in parts)],
        "roles": [None] * (1 + len(parts)),
        "rows": [exact, *([word, *(f"{part}.{word}" for part in parts)] for word in STORED), held],
        "strong": 1 + STORED.index(shown.storage),
    }


def _counts(result: Result, role: str, side: Side) -> View:
    settings = result.settings
    s = STAGES.index(settings.stage)
    n, name = int(side.tally.n[0, s, 0]), say(f"variant.{side.variant}.short")
    key = "counts" if n else "no_counts"
    parts = (*_COUNTED, "max_rel_error")
    return {
        "kind": "cells",
        "title": say(f"formats.panel.{key}", stage=stage_name(settings.stage), side=name, n=n),
        "wide": 6,
        "head": ["", *(say(f"formats.count.{part}") for part in parts)],
        "roles": [None, *[role] * len(parts)],
        "rows": [[word, *(f"{part}.{word}.{role}" for part in parts)] for word in STORED],
        "strong": STORED.index(settings.storage),
    }


def _losses(result: Result, swept: Sweep, word: str) -> View:
    """The share that one format loses of the shown stage, marked where it begins."""
    f, s = [str(each) for each in STORED].index(word), STAGES.index(result.settings.stage)
    firsts = [float(side.first_loss[f, s]) for side in result.sides]
    marks = [
        {"x": first, "label": say("formats.first", scale=onset(first)), "role": role}
        for role, first in zip(_ROLES, firsts, strict=True)
        if first <= _HIGHEST
    ]
    first = min((first for first in firsts if math.isfinite(first)), default=math.inf)
    before = np.array(swept.scales) < first
    early = any((counted.n_lost[f, s] > 0)[before].any() for counted in (swept.plain, swept.twin))
    key = "losing" if marks else "later" if math.isfinite(first) else "never"
    title = say(f"formats.panel.{key}{'_early' if early else ''}", format=word, scale=onset(first))
    return _curve(result, swept, f"lost.{word}", title, say("formats.axis.lost", stage=_stage(result))) | {
        "marks": marks
    }


def _worn(result: Result, swept: Sweep) -> View:
    word = result.settings.storage
    title = say("formats.panel.worn", format=word)
    return _curve(result, swept, f"worn.{word}", title, say("formats.axis.worn", stage=_stage(result)))


def _stage(result: Result) -> str:
    return stage_name(result.settings.stage)


def _curve(result: Result, swept: Sweep, column: str, title: str, subtitle: str) -> View:
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
