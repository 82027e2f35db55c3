"""What a map is asked for: a lab in a state, two of its dials with their ranges, and a measure.

* `Request`: checked when it is made; raises SettingsError, a sentence that says what would be right;
* `Axis`: a dial and its range; `Axis.values(cells)`: where it stands along a side of so many cells;
* `axis_of(lab, text)`: reads `scale:0.1:1000`; `fitting(axis, ...)`: as far as it can go;
* `numeric_dials`, `usual_axes`: what can be an axis, and what is one at first;
* `SIZES`: how many cells a side may have, each size taken in by the next.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from qkdemo.dials import Declaration, Dial, Dials, SettingsError, Value, declarations
from qkdemo.labs.lab import Lab, Plane
from qkdemo.labs.registry import LABS
from qkdemo.messages import say
from qkdemo.notation import plain

SIZES: Final = (9, 17, 33, 65)
_DIGITS: Final = 4  # of a value between the ends of an axis: what a click sets can be typed


@dataclass(frozen=True)
class Axis:
    """A dial from `low` to `high`, as numbers of its own type."""

    dial: Declaration
    low: Value
    high: Value

    @property
    def kind(self) -> Dial:
        """The dial's declaration."""
        assert isinstance(self.dial.kind, Dial)
        return self.dial.kind

    @cached_property
    def finest(self) -> tuple[Value, ...]:
        """Where it stands along the finest map, ascending: its own stops if it has some."""
        if self.kind.stops:
            stops = [self.dial.check(stop) for stop in self.kind.stops if float(self.low) <= stop <= float(self.high)]
            return tuple(sorted({self.low, self.high, *stops}))
        there, back = scale_of(self.kind)
        places = np.linspace(there(float(self.low)), there(float(self.high)), SIZES[-1])[1:-1]
        between = [float(f"{back(place):.{_DIGITS}g}") for place in places]
        inside = [round(value) if self.dial.whole else value for value in between]
        return tuple(sorted({self.low, self.high, *(v for v in inside if float(self.low) < v < float(self.high))}))

    def places(self, cells: int) -> tuple[int, ...]:
        """Which of `finest` a side of at most `cells` cells takes, ends included."""
        last = len(self.finest) - 1
        if last < cells:
            return tuple(range(last + 1))
        return tuple(sorted({round(at * last / (cells - 1)) for at in range(cells)}))

    def values(self, cells: int) -> tuple[Value, ...]:
        """Where it stands along at most `cells` cells."""
        return tuple(self.finest[place] for place in self.places(cells))

    def edges(self, values: Sequence[Value]) -> list[float]:
        """Where the cells of these values begin and end: half way between two of them, as the axis is laid out."""
        there, back = scale_of(self.kind)
        at = np.array([there(float(value)) for value in values])
        middle = (at[1:] + at[:-1]) / 2
        ends = np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
        return [back(place) for place in ends]

    @property
    def span(self) -> tuple[float, float]:
        """From where to where it is drawn: its range; with few cells also what they reach beyond it."""
        if len(self.finest) > SIZES[0]:
            return float(self.low), float(self.high)
        edges = self.edges(self.finest)
        return edges[0], edges[-1]

    @property
    def text(self) -> str:
        """As it is typed, and stands in a link."""
        return f"{self.dial.name}:{self.dial.write(self.low)}:{self.dial.write(self.high)}"


def scale_of(kind: Dial) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """How a dial is laid out along an axis, and back: by its logarithm; from 0 on by log(1 + x)."""
    if not kind.log:
        return float, float
    return (math.log, math.exp) if kind.low > 0 else (math.log1p, math.expm1)


@dataclass(frozen=True)
class Request:
    """A map that can be computed. What the two dials stand at in `settings` is where the cross is."""

    lab: Lab
    settings: Dials
    x: Axis
    y: Axis
    measure: str

    def __post_init__(self) -> None:
        if self.x.dial.name == self.y.dial.name:
            others = [name for name in numeric_dials(self.lab, self.settings) if name != self.x.dial.name]
            raise SettingsError(say("map.error.twice", name=self.x.dial.name, known=", ".join(others)))
        for axis in (self.x, self.y):
            _refuse_idle(self.lab, axis, self.settings)
        if self.measure not in self.plane.measures:
            known = ", ".join(self.plane.measures)
            raise SettingsError(say("map.error.measure", name=repr(self.measure), lab=self.lab.name, known=known))
        corner = self.at(self.x.high, self.y.high)
        for axis in (self.x, self.y):
            if misfit := axis.dial.misfit(corner):
                raise SettingsError(misfit)

    @property
    def plane(self) -> Plane:
        """What the lab shows over two dials."""
        return plane_of(self.lab.name)

    def but(self, measure: str) -> "Request":
        """The same map of another measure."""
        return self if measure == self.measure else replace(self, measure=measure)

    def at(self, x: Value, y: Value) -> Dials:
        """The lab's settings in one cell."""
        return self.settings.but(**{self.x.dial.name: x, self.y.dial.name: y})

    @property
    def ground(self) -> tuple[str, Dials, str, str]:
        """What its numbers depend on: neither where the cross is nor which measure is looked at."""
        return self.lab.name, self.at(self.x.low, self.y.low), self.x.text, self.y.text


def request_of(name: str, settings: Dials, x: str, y: str, measure: str = "") -> Request:
    """A map as it is typed; what is empty is what the lab begins with. Raises SettingsError."""
    if name not in LABS or LABS[name].plane is None:
        raise SettingsError(say("map.error.lab", name=repr(name), known=", ".join(MAPPED)))
    lab = LABS[name]
    first = next(iter(plane_of(name).measures))
    typed = [text or usual for text, usual in zip((x, y), usual_axes(lab, settings), strict=True)]
    across, up = (axis_of(lab, text) for text in typed)
    if ":" not in typed[0]:
        across = fitting(across, settings, beside=up)
    if ":" not in typed[1]:
        up = fitting(up, settings, beside=across)
    return Request(lab, settings, across, up, measure or first)


def usual_axes(lab: Lab, settings: Dials) -> tuple[str, str]:
    """The axes that a map of this lab begins with: those of its plane, or what acts in this state in their stead."""
    known, also = numeric_dials(lab, settings), {}
    for dial in declarations(lab.settings):
        if isinstance(dial.kind, Dial) and dial.kind.also and dial.name in known:
            also[dial.kind.also] = dial.name
    chosen: list[str] = []
    for text in (plane_of(lab.name).x, plane_of(lab.name).y):
        name = text.split(":")[0]
        if name in known:
            chosen.append(text)
        else:
            taken = [each.split(":")[0] for each in chosen]
            chosen.append(also.get(name) or next(other for other in known if other not in taken))
    return chosen[0], chosen[1]


def plane_of(name: str) -> Plane:
    """What a lab that has maps shows in them."""
    plane: Plane | None = LABS[name].plane
    assert plane is not None
    return plane


def axis_of(lab: Lab, text: str) -> Axis:
    """An axis from `scale`, whole range, or `scale:0.1:1000`. Raises SettingsError."""
    return axis_in(lab.settings, text)


def fitting(axis: Axis, settings: Dials, beside: Axis) -> Axis:
    """The axis as far as another dial lets its own go: where it stands, or as far as it goes as the axis `beside`."""
    for rule, other in (("below", axis.kind.below), ("divides", axis.kind.divides)):
        if other:
            bound: Any = beside.high if other == beside.dial.name else getattr(settings, other)
            most = bound - (rule == "below")
            if float(axis.low) < most < float(axis.high):
                axis = replace(axis, high=axis.dial.check(most))
    return axis


def axis_in(settings: type[Dials], text: str) -> Axis:
    """The same among the dials of `settings`."""
    name, *ends = text.split(":")
    known = {dial.name: dial for dial in declarations(settings) if isinstance(dial.kind, Dial)}
    if name not in known:
        raise SettingsError(say("map.error.dial", name=repr(name), known=", ".join(known)))
    dial = known[name]
    assert isinstance(dial.kind, Dial)
    if not ends:
        low, high = dial.check(dial.kind.low), dial.check(dial.kind.high)
    elif len(ends) == 2 and all(ends):
        low, high = (dial.parse(end) for end in ends)
    else:
        example = f"{name}:{plain(dial.kind.low)}:{plain(dial.kind.high)}"
        raise SettingsError(say("map.error.range", text=repr(text), example=example))
    if float(low) >= float(high):
        raise SettingsError(say("map.error.order", name=name, low=dial.write(low), high=dial.write(high)))
    return Axis(dial, low, high)


def numeric_dials(lab: Lab, settings: Dials) -> tuple[str, ...]:
    """The dials, by name, that can be an axis in this state: they act, and other dials leave them several values."""
    dials = (dial for dial in declarations(lab.settings) if isinstance(dial.kind, Dial))
    return tuple(dial.name for dial in dials if dial.acts_for(settings) and not _alone(dial, settings))


def size_of(cells: int) -> int:
    """A number of cells along a side, if it is one of SIZES. Raises SettingsError."""
    if cells not in SIZES:
        known = ", ".join(map(str, SIZES))
        key = "map.error.budget" if cells > SIZES[-1] else "map.error.size"
        raise SettingsError(say(key, cells=cells, known=known, most=SIZES[-1]))
    return cells


def _alone(dial: Declaration, settings: Dials) -> bool:
    """Whether another dial leaves it its lowest value alone, such as the shown head of one."""
    assert isinstance(dial.kind, Dial)
    bounds = ((dial.kind.below, 1), (dial.kind.divides, 0))
    return any(other and getattr(settings, other) - less <= dial.kind.low for other, less in bounds)


def _refuse_idle(lab: Lab, axis: Axis, settings: Dials) -> None:
    if axis.dial.acts_for(settings):
        return
    rule = axis.dial.kind.only_for
    assert rule is not None
    other, words = rule
    write = next(dial.write for dial in declarations(lab.settings) if dial.name == other)
    values = {"value": write(getattr(settings, other)), "known": ", ".join(write(word) for word in words)}
    raise SettingsError(say("error.idle", name=axis.dial.name, other=other, **values))


MAPPED: Final = tuple(name for name, lab in LABS.items() if lab.plane is not None)
