"""Where an exhibit shows what a stop is read from: which of its panels, at which value, and under which mark.

* `that_matter(view, stop)`: the panels a stop is about, in the order of its `reads`, at most `MOST`;
* `columns_of(panel)`: the columns that a panel draws;
* `shown_value(table, view, read)`: what the exhibit shows where a number is read;
* `with_marks(table, view, place, found, ...)`: the view with those numbers written where they are read.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from qkdemo.charts.look import numbers, row_of
from qkdemo.charts.panels import Curves, Level, Mark, Note, Panel, Point, Role
from qkdemo.charts.spec import Exhibit
from qkdemo.dials import Value
from qkdemo.messages import has, say
from qkdemo.notation import read as read_number
from qkdemo.tracks.stop import Evidence, Read, Stop
from qkdemo.training.outcome import LAST_STEPS

MOST: Final = 2  # panels that one screen shows


@dataclass(frozen=True)
class _Mark:
    """A number of the evidence, where it is read in a panel."""

    name: str
    read: Read
    role: Role
    label: str
    x: float
    y: float = math.nan


def that_matter(view: Exhibit, stop: Stop) -> list[Panel]:
    """The panels in which a stop's numbers are read at its own state; the first one if it names none of them."""
    panels: list[Panel] = []
    for read in stop.reads.values():
        if set(read.turns) <= {dial_name(view)}:
            panels += [p for p in view["panels"] if read.column in columns_of(p) and p not in panels][:1]
    return panels[:MOST] or view["panels"][:1]


def dial_name(view: Exhibit) -> str:
    """The dial along which an exhibit is dragged."""
    name: str = view["dial"].get("name", view["dial"]["column"])
    return name


def columns_of(panel: Panel) -> set[str]:
    """The columns of the table that a panel draws or writes."""
    match panel["kind"]:
        case "cells":
            return {entry for row in panel["rows"] for entry in row if isinstance(entry, str)}
        case "grid":
            return {row["column"] for row in panel["rows"]}
        case "arcs" | "bars" | "curves":
            return {line["column"] for line in panel["lines"]}
        case "heat":
            return {panel["column"]}
        case "arrows":
            return {panel["lengths"]}


def shown_value(table: pa.Table, view: Exhibit, read: Read, turned: Mapping[str, Value]) -> float:
    """What stands where a number is read, `turned` saying where the exhibit's dial stands if it is not at its state.

    Raises ValueError for a place or a level, which the exhibit does not show by itself.
    """
    at = row_of(table, view, float(turned.get(dial_name(view), view["dial"]["at"])))
    values = table.column(read.column)
    if isinstance(values[0], pa.StringScalar):
        return read.times * read_number(str(values[at].as_py()))
    if isinstance(values[0], pa.FixedSizeListScalar):
        row = values[at].as_py()
        return read.times * float(max(row) if read.entry is None else row[read.entry])
    column = numbers(table, read.column)
    match read.of:
        case "at":
            return read.times * float(column[at])
        case "largest":
            return read.times * float(np.nanmax(column))
        case "last":
            return read.times * float(np.mean(column[-LAST_STEPS:]))
        case word:
            raise ValueError(f"a {word} is drawn by the stop alone")


def with_marks(
    table: pa.Table, view: Exhibit, place: tuple[str, Stop], found: Evidence, open_to: tuple[float, float]
) -> Exhibit:
    """The view, with every number of the evidence that it shows written where it is read.

    `place` is the track and the stop. Along the dial only what lies between the two values of `open_to` is marked; if
    these leave something out, no largest number is. What stands in another state, and what is text already, is not.
    """
    track, stop = place
    panels = []
    for panel in view["panels"]:
        marks = _marks(table, view, panel, stop, found)
        seen = [mark for mark in marks if open_to[0] <= mark.x <= open_to[1]]
        kept = [mark for mark in seen if mark.read.of != "largest" or all(map(math.isinf, open_to))]
        panels.append(_marked(panel, kept, f"stop.{track}.{stop.name}"))
    return view | {"panels": panels}


def _marks(table: pa.Table, view: Exhibit, panel: Panel, stop: Stop, found: Evidence) -> Iterator[_Mark]:
    """Of every number that is read in the panel: where, and how it is written."""
    own = stop.state.as_dict()  # in this state it was measured, wherever the page's dials stand
    dial, columns = dial_name(view), columns_of(panel)
    for name, read in stop.reads.items():
        if read.column not in columns or not set(read.turns) <= {dial} or name not in found.numbers:
            continue
        if read.column not in table.column_names:  # a run whose rows are still on their way
            continue
        at = float(read.turns.get(dial, own.get(dial, view["dial"]["at"])))
        mark = _Mark(name, read, _role_of(panel, read.column), _label(read, found.numbers[name]), at)
        match read.of:
            case "place":
                yield replace(mark, x=read_number(found.numbers[name]))
            case "level":
                yield replace(mark, y=read_number(found.numbers[name]) / read.times)
            case "largest":
                column = numbers(table, read.column)
                row = int(np.nanargmax(column))
                yield replace(mark, y=float(column[row]), x=float(numbers(table, view["dial"]["column"])[row]))
            case "last":
                steps = numbers(table, view["dial"]["column"])
                yield replace(mark, y=shown_value(table, view, read, {dial: at}), x=float(steps[-1]))
            case "at":
                yield replace(mark, y=shown_value(table, view, read, {dial: at}) / read.times)


def _role_of(panel: Panel, column: str) -> Role:
    """The role of what a panel draws from a column."""
    match panel["kind"]:
        case "arcs" | "bars" | "curves":
            return next((line["role"] for line in panel["lines"] if line["column"] == column), "other")
        case _:
            return "other"


def _label(read: Read, written: str) -> str:
    return say("lesson.mark.percent", x=written) if read.times == 100 else written


def _marked(panel: Panel, marks: Sequence[_Mark], key: str) -> Panel:
    """The panel with its marks: points on its lines, levels, places along the dial, numbers over its bars."""

    def named(mark: _Mark) -> str:
        own = f"{key}.mark.{mark.name}"
        return say(own, x=mark.label) if has(own) else mark.label

    if panel["kind"] == "bars":
        notes: list[Note] = [
            {"role": m.role, "column": m.read.column, "entry": m.read.entry, "x": m.x, "label": m.label} for m in marks
        ]
        return panel | {"notes": notes}
    if panel["kind"] != "curves":
        return panel
    points: list[Point] = [
        {"x": mark.x, "y": mark.y, "role": mark.role, "label": named(mark), "read": True}
        for mark in marks
        if mark.read.of in ("at", "largest", "last") and math.isfinite(mark.y)
    ]
    levels: list[Level] = [{"y": mark.y, "label": named(mark)} for mark in marks if mark.read.of == "level"]
    places: list[Mark] = [
        {"x": mark.x, "label": named(mark), "role": mark.role} for mark in marks if mark.read.of == "place"
    ]
    known = [mark["x"] for mark in panel["marks"]]
    places = [place for place in places if not any(math.isclose(place["x"], x, rel_tol=1e-3) for x in known)]
    marked: Curves = {
        **panel,
        "points": [*panel.get("points", ()), *points],
        "levels": [*panel.get("levels", ()), *levels],
        "marks": [*panel["marks"], *places],
    }
    return marked
