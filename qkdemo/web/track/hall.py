"""The column of a stop in a lecture, all of it on one screen: the question, numbered answers, and what came of it.

* `hall_column(lesson)`: draws it. While the question is open it stands there whole; with the answer its last sentence
  alone, which is the one that asks. Its buttons are not seen: keys press them (`qkdemo.web.presenter`).
"""

import re
from functools import partial
from typing import Final

import streamlit as st

from qkdemo.messages import say
from qkdemo.tracks.catalogue import text, told
from qkdemo.tracks.stop import Choose, Estimate
from qkdemo.web.track import lesson as lessons
from qkdemo.web.track.column import COLUMN, buttons, choice, estimate, judged, rail, verdict
from qkdemo.web.track.driving import prose
from qkdemo.web.track.lesson import Lesson

_SENTENCES: Final = re.compile(r"(?<=[.?!])\s+(?=[A-Z])")


def hall_column(lesson: Lesson) -> None:
    """Draw the column."""
    track, stop, shown = lesson.track, lesson.stop, lesson.said.shown
    found = lesson.evidence if shown else None
    with st.container(gap="small", key=COLUMN):
        st.html(rail(lesson))
        st.html(f"<h2 class='stop'>{told(track, stop, 'title')}</h2>")
        question = told(track, stop, "question")
        st.markdown(asking(question) if shown else question)
        match stop.ask:
            case Choose() as ask if shown:
                st.html(judged(lesson, ask, found))
            case Choose() as ask:
                choice(lesson, ask, partial(_numbered, lesson, ask))
            case Estimate() as ask if not shown:
                estimate(lesson, ask)
            case Estimate():
                pass  # it is drawn in the chart, and said below
        if shown and found is None:
            st.info(say("lesson.still_training"), icon=":material/hourglass_top:")
        elif found is not None:
            verdict(lesson, found)
            prose(lesson, text(track, stop, "explain", found.numbers))
        with st.container(key="lesson:pressed"):
            buttons(lesson)
            st.button(say("lesson.back"), on_click=lessons.back, key="lesson:before")
            if shown:
                st.button(say("lesson.reset"), on_click=lessons.conceal, key="lesson:conceal")


def asking(question: str) -> str:
    """The last sentence of a question.

    >>> asking("Two arrows grow. Nothing turns. Which share grows?")
    'Which share grows?'
    """
    return _SENTENCES.split(question)[-1]


def _numbered(lesson: Lesson, ask: Choose, word: str) -> str:
    """An answer with the digit of the key that chooses it."""
    return f"**{ask.words.index(word) + 1}** {told(lesson.track, lesson.stop, f'choice.{word}')}"
