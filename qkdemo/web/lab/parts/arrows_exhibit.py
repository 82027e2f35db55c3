"""The arrows in the plane, which can be taken hold of: the component and its messages.

* `arrows(settings, key=..., turned=...)`: mounts it; `turned` is called with the dials that a hand moved;
* `arrows_body(settings)`: the middle of their page;
* `kept(prefix)`, `keep(prefix, moved)`: its state on a page without dials.

The browser computes the shares of this two-wide case itself, within the frame in which an arrow is dragged
(`arrows/plane.js`, held to `qkdemo.labs.arrows` by a test); the server gets what changed when the hand rests.
"""

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import streamlit as st
from streamlit.runtime import Runtime

from qkdemo.dials import Dial, SettingsError, Value, declarations
from qkdemo.labs.arrows import LONGEST, N_KEYS, Result, Settings, explain, run, word_of
from qkdemo.messages import phrase, say
from qkdemo.notation import signs
from qkdemo.web import lecture
from qkdemo.web.components import Component
from qkdemo.web.lab.controls import turn
from qkdemo.web.track import lesson
from qkdemo.web.track.shown import tell

_SHOWN: Final = (0.1, 1000.0)  # weight scales that the component's own dial reaches
_WORDS: Final = (
    *("scale", "play", "pause", "turn", "infinity", "again", "hint", "counting", "no_shares"),
    *("plain_title", "plain_subtitle", "norm_title", "norm_subtitle"),
    *("query_name", "query_label", "query_value", "key_name", "key_value"),
)
# It keeps its room until its code arrives, so that nothing below it jumps.
_COMPONENT: Final = Component("arrows", html='<section class="arrows" style="min-height: 32rem"></section>')


def arrows(settings: Settings, *, key: str, turned: Callable[[Mapping[str, Value]], None], heading: int = 2) -> None:
    """Mount the exhibit in the state `settings`; its headline is a heading of level `heading`."""
    if not Runtime.exists():
        return

    def picked() -> None:
        moved = read_pick(st.session_state[key].get("pick"))
        if moved and not lesson.asks():
            turned(moved)

    _COMPONENT.mount({"view": json.dumps(view(settings, heading), allow_nan=False)}, key=key, on_pick_change=picked)


def arrows_body(settings: Settings) -> Result:
    """What stands on the page of the arrows between their dials and what a visitor takes away."""
    if lesson.current() is None:
        st.title(say("arrows.question"))
        if not lecture.on():
            st.markdown(say("arrows.instruction"))
    arrows(settings, key="arrows.exhibit", turned=partial(turn, Settings, "arrows"))
    result = run(settings)
    tell(" ".join(explain(result)[1:]))
    return result


def kept(prefix: str) -> Settings:
    """The state that a page without dials keeps for the session."""
    settings: Settings = st.session_state.get(f"{prefix}.arrows", Settings())
    return settings


def keep(prefix: str, moved: Mapping[str, Value]) -> None:
    """Change that state; in callbacks. What is not allowed changes nothing."""
    with suppress(SettingsError):
        st.session_state[f"{prefix}.arrows"] = kept(prefix).but(**moved)


def view(settings: Settings, heading: int = 2) -> dict[str, Any]:
    """What the component draws: the state, the words, and how far a hand can go."""
    scale = next(dial.kind for dial in declarations(Settings) if dial.name == "scale")
    assert isinstance(scale, Dial)
    findings = {name: phrase(f"arrows.finding.{name}") for name in ("apart", "alike", "level", "undefined", "open")}
    findings |= {name: phrase(f"arrows.names.{name}") for name in ("both", "each")}
    return {
        "state": state_of(settings),
        "start": state_of(Settings()),
        "names": {"query": say("arrows.word.query"), "keys": [word_of(at) for at in range(N_KEYS)]},
        "words": {name: phrase(f"arrows.ui.{name}") for name in _WORDS} | findings | signs(),
        "limits": {
            "scale": {"low": scale.low, "high": scale.high, "shown": _SHOWN},
            "length": {"low": 0.05, "high": LONGEST},
        },
        "heading": heading,
        "lecture": lecture.on(),
        "locked": lesson.asks(),
        "stop": lesson.current() is not None,
    }


def state_of(settings: Settings) -> dict[str, Any]:
    """The state as the component knows it."""
    return {
        "scale": settings.scale,
        "gain": settings.gain,
        "format": settings.format,
        "query": list(settings.query),
        "keys": [list(key) for key in settings.keys],
    }


def read_pick(message: object) -> dict[str, Value] | None:
    """`message` as dials and values, or None if it is anything else: it comes from the browser."""
    known = {dial.name: dial for dial in declarations(Settings)}
    if not isinstance(message, dict) or not message or not set(message) <= set(known):
        return None
    moved: dict[str, Value] = {}
    for name, value in message.items():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return None
        if isinstance(value, float) and not math.isfinite(value):
            return None
        moved[name] = float(value) if isinstance(value, int) and not known[name].whole else value
    return moved
