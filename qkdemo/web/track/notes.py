"""The speaker's window: what is asked, what is right and why, and what comes next, beside a clock.

* `notes()`: draws it for the stop at which the lecture's window stands, of which the browser tells it.
"""

from typing import Final

import streamlit as st
from streamlit.runtime import Runtime

from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.tracks.catalogue import GUIDED, TRACKS, text, told
from qkdemo.tracks.prose import without_targets
from qkdemo.tracks.stop import Choose, Stop
from qkdemo.web.address.link import STOP, TRACK
from qkdemo.web.components import Component
from qkdemo.web.pages import PAGES
from qkdemo.web.track.evidence import evidence_now

_KEY: Final = "notes"
_SHOWN: Final = "shown"
_PARTS: Final = 3  # of a place: track, stop, and whether its answer is on screen
_CLOCK: Final = "<p class='notes'><b class='clock'></b><span class='since'></span><span class='follows'></span></p>"
_COMPONENT: Final = Component("notes", html=_CLOCK)


def notes() -> None:
    """Draw it."""
    query = st.query_params
    track, name = query.get(TRACK, ""), query.get(STOP, "")
    shown = query.get(_SHOWN) == "1"
    if Runtime.exists():
        words = {word: say(f"notes.{word}") for word in ("elapsed", "follows")}
        data = {"place": f"{track}/{name}/{int(shown)}", "words": words}
        _COMPONENT.mount(data, key=_KEY, on_place_change=_follow)
    stops = TRACKS.get(track, ())
    at = next((at for at, stop in enumerate(stops) if stop.name == name), None)
    if at is not None:
        _stop(track, stops[at], shown=shown)
        after = stops[at + 1] if at + 1 < len(stops) else None
    else:
        st.title(say("notes.waiting"))
        st.page_link(PAGES["tracks"].script, label=say("end.tracks"), icon=PAGES["tracks"].icon)
        track, after = (track, None) if stops else (GUIDED[0], TRACKS[GUIDED[0]][0])
    coming = say("end.title") if after is None else f"{told(track, after, 'title')}. {told(track, after, 'question')}"
    st.markdown(f"**{say('notes.next')}** {coming}")


def _stop(track: str, stop: Stop, *, shown: bool) -> None:
    found = evidence_now(stop)
    st.title(told(track, stop, "title"))
    st.caption(say("notes.shown" if shown else "notes.open"))
    st.markdown(told(track, stop, "question"))
    if isinstance(stop.ask, Choose):
        right = found.answer if found is not None else None
        lines = [(word, told(track, stop, f"choice.{word}")) for word in stop.ask.words]
        marked = (
            f"{n}. **{words}** ✓" if word == right else f"{n}. {words}" for n, (word, words) in enumerate(lines, 1)
        )
        st.markdown("\n".join(marked))
    if found is None:
        st.info(say("lesson.still_training"))
        return
    if isinstance(found.answer, float):
        st.markdown(f"**{say('lesson.measured', measured=written(found.answer))}**")
    st.markdown(without_targets(text(track, stop, "explain", found.numbers)))


def _follow() -> None:
    """The lecture stands elsewhere now."""
    place = st.session_state[_KEY].get("place")
    parts = place.split("/") if isinstance(place, str) else []
    if len(parts) == _PARTS and (parts[0] in TRACKS or not parts[0]):
        track, name, shown = parts
        known = {TRACK: track, STOP: name, _SHOWN: shown}
        st.query_params.from_dict({key: word for key, word in known.items() if word})
