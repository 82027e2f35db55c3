"""Curves over an exhibit's dial, on paper: lines, marks, levels, the cursor, what is kept back, and predictions.

* `curves(table, view, panel, look)`: the chart; its description is what the lines say at the cursor.

+∞ leaves the frame through its top, NaN is a gap: as in the browser. A row of a line holds its `value` too, where that
lies outside the frame.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.charts.look import Look, cell, numbers
from qkdemo.charts.panels import Axis, Curves, Line
from qkdemo.charts.paper.marks import LINE, RULE, SIZE, TINT, Field, Spec, labels, layer, over, whole, words
from qkdemo.charts.spec import Exhibit
from qkdemo.charts.theme import LIGHT
from qkdemo.notation import written

WIDE, TALL = 316, 132  # the whole, with its words; its frame alone
_MARGIN: Final = 1.05  # above what an axis has to take in
_BEYOND: Final = 0.01  # of the frame: how far a line goes beyond the edge that it leaves by
_NAME: Final = 115  # the widest name of a line
_ROOM: Final = 240  # about how wide the frame is
_LETTER: Final = 0.5 * SIZE
_RIGHT: Final = {"value": {"expr": "width"}}
Columns: TypeAlias = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class _Frame:
    """How numbers become places."""

    place: Callable[[float], float]  # 0 to 1 along the dial
    log: bool
    low: float
    high: float

    def share(self, value: float) -> float:
        """0 at the lower edge, 1 at the upper; a little beyond for what the axis cannot show."""
        if math.isinf(value) or (self.log and value <= 0):
            return 1 + _BEYOND if value > 0 else -_BEYOND
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, -_BEYOND), 1 + _BEYOND)

    def shown(self, value: float, beyond: float = _BEYOND) -> float:
        """The value itself, or one at most so far behind the edge that it lies behind."""
        share = self.share(value)
        if 0 <= share <= 1:
            return value
        share = 1 + beyond if share > 1 else -beyond
        return self.low * (self.high / self.low) ** share if self.log else self.low + share * (self.high - self.low)


def curves(table: pa.Table, view: Exhibit, panel: Curves, look: Look) -> Spec:
    """The panel as a chart, `WIDE` pixels from its words on the left to those on the right."""
    dial, swept = view["dial"], numbers(table, view["dial"]["column"])
    values = {line["column"]: numbers(table, line["column"]) for line in panel["lines"]}
    scale, place = _along(swept, log=dial["log"])
    frame = _Frame(place, panel["y"]["log"], *_domain(panel["y"], list(values.values())))
    first, last = float(swept[look.first]), float(swept[look.last])
    layers = list(_levels(panel, frame))
    if first != swept[0] or last != swept[-1]:
        layers += _veil(*((last, swept[-1]) if first == swept[0] else (swept[0], first)))
    for line in reversed(panel["lines"]):  # the first line lies on top
        layers += _line(line, table, swept, frame, look)
    for at, mark in enumerate(mark for mark in panel.get("marks", []) if first <= mark["x"] <= last):
        role = mark.get("role", "other")
        layers.append(_upright(mark["x"], LIGHT.role(role), [1, 3]))
        layers += _aside(frame, mark["x"], mark["label"], role, y={"value": (at + 0.7) * LINE})
    layers += [_upright(float(swept[look.row]), RULE), *_cursor(panel, values, float(swept[look.row]), frame, look)]
    for point in panel.get("points", []):
        dot = {"type": "circle", "color": LIGHT.role(point["role"]), "size": 20, "opacity": 1}
        y = frame.shown(point["y"], 0)
        layers += [layer(dot, [{"x": point["x"], "y": y}])]
        layers += _aside(frame, point["x"], point["label"], point["role"], **_above(frame, y))
    layers += _names(panel, values, frame, look)
    for guess in look.guesses:
        if guess["column"] in values:
            y, shape = frame.shown(guess["y"], 0), {"type": "point", "shape": "diamond", "size": 70, "opacity": 1}
            layers.append(layer(shape | {"fill": LIGHT.paper, "stroke": LIGHT.ink}, [{"x": guess["x"], "y": y}]))
            layers += _aside(frame, guess["x"], guess["label"], "left", **_above(frame, y))
    encoding = {
        "x": {"field": "x", "type": "quantitative", "scale": scale, "axis": _x_axis(panel, dial["label"], place)},
        "y": {"field": "y", "type": "quantitative", "scale": _y_scale(frame), "axis": _y_axis(panel, frame)},
    }
    fit = {"type": "fit-x", "contains": "padding"}
    return whole(layers, (WIDE, TALL), encoding, _told(table, view, panel, look), autosize=fit)


def _told(table: pa.Table, view: Exhibit, panel: Curves, look: Look) -> str:
    """What the lines say at the cursor."""
    at = str(table.column(view["dial"]["text"])[look.row].as_py())

    def number(line: Line) -> str:
        if "texts" in line:
            return cell(table, line["texts"], look.row)
        return written(numbers(table, line["column"])[look.row], 3)

    said = (f"{line.get('name', line['label'])} {number(line)}" for line in panel["lines"])
    return f"{view['dial']['label']} {at}: {'; '.join(said)}"


# ---- places


def _along(swept: NDArray[np.float64], *, log: bool) -> tuple[Spec, Callable[[float], float]]:
    """The dial's scale, and where a value lies, 0 to 1; a logarithmic dial from 0 on is laid out by log(1 + x)."""
    low, high = float(swept[0]), float(swept[-1])
    kind, there = (("log", math.log) if low > 0 else ("symlog", math.log1p)) if log else ("linear", float)
    span = there(high) - there(low) or 1.0
    scale = {"type": kind, "domain": [low, high if high > low else low + 1], "nice": False}
    return scale, lambda value: (there(value) - there(low)) / span


def _domain(axis: Axis, columns: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """The axis's own; one that grows takes in every finite value: logarithmic by decades, others with a margin."""
    low, high = axis["domain"]
    if axis.get("grows"):
        finite = np.concatenate([column[np.isfinite(column)] for column in columns])
        largest = float(finite.max(initial=high))
        if largest > high:
            high = 10.0 ** math.ceil(math.log10(largest)) if axis["log"] else largest * _MARGIN
        if axis["log"]:
            smallest = float(finite[finite > 0].min(initial=low))
            low = max(axis["ticks"][0][0], 10.0 ** math.floor(math.log10(smallest)))
    return float(low), float(high)


def _x_axis(panel: Curves, label: str, place: Callable[[float], float]) -> Spec:
    ticks = [tick for tick in panel.get("x", {"ticks": []})["ticks"] if -1e-9 <= place(tick[0]) <= 1 + 1e-9]
    return {"grid": False, "title": label, "titleAnchor": "end", **labels(ticks)}


def _y_scale(frame: _Frame) -> Spec:
    return {"type": "log" if frame.log else "linear", "domain": [frame.low, frame.high], "nice": False}


def _y_axis(panel: Curves, frame: _Frame) -> Spec:
    """Its title lies above it, so that it can be read."""
    ticks = [t for t in sorted(panel["y"]["ticks"]) if frame.low * (1 - 1e-9) <= t[0] <= frame.high * (1 + 1e-9)]
    return over(panel.get("subtitle")) | labels(ticks)


# ---- what is drawn


def _line(line: Line, table: pa.Table, swept: NDArray[np.float64], frame: _Frame, look: Look) -> Iterator[Spec]:
    """A band if it has one, the pieces of the line, and a dot at every row that is known."""
    colour, rows = LIGHT.role(line["role"]), range(look.first, look.last + 1)
    if "low" in line and "high" in line:
        low, high = (numbers(table, line[name]) for name in ("low", "high"))
        ends = [
            {"x": swept[row], "y": frame.shown(low[row]), "high": frame.shown(high[row])}
            for row in rows
            if math.isfinite(low[row]) and math.isfinite(high[row])
        ]
        yield layer({"type": "area", "color": colour, "opacity": 0.15}, ends, y2=Field("high"))
    values = numbers(table, line["column"])
    pieces = [row | {"run": at} for at, run in enumerate(_runs(swept, values, frame, look)) for row in run]
    style = {"type": "line", "color": colour, "strokeWidth": 1.8, "strokeDash": LIGHT.dash(line["role"])}
    yield layer(style, pieces, detail=Field("run"))
    if line.get("dots"):
        known = [{"x": swept[row], "y": frame.shown(values[row])} for row in rows if math.isfinite(values[row])]
        yield layer({"type": "circle", "color": colour, "size": 14, "opacity": 1}, known)


def _runs(
    swept: NDArray[np.float64], values: NDArray[np.float64], frame: _Frame, look: Look
) -> Iterator[list[dict[str, float]]]:
    """The line's pieces between gaps; a step to or from ∞ ends at the edge of the frame."""
    run: list[dict[str, float]] = []
    for row in range(look.first, look.last + 1):
        value = float(values[row])
        if math.isnan(value):
            yield from [run] if len(run) > 1 else []
            run = []
            continue
        point = {"x": float(swept[row]), "y": frame.shown(value)}
        if math.isinf(value):
            yield from [[*run, point]] if run and run[-1]["y"] != point["y"] else []
            run = [point]  # along the edge there is nothing to be seen
        else:
            run.append(point)
    yield from [run] if len(run) > 1 else []


def _levels(panel: Curves, frame: _Frame) -> Iterator[Spec]:
    style = {"type": "rule", "color": LIGHT.role("bound"), "strokeDash": [1, 3]}
    side = {"align": "right", "dx": -3, "dy": -6, "color": LIGHT.role("bound")}
    for level in panel.get("levels", []):
        rows = [{"y": frame.shown(level["y"], 0), "text": level["label"]}]
        yield layer(style, rows, x=0, x2=_RIGHT)
        yield from words(rows, side, x=_RIGHT)


def _veil(left: float, right: float) -> Iterator[Spec]:
    """A band over what is still to be predicted."""
    edges = [{"x": float(left), "right": float(right)}]
    yield layer({"type": "rect", "color": TINT}, edges, x2=Field("right"), y=0, y2=TALL)
    middle = math.sqrt(left * right) if left > 0 else (left + right) / 2
    yield from words([{"x": middle, "text": "?"}], {"fontSize": 2 * SIZE, "fontWeight": "bold"}, halo=False, y=TALL / 2)


def _upright(x: float, colour: str, dash: Sequence[int] = (1, 0)) -> Spec:
    return layer({"type": "rule", "color": colour, "strokeDash": list(dash)}, [{"x": x}], y=-4, y2=TALL)


def _cursor(panel: Curves, values: Columns, x: float, frame: _Frame, look: Look) -> Iterator[Spec]:
    """A dot on every line, and ∞ where one is."""
    for line in reversed(panel["lines"]):
        value, colour = float(values[line["column"]][look.row]), LIGHT.role(line["role"])
        if math.isnan(value):
            continue
        spot = {"x": x, "y": frame.shown(value, 0), "text": written(value)}
        yield layer({"type": "circle", "color": colour, "size": 34, "opacity": 1}, [spot])
        if math.isinf(value):
            style = {"align": "left", "dx": 5, "dy": 6, "fontSize": 1.2 * SIZE, "fontWeight": "bold", "color": colour}
            yield from words([spot], style)


def _names(panel: Curves, values: Columns, frame: _Frame, look: Look) -> Iterator[Spec]:
    """The names of the lines, beside the frame, each as near to where its line ends as the others let it."""
    named = []
    for line in panel["lines"]:
        column = values[line["column"]][look.first : look.last + 1]
        seen = column[~np.isnan(column)]
        if line.get("label") and seen.size:
            named.append((TALL * (1 - min(max(frame.share(float(seen[-1])), 0), 1)), line))
    named.sort(key=lambda entry: entry[0])
    for y, (_, line) in zip(apart([y for y, _ in named], LINE, 0, TALL), named, strict=True):
        style = {"align": "left", "dx": 6, "fontWeight": "bold", "color": LIGHT.role(line["role"]), "limit": _NAME}
        yield from words([{"text": line["label"]}], style, halo=False, x=_RIGHT, y=y)


def apart(places: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Ascending places moved as little as needed to be `least` apart, within `low` and `high` if there is room."""
    moved = list(places)
    for at in range(1, len(moved)):
        moved[at] = max(moved[at], moved[at - 1] + least)
    over = moved[-1] - high if moved else 0.0
    if over > 0:
        moved[-1] -= over
        for at in reversed(range(len(moved) - 1)):
            moved[at] = min(moved[at], moved[at + 1] - least)
    return [max(place, low) if at == 0 else place for at, place in enumerate(moved)]


def _above(frame: _Frame, y: float) -> Spec:
    """The height of words above a value, or below it where the frame ends."""
    up = TALL * (1 - frame.share(y))
    return {"y": {"value": up - 7 if up > SIZE else up + 7}}


def _aside(frame: _Frame, x: float, text: str, role: str, y: Spec) -> list[Spec]:
    """Words beside a place, on the side where there is room."""
    late = frame.place(x) * _ROOM + _LETTER * len(text) > _ROOM
    side = {"align": "right", "dx": -5} if late else {"align": "left", "dx": 5}
    return words([{"x": x, "text": text}], side | {"color": LIGHT.role(role)}, y=y)
