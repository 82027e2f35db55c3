"""How a sphere result is drawn: three pictures in space, as Plotly takes them.

* `plain_arrows(result, theme)`: the arrows in a frame that stays; `sphere(result, theme)`: the normalised side;
* `score_surfaces(result, theme)`: the logit over both lengths: a saddle, and a plateau.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.charts.space import Trace, axis, camera, figure, line, surface, tip
from qkdemo.charts.theme import Theme, mixed
from qkdemo.labs.sphere.lab import FRAME, LATITUDES, LONGITUDES, Result, Settings, direction, unit
from qkdemo.messages import say
from qkdemo.notation import written

_FIRST: Final = 3  # of the palette: those before are plain attention, normalised attention, and bounds
_FAINT: Final = 0.12  # of a key's colour, where a query hardly prefers it


def plain_arrows(result: Result, theme: Theme) -> dict[str, Any]:
    """q and the keys with their true lengths; what is longer than the frame is cut at it, and says its length."""
    traces = [_arrow(key, _key(at), _colour(theme, at), theme) for at, key in enumerate(result.keys)]
    traces.append(_arrow(result.query, "q", theme.ink, theme))
    return figure([trace for pair in traces for trace in pair], theme, _scene(result.settings, theme, FRAME))


def sphere(result: Result, theme: Theme) -> dict[str, Any]:
    """The unit sphere: a region per key, the paler the less sure; tips of keys and query on it."""
    traces = [_globe(result, theme)]
    for at, key in enumerate(result.keys):
        end = (1.04 * unit(key)).tolist()
        traces += [line((0, 0, 0), end, _colour(theme, at)), tip(end, _key(at), _colour(theme, at))]
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
    reach = float(np.abs(end).max())
    cut = end * FRAME / reach if reach > FRAME else end
    words = say("sphere.cut", name=name, length=written(length)) if reach > FRAME else name
    symbol, width = ("square-open", 6.0) if reach > FRAME else ("circle", 6.0)
    return line((0, 0, 0), cut.tolist(), colour, width=8 if name == "q" else 5), tip(
        cut.tolist(), words, colour if name != "q" else theme.ink, symbol, width
    )


def _globe(result: Result, theme: Theme) -> Trace:
    """A mesh whose vertices have the colour of the key that wins there, mixed with paper where it hardly does."""
    around, along = len(LONGITUDES) - 1, len(LATITUDES)
    at, by = np.radians(LATITUDES)[:, None], np.radians(LONGITUDES[:-1])[None]
    x, y, z = np.cos(at) * np.cos(by), np.cos(at) * np.sin(by), np.broadcast_to(np.sin(at), (along, around))
    winners, top = result.twin.winners[:, :-1].ravel(), result.twin.top[:, :-1].ravel()
    even = 1 / result.settings.n_keys
    sure = np.clip((top - even) / (1 - even), 0, 1)
    colours = [
        mixed(theme.paper, _colour(theme, int(key)), _FAINT + (1 - _FAINT) * float(share))
        for key, share in zip(winners, sure, strict=True)
    ]
    said = [
        say("sphere.hover", key=_key(int(key)), weight=written(float(weight), 3))
        for key, weight in zip(winners, top, strict=True)
    ]
    corners = np.arange(along * around).reshape(along, around)
    right = np.roll(corners, -1, axis=1)
    lower, upper = (corners[:-1].ravel(), right[:-1].ravel()), (corners[1:].ravel(), right[1:].ravel())
    return {
        "type": "mesh3d",
        "x": np.round(x, 4).ravel().tolist(),
        "y": np.round(y, 4).ravel().tolist(),
        "z": np.round(z, 4).ravel().tolist(),
        "i": np.concatenate([lower[0], lower[1]]).tolist(),
        "j": np.concatenate([lower[1], upper[1]]).tolist(),
        "k": np.concatenate([upper[0], upper[0]]).tolist(),
        "vertexcolor": colours,
        "text": said,
        "hoverinfo": "text",
        "lighting": {"ambient": 0.95, "diffuse": 0.15, "specular": 0.02},
    }


def _key(at: int) -> str:
    return say("sphere.key", key=at)


def _colour(theme: Theme, at: int) -> str:
    return theme.categorical[_FIRST + at]
