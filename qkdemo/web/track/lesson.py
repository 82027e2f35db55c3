"""A track on the page: where a visitor stands in it, and what the link says about that.

* `Lesson`: a track, a stop, and what has been said so far; `now()`: the one that the link asks for, if any;
* `predict`, `show`, `conceal`, `go`, `ahead`, `back`, `change_track`, `reset`, `leave`: what the controls call;
* `asks()`: whether a question is open; what it lets a page show meanwhile is `qkdemo.web.track.shown`.

The link is the one truth: `track`, `stop` and `said` stand in it, beside the dials. What was said in other tracks is
kept for the session.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from qkdemo.dials import Dials
from qkdemo.messages import LANGUAGE, say
from qkdemo.tracks.catalogue import TRACKS, told
from qkdemo.tracks.progress import Progress, Said, read_progress, with_said, written_progress
from qkdemo.tracks.stop import Estimate, Evidence, Stop
from qkdemo.web.address import echo
from qkdemo.web.address.link import LECTURE, SAID, STOP, TRACK, entered, standing
from qkdemo.web.connection import HELD
from qkdemo.web.pages import END, HOME, PAGES, Entry
from qkdemo.web.track.evidence import evidence_now

_NOW, _GOING, _REVEALED = "lesson.now", "lesson.going", "lesson.revealed"


@dataclass(frozen=True, eq=False)
class Lesson:
    """Where a visitor stands."""

    track: str
    at: int
    progress: Progress

    @property
    def stops(self) -> tuple[Stop, ...]:
        """All of the track."""
        return TRACKS[self.track]

    @property
    def stop(self) -> Stop:
        """This one."""
        return self.stops[self.at]

    @property
    def said(self) -> Said:
        """What was said here."""
        return self.progress[self.at]

    @property
    def page(self) -> Entry:
        """Where it is shown."""
        return page_of(self.stop)

    @property
    def base(self) -> Dials:
        """What the dials stand at unless the visitor turns them."""
        base: Dials = self.stop.state if self.said.shown or self.stop.start is None else self.stop.start
        return base

    @property
    def evidence(self) -> Evidence | None:
        """What the stop's lab says; None as long as that is still being trained."""
        return evidence_now(self.stop)

    @property
    def concealed(self) -> bool:
        """Whether nothing of the page may be seen yet."""
        return self.stop.start is None and not self.said.shown


def page_of(stop: Stop) -> Entry:
    """The page that shows a stop's lab."""
    return PAGES[stop.lab.name]


def now(page: str) -> tuple[Lesson | None, str]:
    """The lesson that the link asks for on a page, and a sentence if it asks for one that there is not."""
    query = st.query_params
    track, name = query.get(TRACK), query.get(STOP)
    if track is None or (page in PAGES and PAGES[page].names_track):
        st.session_state[_NOW] = None
        return None, ""
    if track not in TRACKS:
        st.session_state[_NOW] = None
        query.pop(TRACK)
        return None, say("lesson.unknown_track", known=", ".join(TRACKS))
    stops = TRACKS[track]
    names = [stop.name for stop in stops]
    at = names.index(name) if name in names else 0
    progress = read_progress(query.get(SAID, ""), stops)
    lesson = Lesson(track, at, progress)
    st.session_state[_NOW] = lesson
    st.session_state[_said_key(track)] = written_progress(progress, TRACKS[track])
    query.update(_place(track, at, progress))
    return lesson, "" if name in (None, *names) else say("lesson.unknown_stop", known=", ".join(names))


def current() -> Lesson | None:
    """The lesson of this run."""
    lesson: Lesson | None = st.session_state.get(_NOW)
    return lesson


def titled(lesson: Lesson | None) -> str:
    """The title of the stop; empty without one."""
    return "" if lesson is None else told(lesson.track, lesson.stop, "title")


def progress_in(track: str) -> Progress:
    """What this session has said in a track."""
    return read_progress(st.session_state.get(_said_key(track), ""), TRACKS[track])


def heard(track: str) -> Progress:
    """What was said in a track, on the page of that track alone: its link says it, without naming the track."""
    before = st.session_state.get(_said_key(track), "") if entered() else ""  # by the menu, whose link says nothing
    progress = read_progress(st.query_params.get(SAID, before), TRACKS[track])
    _keep(track, progress)
    return progress


def say_at(track: str, at: int, said: Said) -> None:
    """Note what is said at a stop; in callbacks."""
    _keep(track, with_said(progress_in(track), at, said))


def place_of(track: str, at: int) -> dict[str, str]:
    """The query of a link to a stop, with what this session has said in its track."""
    return _place(track, at, progress_in(track)) | _carried()


def pending() -> tuple[Entry, Mapping[str, str]] | None:
    """The page that the visitor has to be taken to, and its query; the shell does it."""
    going: tuple[Entry, Mapping[str, str]] | None = st.session_state.pop(_GOING, None)
    return going


def astray(page: str) -> tuple[Entry, Mapping[str, str]] | None:
    """The stop's own page and query, if the link names the stop on another page."""
    lesson = current()
    if lesson is None or lesson.page.name == page:
        return None
    return lesson.page, _place(lesson.track, lesson.at, lesson.progress) | _carried()


# ---- what the controls call, in callbacks


def predict(guess: str | float | None) -> None:
    """Note a prediction at this stop, as long as its answer is not shown."""
    lesson = current()
    if lesson is None or lesson.said.shown:
        return
    ask = lesson.stop.ask
    if isinstance(ask, Estimate) and isinstance(guess, float):
        guess = min(max(float(f"{guess:.3g}"), ask.low), ask.high)
    say_at(lesson.track, lesson.at, Said(guess))


def show() -> None:
    """Run the stop: its own state, of which the explanation speaks, and what came of it."""
    lesson = current()
    if lesson is not None and not lesson.said.shown:
        progress = with_said(lesson.progress, lesson.at, Said(lesson.said.guess, shown=True))
        go(lesson.track, lesson.at, progress)
        st.session_state[_REVEALED] = lesson.stop.name


def revealed() -> bool:
    """Whether the answer of this stop has just been asked for; said once."""
    lesson = current()
    return lesson is not None and st.session_state.pop(_REVEALED, "") == lesson.stop.name


def conceal() -> None:
    """Take the answer back: the question is open again, with what was predicted."""
    lesson = current()
    if lesson is not None:
        go(lesson.track, lesson.at, with_said(lesson.progress, lesson.at, Said(lesson.said.guess)))


def reset() -> None:
    """The stop as it was found: no prediction, its first state."""
    lesson = current()
    if lesson is not None:
        go(lesson.track, lesson.at, with_said(lesson.progress, lesson.at, Said()))


def go(track: str, at: int, progress: Progress | None = None, dials: Dials | None = None) -> None:
    """Go to a stop; `dials` is what stands there instead of its own state."""
    progress = progress_in(track) if progress is None else progress
    there = Lesson(track, min(max(at, 0), len(TRACKS[track]) - 1), progress)
    query = _place(track, there.at, progress) | _carried()
    if dials is not None and type(dials) is type(there.base):
        query |= dials.to_texts(base=there.base)
    st.session_state[_said_key(track)] = written_progress(progress, TRACKS[track])
    lesson = current()
    if lesson is not None and lesson.page is there.page:
        echo.rewrite(query)
    else:
        st.session_state[_GOING] = (there.page, query)


def ahead() -> None:
    """On to the next stop; from the last one to the end of the track."""
    lesson = current()
    if lesson is None:
        return
    if lesson.at + 1 < len(lesson.stops):
        go(lesson.track, lesson.at + 1)
    else:
        place = _place(lesson.track, lesson.at, progress_in(lesson.track)) | _carried()
        st.session_state[_GOING] = (PAGES[END], {name: text for name, text in place.items() if name != STOP})


def back() -> None:
    """Back to the stop before; from the first one to the first page."""
    lesson = current()
    if lesson is not None and lesson.at:
        go(lesson.track, lesson.at - 1)
    elif lesson is not None:
        st.session_state[_GOING] = (PAGES[HOME], _carried())


def change_track(track: str) -> None:
    """Go on in another track: at its first open stop in this lab, with the dials as they stand; else at its first."""
    lesson, progress, dials = current(), progress_in(track), standing()
    still = [at for at, said in enumerate(progress) if not said.shown] or [0]
    here = [at for at in still if lesson is not None and TRACKS[track][at].lab is lesson.stop.lab]
    at = (here or still)[0]
    if dials is not None and here:  # but what the stop there is about to turn stands where it asks from
        stop = TRACKS[track][at]
        dials = dials.but(**{name: getattr(stop.start or stop.state, name) for name in stop.turned})
    go(track, at, progress, dials)


def leave() -> None:
    """Stay on the page, with the dials as they stand, without the track."""
    dials = standing()
    echo.rewrite((dials.to_texts() if dials is not None else {}) | _carried())


def asks() -> bool:
    """Whether a track's question is open."""
    lesson = current()
    return lesson is not None and not lesson.said.shown


def _keep(track: str, progress: Progress) -> None:
    text = written_progress(progress, TRACKS[track])
    st.session_state[_said_key(track)] = text
    if text:
        st.query_params[SAID] = text
    else:
        st.query_params.pop(SAID, None)


def _place(track: str, at: int, progress: Progress) -> dict[str, str]:
    said = written_progress(progress, TRACKS[track])
    return {TRACK: track, STOP: TRACKS[track][at].name} | ({SAID: said} if said else {})


def _carried() -> dict[str, str]:
    return {name: st.query_params[name] for name in (LECTURE, LANGUAGE) if name in st.query_params}


def _said_key(track: str) -> str:
    return f"{HELD}said.{track}"
