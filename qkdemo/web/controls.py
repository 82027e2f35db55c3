"""Dials on the page, built from their declaration.

* `dials(cls, presets, prefix)`: draws them in the sidebar, keeps the URL, and returns the settings;
* `turn(cls, prefix, values)`: sets some from elsewhere (a click in a chart), before the next run draws them.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

import streamlit as st

from qkdemo.notation import counted, written
from qkdemo.settings import Choice, Declaration, Dial, Dials, SettingsError, Switch, Value, declarations
from qkdemo.strings import has, say
from qkdemo.web.given import as_text
from qkdemo.web.link import D, arrive, hidden, keep

_FEW = 3  # words that fit beside each other


def dials(cls: type[D], presets: Mapping[str, D], prefix: str) -> D:
    """Draw a lab's dials in the sidebar and return what they say; the URL then says the same."""
    settings, notes, take_over = arrive(cls, presets)
    if take_over:
        turn(cls, prefix, settings.as_dict())
    concealed, others = hidden(), list[str]()
    with st.sidebar:
        _presets(presets, prefix)
        settings, faults = _turned(
            [dial for dial in declarations(cls) if not dial.kind.more], settings, prefix, concealed
        )
        rest = [dial for dial in declarations(cls) if dial.kind.more]
        if any(dial.name not in concealed for dial in rest):
            more = st.expander(say("controls.more"), key=f"{prefix}:more", on_change="rerun")
            with more:
                closed = frozenset() if more.open else frozenset(dial.name for dial in rest)
                settings, others = _turned(rest, settings, prefix, concealed | closed)
    notes += faults + others
    if notes:
        st.warning("\n\n".join(map(as_text, notes)), icon=":material/link_off:")
    keep(settings)
    return settings


def turn(cls: type[Dials], prefix: str, values: Mapping[str, Value]) -> None:
    """Set the dials' widgets; only before they are drawn, so in callbacks. A value that is not allowed is dropped."""
    for dial in declarations(cls):
        if dial.name in values:
            with suppress(SettingsError):
                st.session_state[f"{prefix}.{dial.name}"] = dial.check(values[dial.name])


def _turned(some: list[Declaration], settings: D, prefix: str, undrawn: frozenset[str]) -> tuple[D, list[str]]:
    """The settings as these dials say, which are drawn unless `undrawn` names them, and what was wrong with them."""
    notes = []
    for dial in some:
        key, before = f"{prefix}.{dial.name}", getattr(settings, dial.name)
        st.session_state.setdefault(key, before)
        drawn = dial.name not in undrawn and dial.acts_for(settings)
        value = _widget(dial, key) if drawn else st.session_state[key]
        if value == before:
            continue  # nearly always: a visitor turns one dial at a time
        try:
            settings = settings.but(**{dial.name: value})
        except SettingsError as error:  # a crafted frame: the widgets themselves stay in range
            notes.append(str(error))
    return settings, notes


def _widget(dial: Declaration, key: str) -> Value | None:
    common: dict[str, Any] = {"label": dial.label, "key": key, "help": dial.help or None}
    value: Value | None
    match dial.kind:
        case Switch():
            value = st.toggle(**common)
        case Choice():
            control = cast(Callable[..., Any], st.radio if len(dial.allowed_words()) <= _FEW else st.selectbox)
            value = control(options=dial.allowed_words(), format_func=_word(dial), **common)
        case Dial(low=low, high=high, step=step) as kind if not kind.grid():
            low, high, step = (int(x) if dial.whole else float(x) for x in (low, high, step))
            value = st.slider(min_value=low, max_value=high, step=step, value=cast(Any, dial.default), **common)
        case Dial() as kind:
            stops = {*kind.grid(), st.session_state[key]}  # a link may stand between two stops
            options = sorted(int(stop) if dial.whole else stop for stop in stops)
            write = counted if dial.whole else written  # 131 072 tokens are not 131 100
            value = st.select_slider(options=options, format_func=lambda x: kind.sign + write(x), **common)
    return value


def _word(dial: Declaration) -> Any:
    """How a choice is written: by the dial's name; of one that stands on two sides, or again, by what they share."""
    shared = dial.name.removeprefix("left_").removeprefix("right_").rstrip("_23")

    def name(word: str) -> str:
        keys = (
            f"{dial.name}.{word}.short",
            f"choice.{dial.name}.{word}",
            f"choice.{shared}.{word}",
            f"{shared}.{word}.short",
            f"{dial.name}.{word}.name",
        )
        return next((say(key) for key in keys if has(key)), word)

    return name


def _presets(presets: Mapping[str, Dials], prefix: str) -> None:
    def apply() -> None:
        chosen = st.session_state[f"{prefix}:preset"]
        turn(type(presets[chosen]), prefix, presets[chosen].as_dict())

    st.menu_button(
        say("controls.presets"),
        list(presets),
        key=f"{prefix}:preset",
        on_click=apply,
        format_func=lambda name: say(f"preset.{prefix}.{name}"),
        width="stretch",
    )
