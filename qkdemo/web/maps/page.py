"""The page of maps: which lab, which two dials, which measure; the map fills in while its visitor looks on.

* `map_page()`: draws it.

The link holds all of it: `lab`, `x`, `y`, `measure`, `cells`, `minus`, and the lab's own dials. A click in the map sets
both dials, a frame becomes the ranges of the axes; arrow keys move a cell, and Enter sets the dials there.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final

import streamlit as st

from qkdemo.labs.registry import LABS
from qkdemo.maps.cells import Cells
from qkdemo.maps.difference import Minus, difference
from qkdemo.maps.picture import FRAME, PICK, look_of, marks_table, spec
from qkdemo.maps.pool import Filling, Fillings
from qkdemo.maps.request import SIZES, Request, axis_of, fitting, usual_axes
from qkdemo.maps.words import alt, filling_words, finding, measure_name, strange
from qkdemo.messages import say
from qkdemo.web import lecture
from qkdemo.web.address.language import speak_on
from qkdemo.web.address.link import ask
from qkdemo.web.lab.controls import dials, turn
from qkdemo.web.maps.asked import choices, lab_name, size
from qkdemo.web.maps.keys import cell_of, move_by_keys
from qkdemo.web.maps.taken import take_away_map
from qkdemo.web.track import lesson

FILLINGS: Final = Fillings()
_HERE_S: Final = 0.2  # of reading in this process: what a lab's own page takes too
_EVERY_S: Final = 0.4
_MOVED: Final = "map:moved"


def map_page() -> None:
    """The page, from its headline to what a visitor takes away."""
    lab = LABS[lab_name()]
    settings = dials(lab.settings, lab.presets, lab.name)
    heading = st.empty()
    first = st.container() if lecture.on() else nullcontext()  # a hall sees the map, then what it is asked for
    request, minus = choices(lab, settings)
    if lesson.asks():
        heading.title(say("map.title", measure=measure_name(request)))
        st.info(say("map.asked"), icon=":material/visibility_off:")
        return
    both = _both(request, minus)
    for filling in both:
        FILLINGS.begin(filling, _HERE_S)
    going = any(filling.state == "going" for filling in both)
    watch = st.fragment(partial(_filled, request, minus, going), run_every=_EVERY_S if going else None)
    cells = _cells(both, request, minus)
    heading.title(say("map.title", measure=measure_name(request)) if cells is None else finding(cells))
    with first:
        watch()
    if cells is not None:
        take_away_map(cells)


def _both(request: Request, minus: Minus | None) -> tuple[Filling, ...]:
    """The map, and the one that is subtracted."""
    other = () if minus is None or minus.request is None else (minus.request,)
    return tuple(FILLINGS.of(each, size()) for each in (request, *other))


def _cells(both: tuple[Filling, ...], request: Request, minus: Minus | None) -> Cells | None:
    """The finest map that is whole; where two are subtracted, the finest that both of them have."""
    for cells in reversed([cells for cells in SIZES if cells <= size()]):
        found = [filling.canvas.cells(cells, request.measure) for filling in both]
        first = found[0]
        if first is not None and None not in found:
            first = first.asked_by(request)
            return first if minus is None else difference(first, found[1] if len(found) > 1 else None, minus)
    return None


def _filled(request: Request, minus: Minus | None, going: bool) -> None:  # noqa: FBT001
    """Both sides as far as they are, and how far that is; again and again while it fills in."""
    speak_on()
    if st.session_state.pop(_MOVED, False):
        st.rerun()  # the dials stand outside
    st.session_state["map:was:x"], st.session_state["map:was:y"] = request.x.text, request.y.text
    both = _both(request, minus)
    for filling in both:
        FILLINGS.begin(filling)
    if going and all(filling.state != "going" for filling in both):
        st.rerun()
    with st.container():  # there also when it is empty, so that nothing below it moves to another place
        _progress(both, request)
    cells = _cells(both, request, minus)
    if cells is None:
        return
    at = cell_of(cells)
    for role, column in zip(cells.sides, st.columns(max(2, len(cells.sides))), strict=False):
        with column:
            _side(cells, role, at)
    move_by_keys(cells, partial(_set, request))


def _side(cells: Cells, role: str, at: tuple[int, int] | None) -> None:
    name = cells.names[role]
    st.markdown(f"## {name[0].upper() + name[1:]}")
    key = f"map:{role}:{cells.request.lab.name}:{cells.request.x.text}:{cells.request.y.text}"
    st.vega_lite_chart(
        marks_table(cells, role, at),
        spec(replace(look_of(cells), hall=lecture.on())),
        key=key,
        on_select=partial(_picked, key, cells.request),
        selection_mode=[PICK, FRAME],
        alt=alt(cells, role),
        width="stretch",
    )
    if odd := strange(cells.shown(role)):
        st.caption(" ".join(odd))


def _picked(key: str, request: Request) -> None:
    """A click sets both dials; a frame becomes the ranges of both axes."""
    selection = (st.session_state.get(key) or {}).get("selection", {})
    points, frame = selection.get(PICK), selection.get(FRAME)
    if isinstance(frame, dict) and len(frame) == 2:
        for axis, name in ((request.x, "x0"), (request.y, "y0")):
            low, high = sorted(float(end) for end in frame.get(name, (0, 0)))
            inside = [value for value in axis.finest if low <= float(value) <= high]
            if len(inside) > 1:
                ask("x" if axis is request.x else "y", f"{axis.dial.name}:{_ends(axis, inside)}")
                st.session_state[_MOVED] = True
    elif isinstance(points, list) and points:
        _set(request, {request.x.dial.name: points[0].get("x"), request.y.dial.name: points[0].get("y")})


def _set(request: Request, values: Mapping[str, Any]) -> None:
    """Turn both dials."""
    known = {name: value for name, value in values.items() if isinstance(value, int | float)}
    turn(type(request.settings), request.lab.name, {name: _own(request, name, value) for name, value in known.items()})
    st.session_state[_MOVED] = True


def _ends(axis: Any, inside: list[Any]) -> str:
    return f"{axis.dial.write(inside[0])}:{axis.dial.write(inside[-1])}"


def _own(request: Request, name: str, value: float) -> float | int:
    """The dial's value nearest to what the browser says, in its own type."""
    axis = request.x if request.x.dial.name == name else request.y
    return min(axis.finest, key=lambda own: abs(float(own) - value))  # type: ignore[return-value]


def _progress(both: tuple[Filling, ...], request: Request) -> None:
    """Buttons, and how far the one is that fills in."""
    filling = min(both, key=lambda each: (each.state == "whole", each.state != "going"))
    with st.container(horizontal=True):
        if request.x.text != _whole(request, "x") or request.y.text != _whole(request, "y"):
            _button("whole", ":material/zoom_out_map:", _zoom_out, request)
        if filling.state == "going":
            _button("stop", ":material/stop:", _stop, both)
        elif filling.state in ("stopped", "failed"):
            _button("go_on", ":material/play_arrow:", _go_on, both)
    if filling.state == "going" and filling.total:
        left = filling.left_s
        words = filling_words(request, filling.next_size, filling.done, filling.total)
        wait = "" if left is None else " " + say("map.left", left=max(1, round(left)))
        st.progress(min(1.0, filling.done / filling.total), words + wait)
    if filling.state == "failed":
        st.warning(say("map.failed"), icon=":material/error:")


def _button(word: str, icon: str, call: Callable[[Any], None], given: Any) -> None:
    st.button(say(f"map.{word}"), icon=icon, key=f"map:{word}", on_click=call, args=(given,))


def _stop(both: tuple[Filling, ...]) -> None:
    for filling in both:
        FILLINGS.stop(filling)


def _go_on(both: tuple[Filling, ...]) -> None:
    for filling in both:
        if filling.state != "whole":
            FILLINGS.go_on(filling)
    st.session_state[_MOVED] = True


def _whole(request: Request, axis: str) -> str:
    own, beside = (each.dial.name for each in ((request.x, request.y) if axis == "x" else (request.y, request.x)))
    usual = next((text for text in usual_axes(request.lab, request.settings) if text.split(":")[0] == own), own)
    whole = axis_of(request.lab, usual)
    return (whole if ":" in usual else fitting(whole, request.settings, axis_of(request.lab, beside))).text


def _zoom_out(request: Request) -> None:
    for axis in ("x", "y"):
        ask(axis, _whole(request, axis))
    st.session_state[_MOVED] = True
