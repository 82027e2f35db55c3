"""The first thing anyone sees: what this is, something true to drag, and three doors."""

import streamlit as st

from qkdemo.labs import drift
from qkdemo.settings import declarations
from qkdemo.strings import say
from qkdemo.web.controls import turn
from qkdemo.web.drift_view import picked, small_exhibit
from qkdemo.web.exhibit import exhibit
from qkdemo.web.link import HIDE
from qkdemo.web.pages import PAGES

SHOWN_TO_BEGINNERS = ("scale",)
BEGINNER = drift.Settings(scale=1, n_keys=8)
ONE_DIAL = {HIDE: ",".join(dial.name for dial in declarations(drift.Settings) if dial.name not in SHOWN_TO_BEGINNERS)}
RESEARCH = drift.Settings(variant="rms", n_keys=128, d_head=128, causal=True, format="bfloat16")
DOORS = {  # name → page, and the state it opens in
    "beginner": ("drift", BEGINNER.to_texts() | ONE_DIAL),
    "developer": ("drift", drift.Settings(scale=16, variant="rms").to_texts()),
    "researcher": ("drift", RESEARCH.to_texts()),
    "training": ("training", {}),
}

st.title(say("home.title"))
st.markdown(say("home.lead"))
settings = drift.Settings(scale=st.session_state.get("home.scale", drift.Settings().scale))
drawn = small_exhibit(drift.run(settings))
exhibit(*drawn, key="home.exhibit", on_pick=lambda pick: turn(drift.Settings, "home", picked(settings, pick)))
for (door, (page, state)), column in zip(DOORS.items(), st.columns(len(DOORS)), strict=True):
    with column.container(border=True, height="stretch"):
        st.subheader(say(f"home.{door}.title"))
        st.markdown(say(f"home.{door}.text"))
        st.page_link(
            PAGES[page].script, label=say(f"home.{door}.door"), icon=PAGES[page].icon, query_params=state or None
        )
