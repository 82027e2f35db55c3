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
from qkdemo.web.server import arithmetic

SHOWN_TO_BEGINNERS = ("scale", "gain")
BEGINNER = drift.Settings(scale=1, n_keys=8)
DOORS = {
    "beginner": BEGINNER.to_texts()
    | {HIDE: ",".join(dial.name for dial in declarations(drift.Settings) if dial.name not in SHOWN_TO_BEGINNERS)},
    "developer": drift.Settings(scale=16, variant="rms").to_texts(),
    "researcher": drift.Settings(variant="rms", n_keys=128, d_head=128, causal=True, format="bfloat16").to_texts(),
}

st.title(say("home.title"))
st.markdown(say("home.lead"))
settings = drift.Settings(scale=st.session_state.get("home.scale", drift.Settings().scale))
with arithmetic:
    drawn = small_exhibit(drift.run(settings))
exhibit(*drawn, key="home.exhibit", on_pick=lambda pick: turn(drift.Settings, "home", picked(settings, pick)))
for door, column in zip(DOORS, st.columns(len(DOORS)), strict=True):
    with column.container(border=True, height="stretch"):
        st.subheader(say(f"home.{door}.title"))
        st.markdown(say(f"home.{door}.text"))
        st.page_link(PAGES["drift"].script, label=say("home.door"), icon=PAGES["drift"].icon, query_params=DOORS[door])
