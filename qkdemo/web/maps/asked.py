"""What a map is asked for, as the link has it and as a row of choices turns it.

* `lab_name()`; `choices(lab, settings)`: draws the row, and returns the request and what is subtracted;
* `size()`: how many cells a side has.
"""

from contextlib import suppress
from functools import partial
from typing import Any, Final

import streamlit as st

from qkdemo.dials import Choice, Declaration, Dial, Dials, SettingsError, Switch, declarations
from qkdemo.labs.lab import Lab
from qkdemo.maps.difference import Minus, minus_of, set_apart
from qkdemo.maps.request import MAPPED, SIZES, Request, axis_of, numeric_dials, request_of, usual_axes
from qkdemo.messages import say
from qkdemo.web.address import echo
from qkdemo.web.address.given import as_text
from qkdemo.web.address.link import KEPT, ask, asked, carried
from qkdemo.web.lab.controls import in_words
from qkdemo.web.track import lesson

_FIRST: Final = "drift"
_USUAL: Final = 33  # cells along a side
_DIAL: Final = "dial:"  # of a choice of what is subtracted: the map at another setting of that dial


def lab_name() -> str:
    """The lab that the link names, or the stop that is gone through."""
    current, name = lesson.current(), asked("lab")
    if current is not None:
        return current.stop.lab.name
    if name and name not in MAPPED:
        st.warning(as_text(say("map.error.lab", name=repr(name), known=", ".join(MAPPED))), icon=":material/link_off:")
    return name if name in MAPPED else _FIRST


def choices(lab: Lab, settings: Dials) -> tuple[Request, Minus | None]:
    """The row of choices, and the request that they and the link make; a word about what the link asks in vain."""
    request = _request(lab, settings)
    known = tuple(dict.fromkeys((*numeric_dials(lab, settings), request.x.dial.name, request.y.dial.name)))
    labels = {axis: axis_of(lab, axis).dial.label for axis in known}
    columns = st.columns([3, 4, 4, 5, 2])
    with columns[0]:
        _choice("lab", MAPPED, lab.name, {name: say(f"page.{name}") for name in MAPPED}, _change_lab)
    for name, axis, column in zip(("x", "y"), (request.x, request.y), columns[1:3], strict=True):
        with column:
            _choice(name, known, axis.dial.name, labels, partial(_change_axis, name))
    with columns[3]:
        measures = tuple(request.plane.measures)
        _choice("measure", measures, request.measure, {name: say(f"measure.{name}") for name in measures}, ask)
    with columns[4]:
        _choice("cells", tuple(map(str, SIZES)), str(size()), {str(size): str(size) for size in SIZES}, ask)
    return request, _minus(request)


def _request(lab: Lab, settings: Dials) -> Request:
    """As the link has it; what it has wrong is said, and taken as the lab begins."""
    x, y = usual_axes(lab, settings)
    across, up, measure = asked("x"), asked("y"), asked("measure")
    try:
        return request_of(lab.name, settings, across or _other(x, y, up), up or _other(y, x, across), measure)
    except SettingsError as error:
        st.warning(as_text(str(error)), icon=":material/link_off:")
    for attempt in ((x, y, measure), (x, y, "")):
        try:
            return request_of(lab.name, settings, *attempt)
        except SettingsError:
            continue
    raise AssertionError("a lab's own axes make a map")


def _other(usual: str, other: str, taken: str) -> str:
    """The axis that the link leaves open: the usual one, unless the other axis took that dial."""
    return other if taken.split(":", maxsplit=1)[0] == usual.split(":", maxsplit=1)[0] else usual


def _choice(name: str, options: tuple[str, ...], at: str, labels: dict[str, str], change: Any) -> None:
    key = f"map:{name}"
    st.session_state[key] = at
    st.selectbox(
        say(f"map.choose.{name}"),
        options,
        key=key,
        format_func=lambda word: labels[word],
        on_change=lambda: change(name, st.session_state[key]) if change is ask else change(st.session_state[key]),
    )


def _minus(request: Request) -> Minus | None:
    """The second row: what is subtracted, and of another state the value in which it differs."""
    text = asked("minus")
    try:
        found = minus_of(request, text)
    except SettingsError as error:
        st.warning(as_text(str(error)), icon=":material/link_off:")
        found, text = None, ""
    known = {dial.name: dial for dial in declarations(type(request.settings)) if dial.name in set_apart(request)}
    sides = request.plane.sides(request.settings)
    labels = {"": say("map.minus.nothing")}
    labels |= {role: say("map.minus.side", name=name) for role, name in sides.items() if len(sides) > 1}
    labels |= {
        _DIAL + dial.name: say("map.minus.dial", name=dial.label) for dial in known.values() if _others(request, dial)
    }
    name, _, value = text.partition("=")
    one = found is not None and name in known and "," not in value
    at = _DIAL + name if one else text
    labels.setdefault(at, text)  # a link may set several dials
    columns = st.columns([6, 4, 8])
    with columns[0]:
        _choice("minus", tuple(labels), at, labels, partial(_change_minus, request))
    if one:
        with columns[1]:
            _value(request, known[name], value)
    return found


def _change_minus(request: Request, at: str) -> None:
    if not at.startswith(_DIAL):
        ask("minus", at)
        return
    name = at.removeprefix(_DIAL)
    dial = next(dial for dial in declarations(type(request.settings)) if dial.name == name)
    ask("minus", f"{name}={_others(request, dial)[0]}")


def _value(request: Request, dial: Declaration, text: str) -> None:
    """At which value the other map stands: a word, a stop, or a number that is typed."""
    options = _others(request, dial)
    options = options if text in options else [*options, text]
    st.session_state["map:value"] = text
    st.selectbox(
        say("map.choose.value"),
        options,
        key="map:value",
        format_func=lambda word: in_words(dial, word),
        accept_new_options=isinstance(dial.kind, Dial),
        on_change=lambda: ask("minus", f"{dial.name}={st.session_state['map:value']}"),
    )


def _others(request: Request, dial: Declaration) -> list[str]:
    """The values, as a link writes them, that the other map can have: both of its axes must act there."""
    found = []
    for text in map(dial.write, _values(dial)):
        with suppress(SettingsError):
            minus_of(request, f"{dial.name}={text}")
            found.append(text)
    return found


def _values(dial: Declaration) -> tuple[Any, ...]:
    """What can be chosen; of a dial without stops its ends and its default."""
    match dial.kind:
        case Choice():
            return dial.allowed_words()
        case Switch():
            return (False, True)
        case Dial() as kind:
            stops = kind.grid() or sorted({kind.low, float(dial.default), kind.high})
            return tuple(dial.check(stop) for stop in stops)
        case _:
            return (dial.default,)


def _change_lab(name: str) -> None:
    """Another lab: its own dials, axes and measure."""
    kept = {word: text for word, text in carried().items() if word not in KEPT}
    echo.rewrite(kept | {"lab": name})


def _change_axis(axis: str, dial: str) -> None:
    """Another dial, over its whole range; if the other axis has it, the two change places."""
    other = "y" if axis == "x" else "x"
    before, there = st.session_state.get(f"map:was:{axis}", ""), st.session_state.get(f"map:was:{other}", "")
    if there.split(":")[0] == dial:
        ask(other, before)
        ask(axis, there)
    else:
        ask(axis, dial)


def size() -> int:
    """Cells along a side."""
    text = asked("cells")
    return int(text) if text.isdecimal() and int(text) in SIZES else _USUAL
