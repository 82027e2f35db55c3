"""The numbers of a map, computed by the lab's own run.

* `Canvas(request)`: every cell that is known; `rows_of(size)`: what is still to be read for a size, row by row;
  `read_row(row)`: reads it, in this process or another; `put(row, found)`: keeps it;
* `Cells`: a grid of one size, whole; `fill(canvas, size)`: reads it here; `whole(request, size)`: the same in one call;
* `table(cells)`: one row per cell and side; `odd(values)`: how many cells are ∞ and how many undefined.

A row is one call of `Plane.read`, along the dial over which the lab is quickest. What a coarser size has is not read
again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.dials import Dials, Value
from qkdemo.labs.lab import Columns, Measure
from qkdemo.maps.request import Request, plane_of
from qkdemo.messages import say
from qkdemo.notation import power, written

Scale: TypeAlias = Measure | Literal["difference"]  # how colours are laid out; a difference: as far down as up from 0
DIFFERENCE: Final = "difference"
_ROUNDING: Final = 1e-9  # of the largest difference: what is smaller has no sign


@dataclass(frozen=True)
class Row:
    """Cells to be read together: `settings`, in which `dial` goes through `values`; `at`: their places."""

    lab: str
    settings: Dials
    dial: str
    values: tuple[Value, ...]
    at: tuple[tuple[int, int], ...]  # (y, x) in the finest grid


@dataclass(frozen=True, eq=False)
class Cells:
    """Every side's columns over a grid: [y, x]. `apart`: of a map of differences, role → what less what."""

    request: Request
    x: tuple[Value, ...]
    y: tuple[Value, ...]
    sides: Mapping[str, Columns]
    apart: Mapping[str, str] = field(default_factory=dict)

    def asked_by(self, request: Request) -> "Cells":
        """The same numbers for whoever asks with other dials along the axes: the cross stands where theirs do."""
        return replace(self, request=request)

    @property
    def scale(self) -> Scale:
        """How the numbers that are shown are read."""
        return "difference" if self.apart else self.request.plane.measures[self.request.measure]

    @property
    def shown_column(self) -> str:
        """The column that is drawn."""
        return DIFFERENCE if self.apart else self.request.measure

    def shown(self, role: str) -> NDArray[np.float64]:
        """[y, x] the measure that is asked for, or its difference; instead of rounding alone the most that this is."""
        values = self.sides[role][self.shown_column]
        return values if self.noise is None else np.maximum(values, self.noise)

    @property
    def noise(self) -> float | None:
        """Below which what is shown is rounding, if the lab names such a limit."""
        return self.request.lab.noise.get(self.shown_column)

    def text(self, value: float) -> str:
        """A value that is shown, as it is written."""
        return say("number.less", x=power(value)) if value == self.noise else written(value)

    @property
    def marks(self) -> tuple[str, ...]:
        """What changes in kind somewhere; of differences their sign."""
        return ("sign",) if self.apart else tuple(self.request.plane.marks)

    def holds(self, role: str, mark: str) -> NDArray[np.bool_]:
        """[y, x] where something of another kind is so."""
        if not self.apart:
            return self.request.plane.marks[mark](self.sides[role])
        values = self.shown(role)
        most = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
        above: NDArray[np.bool_] = values > _ROUNDING * most
        return above

    @property
    def names(self) -> Mapping[str, str]:
        """Role → what the side is."""
        return self.apart or self.request.plane.sides(self.request.settings)


class Canvas:
    """What is known of a map, in the finest grid that there may be."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._x, self._y = request.x.finest, request.y.finest
        self._known = np.zeros((len(self._y), len(self._x)), dtype=bool)
        self._sides: dict[str, dict[str, NDArray[np.float64]]] = {}

    def rows_of(self, size: int) -> list[Row]:
        """What is to be read until the map of that size is whole, in order."""
        request, xs, ys = self.request, self.request.x.places(size), self.request.y.places(size)
        across = request.y.dial.name == request.plane.swept
        rows = []
        for outer in xs if across else ys:
            places = [(inner, outer) if across else (outer, inner) for inner in (ys if across else xs)]
            missing = tuple(place for place in places if not self._known[place])
            if not missing:
                continue
            y, x = missing[0]
            state = request.at(self._x[x], self._y[y])
            dial = (request.y if across else request.x).dial.name
            values = tuple(self._y[y] if across else self._x[x] for y, x in missing)
            rows.append(Row(request.lab.name, state, dial, values, missing))
        return rows

    def put(self, row: Row, found: Mapping[str, Columns]) -> None:
        """Keep what a row gave."""
        at = tuple(np.array(row.at).T)
        for role, columns in found.items():
            of_side = self._sides.setdefault(role, {})
            for name, column in columns.items():
                grid = of_side.setdefault(name, np.full(self._known.shape, np.nan))
                grid[at] = column
        self._known[at] = True

    def cells(self, size: int, measure: str) -> Cells | None:
        """The map of that size, if it is whole."""
        xs, ys = self.request.x.places(size), self.request.y.places(size)
        part = np.ix_(ys, xs)
        if not self._known[part].all():
            return None
        sides = {role: {name: grid[part] for name, grid in side.items()} for role, side in self._sides.items()}
        request = self.request.but(measure)
        return Cells(request, tuple(self._x[x] for x in xs), tuple(self._y[y] for y in ys), sides)


def read_row(row: Row) -> Mapping[str, Columns]:
    """Every side's columns along a row."""
    return plane_of(row.lab).read(row.settings, row.dial, row.values)


def fill(canvas: Canvas, size: int) -> Iterator[tuple[int, int]]:
    """Reads the map of that size here, and yields after every row: rows done, and rows to do in all."""
    rows = canvas.rows_of(size)
    for done, row in enumerate(rows, start=1):
        canvas.put(row, read_row(row))
        yield done, len(rows)


def whole(request: Request, size: int) -> Cells:
    """The map, read here to its end."""
    canvas = Canvas(request)
    for _ in fill(canvas, size):
        pass
    made = canvas.cells(size, request.measure)
    assert made is not None
    return made


def table(cells: Cells) -> dict[str, NDArray[Any]]:
    """The table as columns: one row per cell and side, with everything that the lab gives."""
    request, n_x, n_y, roles = cells.request, len(cells.x), len(cells.y), list(cells.sides)
    names = list(cells.sides[roles[0]])
    return {
        "side": np.repeat(roles, n_x * n_y),
        request.x.dial.name: np.tile(np.array(cells.x), n_y * len(roles)),
        request.y.dial.name: np.tile(np.repeat(np.array(cells.y), n_x), len(roles)),
        **{name: np.concatenate([cells.sides[role][name].ravel() for role in roles]) for name in names},
    }


def odd(values: NDArray[np.float64]) -> tuple[int, int]:
    """How many cells are ∞ or −∞, and how many NaN."""
    return int(np.isinf(values).sum()), int(np.isnan(values).sum())
