"""Curves over an exhibit's dial, on paper: lines, marks, levels, the cursor, what is kept back, and predictions.

* `curves(table, view, panel, look)`.

+∞ leaves the frame through its top, NaN is a gap: as in the browser.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.charts.look import Look, numbers
from qkdemo.charts.panels import Axis, Curves
from qkdemo.charts.spec import Exhibit
from qkdemo.charts.svg import CAPTION, COLOURS, DASHES, INK, MUTED, PAPER, RULE, Drawing, Point, mixed, text_width
from qkdemo.messages import say
from qkdemo.notation import written

SIZE: Final = (332.0, 196.0)
_WIDEST: Final = 120.0  # that names of lines beside the frame may be
_MARGIN: Final = 1.05  # above what an axis has to take in
_GAP: Final = 5.0
_Place: TypeAlias = Callable[[float], float]


@dataclass(frozen=True)
class _Frame:
    """Where the axes lie, and how numbers become places."""

    left: float
    right: float
    top: float
    bottom: float
    places: NDArray[np.float64]  # 0 to 1 along the dial, one for each row
    log: bool
    low: float
    high: float

    def x(self, place: float) -> float:
        return self.left + place * (self.right - self.left)

    def y(self, value: float) -> float:
        """Just outside the frame for what the axis cannot show."""
        if self.log and value <= 0:
            return self.bottom + 1
        if math.isinf(value):
            return self.top - 1 if value > 0 else self.bottom + 1
        share = (
            math.log(value / self.low) / math.log(self.high / self.low)
            if self.log
            else (value - self.low) / (self.high - self.low)
        )
        return min(max(self.bottom - share * (self.bottom - self.top), self.top - 1), self.bottom + 1)


def curves(table: pa.Table, view: Exhibit, panel: Curves, look: Look) -> str:
    """The panel as a drawing."""
    drawing = Drawing(*SIZE)
    dial = view["dial"]
    values = {line["column"]: numbers(table, line["column"]) for line in panel["lines"]}
    swept = numbers(table, dial["column"])
    place = _scale(swept, log=dial["log"])
    frame = _frame(panel, np.array([place(value) for value in swept]), list(values.values()))
    _axes(drawing, frame, panel, place, dial["label"])
    for level in panel.get("levels", []):
        y = frame.y(level["y"])
        drawing.line([(frame.left, y), (frame.right, y)], stroke=COLOURS["bound"], stroke_dasharray="1 3")
        drawing.text(frame.right - 3, y - 3, level["label"], fill=COLOURS["bound"], text_anchor="end")
    _veil(drawing, frame, look)
    for line in reversed(panel["lines"]):  # the first line lies on top
        for run in _runs(values[line["column"]], frame, look):
            drawing.line(run, stroke=COLOURS[line["role"]], stroke_width=1.8, stroke_dasharray=DASHES[line["role"]])
    for mark in panel.get("marks", []):
        at = place(mark["x"])
        if 0 <= at <= 1 and look.first <= _nearest(frame.places, at) <= look.last:
            role = COLOURS[mark.get("role", "other")]
            drawing.line([(frame.x(at), frame.top), (frame.x(at), frame.bottom)], stroke=role, stroke_dasharray="1 3")
            _aside(drawing, frame, frame.x(at), frame.top + CAPTION, mark["label"], role)
    _cursor(drawing, frame, panel, values, look)
    for point in panel.get("points", []):
        x, y = frame.x(place(point["x"])), min(max(frame.y(point["y"]), frame.top), frame.bottom)
        drawing.dot(x, y, 2.4, fill=COLOURS[point["role"]])
        _aside(drawing, frame, x, y - 4, point["label"], COLOURS[point["role"]])
    _names(drawing, frame, panel, values, look)
    for guess in look.guesses:
        if guess["column"] in values:
            x, y = frame.x(place(guess["x"])), frame.y(guess["y"])
            drawing.polygon([(x - 5, y), (x, y - 5), (x + 5, y), (x, y + 5)], fill=PAPER, stroke=INK, stroke_width=1.6)
            _aside(drawing, frame, x + 4, y - 4, guess["label"], INK)
    return drawing.html(panel["title"], _in_words(table, view, panel, values, look))


def _in_words(table: pa.Table, view: Exhibit, panel: Curves, values: dict[str, NDArray[np.float64]], look: Look) -> str:
    """What the lines say at the cursor."""
    at = str(table.column(view["dial"]["text"])[look.row].as_py())
    said = (f"{line['label']} {written(values[line['column']][look.row], 3)}" for line in panel["lines"])
    return f"{view['dial']['label']} {at}: {'; '.join(said)}"


# ---- places


def _scale(dial: NDArray[np.float64], *, log: bool) -> _Place:
    """Where a value of the dial lies, from 0 to 1; a logarithmic dial that starts at 0 is laid out by log(1 + x)."""
    transform: _Place = (math.log if dial[0] > 0 else math.log1p) if log else float
    first, last = (transform(end) for end in (dial[0], dial[-1]))
    return lambda value: (transform(value) - first) / ((last - first) or 1)


def _nearest(places: NDArray[np.float64], place: float) -> int:
    return int(np.argmin(np.abs(places - place)))


def _frame(panel: Curves, places: NDArray[np.float64], columns: Sequence[NDArray[np.float64]]) -> _Frame:
    axis, (width, height) = panel["y"], SIZE
    low, high = _domain(axis, columns)
    shown = [words for value, words in axis["ticks"] if low <= value <= high]
    names = max((text_width(line.get("label") or "", bold=True) for line in panel["lines"]), default=0)
    right = min(names + _GAP + 2, _WIDEST) if names else 4
    left = max((text_width(words) for words in shown), default=0) + _GAP + 2
    return _Frame(left, width - right, 8, height - 2.9 * CAPTION, places, axis["log"], low, high)


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
    return low, high


# ---- what is drawn


def _axes(drawing: Drawing, frame: _Frame, panel: Curves, place: _Place, label: str) -> None:
    last = math.inf
    for value, words in sorted(panel["y"]["ticks"]):
        if not frame.low * (1 - 1e-9) <= value <= frame.high * (1 + 1e-9):
            continue
        y = frame.y(value)
        drawing.line([(frame.left, y), (frame.right, y)], stroke=mixed(PAPER, INK, 0.12))
        if last - y >= CAPTION:
            drawing.text(frame.left - _GAP, y + 0.35 * CAPTION, words, fill=MUTED, text_anchor="end")
            last = y
    base, free = frame.bottom + 1.3 * CAPTION, 0.0
    for value, words in panel.get("x", {}).get("ticks", []):
        if not -1e-9 <= place(value) <= 1 + 1e-9:
            continue
        x, half = frame.x(place(value)), text_width(words) / 2
        if x - half >= free:
            drawing.text(x, base, words, fill=MUTED, text_anchor="middle")
            free = x + half + 5
    drawing.text(frame.right, base + 1.3 * CAPTION, label, fill=MUTED, text_anchor="end")


def _veil(drawing: Drawing, frame: _Frame, look: Look) -> None:
    """A band over what is still to be predicted."""
    last = len(frame.places) - 1
    if (look.first, look.last) == (0, last):
        return
    start, end = (0.0, frame.places[look.first]) if look.first else (frame.places[look.last], 1.0)
    left, right = frame.x(start), frame.x(end)
    drawing.box((left, frame.top), (right - left, frame.bottom - frame.top), fill=mixed(PAPER, INK, 0.07))
    middle = (frame.top + frame.bottom) / 2 + CAPTION
    drawing.text(
        (left + right) / 2, middle, "?", fill=MUTED, text_anchor="middle", font_weight=700, font_size=2.6 * CAPTION
    )


def _runs(values: NDArray[np.float64], frame: _Frame, look: Look) -> Iterator[list[Point]]:
    """The line's pieces between gaps; a step to or from ∞ ends at the edge of the frame."""
    run: list[Point] = []
    for row in range(look.first, look.last + 1):
        value = float(values[row])
        if math.isnan(value):
            yield from [run] if len(run) > 1 else []
            run = []
            continue
        run.append((frame.x(frame.places[row]), frame.y(value)))
        if math.isinf(value) and len(run) > 1 and run[-2][1] == run[-1][1]:
            run = run[-1:]  # along the edge there is nothing to be seen
        elif math.isinf(value):
            yield from [run] if len(run) > 1 else []
            run = run[-1:]
    yield from [run] if len(run) > 1 else []


def _cursor(drawing: Drawing, frame: _Frame, panel: Curves, values: dict[str, NDArray[np.float64]], look: Look) -> None:
    x = frame.x(frame.places[look.row])
    drawing.line([(x, frame.top - 4), (x, frame.bottom)], stroke=RULE)
    for line in reversed(panel["lines"]):
        value = float(values[line["column"]][look.row])
        if math.isnan(value):
            continue
        y = min(max(frame.y(value), frame.top), frame.bottom)
        drawing.dot(x, y, 3.2, fill=COLOURS[line["role"]])
        if math.isinf(value):
            sign = "∞" if value > 0 else "−∞"
            drawing.text(x + 5, y + CAPTION, sign, fill=COLOURS[line["role"]], font_weight=700, font_size=1.2 * CAPTION)


def _names(drawing: Drawing, frame: _Frame, panel: Curves, values: dict[str, NDArray[np.float64]], look: Look) -> None:
    """The names of the lines, beside the frame, each as near to where its line ends as the others let it."""
    named = []
    for line in panel["lines"]:
        column = values[line["column"]][look.first : look.last + 1]
        seen = column[~np.isnan(column)]
        if line.get("label") and seen.size:
            named.append((min(max(frame.y(float(seen[-1])), frame.top), frame.bottom), line))
    named.sort(key=lambda entry: entry[0])
    wanted = _apart([y for y, _ in named], 1.15 * CAPTION, frame.top, frame.bottom)
    for y, (_, line) in zip(wanted, named, strict=True):
        words = _shortened(line["label"], _WIDEST - _GAP)
        drawing.text(frame.right + _GAP, y + 0.35 * CAPTION, words, fill=COLOURS[line["role"]], font_weight=600)


def _apart(places: Sequence[float], least: float, low: float, high: float) -> list[float]:
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


def _shortened(words: str, most: float) -> str:
    if text_width(words, bold=True) <= most:
        return words
    kept = words
    while kept and text_width(kept, bold=True) > most - CAPTION:
        kept = kept[:-1]
    return say("figure.shortened", kept=kept.rstrip())


def _aside(drawing: Drawing, frame: _Frame, x: float, y: float, words: str, fill: str) -> None:
    """Words beside a place, on the side where there is room."""
    after = x + 4 + text_width(words) <= frame.right
    side, anchor = (4, "start") if after else (-4, "end")
    drawing.text(x + side, max(y, frame.top + CAPTION), words, fill=fill, text_anchor=anchor, halo=1)
