"""What a visitor takes away from a map: its picture, its surface, where training survives, its table and its program.

* `take_away_map(cells)`: the row under the map.
"""

from functools import partial
from typing import Any, Final

import streamlit as st

from qkdemo.charts.paper.files import MIMES
from qkdemo.maps import files
from qkdemo.maps.cells import Cells
from qkdemo.maps.picture import picture
from qkdemo.maps.surface import surfaces
from qkdemo.maps.words import alt, caption
from qkdemo.messages import say
from qkdemo.web.address.given import as_text
from qkdemo.web.address.link import address, ask, asked
from qkdemo.web.lab.takeaway import Takeaway, take_away
from qkdemo.web.maps.phases import phases_shown
from qkdemo.web.space.shown import in_space, theme

_CAMERA: Final = (("turn", -180, 180, -130), ("tilt", -85, 85, 25))


def take_away_map(cells: Cells) -> None:
    """The row: picture and surface first, then table, code, link and how it was made."""

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
    own = {say("map.picture"): partial(_pictures, cells), say("map.surface"): partial(_surfaces, cells)}
    training = {say("phases.tab"): phases_shown}
    take_away(offer, training | own if asked("phases") or asked("share") else own | training)  # a link to it opens it


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
    with st.container(horizontal=True):
        for kind, mime in MIMES.items():
            st.download_button(
                say(f"map.{kind}"),
                lambda kind=kind: files.as_picture(picture(cells, caption(cells, link)), kind),  # type: ignore[misc]
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
