"""Pictures in space, as Plotly takes them: plain mappings, so that nothing here loads Plotly.

* `figure(traces, theme, scene)`: a picture of one scene; `axis(theme, title, ...)`: one of its axes;
* `camera(turn, tilt)`: from where it is seen, in degrees; `line`, `path`, `tip`, `surface`: what stands in it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.charts.theme import Theme
from qkdemo.notation import signs

Trace: TypeAlias = dict[str, Any]
Point: TypeAlias = Sequence[float]
_FONT: Final = '"Source Sans", "Source Sans 3", sans-serif'  # the page's own
_DISTANCE: Final = 1.9  # of the eye, in sides of the scene


def figure(traces: Sequence[Trace], theme: Theme, scene: Mapping[str, Any], height: int = 460) -> dict[str, Any]:
    """A picture of one scene, which keeps its camera while its data change."""
    layout = {
        "height": height,
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": _FONT, "size": 13, "color": theme.ink},
        "showlegend": False,
        **_separators(),
        "scene": {"bgcolor": "rgba(0,0,0,0)", **scene},
    }
    return {"data": list(traces), "layout": layout}


def _separators() -> dict[str, str]:
    """How Plotly writes numbers in the language that is spoken; English is what it knows."""
    found = signs()
    return {"separators": found["decimal"] + found["group"]} if found else {}


def axis(theme: Theme, title: str = "", **more: Any) -> dict[str, Any]:
    """An axis of a scene; without a title it shows no numbers."""
    bare = {"showticklabels": bool(title), "title": {"text": title}}
    lines = {"gridcolor": theme.grid, "zerolinecolor": theme.muted, "showbackground": False, "showspikes": False}
    return bare | lines | {"color": theme.ink} | more


def camera(turn: float, tilt: float, distance: float = _DISTANCE) -> dict[str, Any]:
    """Seen from `turn` degrees around the upright axis and `tilt` degrees above the ground."""
    around, above = math.radians(turn), math.radians(tilt)
    flat = distance * math.cos(above)
    eye = {"x": flat * math.cos(around), "y": flat * math.sin(around), "z": distance * math.sin(above)}
    return {"eye": eye, "center": {"x": 0, "y": 0, "z": 0}, "up": {"x": 0, "y": 0, "z": 1}}


def line(start: Point, end: Point, colour: str, *, width: float = 5, dash: str = "solid") -> Trace:
    """A straight line."""
    x, y, z = zip(start, end, strict=True)
    look = {"color": colour, "width": width, "dash": dash}
    return {"type": "scatter3d", "mode": "lines", "x": x, "y": y, "z": z, "line": look, "hoverinfo": "skip"}


def path(columns: Sequence[Sequence[float | None]], colour: str, width: float = 2) -> Trace:
    """A thin line through many points, given as three columns; None is a gap."""
    x, y, z = columns
    look = {"color": colour, "width": width}
    return {"type": "scatter3d", "mode": "lines", "x": x, "y": y, "z": z, "line": look, "hoverinfo": "skip"}


def tip(at: Point, text: str, colour: str, symbol: str = "circle", size: float = 6) -> Trace:
    """A point with a word beside it."""
    x, y, z = ([value] for value in at)
    look = {"color": colour, "size": size, "symbol": symbol}
    words = {"text": [text], "textposition": "top center", "hoverinfo": "text", "textfont": {"color": colour}}
    return {"type": "scatter3d", "mode": "markers+text", "x": x, "y": y, "z": z, "marker": look, **words}


def surface(x: Sequence[float], y: Sequence[float], z: NDArray[np.float64], colour: str, name: str) -> Trace:
    """A surface of one colour; a cell that is no number is a hole in it."""
    heights = [[value if math.isfinite(value) else None for value in row] for row in z.tolist()]
    return {
        "type": "surface",
        "x": list(x),
        "y": list(y),
        "z": heights,
        "name": name,
        "showscale": False,
        "opacity": 0.85,
        "colorscale": [[0, colour], [1, colour]],
        "contours": {"x": _CONTOURS, "y": _CONTOURS},
        "lighting": {"ambient": 0.75, "diffuse": 0.4, "specular": 0.05},
        "hovertemplate": "%{x:.4~g}, %{y:.4~g}: %{z:.4~g}<extra>" + name + "</extra>",
    }


_CONTOURS: Final = {"show": True, "color": "rgba(255,255,255,0.5)", "width": 1}
