"""The one browser component through which every lab is dragged live.

* `exhibit(table, view, key=..., on_pick=...)`: mounts it and hands over what the visitor picks in it.

Python sends a whole sweep, one row per position of the dial; the browser shows any row of it at once, without a round
trip; what it has is not sent again (`parcel`). The component draws and looks up: it does no arithmetic about attention,
writes no numbers and knows no words. Its assets lie in `exhibit/`, small ES modules served from a URL, so that they are
not sent again with every update.

What an exhibit may hold is said in `qkdemo.charts.spec`, as types.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Final, cast

import pyarrow as pa
import streamlit as st
from streamlit.runtime import Runtime

from qkdemo.charts.panels import Panel
from qkdemo.charts.spec import Exhibit, Pick
from qkdemo.dials import Dials
from qkdemo.labs.caption import caption
from qkdemo.messages import phrase
from qkdemo.notation import signs
from qkdemo.web import lecture
from qkdemo.web.components import Component
from qkdemo.web.lab.parcel import Known, parcel
from qkdemo.web.read_off import dial_name
from qkdemo.web.track import lesson, shown

COMMANDS: Final = ("play", "pause", "step", "stop", "train")
_REAL: Final = frozenset({"dial", "guess"})
_NAMES: Final = frozenset(Pick.__annotations__)
_PLACES: Final = ("exhibit.largest", "exhibit.one_of", "exhibit.one_of_many")
_CODES: Final = ("number.less", "number.about", "number.more", "exhibit.hidden", "exhibit.most")
_HEARD: Final[dict[str, tuple[str, ...]]] = {  # with which the browser says a panel of a kind
    "curves": ("exhibit.first", "exhibit.last", "exhibit.cross", "exhibit.listen"),
    "heat": (*_PLACES, *_CODES),
    "bars": _PLACES,
    "arcs": _PLACES,
    "arrows": ("exhibit.arrow", "exhibit.no_angle"),
    "pooled": ("exhibit.pooled", "exhibit.most_of"),
}
_SENT: Final = "exhibit.sent"
_COMPONENT: Final = Component("exhibit", html='<section class="exhibit" style="visibility: hidden"></section>')


def exhibit(
    table: pa.Table,
    view: Exhibit,
    *,
    key: str,
    on_pick: Callable[[Pick], None],
    made: tuple[str, Dials] | None = None,
    recorded: pa.Table | None = None,
) -> None:
    """Mount the exhibit; `on_pick` is called with the visitor's pick before the next run draws anything.

    A pick is `{"dial": value}`, `{"query": i, "key": j}`, `{"key": j}` or, in a grid, `{"row": i, "column": j}`; of a
    live exhibit also `{"command": word}`, one of COMMANDS, `{"fork": i, "dial": step}`, the i-th of its forks, and
    `{"news": rows}` when a run came to rest. Whether it lies in the dial's range, or among the cells there are, and
    whether the visitor may do that, is for the callback. A drawn prediction, `{"guess": value}`, goes to the track.
    `made` is the lab's name and the settings, which stand below a picture that is saved. `recorded` holds the rows of a
    live exhibit that is finished: a track's numbers are read there.
    """
    if not Runtime.exists():
        return

    def picked() -> None:
        pick = read_pick(st.session_state[key].get("pick"))
        match pick:
            case None:
                pass
            case {"again": plain}:
                sent().know_nothing(plain=bool(plain))
            case {"guess": guess}:
                lesson.predict(guess)
            case _:
                on_pick(pick)

    had, column = sent(), str(view["dial"]["column"])
    if made is not None:
        view = view | {"made": caption(*made, without=(dial_name(view),))}
    text = json.dumps(_taught(table if recorded is None else recorded, view), allow_nan=False, ensure_ascii=False)
    _COMPONENT.mount(parcel(text, table, column, had.known, plain=had.plain), key=key, on_pick_change=picked)


class Sent:
    """What a visitor's browser was sent: parts of tables, and whether deflated."""

    def __init__(self) -> None:
        self.known: Known = Known()
        self.plain = False

    def know_nothing(self, *, plain: bool) -> None:
        """A message was dropped, or this browser cannot inflate."""
        self.known.clear()
        self.plain = self.plain or plain


def sent() -> Sent:
    """What this visitor's browser has."""
    had: Sent = st.session_state.setdefault(_SENT, Sent())
    return had


def read_pick(message: object) -> Pick | None:
    """`message` as a pick, or None if it is anything else: it comes from the browser, where anyone can write it."""
    if not isinstance(message, dict) or not message or not set(message) <= _NAMES:
        return None
    if "command" in message:
        command = message["command"]
        return {"command": command} if len(message) == 1 and command in COMMANDS else None
    pick: dict[str, int | float] = {}
    for name, value in message.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if name in _REAL and _is_finite(value):
            pick[name] = float(value)
        elif name not in _REAL and isinstance(value, int) and value >= 0:
            pick[name] = value
        else:
            return None
    return cast(Pick, pick)  # its names are those of a pick, see above


def _taught(table: pa.Table, view: Exhibit) -> Exhibit:
    """The view with what a track adds: what is not shown yet, the prediction, which panels matter, and what is read."""
    dial = dial_name(view)
    if lesson.current() is not None:  # a stop says itself what it is about
        view = view.copy()
        view.pop("fold", None)
    view = shown.read_off(table, view)
    if lesson.asks():
        view = view | {"alt": "", "panels": told_apart([untold(panel) for panel in view["panels"]])}
    if "live" in view:
        view = view | {"live": view["live"] | {"watch": lesson.revealed()}}
    words = {**view["words"], **spoken(view["panels"])}
    taught = view | {"words": words, "stop": lesson.current() is not None}
    return taught | {"veil": shown.veil(dial), "guesses": shown.marks(dial), "lecture": lecture.on()}


def spoken(panels: Sequence[Panel]) -> dict[str, str]:
    """The words with which the browser says these pictures, and the signs of its numbers."""
    kinds = {panel["kind"] for panel in panels} | {"pooled" for panel in panels if "pooled" in panel}
    keys = dict.fromkeys(["exhibit.at", *(key for kind in sorted(kinds) for key in _HEARD.get(kind, ()))])
    return {key.partition(".")[2]: phrase(key) for key in keys} | dict(signs())


def untold(panel: Panel) -> Panel:
    """A panel whose title says what is drawn, not what is found."""
    if not panel.get("subtitle"):
        return panel
    name: str = panel["subtitle"]
    return panel | {"title": name[0].upper() + name[1:], "subtitle": "\u00a0"}


def told_apart(panels: Sequence[Panel]) -> list[Panel]:
    """The panels; arrows of one title are told apart by their side, as the first chart of curves calls it."""
    lines = [line for panel in panels if panel["kind"] == "curves" for line in panel["lines"]]
    sides = {line["role"]: line["label"] for line in reversed(lines) if line["label"]}
    return [
        panel | {"title": f"{sides[panel['role']]}: {panel['title']}"}
        if panel["kind"] == "arrows" and panel["role"] in sides
        else panel
        for panel in panels
    ]


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond float64
        return False
