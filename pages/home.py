"""The first thing anyone sees: what this is, something true to drag, and the doors."""

import streamlit as st

from qkdemo.labs import drift
from qkdemo.labs.drift.view import picked, small_exhibit
from qkdemo.messages import say
from qkdemo.tracks.catalogue import GUIDED, TRACKS
from qkdemo.web.lab.controls import turn
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.pages import PAGES
from qkdemo.web.presenter import KEYS
from qkdemo.web.track.lesson import page_of, place_of

st.title(say("home.title"))
st.markdown(say("home.lead"))
settings = drift.Settings(scale=st.session_state.get("home.scale", drift.Settings().scale))
drawn = small_exhibit(drift.run(settings))
exhibit(*drawn, key="home.exhibit", on_pick=lambda pick: turn(drift.Settings, "home", picked(settings, pick)))
for door, column in zip((*GUIDED, "training"), st.columns(len(GUIDED) + 1), strict=True):
    key = KEYS["PageDown"] if door == GUIDED[0] else None  # where a presenter goes on to
    with column.container(border=True, height="stretch", key=key):
        page, query = (PAGES[door], None) if door not in GUIDED else (page_of(TRACKS[door][0]), place_of(door, 0))
        st.markdown(f"## {say(f'home.{door}.title')}")
        st.markdown(say(f"home.{door}.text"))
        st.page_link(page.script, label=say(f"home.{door}.door"), icon=page.icon, query_params=query)
with st.container(horizontal=True):
    for name in ("tracks", "claims", "models"):
        st.page_link(PAGES[name].script, label=say(f"home.{name}"), icon=PAGES[name].icon)
