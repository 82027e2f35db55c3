"""Two maps subtracted, cell by cell, over the same two dials.

* `minus_of(request, text)`: what is subtracted, as it is typed: `plain`, a side of the same map, or
  `variant=rms,seed=3`, the map of another state. Raises SettingsError, a sentence that says what would be right;
* `sides_of(request)`: those that can be subtracted; `example(request)`: another state, as it is typed;
* `Minus`: either of them; `Minus.request` is the other map, where there is one;
* `difference(cells, other, minus)`: the map of the differences. Of a measure that is read over decades it is the
  difference of the decimal logarithms: 1 where the first is ten times the second.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.dials import Dial, SettingsError, declarations
from qkdemo.labs.lab import Columns
from qkdemo.maps.cells import DIFFERENCE, Cells
from qkdemo.maps.request import Request
from qkdemo.messages import say

_OTHER: Final = "subtracted"  # the column of what is subtracted
_ROUNDING: Final = 1e-11  # of the largest value: two maps that are no farther apart are the same
_SEEN: Final = 1e-3  # in proportion: who looks at an example sees something


@dataclass(frozen=True)
class Minus:
    """What is subtracted: a side of the same map (`role`), or the map of another state (`request`)."""

    text: str
    role: str = ""
    request: Request | None = None


def minus_of(request: Request, text: str) -> Minus | None:
    """None for an empty text. Raises SettingsError."""
    if not text:
        return None
    if "=" not in text:
        if text not in sides_of(request):
            known = ", ".join(sides_of(request))
            key = "map.error.side" if known else "map.error.one_side"
            raise SettingsError(say(key, name=repr(text), known=known, example=example(request)))
        return Minus(text, role=text)
    changes = dict(_change(request, part) for part in text.split(","))
    other = request.settings.but(**changes)
    if other == request.settings:
        raise SettingsError(say("map.error.same", text=repr(text)))
    return Minus(text, request=replace(request, settings=other))


def sides_of(request: Request) -> tuple[str, ...]:
    """The sides that can be subtracted: from one that stands alone nothing would be left."""
    sides = tuple(request.plane.sides(request.settings))
    return sides if len(sides) > 1 else ()


def difference(cells: Cells, other: Cells | None, minus: Minus) -> Cells:
    """`cells` less `other`, or less its own side; sides that only one of them has are left out."""
    sides: dict[str, Columns] = {}
    words: dict[str, str] = {}
    names = cells.names
    if other is None:
        pairs = {role: (cells.shown(role), cells.shown(minus.role)) for role in cells.sides if role != minus.role}
        words = {role: say("map.minus.name", one=names[role], other=names[minus.role]) for role in pairs}
    else:
        pairs = {role: (cells.shown(role), other.shown(role)) for role in cells.sides if role in other.sides}
        for role in pairs:
            words[role] = say("map.minus.name", one=names[role], other=_second(names[role], other.names[role], minus))
    measure = cells.request.measure
    logarithmic = cells.request.plane.measures[measure] == "log"
    for role, (one, less) in pairs.items():
        sides[role] = {measure: one, _OTHER: less, DIFFERENCE: _subtracted(one, less, logarithmic=logarithmic)}
    return replace(cells, sides=sides, apart=words)


def _second(name: str, other: str, minus: Minus) -> str:
    """What is subtracted from a side, and where it stands, unless its own name says all of that."""
    if name != other and "," not in minus.text:
        return other
    key = "map.minus.same" if name == other else "map.minus.other"
    return say(key, name=other, at=minus.text.replace(",", ", "))


def _subtracted(one: NDArray[np.float64], other: NDArray[np.float64], *, logarithmic: bool) -> NDArray[np.float64]:
    """∞ − ∞ is undefined, and so is the logarithm of 0 less that of 0. Where all is rounding, it is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.log10(one) - np.log10(other) if logarithmic else one - other
    size = 1.0 if logarithmic else _largest(np.stack([one, other]))
    return np.where(np.isfinite(apart), 0.0, apart) if _largest(apart) <= _ROUNDING * size else apart


def _largest(values: NDArray[np.float64]) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _change(request: Request, part: str) -> tuple[str, object]:
    """`variant=rms`, one of the dials of the other state."""
    name, _, text = (each.strip() for each in part.partition("="))
    known = {dial.name: dial for dial in declarations(request.lab.settings)}
    axes = (request.x.dial.name, request.y.dial.name)
    if name in axes:
        raise SettingsError(say("map.error.minus_axis", name=name))
    if name not in known:
        raise SettingsError(say("map.error.minus_dial", name=repr(name), known=", ".join(set_apart(request))))
    return name, known[name].parse(text)


def set_apart(request: Request) -> Mapping[str, str]:
    """The dials, name → label, in which the other map can differ."""
    axes = (request.x.dial.name, request.y.dial.name)
    dials = declarations(request.lab.settings)
    return {dial.name: dial.label for dial in dials if dial.name not in axes and dial.acts_for(request.settings)}


def example(request: Request) -> str:
    """Another state, as it is typed: the first value of a dial with which both axes act, and numbers are others.

    That is tried where the dials stand; where none changes anything there, it is the first one that can be typed.
    """
    first = ""
    for text in _other_states(request):
        with suppress(SettingsError):
            found = minus_of(request, text)
            if found is not None and found.request is not None and _changes(request, found.request):
                return text
            first = first or text
    return first


def _other_states(request: Request) -> Iterator[str]:
    """The first and last value, or every word, of each dial in which the other map can differ."""
    known = set_apart(request)
    for dial in (dial for dial in declarations(request.lab.settings) if dial.name in known):
        values = dial.allowed_words() or ((dial.kind.low, dial.kind.high) if isinstance(dial.kind, Dial) else ())
        yield from (f"{dial.name}={text}" for text in map(dial.write, values))


def _changes(request: Request, other: Request) -> bool:
    """Whether the measure is clearly another one, on some side, where the dials of `request` stand."""
    one, less = (
        each.plane.read(each.settings, each.x.dial.name, [getattr(each.settings, each.x.dial.name)])
        for each in (request, other)
    )
    both = [(one[role][request.measure], less[role][request.measure]) for role in one if role in less]
    noise = request.lab.noise.get(request.measure, 0.0)  # what is smaller is rounding
    with np.errstate(invalid="ignore"):
        return any((np.isfinite(a - b) & ~np.isclose(a, b, rtol=_SEEN, atol=noise)).any() for a, b in both)
