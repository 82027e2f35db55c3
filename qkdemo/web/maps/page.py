"""The page of maps: which lab, which two dials, which measure; the map fills in while its visitor looks on.

* `map_page()`: draws it.

The link holds all of it: `lab`, `x`, `y`, `measure`, `cells`, and the lab's own dials. A click in the map sets both
dials, a frame becomes the ranges of the axes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import streamlit as st

from qkdemo.dials import Dials, SettingsError
from qkdemo.labs.lab import Lab
from qkdemo.labs.registry import LABS
from qkdemo.maps import files
from qkdemo.maps.cells import Cells
from qkdemo.maps.picture import FRAME, PICK, look_of, marks_table, picture, spec
from qkdemo.maps.pool import Filling, Fillings
from qkdemo.maps.request import MAPPED, SIZES, Request, axis_of, numeric_dials, request_of, usual_axes
from qkdemo.maps.surface import surfaces
from qkdemo.maps.words import alt, caption, finding, measure_name, strange
from qkdemo.messages import say
from qkdemo.web import echo
from qkdemo.web.given import as_text
from qkdemo.web.lab.controls import dials, turn
from qkdemo.web.lab.takeaway import Takeaway, take_away
from qkdemo.web.link import KEPT, address, ask, asked, carried
from qkdemo.web.maps.phases import phases_shown
from qkdemo.web.space.shown import in_space, theme
from qkdemo.web.track import lesson

FILLINGS: Final = Fillings()
_FIRST: Final = "drift"
_USUAL: Final = 33  # cells along a side
_HERE_S: Final = 0.2  # of reading in this process: what a lab's own page takes too
_EVERY_S: Final = 0.4
_CAMERA: Final = (("turn", -180, 180, -130), ("tilt", -85, 85, 25))
_MOVED: Final = "map:moved"


def map_page() -> None:
    """The page, from its headline to what a visitor takes away."""
    lab = LABS[_lab_name()]
    settings = dials(lab.settings, lab.presets, lab.name)
    heading = st.empty()
    request = _choices(lab, settings)
    if lesson.asks():
        heading.title(say("map.title", measure=measure_name(request)))
        st.info(say("map.asked"), icon=":material/visibility_off:")
        return
    filling = FILLINGS.of(request, _size())
    FILLINGS.begin(filling, _HERE_S)
    going = filling.state == "going"
    watch = st.fragment(partial(_filled, filling, request, going), run_every=_EVERY_S if going else None)
    cells = filling.cells(request.measure)
    heading.title(say("map.title", measure=measure_name(request)) if cells is None else finding(cells))
    watch()
    if cells is not None:
        _take_away(cells)


# ---- what is asked for


def _lab_name() -> str:
    current, name = lesson.current(), asked("lab")
    if current is not None:
        return current.stop.lab.name
    if name and name not in MAPPED:
        st.warning(as_text(say("map.error.lab", name=repr(name), known=", ".join(MAPPED))), icon=":material/link_off:")
    return name if name in MAPPED else _FIRST


def _choices(lab: Lab, settings: Dials) -> Request:
    """The row of choices, and the request that they and the link make; a word about what the link asks in vain."""
    request = _request(lab, settings)
    known = numeric_dials(lab, settings)
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
        _choice("cells", tuple(map(str, SIZES)), str(_size()), {str(size): str(size) for size in SIZES}, ask)
    return request


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


def _size() -> int:
    text = asked("cells")
    return int(text) if text.isdecimal() and int(text) in SIZES else _USUAL


# ---- the map


def _filled(filling: Filling, request: Request, going: bool) -> None:  # noqa: FBT001
    """Both sides as far as they are, and how far that is; again and again while it fills in."""
    if st.session_state.pop(_MOVED, False):
        st.rerun()  # the dials stand outside
    st.session_state["map:was:x"], st.session_state["map:was:y"] = request.x.text, request.y.text
    filling = FILLINGS.of(request, _size())
    FILLINGS.begin(filling)
    if going and filling.state != "going":
        st.rerun()
    with st.container():  # there also when it is empty, so that nothing below it moves to another place
        _progress(filling, request)
    cells = filling.cells(request.measure)
    if cells is None:
        return
    for role, column in zip(cells.sides, st.columns(max(2, len(cells.sides))), strict=False):
        with column:
            _side(cells, role)


def _side(cells: Cells, role: str) -> None:
    name = cells.names[role]
    st.markdown(f"## {name[0].upper() + name[1:]}")
    key = f"map:{role}:{cells.request.lab.name}:{cells.request.x.text}:{cells.request.y.text}"
    st.vega_lite_chart(
        marks_table(cells, role),
        spec(look_of(cells)),
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
        values = {request.x.dial.name: points[0].get("x"), request.y.dial.name: points[0].get("y")}
        cls = type(request.settings)
        known = {name: value for name, value in values.items() if isinstance(value, int | float)}
        turn(cls, request.lab.name, {name: _own(request, name, value) for name, value in known.items()})
        st.session_state[_MOVED] = True


def _ends(axis: Any, inside: list[Any]) -> str:
    return f"{axis.dial.write(inside[0])}:{axis.dial.write(inside[-1])}"


def _own(request: Request, name: str, value: float) -> float | int:
    """The dial's value nearest to what the browser says, in its own type."""
    axis = request.x if request.x.dial.name == name else request.y
    return min(axis.finest, key=lambda own: abs(float(own) - value))  # type: ignore[return-value]


def _progress(filling: Filling, request: Request) -> None:
    with st.container(horizontal=True):
        if request.x.text != _whole(request, "x") or request.y.text != _whole(request, "y"):
            _button("whole", ":material/zoom_out_map:", _zoom_out, request)
        if filling.state == "going":
            _button("stop", ":material/stop:", FILLINGS.stop, filling)
        elif filling.state in ("stopped", "failed"):
            _button("go_on", ":material/play_arrow:", _go_on, filling)
    if filling.state == "going" and filling.total:
        left = filling.left_s
        words = say("map.filling", size=filling.next_size, done=filling.done, total=filling.total)
        wait = "" if left is None else " " + say("map.left", left=max(1, round(left)))
        st.progress(min(1.0, filling.done / filling.total), words + wait)
    if filling.state == "failed":
        st.warning(say("map.failed"), icon=":material/error:")


def _button(word: str, icon: str, call: Callable[[Any], None], given: Any) -> None:
    st.button(say(f"map.{word}"), icon=icon, key=f"map:{word}", on_click=call, args=(given,))


def _go_on(filling: Filling) -> None:
    FILLINGS.go_on(filling)
    st.session_state[_MOVED] = True


def _whole(request: Request, axis: str) -> str:
    own = getattr(request, axis).dial.name
    usual = next((text for text in usual_axes(request.lab, request.settings) if text.split(":")[0] == own), own)
    return axis_of(request.lab, usual).text


def _zoom_out(request: Request) -> None:
    for axis in ("x", "y"):
        ask(axis, _whole(request, axis))
    st.session_state[_MOVED] = True


# ---- what is taken away


def _take_away(cells: Cells) -> None:
    def rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = files.as_table(cells).to_pylist()
        return found

    offer = Takeaway(
        lab="map",
        settings=cells.request.settings,
        noise=cells.request.lab.noise,
        tables=lambda: {"map.table": rows},
        programs=lambda: {"map.program": partial(files.program, cells)},
    )
    take_away(
        offer,
        {
            say("map.picture"): partial(_pictures, cells),
            say("map.surface"): partial(_surfaces, cells),
            say("phases.tab"): phases_shown,
        },
    )


def _surfaces(cells: Cells) -> None:
    """Both sides in space; the camera stands in the link by two sliders."""
    st.markdown(say("map.surface_help"))
    turned = [_camera(name, low, high, usual) for name, low, high, usual in _CAMERA]
    said = " ".join(alt(cells, role) for role in cells.sides)
    in_space(surfaces(cells, theme(), *turned), "map:space", said)


def _camera(name: str, low: int, high: int, usual: int) -> int:
    key, text = f"map:{name}", asked(name)
    number = int(text) if text.lstrip("-").isdecimal() else usual
    st.session_state[key] = min(max(number, low), high)
    return st.slider(
        say(f"dial.{name}.label"), low, high, step=5, key=key, on_change=lambda: ask(name, str(st.session_state[key]))
    )


def _pictures(cells: Cells) -> None:
    st.markdown(say("map.picture_help"))
    link = address(cells.request.settings)
    kinds = (
        ("svg", "image/svg+xml", files.as_svg),
        ("png", "image/png", files.as_png),
        ("pdf", "application/pdf", files.as_pdf),
    )
    with st.container(horizontal=True):
        for kind, mime, draw in kinds:
            st.download_button(
                say(f"map.{kind}"),
                lambda draw=draw: draw(picture(cells, caption(cells, link))),  # type: ignore[misc]
                f"qkdemo-map.{kind}",
                mime,
                on_click="ignore",
                icon=":material/download:",
                key=f"map:{kind}",
            )
    st.caption(as_text(caption(cells, link)))
    with st.expander(say("map.in_words")):
        for role in cells.sides:
            st.markdown(as_text(alt(cells, role)))
