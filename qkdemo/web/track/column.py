"""The column beside a page that a track draws: where one stands, the question, the prediction, and what the run said.

* `lesson_column(lesson)`: draws it; the page itself stands to its right.
"""

from functools import partial
from typing import Final

import streamlit as st

from qkdemo.dials import preferred_numbers
from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.tracks.catalogue import TRACKS, cited, text, told
from qkdemo.tracks.stop import Choose, Estimate, Evidence
from qkdemo.web import lecture
from qkdemo.web.track import lesson as lessons
from qkdemo.web.track.driving import prose
from qkdemo.web.track.lesson import Lesson

_KEY: Final = "lesson"
_WORDS: Final = (
    *("attention", "query", "head", "score", "softmax", "entropy", "slope", "norm", "qk_norm", "scale"),
    *("weight_scale", "rate", "loss", "format", "rotary"),
)


def lesson_column(lesson: Lesson) -> None:
    """Draw the column."""
    with st.container(gap="small", key=f"{_KEY}:column"):
        _parts(lesson, lesson.evidence if lesson.said.shown else None)
        if not lecture.on():
            _glossary()


def _parts(lesson: Lesson, found: Evidence | None) -> None:
    _place(lesson)
    st.html(f"<h2 class='stop'>{told(lesson.track, lesson.stop, 'title')}</h2>")
    st.markdown(told(lesson.track, lesson.stop, "question"))
    match lesson.stop.ask:
        case Choose() as choose:
            _choice(lesson, choose, found)
        case Estimate() as estimate if not lesson.said.shown:
            _estimate(lesson, estimate)
        case Estimate():
            pass  # it is drawn in the chart, and said below
    if lesson.said.shown:
        _answer(lesson, found)
    _buttons(lesson)


def _glossary() -> None:
    words = st.expander(say("lesson.words"), key=f"{_KEY}:words", on_change="rerun")
    if words.open:
        words.markdown("\n".join(f"- {say(f'glossary.{word}')}" for word in _WORDS))


def _place(lesson: Lesson) -> None:
    """How far one is, and the way to any other stop or track."""
    done = sum(said.shown for said in lesson.progress)
    here = say("lesson.here", track=say(f"track.{lesson.track}.name"), at=lesson.at + 1, of=len(lesson.stops))
    dots = "".join(
        f"<i class='{'here ' if at == lesson.at else ''}{'done' if said.shown else ''}'></i>"
        for at, said in enumerate(lesson.progress)
    )
    st.html(
        f"<div class='rail' role='img' aria-label='{say('lesson.done', done=done, of=len(lesson.stops))}'>{dots}</div>"
    )
    with st.popover(here, width="stretch", key=f"{_KEY}:map"):
        st.session_state[f"{_KEY}:stop"] = lesson.at
        st.radio(
            say("lesson.stops"),
            range(len(lesson.stops)),
            format_func=partial(_named, lesson),
            key=f"{_KEY}:stop",
            on_change=lambda: lessons.go(lesson.track, st.session_state[f"{_KEY}:stop"]),
        )
        st.session_state[f"{_KEY}:track"] = lesson.track
        st.radio(
            say("lesson.tracks"),
            list[str](TRACKS),
            format_func=_track_name,
            key=f"{_KEY}:track",
            help=say("lesson.tracks_help"),
            on_change=lambda: lessons.change_track(st.session_state[f"{_KEY}:track"]),
        )
        st.button(say("lesson.leave"), on_click=lessons.leave, key=f"{_KEY}:leave", icon=":material/close:")


def _track_name(track: str) -> str:
    return say(f"track.{track}.name")


def _named(lesson: Lesson, at: int) -> str:
    """A stop in the list of all, with a tick once its answer was shown."""
    title = told(lesson.track, lesson.stops[at], "title")
    return f"{at + 1} · {title}{' ✓' if lesson.progress[at].shown else ''}"


def _choice(lesson: Lesson, ask: Choose, found: Evidence | None) -> None:
    if lesson.said.shown:
        st.html(_judged(lesson, ask, found.answer if found is not None else None))
        return
    key = f"{_KEY}:{lesson.track}:{lesson.stop.name}"
    st.session_state[key] = lesson.said.guess
    st.radio(
        say("lesson.predict"),
        ask.words,
        index=None,
        format_func=lambda word: told(lesson.track, lesson.stop, f"choice.{word}"),
        key=key,
        on_change=lambda: lessons.predict(st.session_state[key]),
    )


def _judged(lesson: Lesson, ask: Choose, right: object) -> str:
    """The choices once the answer is shown: the right one, and the one that was predicted, are told apart in words."""

    def item(word: str) -> str:
        names = {"lesson.right_choice": word == right, "lesson.your_choice": word == lesson.said.guess}
        notes = ", ".join(say(name) for name, holds in names.items() if holds)
        choice = told(lesson.track, lesson.stop, f"choice.{word}")
        return f"<li class='{'right' if word == right else ''}'>{choice}{f' <b>({notes})</b>' if notes else ''}</li>"

    return f"<ul class='judged'>{''.join(map(item, ask.words))}</ul>"


def _estimate(lesson: Lesson, ask: Estimate) -> None:
    key = f"{_KEY}:{lesson.track}:{lesson.stop.name}"
    guess = lesson.said.guess if isinstance(lesson.said.guess, float) else None
    st.session_state[key] = guess
    stops = sorted({*preferred_numbers(ask.low, ask.high, 10), *([] if guess is None else [guess])})
    st.select_slider(
        say("lesson.estimate"),
        [None, *stops],  # none yet: no place on the slider is a prediction that nobody made
        format_func=lambda number: say("lesson.no_estimate") if number is None else written(number, 3),
        key=key,
        help=say("lesson.estimate_help"),
        on_change=lambda: lessons.predict(st.session_state[key]),
    )


def _answer(lesson: Lesson, found: Evidence | None) -> None:
    if found is None:
        st.info(say("lesson.still_training"), icon=":material/hourglass_top:")
        return
    right = lessons.verdict(lesson.stop, lesson.said.guess, found)
    if right is not None:
        words = {True: "lesson.right", False: "lesson.wrong"}[right]
        if isinstance(lesson.stop.ask, Estimate):
            assert isinstance(lesson.said.guess, float)
            assert isinstance(found.answer, float)
            said = say(words + "_number", guess=written(lesson.said.guess, 3), measured=written(found.answer))
        else:
            said = say(words)
        st.markdown(f"**{said}**")
    prose(lesson, text(lesson.track, lesson.stop, "explain", found.numbers))
    if found.sources and not lecture.on():
        st.markdown(cited(found))


def _buttons(lesson: Lesson) -> None:
    if not lesson.said.shown:
        label, icon = "lesson.run" if lesson.said.guess is not None else "lesson.show", ":material/play_arrow:"
        st.button(say(label), on_click=lessons.show, key=f"{_KEY}:show", icon=icon, width="stretch")
    back = partial(lessons.go, lesson.track, lesson.at - 1)
    on = partial(lessons.go, lesson.track, lesson.at + 1)
    last = lesson.at + 1 == len(lesson.stops)
    with st.container(horizontal=True, key=f"{_KEY}:buttons"):
        st.button(say("lesson.back"), on_click=back, key=f"{_KEY}:back", disabled=lesson.at == 0)
        st.button(say("lesson.next"), on_click=on, key=f"{_KEY}:next", disabled=last)
        st.button(say("lesson.reset"), on_click=lessons.reset, key=f"{_KEY}:reset", type="tertiary")
