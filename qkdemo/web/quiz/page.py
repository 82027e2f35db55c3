"""A quiz on the page: a sheet of questions; once sent, the same sheet with what is right, why, and the score.

* `sheet(settings, questions, code)`: draws it; what is sent is locked, and kept for the class `code` if there is one.
"""

import secrets
from collections.abc import Sequence
from functools import partial
from typing import Final

import streamlit as st
from streamlit.runtime import Runtime

from qkdemo.dials import declarations
from qkdemo.messages import say
from qkdemo.tracks.quiz import Marked, Question, Settings, marked, quiz, rows, text
from qkdemo.web.address.language import speak_on
from qkdemo.web.components import Component
from qkdemo.web.connection import ANSWERS
from qkdemo.web.lab.controls import turn
from qkdemo.web.lab.takeaway import csv_of
from qkdemo.web.quiz.arrival import arrive_at
from qkdemo.web.quiz.classes import keep, what_was_kept

_KEY: Final = "quiz"
_SENT: Final = f"{ANSWERS}{_KEY}"
_RESULT: Final = f"{_KEY}:result"
_QUESTIONS: Final = f"{_KEY}:questions"
_DRAFT: Final = Component("draft", html="<span class='draft'></span>")
_RIGHT, _WRONG, _OTHER = "✓", "✗", "○"
_NEW_LINE: Final = "  \n"  # of Markdown, within a paragraph


def sheet(settings: Settings, questions: Sequence[Question], code: str) -> None:
    """Draw the questions, open or locked."""
    result = _result(settings)
    if result is None:
        _open(settings, questions, code)
    else:
        _locked(settings, questions, result, code)
    st.markdown(say("quiz.page.how"))


def _open(settings: Settings, questions: Sequence[Question], code: str) -> None:
    st.markdown(say("quiz.page.open"))
    with st.container(key=_QUESTIONS), st.form(f"{_key(settings)}:sheet", border=False):
        for at, question in enumerate(questions, 1):
            with st.container(border=True):
                stands = st.session_state.get(_of(settings, question))  # a browser may draw none but the last message
                st.radio(
                    f"{at}.\u00a0{text(settings.track, question, 'ask')}",  # as it is read aloud: no markup, no list
                    question.choices,
                    index=question.choices.index(stands) if stands in question.choices else None,
                    format_func=partial(_line, settings, question),
                    key=_of(settings, question),
                )
        st.form_submit_button(
            say("quiz.page.send"), on_click=_send, args=(settings, questions, code), icon=":material/lock:"
        )
    if Runtime.exists():
        _DRAFT.mount({"key": _key(settings), "within": "st-key-" + _QUESTIONS.replace(":", "-")}, key="draft")


def _send(settings: Settings, questions: Sequence[Question], code: str) -> None:
    speak_on()
    answers = [st.session_state.get(_of(settings, question)) for question in questions]
    if not any(answers):
        st.toast(say("quiz.page.empty"), icon=":material/edit_off:")
        return
    result = marked(settings, answers)
    st.session_state[_sent(settings)] = ",".join(word or "" for word in result.answers)
    if code:
        keep(code, result)


def _result(settings: Settings) -> Marked | None:
    """What was sent in this session, or in one before it in this window."""
    words = st.session_state.get(_sent(settings), "").split(",")
    return marked(settings, words) if len(words) == len(quiz(settings)) else None


def _locked(settings: Settings, questions: Sequence[Question], result: Marked, code: str) -> None:
    with st.container(key=_RESULT):
        st.header(_score(result))
    what_was_kept(result)
    for at, (question, word, right) in enumerate(zip(questions, result.answers, result.right, strict=True), 1):
        with st.container(border=True):
            st.markdown(f"**{at}.** {text(settings.track, question, 'ask')}")
            st.markdown(_NEW_LINE.join(_choice(settings, question, each, word) for each in question.choices))
            st.markdown(f"**{_verdict(word, right=right)}** {text(settings.track, question, 'explain')}")
    st.markdown(f"**{_score(result)}**")
    with st.container(horizontal=True):
        if code:
            change, icon = say("quiz.page.change"), ":material/edit:"
            st.button(change, on_click=_change, args=(settings, result), key=f"{_KEY}:change", icon=icon)
        st.button(
            say("quiz.page.again"), on_click=_again, args=(settings,), key=f"{_KEY}:again", icon=":material/replay:"
        )
        st.download_button(
            say("quiz.page.mine"),
            csv_of(rows(result)),
            f"qkdemo-quiz-{settings.track}-{settings.when}-{settings.seed}.csv",
            "text/csv",
            on_click="ignore",
            icon=":material/download:",
        )
    arrive_at(_RESULT, _key(settings))


def _choice(settings: Settings, question: Question, word: str, given: str | None) -> str:
    """A line of the locked sheet: the right choice is ticked, a wrong one that was chosen is crossed."""
    mark = _RIGHT if word == question.answer else _WRONG if word == given else _OTHER
    line = _line(settings, question, word)
    line = f"**{line}**" if word == question.answer else line
    return f"{mark} {say('quiz.page.chosen', choice=line) if word == given else line}"


def _line(settings: Settings, question: Question, word: str) -> str:
    return text(settings.track, question, f"choice.{word}")


def _verdict(word: str | None, *, right: bool) -> str:
    if right:
        return say("quiz.page.right")
    return say("quiz.page.open_mark" if word is None else "quiz.page.wrong")


def _score(result: Marked) -> str:
    left = sum(word is None for word in result.answers)
    score = say("quiz.page.score", score=result.score, of=len(result.answers))
    return f"{score} · {say('quiz.page.left_open', open=left)}" if left else score


def _change(settings: Settings, result: Marked) -> None:
    """Open the sheet again, with what was sent: a class counts what is sent last."""
    del st.session_state[_sent(settings)]
    for question, word in zip(quiz(settings), result.answers, strict=True):
        st.session_state[_of(settings, question)] = word


def _again(settings: Settings) -> None:
    seed = next(dial for dial in declarations(Settings) if dial.name == "seed").kind
    others = int(seed.high) - int(seed.low)  # type: ignore[union-attr]
    turn(Settings, _KEY, {"seed": (settings.seed + 1 + secrets.randbelow(others)) % (others + 1)})


def _key(settings: Settings) -> str:
    return f"{_KEY}:{settings.track}:{settings.when}:{settings.seed}"


def _of(settings: Settings, question: Question) -> str:
    return f"{_key(settings)}:{question.name}"


def _sent(settings: Settings) -> str:
    return f"{_SENT}:{_key(settings)}"
