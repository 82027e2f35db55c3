"""Measuring on the machine that serves the page: only when asked, one at a time, and it can be stopped.

* `measured_here(settings)`: the button, how far it is, and the times, or None if there are none for these dials.
"""

import threading
import time
from typing import Final

import streamlit as st

from qkdemo.labs.cost import Measured, Settings, measure
from qkdemo.messages import say

_one_at_a_time: Final = threading.Lock()
_KEPT: Final = "cost:measured"
_MOST_KEPT: Final = 8


def measured_here(settings: Settings) -> Measured | None:
    """Draw the controls; what was measured for exactly these dials in this session."""
    kept: dict[Settings, Measured] = st.session_state.setdefault(_KEPT, {})
    with st.container(horizontal=True, vertical_alignment="center"):
        asked = st.button(say("cost.measure.start"), icon=":material/timer:", key="cost:measure")
        place = st.empty()
    if asked:
        measured = _measure(settings, place)
        if measured is not None:
            kept[settings] = measured
            for old in list(kept)[:-_MOST_KEPT]:
                del kept[old]
    found = kept.get(settings)
    if found is None:
        st.markdown(say("cost.measure.none"))
    return found


def last_measured(settings: Settings) -> Measured | None:
    """What was measured for these dials before this run."""
    kept: dict[Settings, Measured] = st.session_state.get(_KEPT, {})
    return kept.get(settings)


def _measure(settings: Settings, place: st.delta_generator.DeltaGenerator) -> Measured | None:
    if not _one_at_a_time.acquire(blocking=False):
        st.info(say("cost.measure.busy"))
        return None
    try:
        place.button(say("cost.measure.stop"), icon=":material/stop:", key="cost:stop")  # any click ends this run
        bar, began = st.progress(0.0), time.monotonic()

        def after_round(done: int, rounds: int) -> None:
            left = (time.monotonic() - began) / done * (rounds - done)
            bar.progress(done / rounds, say("cost.measure.progress", done=done, rounds=rounds, left=round(left)))

        measured = measure(settings, after_round=after_round)
        bar.empty()
        place.empty()
        return measured
    finally:
        _one_at_a_time.release()
