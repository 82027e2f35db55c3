"""The three guided tracks: where each begins, how far one is, and which point of the subject is taught where."""

import streamlit as st

from qkdemo.messages import say
from qkdemo.tracks.catalogue import GUIDED
from qkdemo.web.track.track_cards import point_index, track_card

st.title(say("tracks.title"))
st.markdown(say("tracks.lead"))
for track, column in zip(GUIDED, st.columns(len(GUIDED)), strict=True):
    with column.container(border=True, height="stretch"):
        track_card(track)
index = st.expander(say("tracks.points"), key="tracks:points", on_change="rerun")
if index.open:
    with index:
        point_index()
