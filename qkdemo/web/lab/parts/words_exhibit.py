"""The page of the words: a sentence that is built by clicking words, above the exhibit that reads it.

* `words_body(settings)`: the middle of the page.
"""

from functools import partial
from typing import Final

import streamlit as st

from qkdemo.labs.lab import Section
from qkdemo.labs.words import LAB, RUNS, Result, Settings, run
from qkdemo.labs.words.network import SHAPE
from qkdemo.labs.words.view import picked, words_exhibit
from qkdemo.messages import say
from qkdemo.training.sentences import WORDS
from qkdemo.web import lecture
from qkdemo.web.lab.controls import turn
from qkdemo.web.lab.page import show
from qkdemo.web.pages import PAGES
from qkdemo.web.track import lesson

_FRESH: Final = "words:fresh"  # the next word begins a sentence
_PILLS: Final = "words:pills"


def words_body(settings: Settings) -> Result:
    """What stands between the dials and what a visitor takes away."""
    result = run(settings)
    builds, in_hall = lesson.current() is None, lecture.on()
    if builds and not in_hall:
        _builder(settings, result)
    show(LAB, settings, Section(name="exhibit", exhibit=words_exhibit(result), picked=partial(picked, settings)))
    for section in LAB.beneath(result):
        show(LAB, settings, section)
    if builds and in_hall:  # there the pictures come first
        _builder(settings, result)
    elif builds:
        training = PAGES["training"]
        st.page_link(
            training.script,
            label=say("words.build.train"),
            help=say("words.build.train_help"),
            icon=training.icon,
            query_params=RUNS["norm"].to_texts(),
        )
    return result


def _builder(settings: Settings, result: Result) -> None:
    fresh = bool(st.session_state.get(_FRESH))
    best = result.sides["norm"].next_word(result.at)
    goes_on = "" if best is None else WORDS[best]
    full = len(settings.words) >= SHAPE.n_keys and not fresh
    with st.container(border=True, key="words:builder"):
        st.markdown(f"**{say('words.build.title')}:** {say('words.build.first') if fresh else settings.sentence}")
        st.pills(
            say("words.build.words"),
            WORDS,
            key=_PILLS,
            on_change=_pressed,
            args=(settings,),
            disabled=full,
            label_visibility="collapsed",
        )
        with st.container(horizontal=True):
            st.button(
                say("words.build.go_on" if goes_on else "words.build.none", word=goes_on),
                on_click=_add,
                args=(settings, goes_on),
                disabled=full or fresh or not goes_on,
                icon=":material/arrow_forward:",
            )
            st.button(
                say("words.build.back"),
                on_click=_take_back,
                args=(settings,),
                disabled=fresh or len(settings.words) < 2,
                icon=":material/backspace:",
            )
            st.button(say("words.build.again"), on_click=_begin, disabled=fresh, icon=":material/restart_alt:")
        if full:
            st.caption(say("words.build.full", most=SHAPE.n_keys))


def _pressed(settings: Settings) -> None:
    word = st.session_state[_PILLS]
    st.session_state[_PILLS] = None  # a word may be added again
    if word:
        _add(settings, word)


def _add(settings: Settings, word: str) -> None:
    before = () if st.session_state.pop(_FRESH, False) else settings.words
    turn(Settings, "words", {"sentence": " ".join((*before, word)), "word": SHAPE.n_keys})


def _take_back(settings: Settings) -> None:
    turn(Settings, "words", {"sentence": " ".join(settings.words[:-1])})


def _begin() -> None:
    st.session_state[_FRESH] = True
