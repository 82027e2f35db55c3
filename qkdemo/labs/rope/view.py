"""How a rotary result is drawn: the tables and views that the exhibit component takes.

* `rope_exhibit(result)`: the main exhibit, dragged through the text;
* `distance_exhibit(result)`: both orders against the distance, at the current position;
* `picked(pick, dial)`: the dial that a click sets.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.charts.axes import linear_axis
from qkdemo.charts.columns import words
from qkdemo.charts.panels import Axis, Curves, Line, Role
from qkdemo.charts.spec import Dial, Drawn, Exhibit, Pick
from qkdemo.dials import Value
from qkdemo.labs.rope.lab import AGREE, Order, Result
from qkdemo.labs.rope.words import explain, findings
from qkdemo.messages import in_each_language, say
from qkdemo.notation import written

_ROLES: Final[dict[Role, str]] = {"left": "norm_rotary", "right": "rotary_norm"}
_TICKS: Final = (0, 1, 10, 100, 1000)
_SEEN: Final = 1e-6  # relative difference below which two curves lie on each other
_HEADROOM: Final = 1.25  # over the higher bound, for the words beside it


@in_each_language(64)
def rope_exhibit(result: Result) -> Drawn:
    """Table and view of the main exhibit."""
    sides = _sides(result)
    n = len(result.positions)
    table = {
        "position": result.positions.astype(float),
        "position.text": [written(at) for at in result.positions.tolist()],
        "finding": findings(result),
        "bound.naive": np.full(n, result.bound_naive),
        "bound.pairwise": np.full(n, result.bound_pairwise),
    }
    for role, side in sides.items():
        table |= {f"{role}.{name}": column for name, column in _columns(side).items()}
    return pa.table(table), _view(result)


def distance_exhibit(result: Result) -> Drawn:
    """Table and view of the exhibit that is dragged along the distance."""
    sides = _sides(result)
    texts = [written(at) for at in result.distances.tolist()]
    scores = {role: [written(x) for x in side.by_distance] for role, side in sides.items()}
    position = result.settings.position
    found = [
        say("rope.finding.distance", distance=at, position=position, norm_rotary=first, rotary_norm=last)
        for at, first, last in zip(texts, scores["left"], scores["right"], strict=True)
    ]
    table: dict[str, Any] = {"distance": result.distances.astype(float), "text": texts, "finding": found}
    table |= {role: side.by_distance for role, side in sides.items()}
    lines: list[Line] = [
        {"role": role, "column": role, "label": say(f"rope.line.{order}")} for role, order in _ROLES.items()
    ]
    for kind, line, bound in _bounds(result):
        table[line["column"]] = np.full(len(texts), bound)
        lines.append(line)
        below: Line = line | {"column": f"{line['column']}−", "label": ""}
        table[below["column"]] = np.full(len(texts), -bound)
        lines.append(below | {"name": say(f"rope.line.{kind}", bound=written(-bound))})
    panel: Curves = {
        "kind": "curves",
        "title": say("rope.panel.distance"),
        "subtitle": say("rope.axis.distance", position=position),
        "wide": 12,
        "x": {"ticks": [(at, written(at)) for at in range(0, 65, 8)]},
        "y": linear_axis(-_HEADROOM * result.bound_pairwise, _HEADROOM * result.bound_pairwise),
        "lines": lines,
        "marks": [],
    }
    at = result.settings.distance
    dial: Dial = {"column": "distance", "text": "text", "label": say("dial.distance.label"), "at": at, "log": False}
    return pa.table(table), {
        "dial": dial,
        "finding": "finding",
        "heading": 3,
        "tiles": [],
        "panels": [panel],
        "words": words(),
        "alt": found[at],
    }


def picked(pick: Pick, dial: str) -> dict[str, Value]:
    """The dial, by name, that a pick sets: a whole number."""
    return {dial: round(pick["dial"])} if "dial" in pick else {}


def _sides(result: Result) -> dict[Role, Order]:
    return {role: getattr(result, order) for role, order in _ROLES.items()}


def _columns(side: Order) -> dict[str, Any]:
    numbers = {name: getattr(side, name) for name in ("logit", "length", "cosine", "largest")}
    return numbers | {f"{name}.text": [written(x) for x in column] for name, column in numbers.items()}


def _view(result: Result) -> Exhibit:
    settings = result.settings
    label = say("dial.position.label")
    tiles = [("position", "position.text"), ("length", "length"), ("cosine", "cosine"), ("logit", "logit")]
    return {
        "dial": {"column": "position", "text": "position.text", "label": label, "at": settings.position, "log": True},
        "finding": "finding",
        "heading": 1,
        "tiles": [
            {
                "label": say(f"rope.tile.{name}"),
                "lines": [
                    {"role": role, "column": column if name == "position" else f"{role}.{column}.text"}
                    for role in _ROLES
                ],
            }
            for name, column in [*tiles, ("largest", "largest")]
        ],
        "panels": [
            _curve(result, "logit", distance=settings.distance),
            _curve(result, "largest"),
            _curve(result, "length"),
            _curve(result, "cosine"),
        ],
        "words": words(),
        "alt": " ".join(explain(result)),
    }


def _curve(result: Result, name: str, **values: object) -> Curves:
    lines: list[Line] = [
        {"role": role, "column": f"{role}.{name}", "label": say(f"rope.line.{order}")} for role, order in _ROLES.items()
    ]
    curves = np.concatenate([getattr(side, name) for side in _sides(result).values()])
    if name == "largest":
        lines += [line for _, line, _ in _bounds(result)]
        curves = np.append(curves, _HEADROOM * result.bound_pairwise)
    return {
        "kind": "curves",
        "title": say(f"rope.panel.{name}"),
        "subtitle": say(f"rope.axis.{name}", **values),
        "wide": 6,
        "x": {"ticks": [(at, written(at)) for at in _TICKS]},
        "y": _axis(name, curves),
        "lines": lines,
        "marks": [],
    }


def _axis(name: str, curves: NDArray[np.float64]) -> Axis:
    """Logits from 0; lengths and angles from the least to the largest, where they differ at all."""
    low, high = float(curves.min()), float(curves.max())
    if name in ("logit", "largest") or high - low < _SEEN * max(abs(low), abs(high)):
        low, high = min(0.0, low), max(0.0, high)
    return linear_axis(low, high)


def _bounds(result: Result) -> list[tuple[str, Line, float]]:
    """Either bound, with its line, and the word of its label; one line where they are the same."""
    naive, pairwise = result.bound_naive, result.bound_pairwise
    if pairwise <= naive * (1 + AGREE):
        label = say("rope.line.both", bound=written(naive))
        return [("both", {"role": "bound", "column": "bound.naive", "label": label}, naive)]
    both: tuple[tuple[Role, str, float], ...] = (("bound", "naive", naive), ("other", "pairwise", pairwise))
    return [
        (
            name,
            {"role": role, "column": f"bound.{name}", "label": say(f"rope.line.{name}", bound=written(bound))},
            bound,
        )
        for role, name, bound in both
    ]
