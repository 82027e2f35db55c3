"""How a sphere result is drawn: three pictures in space, as Plotly takes them.

* `plain_arrows(result, theme)`: the arrows in a frame that stays; `sphere(result, theme)`: the normalised side;
* `score_surfaces(result, theme)`: the logit over both lengths: a saddle, and a plateau.
"""

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.charts.space import Trace, axis, camera, figure, line, path, surface, tip
from qkdemo.charts.theme import Theme, mixed
from qkdemo.labs.sphere.lab import FRAME, Result, Settings, direction, leaves_frame, softmax, unit
from qkdemo.labs.sphere.regions import borders, regions
from qkdemo.messages import say
from qkdemo.notation import written

_FIRST: Final = 3  # of the palette: those before are plain attention, normalised attention, and bounds
_DIGITS: Final = 12  # of a key's direction, which is the same at every weight scale
_ABOVE: Final = 1.004  # radius of a border, so that it is not hidden in the sphere
_STEPS: Final = 101  # shades of a key's colour
_FAINT: Final = 0.12  # of a key's colour, where a query hardly prefers it


def plain_arrows(result: Result, theme: Theme) -> dict[str, Any]:
    """q and the keys with their true lengths; what is longer than the frame is cut at it, and says its length."""
    traces = [_arrow(key, _key(at), _colour(theme, at), theme) for at, key in enumerate(result.keys)]
    traces.append(_arrow(result.query, "q", theme.ink, theme))
    return figure([trace for pair in traces for trace in pair], theme, _scene(result.settings, theme, FRAME))


def sphere(result: Result, theme: Theme) -> dict[str, Any]:
    """The unit sphere: a region per key, the paler the less sure; tips of keys and query on it."""
    traces = [*_globe(result, theme)]
    for at, key in enumerate(result.keys):
        end = (1.04 * unit(key)).tolist()
        traces += [line((0, 0, 0), end, _colour(theme, at)), tip(end, _key(at), _colour(theme, at))]
    if result.settings.query_length:  # a query of length 0 points nowhere
        end = (1.06 * direction(result.settings)).tolist()
        traces += [line((0, 0, 0), end, theme.ink, width=8), tip(end, "q", theme.ink, "diamond", 8)]
    return figure(traces, theme, _scene(result.settings, theme, 1.15))


def score_surfaces(result: Result, theme: Theme) -> dict[str, Any]:
    """The logit over ‖q‖ and ‖k‖ at the angle of the pair that is shown, and that pair."""
    at, lengths = result.shown, result.lengths.tolist()
    q, k = float(np.linalg.norm(result.query)), float(np.linalg.norm(result.keys[at]))
    traces: list[Trace] = [
        surface(lengths, lengths, result.plain_scores, theme.role("plain"), say("variant.none.short")),
        surface(lengths, lengths, result.twin_scores, theme.role("norm"), say("variant.l2.short")),
    ]
    for role, side, symbol in (("plain", result.plain, "circle"), ("norm", result.twin, "square")):
        height = float(side.logits[at])
        traces.append(tip((q, k, height), written(height), theme.role(role), symbol, 7))
    settings = result.settings
    scene = {
        "xaxis": axis(theme, "‖q‖"),
        "yaxis": axis(theme, "‖k‖"),
        "zaxis": axis(theme, say("sphere.axis")),
        "camera": camera(settings.turn - 90, settings.tilt, distance=2.3),
        "aspectmode": "cube",
    }
    return figure(traces, theme, scene)


def _scene(settings: Settings, theme: Theme, reach: float) -> dict[str, Any]:
    """A cube around the origin that does not change its size."""
    sides = {name: axis(theme, range=[-reach, reach]) for name in ("xaxis", "yaxis", "zaxis")}
    return sides | {"camera": camera(settings.turn, settings.tilt), "aspectmode": "cube"}


def _arrow(end: NDArray[np.float64], name: str, colour: str, theme: Theme) -> tuple[Trace, Trace]:
    length = float(np.linalg.norm(end))
    leaves = leaves_frame(end)
    cut = end * FRAME / float(np.abs(end).max()) if leaves else end
    words = say("sphere.cut", name=name, length=written(length)) if leaves else name
    symbol = "square-open" if leaves else "circle"
    return line((0, 0, 0), cut.tolist(), colour, width=8 if name == "q" else 5), tip(
        cut.tolist(), words, colour if name != "q" else theme.ink, symbol, 6.0
    )


def _globe(result: Result, theme: Theme) -> tuple[Trace, Trace]:
    """A region per key in its colour, mixed with paper where it hardly wins, and the borders, which g does not move."""
    keys = tuple(tuple(unit(key).round(_DIGITS).tolist()) for key in result.keys)
    found = regions(keys)
    weights = softmax(result.settings.gain * found.points @ np.array(keys).T)
    top = weights[np.arange(len(weights)), found.owners].round(3)
    even = 1 / result.settings.n_keys
    sure = np.clip((top - even) / (1 - even), 0, 1)
    shades = [_shades(theme, key) for key in range(len(keys))]
    words = [say("sphere.hover", key=_key(key), weight="%") for key in range(len(keys))]
    numbers = {weight: written(weight, 3) for weight in np.unique(top).tolist()}
    steps = np.rint(sure * (_STEPS - 1)).astype(int).tolist()
    pairs = list(zip(found.owners.tolist(), steps, top.tolist(), strict=True))
    (x, y, z), (i, j, k) = np.round(found.points, 3).T.tolist(), found.triangles.T.tolist()
    mesh = {
        "type": "mesh3d",
        **dict(zip("xyzijk", (x, y, z, i, j, k), strict=True)),
        "vertexcolor": [shades[key][step] for key, step, _ in pairs],
        "text": [words[key].replace("%", numbers[weight]) for key, _, weight in pairs],
        "hoverinfo": "text",
        "lighting": {"ambient": 0.95, "diffuse": 0.15, "specular": 0.02},
    }
    between = _ABOVE * np.concatenate(borders(keys))
    return mesh, path(
        [[None if np.isnan(x) else round(x, 3) for x in column] for column in between.T.tolist()], theme.ink
    )


@lru_cache(maxsize=32)
def _shades(theme: Theme, key: int) -> list[str]:
    """From hardly sure to sure."""
    colour, shares = _colour(theme, key), np.linspace(_FAINT, 1, _STEPS).tolist()
    return [mixed(theme.paper, colour, share) for share in shares]


def _key(at: int) -> str:
    return say("sphere.key", key=at)


def _colour(theme: Theme, at: int) -> str:
    return theme.categorical[_FIRST + at]
