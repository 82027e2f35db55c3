"""The first thing anyone sees: what this is, something true to take hold of, and the doors."""

import streamlit as st

from qkdemo.messages import say
from qkdemo.tracks.catalogue import GUIDED, TRACKS
from qkdemo.web import lecture
from qkdemo.web.lab.parts.arrows_exhibit import arrows as exhibit
from qkdemo.web.lab.parts.arrows_exhibit import keep, kept
from qkdemo.web.pages import PAGES
from qkdemo.web.presenter import KEYS, PAGE_DOWN
from qkdemo.web.track.lesson import page_of, place_of

st.title(say("arrows.question"))
if not lecture.on():  # a hall is told it, and takes hold of the arrows
    st.markdown(say("home.lead"))
exhibit(kept("home"), key="home.exhibit", turned=lambda moved: keep("home", moved))
for door, column in zip((*GUIDED, "training"), st.columns(len(GUIDED) + 1), strict=True):
    key = KEYS[PAGE_DOWN][0] if door == GUIDED[0] else None  # where a presenter goes on to
    with column.container(border=True, height="stretch", key=key):
        page, query = (PAGES[door], None) if door not in GUIDED else (page_of(TRACKS[door][0]), place_of(door, 0))
        st.markdown(f"## {say(f'home.{door}.title')}")
        st.markdown(say(f"home.{door}.text"))
        st.page_link(page.script, label=say(f"home.{door}.door"), icon=page.icon, query_params=query)
with st.container(horizontal=True):
    for name in ("arrows", "tracks", "claims", "models"):
        st.page_link(PAGES[name].script, label=say(f"home.{name}"), icon=PAGES[name].icon)
