"""A map as Altair draws it: one table, one spec.

* `marks_table(cells, role)`: everything that is drawn of one side, a row per mark; `layer` says what a row is;
* `panel(look)`, `spec(look)`: the chart of one side without its data, as a `Look` has it: it is the same while a map
  fills in, and wherever the cross stands;
* `picture(cells, caption)`: all sides beside each other, with their data: a file of its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import altair as alt
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.charts.axes import decades, linear_axis
from qkdemo.charts.theme import LIGHT, Theme, numbered, vega_config
from qkdemo.dials import Value
from qkdemo.maps.cells import Cells, Scale
from qkdemo.maps.outlines import label_at, outline
from qkdemo.maps.request import Axis, scale_of
from qkdemo.maps.words import cross, cross_at, finding, reads_short, shown_name
from qkdemo.messages import in_each_language, say
from qkdemo.notation import written

Spec: TypeAlias = dict[str, Any]
PICK, FRAME = "pick", "frame"  # what a visitor does in it: a click on a cell, a frame around some
_WIDTH, _HEIGHT = 440, 360  # of a side in a file
_TALL: Final = 430  # of a side on the page, with its axis and its legend
_TALL_IN_A_HALL: Final = 700  # whose words are larger
_WORDS, _WORDS_IN_A_HALL = 12, 25
_DEEPEST: Final = 1e-12  # of the largest value: what is smaller has the last colour
_FEW: Final = 12  # values of a dial, each of which is written at its axis
_DECADES: Final = 100  # from the lowest to the highest value of an axis on which only powers of ten are written
_LATE: Final = 0.7  # of the width, from which on a word stands left of its line
_SIDES_OF_A_LINE: Final[tuple[tuple[str, Literal["left", "right"], int], ...]] = (
    ("word", "left", 5),
    ("word_before", "right", -5),
)
_CROSS: Final = 260  # area, in pixels
_COLUMNS: Final = ("layer", "x", "y", "x0", "x1", "y0", "y1", "shown", "text", "u", "v", "mark")


def marks_table(cells: Cells, role: str, at_cell: tuple[int, int] | None = None) -> pa.Table:
    """One row per cell, per piece of a line, per word on a line, for the cross, and for the cell that keys stand on."""
    rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    xs, ys = _edges(cells.request.x, cells.x), _edges(cells.request.y, cells.y)
    values, domain = cells.shown(role), _domain(cells)

    def add(layer: str, **entries: Any) -> None:
        for name, column in rows.items():
            column.append(layer if name == "layer" else entries.get(name))

    for j, y in enumerate(cells.y):
        for i, x in enumerate(cells.x):
            value = float(values[j, i])
            kind = "cell" if math.isfinite(value) else "undefined" if math.isnan(value) else "infinite"
            box = {"x": float(x), "y": float(y), "x0": xs[i], "x1": xs[i + 1], "y0": ys[j], "y1": ys[j + 1]}
            said = {"text": cells.text(value), "u": written(float(x)), "v": written(float(y))}
            shown = min(max(value, domain[0]), domain[1]) if kind == "cell" else None
            add(kind, **box, **said, shown=shown)
    marks = [mark for mark in cells.marks if outline(cells.holds(role, mark))]
    for at_mark, mark in enumerate(marks):
        words, edges = say(f"mark.{mark}"), outline(cells.holds(role, mark))
        for x0, y0, x1, y1 in edges:
            add("line", x0=xs[x0], x1=xs[x1], y0=ys[y0], y1=ys[y1], mark=words)
        target = (0.25 + 0.5 * at_mark / max(1, len(marks)), 0.95 - 0.12 * at_mark)
        px, py = label_at(edges, target, (len(cells.x), len(cells.y)))
        layer = "word" if px < _LATE * len(cells.x) else "word_before"
        add(layer, x=_border(cells.request.x, xs, px), y=_border(cells.request.y, ys, py), text=words, mark=words)
    if (at := cross_at(cells)) is not None:
        i, j = cross(cells)
        add("cross", x=at[0], y=at[1], text=cells.text(float(values[j, i])))
    if at_cell is not None:
        i, j = at_cell
        add("frame", x0=xs[i], x1=xs[i + 1], y0=ys[j], y1=ys[j + 1])
    kinds = {name: pa.string() if name in ("layer", "text", "u", "v", "mark") else pa.float64() for name in _COLUMNS}
    return pa.table({name: pa.array(column, kinds[name]) for name, column in rows.items()})


@dataclass(frozen=True)
class Look:
    """What a chart depends on: neither on its numbers nor on where the cross stands."""

    x: Axis
    y: Axis
    title: str
    measure: Scale
    domain: tuple[float, float]  # of the colours
    hall: bool = False  # whether it is read from afar


def look_of(cells: Cells) -> Look:
    """How these cells are drawn; all sides have one scale of colours."""
    request = cells.request
    return Look(request.x, request.y, shown_name(cells), cells.scale, _domain(cells))


def panel(look: Look, *, picked: bool = True) -> Any:
    """The chart of one side. `picked`: with what a click and a frame tell the page."""
    x, y = _axis(look.x), _axis(look.y)
    at = {"x": alt.X("x0:Q", **x), "x2": "x1:Q", "y": alt.Y("y0:Q", **y), "y2": "y1:Q"}
    tips = [
        alt.Tooltip("u:N", title=look.x.dial.label),
        alt.Tooltip("v:N", title=look.y.dial.label),
        alt.Tooltip("text:N", title=look.title),
    ]
    colour = alt.Color("shown:Q", scale=_colours(look), legend=_legend(look), title=look.title)
    base = partial(alt.Chart, alt.NamedData(name="marks"))
    tiles = base().mark_rect().encode(**at, color=colour, tooltip=tips).transform_filter("datum.layer == 'cell'")
    if picked:
        tiles = tiles.add_params(
            alt.selection_point(name=PICK, fields=["x", "y"], on="click", clear=False, toggle=False),
            alt.selection_interval(name=FRAME, encodings=["x", "y"], zoom=False, translate=False),
        )
    none = base().mark_rect(fillOpacity=0.55, fill="#808080").encode(**at, tooltip=tips)
    none = none.transform_filter("datum.layer == 'undefined' || datum.layer == 'infinite'")
    place = {"x": alt.X("x:Q", **x), "y": alt.Y("y:Q", **y)}
    lines = [
        base().mark_rule(strokeWidth=width, color=ink).encode(**at).transform_filter("datum.layer == 'line'")
        for width, ink in ((3.5, "#FFFFFF"), (1.5, "#14171C"))
    ]
    size = _WORDS_IN_A_HALL if look.hall else _WORDS
    words = [
        base()
        .mark_text(align=align, dx=dx, fontSize=size, fontWeight=600, color=ink, stroke=ink, strokeWidth=width)
        .encode(**place, text="text:N")
        .transform_filter(f"datum.layer == '{layer}'")
        for layer, align, dx in _SIDES_OF_A_LINE
        for width, ink in ((3.5, "#FFFFFF"), (0, "#14171C"))
    ]
    crosses = [
        base()
        .mark_point(shape="cross", size=_CROSS, filled=False, strokeWidth=width, color=ink, opacity=1)
        .encode(**place)
        .transform_filter("datum.layer == 'cross'")
        for width, ink in ((6, "#FFFFFF"), (3, "#14171C"))
    ]
    frames = [
        base()
        .mark_rect(filled=False, strokeWidth=width, stroke=ink, opacity=1)
        .encode(**at)
        .transform_filter("datum.layer == 'frame'")
        for width, ink in ((6, "#FFFFFF"), (3, "#14171C"))
    ]
    return alt.layer(tiles, none, *lines, *words, *crosses, *frames)


def tall(*, hall: bool) -> int:
    """Pixels of a side on the page; more where a hall looks on."""
    return _TALL_IN_A_HALL if hall else _TALL


@in_each_language(maxsize=64)
def spec(look: Look) -> Spec:
    """The panel as a page takes it: without data, as wide as its place."""
    made: Spec = panel(look).properties(height=tall(hall=look.hall)).to_dict()
    made.pop("$schema", None)
    on_canvas = {"embedOptions": {"renderer": "canvas"}}  # one picture with its words, not a thousand nameless cells
    return numbered(_without_data(made) | {"usermeta": on_canvas})


def picture(cells: Cells, caption: str, theme: Theme = LIGHT) -> Spec:
    """All sides beside each other, with title, caption and data: whoever has Vega-Lite can draw it."""
    charts = []
    for role, name in cells.names.items():
        title = alt.TitleParams(
            name[0].upper() + name[1:], subtitle=reads_short(cells, role), anchor="start", frame="group"
        )
        charts.append(panel(look_of(cells), picked=False).properties(width=_WIDTH, height=_HEIGHT, title=title))
    whole = alt.hconcat(*charts, title=alt.TitleParams(finding(cells), anchor="start", fontSize=16))
    made: Spec = whole.to_dict()
    for chart, role in zip(made["hconcat"], cells.names, strict=True):
        _give_data(chart, marks_table(cells, role).to_pylist())
    foot = {"text": caption.split("\n"), "anchor": "start", "orient": "bottom", "fontSize": 11, "fontWeight": "normal"}
    outer: Spec = {
        "$schema": made.pop("$schema"),
        "config": vega_config(theme),
        "vconcat": [{key: value for key, value in made.items() if key != "config"}],
        "title": foot | {"color": theme.muted, "offset": 14},
    }
    return outer


def _axis(axis: Axis) -> Spec:
    """Scale and axis of a dial, laid out as the dial is."""
    low, high = axis.span
    kind: Literal["linear", "log", "symlog"] = "linear"
    if axis.kind.log:
        kind = "log" if axis.kind.low > 0 else "symlog"
    title = f"{axis.dial.label} {axis.kind.sign}".strip()
    shown: Spec = {"grid": False, "title": title, "labelExpr": "format(datum.value, '.5~g')"}
    if axis.kind.stops and len(axis.finest) <= _FEW:
        shown["values"] = [float(value) for value in axis.finest]
    elif kind == "log":
        shown["values"] = [at for at, _ in decades(low, high)] if high / low > _DECADES else _steps(low, high)
    elif kind == "symlog":
        shown["values"] = [0, *(at for at, _ in decades(1, max(10, high)))]
    return {"scale": alt.Scale(type=kind, domain=[low, high], nice=False), "axis": alt.Axis(**shown)}


def _steps(low: float, high: float) -> list[float]:
    """1, 2, 5, 10 and so on, within a range."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [at for power in powers for step in (1, 2, 5) if low <= (at := float(f"{step}e{power}")) <= high]


def _domain(cells: Cells) -> tuple[float, float]:
    """Of the colours: one for all sides, and not another one whenever a cell comes in."""
    measure = cells.scale
    if measure == "share":
        return 0.0, 1.0
    every = np.concatenate([cells.shown(role).ravel() for role in cells.sides])
    finite: NDArray[np.float64] = every[np.isfinite(every)]
    if measure == "difference":
        most = float(np.abs(finite).max(initial=0.0)) or 1.0
        return -most, most
    if measure == "log":
        positive = finite[finite > 0]
        if not positive.size:
            return 0.1, 1.0
        high = 10.0 ** math.ceil(math.log10(positive.max()) - 1e-9)
        low = 10.0 ** math.floor(math.log10(max(positive.min(), _DEEPEST * positive.max())) + 1e-9)
        return (low, high) if low < high else (low / 10, high)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    axis = linear_axis(low, high)
    if low == high:  # one number everywhere, at which there need not be a round one
        ends: tuple[float, float] = axis["domain"]
        return ends
    ticks = [at for at, _ in axis["ticks"]]
    return min(ticks[0], low), max(ticks[-1], high)


def _colours(look: Look) -> alt.Scale:
    return alt.Scale(
        type="log" if look.measure == "log" else "linear",
        domain=list(look.domain),
        range="diverging" if look.measure in ("share", "difference") else "ramp",
        interpolate="lab",
    )


def _legend(look: Look) -> alt.Legend:
    values = [at for at, _ in decades(*look.domain, at_most=5)] if look.measure == "log" else alt.Undefined
    return alt.Legend(
        orient="bottom", gradientLength=260, gradientThickness=12, titleLimit=900, format="~g", values=values
    )


def _edges(axis: Axis, values: Sequence[Value]) -> list[float]:
    """Where cells begin and end, as far as they are drawn."""
    low, high = axis.span
    return [min(max(edge, low), high) for edge in axis.edges(values)]


def _border(axis: Axis, edges: list[float], at: float) -> float:
    """The value at a place counted in cell borders, which may lie between two of them."""
    there, back = scale_of(axis.kind)
    return back(float(np.interp(at, range(len(edges)), [there(edge) for edge in edges])))


def _without_data(made: Spec) -> Spec:
    """A spec whose table comes from elsewhere."""
    made.pop("data", None)
    made.pop("datasets", None)
    for layer in made["layer"]:
        layer.pop("data", None)
    made.pop("config", None)
    return made


def _give_data(chart: Spec, rows: list[dict[str, Any]]) -> None:
    _without_data(chart)
    chart["data"] = {"values": [{name: value for name, value in row.items() if value is not None} for row in rows]}
