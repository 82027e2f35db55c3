"""Dials on the page, built from their declaration.

* `dials(cls, presets, prefix)`: draws them in the sidebar, keeps the URL, and returns the settings;
* `turn(cls, prefix, values)`: sets some from elsewhere (a click in a chart), before the next run draws them;
* `in_words(dial, text)`: a value that a link writes, as its widget shows it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Generic, cast

import streamlit as st

from qkdemo.dials import Choice, Declaration, Dial, Dials, Sentence, SettingsError, Switch, Value, declarations
from qkdemo.messages import has, in_each_language, say
from qkdemo.notation import counted, written
from qkdemo.web.address.given import as_text
from qkdemo.web.address.link import D, arrive, hidden, keep

_FEW = 3  # words that fit beside each other


def dials(cls: type[D], presets: Mapping[str, D], prefix: str, idle: Collection[str] = ()) -> D:
    """Draw a lab's dials in the sidebar, but those that are `idle`, and return what they say; the URL says the same."""
    settings, notes, take_over = arrive(cls, presets)
    if take_over:
        turn(cls, prefix, settings.as_dict())
    concealed = hidden() | set(idle)
    panel = _Panel(prefix, settings, concealed)
    with st.sidebar:
        _presets(presets, prefix)
        panel.read([dial for dial in declarations(cls) if not dial.kind.more])
        rest = [dial for dial in declarations(cls) if dial.kind.more]
        if any(dial.name not in concealed for dial in rest):
            more = st.expander(say("controls.more"), key=f"{prefix}:more", on_change="rerun")
            with more:
                panel.read(rest, drawn=bool(more.open))
    notes += panel.notes
    if notes:
        st.warning("\n\n".join(map(as_text, notes)), icon=":material/link_off:")
    keep(panel.settings)
    panel.close()
    return panel.settings


def turn(cls: type[Dials], prefix: str, values: Mapping[str, Value]) -> None:
    """Set dials before they are drawn, so in callbacks. A value that is not allowed is dropped."""
    turned = dict(st.session_state.get(f"{prefix}:turned", {}))
    for dial in declarations(cls):
        if dial.name in values:
            with suppress(SettingsError):
                turned[dial.name] = dial.check(values[dial.name])
    st.session_state[f"{prefix}:turned"] = turned


class _Panel(Generic[D]):
    """The dials of one run: what they stand at, whether drawn or not.

    Streamlit's session holds what a drawn dial says, and the settings hold all: a dial that is not drawn costs nothing.
    """

    def __init__(self, prefix: str, settings: D, concealed: frozenset[str]) -> None:
        self.settings, self.notes = settings, list[str]()
        self._prefix, self._concealed = prefix, concealed
        self._turned: dict[str, Value] = st.session_state.get(f"{prefix}:turned", {})  # by `turn`, since the last run
        self._before: frozenset[str] = st.session_state.get(f"{prefix}:drawn", frozenset())
        self._drawn = set[str]()

    def read(self, some: Iterable[Declaration], *, drawn: bool = True) -> None:
        """Take in what these dials say, which are drawn if they do something in this state."""
        for dial in some:
            before = getattr(self.settings, dial.name)
            if drawn and dial.name not in self._concealed and dial.acts_for(self.settings):
                value = self._draw(dial, before)
            else:
                value = self._turned.get(dial.name, before)
            if value != before:
                self._set(dial, value)

    def close(self) -> None:
        """Remember which were drawn; what was turned from elsewhere is done. Called when all is kept."""
        if self._turned:
            st.session_state[f"{self._prefix}:turned"] = {}
        if self._drawn != self._before:
            st.session_state[f"{self._prefix}:drawn"] = frozenset(self._drawn)

    def _draw(self, dial: Declaration, before: Value) -> Value | None:
        key = f"{self._prefix}.{dial.name}"
        self._drawn.add(dial.name)
        if dial.name in self._turned:
            st.session_state[key] = self._turned.pop(dial.name)  # once: from now on it is what the visitor turns
        elif dial.name not in self._before:
            st.session_state[key] = before
        return _widget(dial, key, _standing(dial, key, before))

    def _set(self, dial: Declaration, value: Value | None) -> None:
        try:
            self.settings = self.settings.but(**{dial.name: value})
        except SettingsError as error:  # a crafted frame: the widgets themselves stay in range
            self.notes.append(str(error))


def _standing(dial: Declaration, key: str, before: Value) -> Any:
    """Where the dial stands; where it stood before if the browser tells of a place that it does not have."""
    at = st.session_state.get(key, before)
    if at != before:
        with suppress(SettingsError):
            return dial.check(at)
    return before


def _widget(dial: Declaration, key: str, at: Any) -> Value | None:
    """Draw a dial that stands at `at`, and return what it says.

    Every message tells where it stands: a busy browser draws none but the last, and only the first one sets the dial.
    """
    common: dict[str, Any] = {"label": dial.label, "key": key, "help": dial.help or None}
    value: Value | None
    match dial.kind:
        case Switch():
            value = st.toggle(value=at, **common)
        case Choice():
            control = cast(Callable[..., Any], st.radio if len(dial.allowed_words()) <= _FEW else st.selectbox)
            words = dial.allowed_words()
            value = control(options=words, index=words.index(at), format_func=_word(dial), **common)
        case Sentence():
            value = st.text_input(value=at, **common)
        case Dial(low=low, high=high, step=step) as kind if not kind.grid():
            low, high, step = (int(x) if dial.whole else float(x) for x in (low, high, step))
            value = st.slider(min_value=low, max_value=high, step=step, value=at, **common)
        case Dial() as kind:
            stops, written_out = _stops(kind, dial.whole)
            options = stops if at in written_out else tuple(sorted({*stops, at}))  # a link may stand between two stops
            value = st.select_slider(
                options=options,
                value=at,
                format_func=lambda x: written_out[x] if x in written_out else _written(kind, x),
                **common,
            )
    return value


def in_words(dial: Declaration, text: str) -> str:
    """What a link writes as `text`, in words; as it is where it is no value of this dial."""
    try:
        value = dial.parse(text)
    except SettingsError:
        return text
    match dial.kind:
        case Switch():
            return say("controls.on" if value else "controls.off")
        case Dial() as kind:
            assert isinstance(value, int | float)
            return _written(kind, value)
        case _:
            return str(_word(dial)(value))


@in_each_language(256)
def _stops(kind: Dial, whole: bool) -> tuple[tuple[float, ...], Mapping[float, str]]:  # noqa: FBT001
    """The stops of a dial, and how each is written."""
    stops = tuple(int(stop) if whole else stop for stop in kind.grid())
    return stops, {stop: _written(kind, stop) for stop in stops}


def _written(kind: Dial, x: float) -> str:
    return kind.sign + (counted(x) if isinstance(x, int) else written(x))  # 131 072 tokens are not 131 100


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
            *([f"{dial.kind.named}.{word}.short"] if isinstance(dial.kind, Choice) and dial.kind.named else []),
        )
        return next((say(key) for key in keys if has(key)), word)

    names = {word: name(word) for word in dial.allowed_words()}  # Streamlit asks for each several times
    return lambda word: names.get(word, word)


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
