"""A map in words: how its picture reads to those who do not see it, and what it shows.

* `finding(cells)`: the headline: along which dial each side changes; `reads`, `reads_short`: the same of one side;
* `alt(cells, role)`: everything that the picture of a side shows; `measure_name`, `shown_name`: what is drawn;
* `filling_words(request, size, done, total)`: how far it is read;
* `caption(cells, link)`: settings, version and link, below a picture that leaves the app.
"""

import math
from dataclasses import replace
from typing import Final, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from qkdemo.labs.caption import caption as below
from qkdemo.maps.cells import DIFFERENCE, Cells, Scale, odd
from qkdemo.maps.request import Axis, Request
from qkdemo.messages import say
from qkdemo.notation import counted, written

Relation: TypeAlias = Literal["x", "y", "x_mostly", "y_mostly", "both", "flat", "few", "none"]
_ALIKE: Final = 0.01  # in proportion: up to here two sides count as one
_STILL: Final = 0.02  # of the whole range of a map: a change up to which it is hardly one
_HARDLY: Final = 0.1  # of a power of ten, about a quarter: more is a change, however many decades a map has
_NOTHING: Final = 1e-6  # of the whole range: a change up to which it is none


def relation(cells: Cells, role: str) -> Relation:
    """Along which dial the measure changes on this side, among the cells that are finite.

    It is `few` where no two of these lie beside each other along a dial, so that nothing is known of that. Zeros have
    no decade, and count where there is nothing else.
    """
    values = _drawn(cells.shown(role), cells.scale)
    finite = values[np.isfinite(values)]
    if not finite.size:  # of decades also where every number is 0
        return "flat" if (cells.shown(role) == 0).any() else "none"
    if finite.size == 1:
        return "few"
    whole = np.ptp(finite)
    if whole <= _STILL * (1.0 if cells.scale == "log" else np.abs(finite).max()):
        return "flat"
    along = {"x": _change(values, axis=1) / whole, "y": _change(values, axis=0) / whole}
    if any(math.isnan(change) for change in along.values()) or max(along.values()) <= _STILL:
        return "few"
    still = min(_STILL, _HARDLY / whole) if cells.scale == "log" else _STILL
    for one, other in (("x", "y"), ("y", "x")):
        if along[other] <= still:
            return cast("Relation", one if along[other] <= _NOTHING else f"{one}_mostly")
    return "both"


def _among(cells: Cells, role: str) -> str:
    """The cells of which that is said, where there are others; empty where it is said of all."""
    values = cells.shown(role)
    zero = cells.scale == "log" and bool((values == 0).any())
    if zero and np.isfinite(values[values != 0]).any():
        return "nonzero"
    return "finite" if 0 < np.isfinite(values).sum() < values.size else ""


def finding(cells: Cells) -> str:
    """The headline."""
    return " ".join(reads(cells, role) for role in cells.sides)


def reads(cells: Cells, role: str) -> str:
    """Of one side: along which dial it changes; of a difference: where it is above 0, and where below."""
    if cells.apart:
        values = cells.shown(role)
        above, below = (int(part.sum()) for part in (cells.holds(role, "sign"), _below(cells, role)))
        key = "none" if not np.isfinite(values).any() else "some" if above + below else "same_everywhere"
        said = say(f"map.minus.{key}", side=cells.names[role], above=above, below=below, all=values.size)
        return said[0].upper() + said[1:]
    x, y = (axis.dial.label for axis in (cells.request.x, cells.request.y))
    said, among = say(f"map.finding.{relation(cells, role)}", side=cells.names[role], x=x, y=y), _among(cells, role)
    said = said[0].upper() + said[1:]
    return say(f"map.among.{among}", said=said) if among else said


def reads_short(cells: Cells, role: str) -> str:
    """The same below the side's name."""
    if cells.apart:
        above, below = (int(part.sum()) for part in (cells.holds(role, "sign"), _below(cells, role)))
        return say("map.minus.short", above=above, below=below, all=cells.shown(role).size)
    x, y = (axis.dial.label for axis in (cells.request.x, cells.request.y))
    said, among = say(f"map.short.{relation(cells, role)}", x=x, y=y), _among(cells, role)
    return say(f"map.among.{among}", said=said) if among else said


def alt(cells: Cells, role: str) -> str:
    """Range, extremes, what is not finite, where something changes in kind, and what the cross stands on."""
    request, values = cells.request, cells.shown(role)
    sentences = [
        say(
            "map.alt.what",
            side=cells.names[role],
            measure=shown_name(cells),
            x=_range(request.x),
            y=_range(request.y),
            columns=len(cells.x),
            rows=len(cells.y),
        ),
        reads(cells, role),
    ]
    sentences += [*_extremes(cells, values), *strange(values), *_parted(cells)]
    for mark in cells.marks:
        holds = cells.holds(role, mark)
        if holds.any() and not cells.apart:
            told = {"count": int(holds.sum()), "all": holds.size}
            sentences.append(say("map.alt.mark", mark=say(f"mark.{mark}"), **told))
    if cross_at(cells) is not None:
        i, j = cross(cells)
        sentences.append(say("map.alt.cross", at=place(cells, i, j), value=cells.text(values[j, i])))
    return " ".join(sentences)


def _extremes(cells: Cells, values: NDArray[np.float64]) -> list[str]:
    """Where the lowest and the highest finite number stand; nothing where both are written alike: that is rounding."""
    finite = np.where(np.isfinite(values), values, np.nan)
    if np.isnan(finite).all():
        return []
    ends = {"lowest": int(np.nanargmin(finite)), "highest": int(np.nanargmax(finite))}
    texts = {word: cells.text(float(values.flat[at])) for word, at in ends.items()}
    if texts["lowest"] == texts["highest"]:
        return []
    places = {word: divmod(at, len(cells.x)) for word, at in ends.items()}
    of = "" if np.isfinite(values).all() else "_finite"
    return [say(f"map.alt.{word}{of}", value=texts[word], at=place(cells, i, j)) for word, (j, i) in places.items()]


def _parted(cells: Cells) -> list[str]:
    """In how many cells the first two sides differ, and where most; nothing where one of them stands alone.

    They differ in proportion to the larger of both. Where they do most is no proportion: beside a 0 all are alike.
    """
    if cells.apart or len(cells.sides) < 2:
        return []
    one, other = list(cells.sides)[:2]
    first, second = cells.shown(one), cells.shown(other)
    larger = np.maximum(np.abs(first), np.abs(second))
    known = np.isfinite(larger) & (larger > 0)
    if not known.any():
        return []
    apart = np.abs(np.where(known, first, 0.0) - np.where(known, second, 0.0))
    differ = apart / np.where(known, larger, 1.0) > _ALIKE
    names = {"one": cells.names[one], "other": cells.names[other]}
    if not differ.any():
        return [say("map.alt.alike", **names)]
    j, i = divmod(int(apart.argmax()), len(cells.x))
    told = {"at": place(cells, i, j), "first": cells.text(first[j, i]), "second": cells.text(second[j, i])}
    both = int(np.isfinite(larger).sum())
    return [say("map.alt.part", count=int(differ.sum()), all=both, **names, **told)]


def strange(values: NDArray[np.float64]) -> list[str]:
    """Sentences that count the cells which are no number."""
    infinite, undefined = odd(values)
    said = [say("map.infinite", count=infinite, all=values.size)] if infinite else []
    return [*said, *([say("map.undefined", count=undefined, all=values.size)] if undefined else [])]


def place(cells: Cells, i: int, j: int) -> str:
    """Where a cell lies."""
    x, y = cells.request.x, cells.request.y
    return say("map.at", x=x.dial.label, u=_value(x, cells.x[i]), y=y.dial.label, v=_value(y, cells.y[j]))


def cell_words(cells: Cells, i: int, j: int) -> str:
    """What stands in a cell, on every side."""
    values = ", ".join(f"{name} {cells.text(float(cells.shown(role)[j, i]))}" for role, name in cells.names.items())
    said = say("map.keys.cell", at=place(cells, i, j), values=values)
    return said[0].upper() + said[1:]


def cross_at(cells: Cells) -> tuple[float, float] | None:
    """Where the two dials stand, if that is on the map."""
    place = []
    for axis in (cells.request.x, cells.request.y):
        (low, high), at = axis.span, float(getattr(cells.request.settings, axis.dial.name))
        if not low <= at <= high:
            return None
        place.append(at)
    return place[0], place[1]


def cross(cells: Cells) -> tuple[int, int]:
    """The cell, (i, j), nearest to what the two dials stand at."""
    settings = cells.request.settings
    near = []
    for axis, values in ((cells.request.x, cells.x), (cells.request.y, cells.y)):
        at, edges = float(getattr(settings, axis.dial.name)), axis.edges(values)
        near.append(int(np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(values) - 1)))
    return near[0], near[1]


def measure_name(request: Request) -> str:
    """What is measured."""
    return say(f"measure.{request.measure}")


def filling_words(request: Request, size: int, done: int, total: int) -> str:
    """How far a map of that size is read; a dial of few stops has fewer cells."""
    columns, rows = (len(axis.values(size)) for axis in (request.x, request.y))
    return say("map.filling", columns=columns, rows=rows, done=done, total=total)


def shown_name(cells: Cells) -> str:
    """What is drawn: the measure, or its difference."""
    if not cells.apart:
        return measure_name(cells.request)
    decades = cells.request.plane.measures[cells.request.measure] == "log"
    return say("map.minus.decades" if decades else "map.minus.measure", measure=measure_name(cells.request))


def caption(cells: Cells, link: str = "") -> str:
    """What a picture needs beside it to be made again."""
    request, less = cells.request, "; ".join(cells.apart.values()) + ".\n" if cells.apart else ""
    axes = {request.x.dial.name, request.y.dial.name}
    return below(request.lab.name, request.settings, link, without=axes, less=less)


def _range(axis: Axis) -> str:
    return say("map.range", dial=axis.dial.label, low=_value(axis, axis.low), high=_value(axis, axis.high))


def _value(axis: Axis, value: object) -> str:
    assert isinstance(value, int | float)
    return axis.kind.sign + (counted(value) if isinstance(value, int) else written(value))


def _below(cells: Cells, role: str) -> NDArray[np.bool_]:
    """[y, x] where a difference is below 0."""
    return replace(cells, sides={role: {DIFFERENCE: -cells.shown(role)}}).holds(role, "sign")


def _drawn(values: NDArray[np.float64], measure: Scale) -> NDArray[np.float64]:
    """As the colours have it: by decades, where they are laid out so."""
    if measure != "log":
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(np.abs(values))


def _change(values: NDArray[np.float64], axis: int) -> float:
    """The most that it changes along one axis, among finite cells; NaN where no line along it has two of them."""
    finite = np.where(np.isfinite(values), values, np.nan)
    with np.errstate(invalid="ignore"):
        high, low = np.fmax.reduce(finite, axis=axis), np.fmin.reduce(finite, axis=axis)
    change = high - low
    several = np.isfinite(values).sum(axis=axis) > 1
    return float(change[several].max()) if several.any() else math.nan
