"""What charts on paper are made of: layers of Vega-Lite, each with its own rows, in the light theme.

* `layer(mark, rows, **channels)`: one mark; a channel's value is a constant, or the name of a column as `Field`;
* `words(rows, ...)`: text on a halo of paper, so that a line behind does not cross it out;
* `plane(width, height)`: the two channels of a drawing whose rows hold pixels, counted from the upper left;
* `whole(layers, ...)`: layers as a chart;
* `labels(ticks)`: an axis's own words, `over(title)`: its title, above it; `listed(values)`: as expressions have them.

These are plain dicts: Altair takes a second to load, and 50 ms to check a chart; a test checks them by its schema.
"""

import json
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, Final, TypeAlias

from qkdemo.charts.panels import Tick
from qkdemo.charts.theme import LIGHT, mixed

Spec: TypeAlias = dict[str, Any]
Rows: TypeAlias = Sequence[Mapping[str, Any]]
SIZE: Final = 9.5  # of words, in a column of a page
LINE: Final = 1.15 * SIZE  # from one to the next
TINT: Final = mixed(LIGHT.paper, LIGHT.ink, 0.07)
_SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"  # a name: nothing is fetched
_WIDE: Final = 320.0  # of a figure in a column of a page
_LETTER: Final = 0.5 * SIZE  # about how wide one is
RULE: Final = mixed(LIGHT.paper, LIGHT.ink, 0.5)
CONFIG: Final[Spec] = {
    "font": "Arial, Helvetica, Liberation Sans, sans-serif",  # as wide as vl-convert measures them
    "background": LIGHT.paper,
    "aria": False,
    "padding": 2,
    "view": {"stroke": None},
    "text": {"fontSize": SIZE, "color": LIGHT.ink},
    "axis": {
        "labelColor": LIGHT.muted,
        "titleColor": LIGHT.muted,
        "labelFontSize": SIZE,
        "titleFontSize": SIZE,
        "titleFontWeight": "normal",
        "gridColor": LIGHT.grid,
        "domain": False,
        "ticks": False,
        "labelPadding": 4,
        "labelSeparation": 4,
        "titlePadding": 3,
    },
}


class Field(str):
    """The name of a column, where a plain text would be a constant."""

    __slots__ = ()


def layer(mark: Spec, rows: Rows, **channels: Any) -> Spec:
    """One mark for every row; colours, dashes and the like stand in `mark`."""
    encoding = {
        name: channel if isinstance(channel, dict) else _channel(name, channel) for name, channel in channels.items()
    }
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": encoding}


def words(rows: Rows, mark: Spec | None = None, *, halo: bool = True, **channels: Any) -> list[Spec]:
    """The column `text` of the rows. Where they stand is for `channels`, or for the chart."""
    inks: list[Spec] = [{"stroke": LIGHT.paper, "strokeWidth": 3, "strokeJoin": "round"}] if halo else []
    kind = {"type": "text", "baseline": "middle", **(mark or {})}
    return [layer(kind | ink, rows, text=Field("text"), **channels) for ink in [*inks, {}]] if rows else []


def plane(width: float, height: float) -> Spec:
    """Places in pixels."""
    return {
        name: {"field": name, "type": "quantitative", "axis": None, "scale": {"domain": ends, "nice": False}}
        for name, ends in (("x", [0, width]), ("y", [height, 0]))
    }


def whole(layers: Sequence[Spec], size: tuple[float, float], encoding: Spec, told: str, **more: Any) -> Spec:
    """A chart of its own. `encoding` are channels that all layers share, `told` says what it shows."""
    made = {"$schema": _SCHEMA, "description": told, "width": size[0], "height": size[1], "encoding": encoding}
    return made | {"layer": list(layers), "config": CONFIG, **more}


def labels(ticks: Sequence[Tick]) -> Spec:
    """An axis that says at these places what is written there."""
    values = [float(value) for value, _ in ticks]
    said = f"{listed([text for _, text in ticks])}[indexof({listed(values)}, datum.value)]"
    return {"values": values, "labelExpr": said, "labelOverlap": "greedy"}


def listed(values: Sequence[float | str]) -> str:
    """Values as Vega's expressions write them."""
    return json.dumps(list(values), ensure_ascii=False)


def over(title: str | None, room: float = _WIDE) -> Spec:
    """The title of a vertical axis, above it, so that it can be read; in as many lines as there is room for."""
    lines = wrap((title or "").strip(" \u00a0"), int(room / _LETTER))
    place = {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleBaseline": "bottom"}
    top = -7 - LINE * max(0, len(lines) - 1)
    return {"title": lines or None, **place, "titleLineHeight": LINE, "titleX": -26, "titleY": top}


def _channel(name: str, channel: Any) -> Spec:
    if not isinstance(channel, Field):
        return {"value": channel}
    kind = {} if name in ("x2", "y2") else {"type": "nominal" if channel == "text" else "quantitative"}
    return {"field": str(channel), **kind}
