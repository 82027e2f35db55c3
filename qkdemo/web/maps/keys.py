"""The map by keys: arrow keys move a cell, whose numbers are said; Enter sets both dials there, Escape goes back.

* `cell_of(cells)`: the cell, (i, j), that this visitor's keys stand on; None where none was moved;
* `move_by_keys(cells, set_dials)`: the line under the map that takes the keys.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import streamlit as st
from streamlit.runtime import Runtime

from qkdemo.dials import Value
from qkdemo.maps.cells import Cells
from qkdemo.maps.words import cell_words, cross
from qkdemo.messages import say
from qkdemo.web.components import Component

_AT: Final = "map:at"  # the values of both dials where the keys stand, and the map in which they do
_COMPONENT: Final = Component(
    "cross",
    html="<div class='cross' role='application' tabindex='0'><p class='said'></p><p class='hint'></p>"
    "<p class='unseen' role='status' aria-live='polite'></p></div>",
)


def cell_of(cells: Cells) -> tuple[int, int] | None:
    """In the map as fine as it is now."""
    ground, x, y = st.session_state.get(_AT, (None, 0.0, 0.0))
    if ground != _ground(cells):
        return None
    at = [
        int(np.argmin([abs(float(value) - place) for value in values]))
        for values, place in ((cells.x, x), (cells.y, y))
    ]
    return at[0], at[1]


def move_by_keys(cells: Cells, set_dials: Callable[[Mapping[str, Value]], None]) -> None:
    """`set_dials` is called with the values of both dials, by name."""
    if not Runtime.exists():
        return
    moved, stands = cell_of(cells), cross(cells)
    i, j = stands if moved is None else moved
    names = (cells.request.x.dial.name, cells.request.y.dial.name)
    key = "map:keys"

    def told(chosen: Any) -> tuple[float, float] | None:
        """What the browser says may be anything."""
        if not (isinstance(chosen, list) and len(chosen) == 2 and all(isinstance(at, int | float) for at in chosen)):
            return None
        return float(chosen[0]), float(chosen[1])

    def on_moved() -> None:
        at = told(st.session_state[key].moved)
        if at is None:
            st.session_state.pop(_AT, None)
        else:
            st.session_state[_AT] = (_ground(cells), *at)

    def on_chosen() -> None:
        at = told(st.session_state[key].chosen)
        if at is not None:
            st.session_state.pop(_AT, None)
            set_dials(dict(zip(names, at, strict=True)))

    data = {
        "at": [i, j],
        "places": [list(map(float, cells.x)), list(map(float, cells.y))],
        "said": cell_words(cells, i, j),
        "hint": say("map.keys.hint"),
        "label": say("map.keys.label"),
    }
    _COMPONENT.mount(data, key=key, on_moved_change=on_moved, on_chosen_change=on_chosen)


def _ground(cells: Cells) -> str:
    """The map in which a cell lies: another one has other dials, or other values of them."""
    request = cells.request
    return f"{request.lab.name} {request.x.text} {request.y.text}"
