"""The slide after a track's last stop: questions, the quiz, and this app on one's own device.

* `ending()`: draws it for the track that the link names, or without one.

Page Up leads back to the last stop. The codes lead to the quiz and to the track's first stop: no answer is in them.
"""

from urllib.parse import urlencode

import streamlit as st

from qkdemo.messages import say
from qkdemo.tracks.catalogue import GUIDED, TRACKS
from qkdemo.web import lecture
from qkdemo.web.address.link import STOP, TRACK, home
from qkdemo.web.network import reachable
from qkdemo.web.pages import PAGES
from qkdemo.web.track import lesson as lessons
from qkdemo.web.track.lesson import page_of


def ending() -> None:
    """Draw it."""
    named = st.query_params.get(TRACK, "")
    track = named if named in TRACKS else GUIDED[0]
    last = len(TRACKS[track]) - 1
    quiz = track if track in GUIDED else GUIDED[0]
    lessons.heard(track)
    with st.container(key="end"):
        _slide(track, quiz)
    with st.container(key="lesson:pressed" if lecture.on() else None):
        st.button(say("lesson.back"), on_click=lambda: lessons.go(track, last), key="lesson:before")


def _slide(track: str, quiz: str) -> None:
    first = TRACKS[track][0]
    st.title(say("end.title"))
    st.markdown(say("end.lead", track=say(f"track.{track}.name"), count=len(TRACKS[track])))
    asked, again = st.columns(2)
    with asked.container(border=True, height="stretch"):
        st.markdown(f"## {say('end.quiz')}")
        query = {TRACK: quiz, "when": "post"}
        _code("end.quiz_alt", f"{home()}/quiz?{urlencode(query)}")
        door = say("end.quiz_door", track=say(f"track.{quiz}.name"))
        st.page_link(PAGES["quiz"].script, label=door, icon=PAGES["quiz"].icon, query_params=query)
    with again.container(border=True, height="stretch"):
        st.markdown(f"## {say('end.again')}")
        here = {TRACK: track, STOP: first.name}
        _code("end.again_alt", f"{home()}/{page_of(first).name}?{urlencode(here)}")
        st.page_link(page_of(first).script, label=say("end.again_door"), icon=":material/replay:", query_params=here)
    st.page_link(PAGES["tracks"].script, label=say("end.tracks"), icon=PAGES["tracks"].icon)


def _code(words: str, address: str) -> None:
    """The code of an address, for a hall alone: who reads this on a phone has the link."""
    if lecture.on():
        st.html(f'<img class="qr" alt="{say(words)}" src="{lecture.drawn(reachable(address))}">')
