"""A stop's explanation, whose words drive the chart beside it.

* `prose(lesson, text)`: draws it. Pointing at a word shows that state in the exhibit, or picks out those lines, at
  once and in the browser; pressing it turns the dials. A word of the field opens its entry of the glossary above the
  text, and a source is a link;
* `turned_by(words, at, state)`: where a pressed word puts the dials.

The browser's two components meet in events of the document: `qkdemo:look` with `{turns}` or `{role}`, or neither.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import streamlit as st
from streamlit.runtime import Runtime

from qkdemo.dials import Dials, SettingsError, Value
from qkdemo.facts.references import REFERENCES
from qkdemo.facts.references import linked as with_sources
from qkdemo.tracks.glossary import entry, marked
from qkdemo.tracks.glossary_figures import figure
from qkdemo.tracks.prose import Word, words_of
from qkdemo.web import lecture
from qkdemo.web.components import Component
from qkdemo.web.lab.controls import turn
from qkdemo.web.track.glossary import address
from qkdemo.web.track.lesson import Lesson

_COMPONENT: Final = Component("prose", html="<p class='prose'></p>")
_KEY: Final = "lesson:prose"


def prose(lesson: Lesson, text: str) -> None:
    """Draw the text; a pressed word turns the dials of the lesson's page."""
    if not Runtime.exists():
        st.markdown(with_sources(text))
        return
    words = words_of(text if lecture.on() else marked(text))
    cls = type(lesson.stop.state)

    def pressed() -> None:
        at = st.session_state[_KEY].get("turn")
        if isinstance(at, int) and 0 <= at < len(words):
            turn(cls, lesson.page.name, turned_by(words, at, lesson.stop.state))

    told = [{"text": word.text, "turns": dict(word.turns), "role": word.role} | _leads(word) for word in words]
    _COMPONENT.mount({"words": json.dumps(told, ensure_ascii=False)}, key=_KEY, on_turn_change=pressed)


def _leads(word: Word) -> dict[str, str]:
    """Where a word leads, and what is said of it while it is pointed at: a source, or an entry of the glossary."""
    if word.source:
        source = REFERENCES[word.source]
        return {"link": source.link, "says": f"{source.title}, {source.part}"}
    if word.term:
        one = entry(word.term)
        return {"link": address(word.term), "name": one.name, "says": one.sentence, "formula": one.formula} | {
            "figure": figure(word.term)
        }
    return {}


def turned_by(words: Sequence[Word], at: int, state: Dials) -> dict[str, Value]:
    """The word's dials; those of the other words stand as the stop has them, whichever word was pressed before."""
    values: dict[str, Value] = {name: getattr(state, name) for word in words for name in word.turns}
    for name, text in words[at].turns.items():
        with suppress(SettingsError):  # tests read every word of every track
            values[name] = type(state).from_text(name, text)
    return values
