"""A map as surfaces in space: all sides in one scene, over the same two dials.

* `surfaces(cells, theme, turn, tilt)`: as Plotly takes it. A cell that is no number is a hole.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qkdemo.charts.space import Trace, axis, camera, figure, surface, tip
from qkdemo.charts.theme import Theme
from qkdemo.maps.cells import Cells
from qkdemo.maps.request import Axis
from qkdemo.maps.words import cross, cross_at, shown_name
from qkdemo.notation import written


def surfaces(cells: Cells, theme: Theme, turn: float, tilt: float) -> dict[str, Any]:
    """The measure over both dials, a surface a side, with the place where the dials stand on each."""
    request = cells.request
    logarithmic = cells.scale == "log"
    x, y = (_places(axis, values) for axis, values in ((request.x, cells.x), (request.y, cells.y)))
    i, j = cross(cells)
    traces: list[Trace] = []
    for role in cells.sides:
        heights = _heights(cells.shown(role), logarithmic=logarithmic)
        traces.append(surface(x, y, heights, theme.role(role), cells.names[role]))
        if cross_at(cells) is not None and math.isfinite(heights[j, i]):
            words = cells.text(float(cells.shown(role)[j, i]))
            traces.append(tip((x[i], y[j], float(heights[j, i])), words, theme.role(role), "diamond", 6))
    scene = {
        "xaxis": axis(theme, request.x.dial.label, **_ticks(request.x)),
        "yaxis": axis(theme, request.y.dial.label, **_ticks(request.y)),
        "zaxis": axis(theme, shown_name(cells), **_height_ticks(cells, logarithmic=logarithmic)),
        "camera": camera(turn, tilt, distance=2.1),
        "aspectmode": "manual",
        "aspectratio": {"x": 1.2, "y": 1.2, "z": 0.8},
    }
    return figure(traces, theme, scene, height=560)


def _places(axis: Axis, values: tuple[Any, ...]) -> list[float]:
    """Along an axis as the dial is laid out: Plotly's scenes know decades, but no axis that begins at 0."""
    return [_log(axis, float(value)) for value in values]


def _log(axis: Axis, value: float) -> float:
    if not axis.kind.log:
        return value
    return math.log10(value) if axis.kind.low > 0 else math.log10(1 + value)


def _ticks(axis: Axis) -> dict[str, Any]:
    """A few of the values that there are, ends included."""
    kept = axis.values(5)
    return {"tickvals": [_log(axis, float(value)) for value in kept], "ticktext": [written(float(v), 3) for v in kept]}


def _heights(values: NDArray[np.float64], *, logarithmic: bool) -> NDArray[np.float64]:
    if not logarithmic:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(values)


def _height_ticks(cells: Cells, *, logarithmic: bool) -> dict[str, Any]:
    """Powers of ten, where the measure is read so; a share from 0 to 1."""
    if cells.scale == "share":
        return {"range": [0, 1]}
    if not logarithmic:
        return {}
    every = np.concatenate([_heights(cells.shown(role), logarithmic=True).ravel() for role in cells.sides])
    finite = every[np.isfinite(every)]
    if not finite.size:
        return {}
    low, high = math.floor(finite.min()), math.ceil(finite.max())
    powers = range(low, high + 1, max(1, (high - low) // 5))
    return {"tickvals": [*powers], "ticktext": [written(10.0**power, 2) for power in powers]}
