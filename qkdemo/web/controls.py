"""Dials on the page, built from their declaration.

* `dials(cls, presets, prefix)`: draws them in the sidebar, keeps the URL, and returns the settings;
* `turn(cls, prefix, values)`: sets some from elsewhere (a click in a chart), before the next run draws them.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

import streamlit as st

from qkdemo.notation import written
from qkdemo.settings import Choice, Declaration, Dial, Dials, SettingsError, Switch, Value, declarations
from qkdemo.strings import has, say
from qkdemo.web.link import D, arrive, hidden, keep

_FEW = 3  # words that fit beside each other


def dials(cls: type[D], presets: Mapping[str, D], prefix: str) -> D:
    """Draw a lab's dials in the sidebar and return what they say; the URL then says the same."""
    settings, notes, take_over = arrive(cls, presets)
    if take_over:
        turn(cls, prefix, settings.as_dict())
    with st.sidebar:
        _presets(presets, prefix)
        concealed = hidden()
        shown = [dial for dial in declarations(cls) if dial.name not in concealed]
        settings, main = _drawn([dial for dial in shown if not dial.kind.more], settings, prefix)
        rest = [dial for dial in shown if dial.kind.more]
        if rest:
            with st.expander(say("controls.more")):
                settings, more = _drawn(rest, settings, prefix)
                main += more
    if notes or main:
        st.warning("\n\n".join(_escaped(note) for note in [*notes, *main]), icon=":material/link_off:")
    keep(settings)
    return settings


def turn(cls: type[Dials], prefix: str, values: Mapping[str, Value]) -> None:
    """Set the dials' widgets; only before they are drawn, so in callbacks. A value that is not allowed is dropped."""
    for dial in declarations(cls):
        if dial.name in values:
            with suppress(SettingsError):
                st.session_state[f"{prefix}.{dial.name}"] = dial.check(values[dial.name])


def _drawn(some: list[Declaration], settings: D, prefix: str) -> tuple[D, list[str]]:
    notes = []
    for dial in some:
        if not dial.acts_for(settings):
            continue
        key = f"{prefix}.{dial.name}"
        st.session_state.setdefault(key, getattr(settings, dial.name))
        value = _widget(dial, key)
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
            value = st.slider(min_value=low, max_value=high, step=step, **common)
        case Dial() as kind:
            stops = {*kind.grid(), st.session_state[key]}  # a link may stand between two stops
            options = sorted(int(stop) if dial.whole else stop for stop in stops)
            value = st.select_slider(options=options, format_func=lambda x: kind.sign + written(x), **common)
    return value


def _word(dial: Declaration) -> Any:
    def name(word: str) -> str:
        key = f"{dial.name}.{word}.short"
        return say(key) if has(key) else word

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


def _escaped(text: str) -> str:
    """`text` as Markdown shows it unchanged: it may repeat what a stranger put into a link."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+-.!|<>~$:&" else c for c in text)
