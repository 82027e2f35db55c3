"""The one browser component through which every lab is dragged live.

* `exhibit(table, view, key=..., on_pick=...)`: mounts it and hands over what the visitor picks in it.

Python sends a whole sweep, one row per position of the dial; the browser shows any row of it at once, without a round
trip; what it has is not sent again (`parcel`). The component draws and looks up: it does no arithmetic about attention,
writes no numbers and knows no words. Its assets lie in `exhibit/`, small ES modules served from a URL, so that they are
not sent again with every update.

`table` has one row per position, ascending in the dial's column: float64 scalars, fixed-size lists of float32 (vectors)
or uint8 (matrices, row by row), and strings, which are every text that follows the cursor. Scalars and vectors may hold
±inf and NaN. `view` is JSON (no NaN, no inf):

    dial      column, name? (the dial's, if the column has another), text (a string column), label,
              at (the committed value, equal to one row), log
              (a logarithmic dial that starts at 0 is laid out by log(1 + x))
    finding   a string column: the headline
    room      a text for which the headline keeps room, if a longer one than there is may come
    heading   level of the headline, 2 unless given; panel titles are one below
    tiles     label, lines: [{role, column}]; read as a causal chain
    fold      ? {more, less}: what says `rest` is not shown until the button with these words is pressed
    panels    kind, title, subtitle?, wide (columns of 12), tall? (a picture of nearly twice the height), rest?,
              folded? (how wide it is while the rest is not shown), and by kind:
      curves  y: {log, domain, ticks}, x: {ticks}, lines: [{role, column, label, low?, high?, dots?}] (two columns
              between which a band is laid; dots at the rows that are known, and NaN is no gap), marks: [{x, label,
              role}], points?: [{x, y, role, label, read? (it lies on a line, and a sentence quotes it)}],
              levels?: [{y, label}], labels? ("apart": inside, where a line is far from the others; for lines that end
              together)
      heat    role, column (codes), rows, columns, selected [query, key], query_label, key_label
              each? (how many queries, and keys, a cell stands for), chosen? (then the numbers of the selected two)
              details? {url, numbers: {name: [texts, one for each entry]}, panel}: what the pointer stands on is asked
              for at url&row=&column=&name=; the answer, {title, texts by column}, stands in that panel meanwhile
              codes: 0..250 are weight = (code/250)², 254 is masked, 255 is undefined
      bars    lines: [{role, column}], labels, selected, key_label?, y? {ticks}, notes?: [{role, column, entry (none:
              the largest), x, label}]: what is written over a bar while the dial stands at x
      cells   head, roles, rows: cells are string columns, {"text": ...} or constants that name no column; strong (row),
              breaks? (columns whose long texts break anywhere; such a table scrolls sideways where it is narrow)
      grid    corner, head: [{text, label (in full), rest?}],
              rows: [{text, label (in full), role, column, tones, rest?}],
              selected [row, column]; column holds the texts of a row's cells, joined by tabs, tones a digit for each:
              0 (quiet) to 3 (loudest)
      arcs    labels, lines: [{role, column (weights, row by row), label}] (the first above, the second below), selected
              (whose arcs are in colour), key_label
      arrows  role, angles, lengths (vector columns), query (scalar column), selected, reach, ring, label
    live      url, source (another one: begin anew), columns (scalars, in order), steps, own, shipped (it came with
              the app: `train` trains it here), pace, resting (whether it rested when the page was drawn), shown (after
              so many steps; news come when it rests after others), watch (its answer was just asked for: what is
              recorded is played once), lead and forks ([{label, help}]: they go on from the shown step, named in
              the lead): the rows are not in the table, they arrive from the url as
              `web.training.stream` writes them; y.grows: an axis takes in what arrives; words: play, pause, step,
              stop, train, offline, restarting, full, waiting
    A track adds:
    veil      its question is open: nothing from `from` towards x, or beyond, is shown: {x, from} and, where the answer
              is a number that can be drawn, {column, low, high}
    guesses   predictions: [{column, x, y, label}]
    matters   of a panel: the stop is about it; it comes first where there is room for one
    lecture   whether a hall looks on
    words     hint, png, svg, undefined, arcs, heat, bars and grid (how to pick there with the keyboard)
    alt       what the exhibit shows at the committed value, for those who do not see it

Roles are plain, norm and bound, which are attention without a norm, with one, and what bounds it: colours one to three
of the theme's categorical palette; left and right, for two things compared that are neither, the first of which is what
the second should be: the text colour and colour five; and other, which is grey.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
import streamlit as st
from streamlit.runtime import Runtime

from qkdemo.web import lecture
from qkdemo.web.components import Component
from qkdemo.web.lab.parcel import Known, parcel
from qkdemo.web.read_off import dial_name
from qkdemo.web.track import lesson

Pick = dict[str, Any]

COMMANDS: Final = ("play", "pause", "step", "stop", "train")
_REAL: Final = frozenset({"dial", "guess"})
_NAMES: Final = _REAL | {"fork", "query", "key", "row", "column", "command", "news", "again"}
_SENT: Final = "exhibit.sent"
_COMPONENT: Final = Component("exhibit", html='<section class="exhibit" style="visibility: hidden"></section>')


def exhibit(
    table: pa.Table,
    view: Mapping[str, Any],
    *,
    key: str,
    on_pick: Callable[[Pick], None],
    recorded: pa.Table | None = None,
) -> None:
    """Mount the exhibit; `on_pick` is called with the visitor's pick before the next run draws anything.

    A pick is `{"dial": value}`, `{"query": i, "key": j}`, `{"key": j}` or, in a grid, `{"row": i, "column": j}`; of a
    live exhibit also `{"command": word}`, one of COMMANDS, `{"fork": i, "dial": step}`, the i-th of its forks, and
    `{"news": rows}` when a run came to rest. Whether it lies in the dial's range, or among the cells there are, and
    whether the visitor may do that, is for the callback. A drawn prediction, `{"guess": value}`, goes to the track.
    `recorded` holds the rows of a live exhibit that is finished: a track's numbers are read there.
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
    text = json.dumps(_taught(table if recorded is None else recorded, dict(view)), allow_nan=False, ensure_ascii=False)
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
        return dict(message) if len(message) == 1 and message["command"] in COMMANDS else None
    pick: Pick = {}
    for name, value in message.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if name in _REAL and _is_finite(value):
            pick[name] = float(value)
        elif name not in _REAL and isinstance(value, int) and value >= 0:
            pick[name] = value
        else:
            return None
    return pick


def _taught(table: pa.Table, view: dict[str, Any]) -> dict[str, Any]:
    """The view with what a track adds: what is not shown yet, the prediction, which panels matter, and what is read."""
    dial = dial_name(view)
    if lesson.current() is not None:  # a stop says itself what it is about
        view.pop("fold", None)
    view = lesson.read_off(table, view)
    if lesson.asks():
        view = view | {"alt": "", "panels": [untold(panel) for panel in view["panels"]]}
    if "live" in view:
        view = view | {"live": view["live"] | {"watch": lesson.revealed()}}
    return dict(view) | {"veil": lesson.veil(dial), "guesses": lesson.marks(dial), "lecture": lecture.on()}


def untold(panel: dict[str, Any]) -> dict[str, Any]:
    """A panel whose title says what is drawn, not what is found."""
    if not panel.get("subtitle"):
        return panel
    name: str = panel["subtitle"]
    return panel | {"title": name[0].upper() + name[1:], "subtitle": "\u00a0"}


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond float64
        return False
