"""How two pipelines are drawn: the table and view that the exhibit component takes.

* `placement_exhibit(result)`: the exhibit, dragged along the spread of the gains;
* `picked(settings, pick)`: the dials that a click sets; on a bar, the pipelines of that known mistake.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.attention.pipeline import CHOICES
from qkdemo.charts.axes import decades, linear_axis
from qkdemo.charts.columns import codes, gap, reading, vectors, words
from qkdemo.charts.panels import Bars, Cells, Curves, Heat, Line, Panel, PlainAxis, Role
from qkdemo.charts.spec import Drawn, Exhibit, Pick
from qkdemo.dials import Value
from qkdemo.labs.placement.lab import PRESETS, Result, Settings, alike, mistakes_over_spreads, over_spreads, pipeline_of
from qkdemo.labs.placement.mistakes import MISTAKES, ROUNDING, known_as
from qkdemo.labs.placement.mistakes import Curves as MistakeCurves
from qkdemo.labs.placement.words import explain, findings
from qkdemo.messages import in_each_language, say
from qkdemo.notation import written

_LEAST, _MOST = 0.01, 10.0  # errors that an axis of mistakes shows
_CLOSE: Final = 1.5  # ratio below which two mistakes share a label
_ROLES: Final[dict[str, Role]] = {"raw": "other", "output": "bound", "weight": "left", "logits": "right"}
_SIDES: Final[tuple[Role, Role]] = ("left", "right")
_COMPARED: Final = (*_SIDES, "ratio")


def placement_exhibit(result: Result) -> Drawn:
    """Table and view of the exhibit."""
    return _table(alike(result.settings)), _view(result)


@in_each_language(64)
def _table(settings: Settings) -> pa.Table:
    """The table; the spread of the gains is its dial, and adds a row only where it stands between the others."""
    swept = over_spreads(settings)
    table: dict[str, Any] = {
        "spread": swept.spreads,
        "spread.text": [written(spread) for spread in swept.spreads.tolist()],
        "finding": findings(settings),
    }
    for name in _ROLES:
        column = [getattr(apart, name) for apart in swept.differences]
        table |= {f"pair.{name}": column, f"pair.{name}.text": [_error(x) for x in column]}
    table |= _mistake_columns(mistakes_over_spreads(settings))
    if settings.compare == "two":
        table |= _pair_columns(settings)
    return pa.table(table)


@in_each_language(32)
def _mistake_columns(curves: MistakeCurves) -> dict[str, Any]:
    """What every known mistake does, whatever the two pipelines are."""
    columns: dict[str, Any] = {}
    errors = np.stack([np.where(row < ROUNDING, 0, row) for row in curves.logits.values()])
    for name, row in zip(curves.logits, errors, strict=True):
        columns |= {f"{name}.error": row, f"{name}.error.text": [_error(x) for x in row.tolist()]}
        columns[f"{name}.weight.text"] = [_error(x) for x in curves.weight[name].tolist()]
    columns["bars"] = vectors(_heights(errors).T.astype(np.float32))
    return columns


def picked(settings: Settings, pick: Pick) -> dict[str, Value]:
    """The dials, by name, that a pick sets."""
    if "dial" in pick:
        return {"gain_spread": pick["dial"]}
    last = settings.n_keys - 1
    if "query" in pick:
        return {name: min(int(pick[name]), last) for name in ("query", "key") if name in pick}
    if "key" not in pick:
        return {}
    chosen = PRESETS[list(MISTAKES)[min(int(pick["key"]), len(MISTAKES) - 1)]]
    return {f"{side}_{name}": getattr(chosen, f"{side}_{name}") for side in _SIDES for name in CHOICES} | {
        "compare": "two"
    }


def _pair_columns(settings: Settings) -> dict[str, Any]:
    """What the shown head attends to on either side, and the numbers of the shown query and key."""
    swept = over_spreads(settings)
    _, query, key = settings.shown
    left, right = swept.weights
    columns: dict[str, Any] = {"left.heat": vectors(codes(left)), "right.heat": vectors(codes(right))}
    gap = np.abs(right - left)
    columns["gap.heat"] = vectors(codes(gap / max(float(np.nanmax(gap, initial=0)), ROUNDING)))
    for name in ("raw", "logits", "weights"):
        first, second = (side[:, query, key] for side in getattr(swept, name))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = second / first
        for side, numbers in (("left", first), ("right", second), ("ratio", ratio)):
            columns[f"{side}.{name}.text"] = [reading(x) for x in numbers.tolist()]
    seen = np.tri(settings.n_keys, dtype=bool) | (not settings.causal)
    largest = [np.abs(side[:, seen]).max(1) for side in swept.logits]
    with np.errstate(divide="ignore", invalid="ignore"):
        largest.append(largest[1] / largest[0])
    for side, column in zip(_COMPARED, largest, strict=True):
        columns[f"{side}.largest.text"] = [reading(x) for x in column.tolist()]
    return columns


def _view(result: Result) -> Exhibit:
    settings = result.settings
    two = settings.compare == "two"
    label = say("dial.gain_spread.label")
    tiles = ("spread", "raw", "logits", "weight", "output") if two else ()
    mistakes: list[Panel] = [_mistakes(settings), _bars(settings), _names(settings)]
    return {
        "dial": {
            "column": "spread",
            "name": "gain_spread",
            "text": "spread.text",
            "label": label,
            "at": settings.gain_spread,
            "log": False,
        },
        "finding": "finding",
        "heading": 1,
        "tiles": [
            {
                "label": say(f"placement.tile.{name}"),
                "lines": [{"role": "right", "column": "spread.text" if name == "spread" else f"pair.{name}.text"}],
            }
            for name in tiles
        ],
        "panels": [_pair(result), mistakes[0], *_heats(settings), _cells(settings), *mistakes[1:]] if two else mistakes,
        "words": words(),
        "alt": " ".join([findings(settings)[_at(settings)], *(explain(result) if two else [])]),
    }


def _at(settings: Settings) -> int:
    return int(np.argmin(np.abs(over_spreads(settings).spreads - settings.gain_spread)))


def _x() -> PlainAxis:
    return {"ticks": [(x, written(x)) for x in (0, 0.2, 0.4, 0.6, 0.8)]}


def _pair(result: Result) -> Curves:
    differences = over_spreads(result.settings).differences
    errors = [getattr(apart, name) for apart in differences for name in _ROLES]
    most = max((error for error in errors if math.isfinite(error)), default=0.0)  # beside nothing, or ∞, it is ∞ or NaN
    said = {name: say(f"placement.line.{name}") for name in _ROLES}
    lines = [Line(role=_ROLES[at], column=f"pair.{at}", label=said[at], texts=f"pair.{at}.text") for at in _ROLES]
    return {
        "kind": "curves",
        "title": say("placement.panel.pair"),
        "subtitle": say("placement.axis.pair"),
        "wide": 6,
        "x": _x(),
        "y": linear_axis(0.0, most if most > ROUNDING else 1.0),
        "lines": lines[::-1],
        "marks": [],
        "labels": "apart",
    }


def _mistakes(settings: Settings) -> Curves:
    """Every known mistake by its number: the current one, those that vanish with unit gains, and the rest."""
    found, current = mistakes_over_spreads(settings), _current(settings)
    roles: dict[str, Role] = {
        name: "right" if name == current else "left" if column[0] < ROUNDING else "other"
        for name, column in found.logits.items()
    }
    labels = _numbers({name: column[-1].item() for name, column in found.logits.items()}, roles)
    said = {name: f"{say('placement.mistake')} {number}" for number, name in enumerate(roles, 1)}
    lines = [
        Line(role=role, column=(at := f"{name}.error"), label=labels.get(name, ""), name=said[name], texts=f"{at}.text")
        for name, role in roles.items()
    ]
    return {
        "kind": "curves",
        "title": say("placement.panel.mistakes"),
        "subtitle": say("placement.axis.mistakes", least=written(_LEAST), most=written(_MOST)),
        "wide": 6 if settings.compare == "two" else 12,
        "x": _x(),
        "y": {"log": True, "domain": (_LEAST, _MOST), "ticks": decades(_LEAST, _MOST)},
        "lines": sorted(lines, key=lambda line: line["role"] != "right"),
        "marks": [],
    }


def _numbers(ends: dict[str, float], roles: Mapping[str, Role]) -> dict[str, str]:
    """The number of each mistake, or of several of one role that end close together, by the first of them."""
    order = list(ends)
    groups: list[list[str]] = []
    for name in sorted(ends, key=lambda one: ends[one]):
        last = groups[-1][-1] if groups else ""
        if last and roles[name] == roles[last] and ends[name] <= _CLOSE * ends[last]:
            groups[-1].append(name)
        else:
            groups.append([name])
    return {group[0]: ", ".join(str(1 + at) for at in sorted(map(order.index, group))) for group in groups}


def _heats(settings: Settings) -> list[Heat]:
    head, query, key = settings.shown
    left, right = over_spreads(settings).weights
    widest = max(float(np.nanmax(np.abs(right - left), initial=0)), ROUNDING)  # of rows without weights nothing is told
    heats: list[tuple[str, Role, str, str]] = [
        (side, role, say(f"placement.panel.{side}"), "heat") for side, role in _roles(settings).items()
    ]
    panels: list[Heat] = [
        {
            "kind": "heat",
            "title": title,
            "subtitle": say(f"placement.axis.{axis}", head=head, most=written(widest, 2)),
            "wide": 3,
            "role": role,
            "column": f"{name}.heat",
            "rows": settings.n_keys,
            "columns": settings.n_keys,
            "selected": (query, key),
            "query_label": say("placement.query"),
            "key_label": say("placement.key"),
        }
        for name, role, title, axis in [*heats, ("gap", "other", say("placement.panel.gap"), "gap")]
    ]
    panels[-1]["ramp"] = [(math.sqrt(part), written(part * widest, 2)) for part in (0, 0.1, 1)]
    return panels


def _cells(settings: Settings) -> Cells:
    head, query, key = settings.shown
    return {
        "kind": "cells",
        "title": say("placement.panel.cells", query=query, key=key),
        "wide": 3,
        "head": ["", *(say(f"placement.{side}") for side in _COMPARED)],
        "roles": [None, *_roles(settings).values(), None],
        "rows": [
            [{"text": say(f"placement.cell.{name}", head=head)}, *(f"{side}.{name}.text" for side in _COMPARED)]
            for name in ("raw", "logits", "weights", "largest")
        ],
        "strong": 1,
    }


def _bars(settings: Settings) -> Bars:
    names = list(MISTAKES)
    current = _current(settings)
    errors = [f"{name}.error" for name in names]
    ticks = [(_heights(np.array(value)).item(), words) for value, words in decades(_LEAST, _MOST)]
    return {
        "kind": "bars",
        "title": say("placement.panel.bars"),
        "subtitle": say("placement.axis.bars", least=written(_LEAST), most=written(_MOST)),
        "wide": 5,
        "lines": [{"role": "right", "column": "bars", "label": say("placement.head.error"), "numbers": errors}],
        "labels": [str(number) for number in range(1, len(names) + 1)],
        "selected": names.index(current) if current else None,
        "key_label": say("placement.mistake"),
        "y": {"ticks": ticks},
    }


def _names(settings: Settings) -> Cells:
    return {
        "kind": "cells",
        "title": say("placement.panel.names"),
        "wide": 7,
        "head": ["", *(say(f"placement.head.{name}") for name in ("error", "weight"))],
        "roles": [None] * 3,
        "rows": [
            [{"text": f"{number} · {say(f'mistake_name.{name}')}"}, f"{name}.error.text", f"{name}.weight.text"]
            for number, name in enumerate(MISTAKES, 1)
        ],
        "strong": list(MISTAKES).index(_current(settings)) if _current(settings) else -1,
    }


def _roles(settings: Settings) -> dict[Role, Role]:
    """The role of each side: its own, or plain where it alone has no norm."""
    bare = [side for side in _SIDES if pipeline_of(settings, side).norm == "none"]
    return {side: "plain" if bare == [side] else side for side in _SIDES}


def _current(settings: Settings) -> str:
    return known_as(pipeline_of(settings, "left"), pipeline_of(settings, "right"))


def _heights(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Errors as heights from 0 to 1 on a logarithmic axis."""
    with np.errstate(divide="ignore"):
        heights: NDArray[np.float64] = np.clip(np.log(errors / _LEAST) / np.log(_MOST / _LEAST), 0, 1)
    return heights


def _error(x: float) -> str:
    return gap(x, ROUNDING)
