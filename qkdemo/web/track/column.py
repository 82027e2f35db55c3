"""The column beside a page that a track draws: where one stands, the question, the prediction, and what the run said.

* `lesson_column(lesson)`: draws it; the page itself stands to its right; in a lecture `qkdemo.web.track.hall` does;
* `rail(lesson)`, `choice(...)`, `estimate(...)`, `judged(...)`, `verdict(...)`, `buttons(lesson)`: its parts.
"""

from collections.abc import Callable
from functools import partial
from html import escape
from typing import Final

import streamlit as st

from qkdemo.dials import preferred_numbers
from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.tracks.catalogue import CLAIMS, TRACKS, cited, text, told
from qkdemo.tracks.glossary import entry, terms_in
from qkdemo.tracks.stop import Choose, Estimate, Evidence
from qkdemo.web.track import lesson as lessons
from qkdemo.web.track.driving import prose
from qkdemo.web.track.glossary import address, linked
from qkdemo.web.track.lesson import Lesson
from qkdemo.web.track.shown import was_right

_KEY: Final = "lesson"
COLUMN: Final = f"{_KEY}:column"


def lesson_column(lesson: Lesson) -> None:
    """Draw the column."""
    with st.container(gap="small", key=COLUMN):
        _parts(lesson, lesson.evidence if lesson.said.shown else None)
        _glossary(lesson)


def _parts(lesson: Lesson, found: Evidence | None) -> None:
    _place(lesson)
    st.html(f"<h2 class='stop' aria-level='1'>{told(lesson.track, lesson.stop, 'title')}</h2>")
    st.markdown(linked(told(lesson.track, lesson.stop, "question")))
    if lesson.track == CLAIMS and not lesson.said.shown:
        st.caption(say("claims.rule"))
    match lesson.stop.ask:
        case Choose() as choose if lesson.said.shown:
            st.html(judged(lesson, choose, found))
        case Choose() as choose:
            choice(lesson, choose)
        case Estimate() as asked if not lesson.said.shown:
            estimate(lesson, asked)
        case Estimate():
            pass  # it is drawn in the chart, and said below
    if lesson.said.shown:
        _answer(lesson, found)
    buttons(lesson)


def _glossary(lesson: Lesson) -> None:
    """The words of the field that the stop uses, a sentence each."""
    words = st.expander(say("lesson.words"), key=f"{_KEY}:words", on_change="rerun")
    if words.open:
        used = [entry(term) for term in terms_in(told(lesson.track, lesson.stop, "question"))]
        words.markdown("\n".join(f"- [**{one.name}**]({address(one.term)}): {one.sentence}" for one in used))


def rail(lesson: Lesson) -> str:
    """How far one is, as HTML."""
    done = sum(said.shown for said in lesson.progress)
    dots = "".join(
        f"<i class='{'here ' if at == lesson.at else ''}{'done' if said.shown else ''}'></i>"
        for at, said in enumerate(lesson.progress)
    )
    return (
        f"<div class='rail' role='img' aria-label='{say('lesson.done', done=done, of=len(lesson.stops))}'>{dots}</div>"
    )


def _place(lesson: Lesson) -> None:
    """How far one is, and the way to any other stop or track."""
    here = say("lesson.here", track=say(f"track.{lesson.track}.name"), at=lesson.at + 1, of=len(lesson.stops))
    st.html(rail(lesson))
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


def choice(lesson: Lesson, ask: Choose, write: Callable[[str], str] | None = None) -> None:
    """The answers to choose from, each as `write` writes its word."""
    key = f"{_KEY}:{lesson.track}:{lesson.stop.name}"
    st.session_state[key] = lesson.said.guess
    st.radio(
        say("lesson.predict"),
        ask.words,
        index=None,
        format_func=write or (lambda word: told(lesson.track, lesson.stop, f"choice.{word}")),
        key=key,
        on_change=lambda: lessons.predict(st.session_state[key]),
    )


def judged(lesson: Lesson, ask: Choose, found: Evidence | None) -> str:
    """The choices once the answer is shown: the right one, and the one that was predicted, are told apart in words."""
    right = found.answer if found is not None else None

    def item(word: str) -> str:
        names = {"lesson.right_choice": word == right, "lesson.your_choice": word == lesson.said.guess}
        notes = ", ".join(say(name) for name, holds in names.items() if holds)
        words = told(lesson.track, lesson.stop, f"choice.{word}")
        return f"<li class='{'right' if word == right else ''}'>{words}{f' <b>({notes})</b>' if notes else ''}</li>"

    return f"<ol class='judged'>{''.join(map(item, ask.words))}</ol>"


def estimate(lesson: Lesson, ask: Estimate) -> None:
    """The number to predict, beside its place in the chart."""
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
    verdict(lesson, found)
    prose(lesson, text(lesson.track, lesson.stop, "explain", found.numbers))
    if found.sources:
        st.markdown(cited(found))


def verdict(lesson: Lesson, found: Evidence) -> None:
    """Whether it was predicted, and the answer for those who hear the page: the focus goes here when that is shown."""
    said, answer = "", found.answer
    right = was_right(lesson.stop, lesson.said.guess, found)
    if isinstance(answer, float):
        heard = say("lesson.measured", measured=written(answer))
        if right is not None:
            guess = written(float(lesson.said.guess or 0), 3)
            said = say(f"lesson.{'right' if right else 'wrong'}_number", guess=guess, measured=written(answer))
    else:
        heard = say("lesson.happens", answer=told(lesson.track, lesson.stop, f"choice.{answer}"))
        if right is not None:
            said = say("lesson.right" if right else "lesson.wrong")
    kind, seen = ("seen", f"<b>{escape(said)}</b> ") if said else ("heard", "")
    st.html(f"<p class='verdict {kind}' tabindex='-1'>{seen}<span class='unseen'>{escape(heard)}</span></p>")


def buttons(lesson: Lesson) -> None:
    """What leads on and back."""
    if not lesson.said.shown:
        label, icon = "lesson.run" if lesson.said.guess is not None else "lesson.show", ":material/play_arrow:"
        st.button(say(label), on_click=lessons.show, key=f"{_KEY}:show", icon=icon, width="stretch")
    on = "lesson.next" if lesson.at + 1 < len(lesson.stops) else "lesson.finish"
    with st.container(horizontal=True, key=f"{_KEY}:buttons"):
        st.button(say("lesson.back"), on_click=lessons.back, key=f"{_KEY}:back", disabled=lesson.at == 0)
        st.button(say(on), on_click=lessons.ahead, key=f"{_KEY}:next")
        st.button(say("lesson.reset"), on_click=lessons.reset, key=f"{_KEY}:reset", type="tertiary")
