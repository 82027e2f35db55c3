"""What a map leaves the app as.

* `as_json(cells)`, `as_csv(cells)`, `as_parquet(cells)`: the numbers;
* `as_picture(spec, kind)`: the picture as SVG, PNG or PDF, drawn here, without a browser or a network;
* `program(cells)`: a standalone program that draws the map again from its CSV file.
"""

import io
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv

from qkdemo.charts.paper.files import Kind, as_file, svgs
from qkdemo.labs.caption import origin, parquet_file
from qkdemo.maps.cells import Cells, table
from qkdemo.maps.picture import Spec
from qkdemo.maps.words import shown_name

_PROGRAM: Final = '''"""Draws a map of qkdemo again from its CSV file, by Altair: python this_file.py qkdemo-map.csv"""

import csv
import math
import sys

import altair as alt

X, Y, MEASURE = {x!r}, {y!r}, {measure!r}
LOGARITHMIC = {logarithmic!r}  # the axes that are

with open(sys.argv[1] if len(sys.argv) > 1 else "qkdemo-map.csv", encoding="utf-8") as file:
    read = list(csv.DictReader(file))
rows = [{{name: text if name == "side" else float(text) for name, text in row.items()}} for row in read]


def edges(name):
    """Where the cell of each value begins and ends: half way to its neighbours."""
    there, back = {{"log": (math.log, math.exp), "symlog": (math.log1p, math.expm1)}}.get(
        LOGARITHMIC.get(name), (float, float)
    )
    values = sorted({{row[name] for row in rows}})
    at = [there(value) for value in values]
    inner = [(a + b) / 2 for a, b in zip(at, at[1:])]
    ends = [back(place) for place in (2 * at[0] - inner[0], *inner, 2 * at[-1] - inner[-1])]
    return dict(zip(values, zip(ends, ends[1:]))), (ends[0], ends[-1])


(of_x, all_x), (of_y, all_y) = edges(X), edges(Y)
cells = [
    {{
        "side": row["side"],
        "value": row[MEASURE] if math.isfinite(row[MEASURE]) else None,
        **dict(zip(("x0", "x1", "y0", "y1"), (*of_x[row[X]], *of_y[row[Y]]))),
    }}
    for row in rows
]


def scale(name, ends):
    return alt.Scale(type=LOGARITHMIC.get(name, "linear"), domain=list(ends), nice=False)


chart = (
    alt.Chart(alt.Data(values=cells), width=360, height=300)
    .mark_rect()
    .encode(
        x=alt.X("x0:Q", scale=scale(X, all_x), title={x_title!r}),
        x2="x1:Q",
        y=alt.Y("y0:Q", scale=scale(Y, all_y), title={y_title!r}),
        y2="y1:Q",
        color=alt.Color("value:Q", title={measure_title!r}, scale=alt.Scale({colours})),
    )
    .facet(column=alt.Column("side:N", title=None))
)
chart.save("map.html")
print(len(cells), "cells drawn into map.html")
'''

_COLOURS: Final = {
    "log": "type='log', range='heatmap'",
    "difference": "range='diverging', domainMid=0",
}


def as_table(cells: Cells) -> pa.Table:
    """The numbers as an Arrow table."""
    return pa.table(table(cells))


def as_csv(cells: Cells) -> bytes:
    """The numbers as CSV, in full precision."""
    sink = io.BytesIO()
    csv.write_csv(as_table(cells), sink)
    return sink.getvalue()


def as_parquet(cells: Cells) -> bytes:
    """The numbers as a Parquet file."""
    return parquet_file(as_table(cells), _origin(cells))


def as_json(cells: Cells) -> dict[str, Any]:
    """Settings, both dials and every column of every side, [y][x]. Numbers may be ∞ or NaN."""
    request = cells.request
    return {
        **_origin(cells),
        "measure": request.measure,
        **({"difference": dict(cells.apart)} if cells.apart else {}),
        "x": {"dial": request.x.dial.name, "values": list(cells.x)},
        "y": {"dial": request.y.dial.name, "values": list(cells.y)},
        "sides": {
            role: {"name": cells.names[role], **{name: column.tolist() for name, column in side.items()}}
            for role, side in cells.sides.items()
        },
    }


def _origin(cells: Cells) -> dict[str, Any]:
    return origin(cells.request.lab.name, cells.request.settings.as_dict())


def as_picture(spec: Spec, kind: Kind) -> bytes:
    """The picture as a file; the words of an SVG are text."""
    (svg,) = svgs([spec])
    return as_file(svg, kind)


def program(cells: Cells) -> str:
    """Draws the map again from what `as_csv` wrote."""
    request = cells.request
    kinds = {
        axis.dial.name: "log" if axis.kind.low > 0 else "symlog" for axis in (request.x, request.y) if axis.kind.log
    }
    return _PROGRAM.format(
        x=request.x.dial.name,
        y=request.y.dial.name,
        measure=cells.shown_column,
        logarithmic=kinds,
        x_title=request.x.dial.label,
        y_title=request.y.dial.label,
        measure_title=shown_name(cells),
        colours=_COLOURS.get(cells.scale, "type='linear', range='heatmap'"),
    )
