"""Statements about QK norm that go around: say what you think, run the experiment, see the verdict and the evidence."""

import streamlit as st

from qkdemo.messages import say
from qkdemo.tracks.catalogue import CLAIMS, TRACKS
from qkdemo.web.track import lesson
from qkdemo.web.track.claim_cards import claim_card, tally

st.title(say("claims.title"))
st.markdown(say("claims.lead"))
progress = lesson.heard(CLAIMS)
st.markdown(tally(progress))
for at, (stop, said) in enumerate(zip(TRACKS[CLAIMS], progress, strict=True)):
    with st.container(border=True):
        claim_card(at, stop, said)
