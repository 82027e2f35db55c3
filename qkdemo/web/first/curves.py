"""A panel of curves as SVG and words: the frame stretches with the panel, what is written does not.

* `curves(panel, row, view)`: axes, lines, marks, and the cursor where the dial stands.

Lengths are in em of the exhibit: its labels have 6/7 of that, as on the canvas (`exhibit/pens/theme.js`).
"""

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Final

from qkdemo.charts.panels import Axis, Curves, Line
from qkdemo.charts.spec import Exhibit
from qkdemo.web.first.row import Row

SIZE: Final = 1000  # of a frame, in units of its own
_SMALL: Final = 6 / 7
_BOLD: Final = 1.06  # letters of a label are wider
_NARROW_ONES: Final = dict.fromkeys("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", 0.33) | dict.fromkeys("\u202f .,·|ijltf", 0.24)
_GAP: Final = 0.5  # between the frame and the words outside it
_LONGEST: Final = 8 * _SMALL  # of a label beside the frame
_NARROW: Final = 20  # a frame's width where the page is narrow
_APART: Final = 1.15  # of its height, between labels


def curves(panel: Curves, row: Row, view: Exhibit) -> str:
    """The inside of the panel's picture."""
    _, right = gutters([each for each in view["panels"] if each["kind"] == "curves"])
    lines = [
        *(
            f'<path class="grid" d="M0 {y}H{SIZE}"/>'
            for value, _ in panel["y"]["ticks"]
            if (y := _y(value, panel["y"])) is not None
        ),
        *(_band(line, panel["y"], row) for line in reversed(panel["lines"]) if "low" in line),
        *(_line(line, panel["y"], row) for line in reversed(panel["lines"])),
        *(
            f'<path class="level" d="M0 {y}H{SIZE}"/>'
            for level in panel.get("levels", [])
            if (y := _y(level["y"], panel["y"])) is not None
        ),
        *(
            f'<path class="mark {mark["role"]}" d="M{_x(at)} 0V{SIZE}"/>'
            for mark in panel["marks"]
            if 0 <= (at := row.place(mark["x"])) <= 1
        ),
        f'<path class="cursor" d="M{_x(float(row.places[row.at]))} 0V{SIZE}"/>',
    ]
    words = [*_y_ticks(panel), *_x_ticks(panel, row, view, right), *_labels(panel, row), *_dots(panel, row)]
    svg = f'<svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none">{"".join(lines)}</svg>'
    return f'<div class="frame">{svg}{"".join(words)}</div>'


def gutters(panels: Sequence[Curves]) -> tuple[float, float]:
    """The room for words left and right of the frames of all these panels, in em, but for the gap of 7 pixels."""
    ticks = [width(words) for panel in panels for _, words in panel["y"]["ticks"]]
    labels = [
        width(line["label"]) * _BOLD for panel in panels if panel.get("labels") != "apart" for line in panel["lines"]
    ]
    return max([0, *ticks]), max([0.3, *(wide for wide in labels if wide <= _LONGEST)]) + _GAP


def width(words: str) -> float:
    """About how wide words of a panel are: those of Source Sans, whose digits have one width."""
    return _SMALL * sum(_NARROW_ONES.get(letter, 0.497 if letter.isdigit() else 0.52) for letter in words)


def _x(place: float) -> str:
    return f"{place * SIZE:.0f}"


def _share(value: float, axis: Axis) -> float:
    """How far up an axis, from 0 to 1; beyond it for what it cannot show."""
    low, high = axis["domain"]
    if math.isinf(value):
        return 1.01 if value > 0 else -0.01
    if not axis["log"]:
        return (value - low) / (high - low)
    return math.log(value / low) / math.log(high / low) if value > 0 else -0.01


def _y(value: float, axis: Axis) -> str | None:
    share = _share(value, axis)
    return f"{SIZE * (1 - share):.0f}" if -0.001 <= share <= 1.001 else None


def _runs(column: str, axis: Axis, row: Row) -> list[list[tuple[float, float]]]:
    """Points [place, share] of a column, cut where it is not known; an infinite one leaves the frame and ends there."""
    runs = list[list[tuple[float, float]]]()
    before = math.nan
    for place, value in zip(row.places.tolist(), row.numbers(column).tolist(), strict=True):
        if math.isnan(value):
            before = value
            continue
        point = (place, min(2.0, max(-1.0, _share(value, axis))))
        if math.isnan(before) or (math.isinf(before) and math.isinf(value)):
            runs.append([])
        runs[-1].append(point)
        before = value
    return [run for run in runs if len(run) > 1]


def _path(points: Sequence[tuple[float, float]]) -> str:
    """A path through them, each after the first from the one before."""
    at = [(round(place * SIZE), round((1 - share) * SIZE)) for place, share in points]
    steps = "".join(f"l{x - x0} {y - y0}" for (x0, y0), (x, y) in pairwise(at))
    return f"M{at[0][0]} {at[0][1]}{steps}".replace(" -", "-")


def _line(line: Line, axis: Axis, row: Row) -> str:
    path = "".join(_path(run) for run in _runs(line["column"], axis, row))
    return f'<path class="line {line["role"]}" d="{path}"/>' if path else ""


def _band(line: Line, axis: Axis, row: Row) -> str:
    lows, highs = (_runs(line[end], axis, row) for end in ("low", "high"))
    if len(lows) != 1 or len(highs) != 1:
        return ""
    return f'<path class="band {line["role"]}" d="{_path([*highs[0], *reversed(lows[0])])}z"/>'


def _y_ticks(panel: Curves) -> list[str]:
    shown = [
        (share, words)
        for value, words in panel["y"]["ticks"]
        if -0.001 <= (share := _share(value, panel["y"])) <= 1.001
    ]
    return [f'<i class="up" style="top:{100 * (1 - share):.1f}%">{escape(words)}</i>' for share, words in shown]


def _x_ticks(panel: Curves, row: Row, view: Exhibit, right: float) -> list[str]:
    shown = [(place, words) for value, words in panel["x"]["ticks"] if 0 <= (place := row.place(value)) <= 1]
    ticks = [f'<i class="along" style="left:{100 * place:.1f}%">{escape(words)}</i>' for place, words in shown]
    name = view["dial"]["label"]
    last, half = max(((place, width(words) / 2) for place, words in shown), default=(0.0, 0.0))
    if last * _NARROW + half + _GAP + width(name) > _NARROW + right:
        return ticks
    return [*ticks, f'<i class="along name">{escape(name)}</i>']


def _labels(panel: Curves, row: Row) -> list[str]:
    """Words at the ends of the lines, beside the frame, none nearer to another than they are high."""
    if panel.get("labels") == "apart":
        return []
    tall = (17 if panel.get("tall") else 9.4) / _SMALL - 2.1  # of the frame, in heights of a letter
    named = []
    for line in panel["lines"]:
        last = float(row.numbers(line["column"])[-1])
        if line["label"] and math.isfinite(last) and width(line["label"]) * _BOLD <= _LONGEST:
            named.append((tall * (1 - min(1.0, max(0.0, _share(last, panel["y"])))), line))
    middles = _spread([wanted for wanted, _ in named], _APART, -0.33, tall + 0.33)
    return [
        f'<b class="role-{line["role"]}" style="top:{100 * middle / tall:.1f}%">{escape(line["label"])}</b>'
        for middle, (_, line) in zip(middles, named, strict=True)
    ]


def _spread(wanted: Sequence[float], height: float, low: float, high: float) -> list[float]:
    """As in `exhibit/drawn/labels.js`: as near to `wanted` as possible, none nearer to another than `height`."""
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    middles = list(wanted)
    floor, ceiling = low + height / 2, high - height / 2
    for at in order:
        middles[at] = max(middles[at], floor)
        floor = middles[at] + height
    for at in reversed(order):
        middles[at] = min(middles[at], ceiling)
        ceiling = middles[at] - height
    return middles


def _dots(panel: Curves, row: Row) -> list[str]:
    left = f"left:{100 * row.places[row.at]:.2f}%"
    dots = []
    for line in reversed(panel["lines"]):
        value = row.number(line["column"])
        if not math.isnan(value):
            share = min(1.0, max(0.0, _share(value, panel["y"])))
            dots.append(f'<u class="role-{line["role"]}" style="{left};top:{100 * (1 - share):.1f}%"></u>')
    return dots
