"""What a lab computes only when asked: one visitor at a time, with a bar, and it can be stopped.

* `demanded(demand, settings, noise, show)`: the button, how far it is, and what was found for these dials;
* `rows_of(demand, settings)`: the table of that, by its title, once there is one.
"""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import streamlit as st

from qkdemo.labs.lab import M, OnDemand, Rows, S, Section
from qkdemo.messages import say
from qkdemo.web.lab.takeaway import table_of, without_noise

_one_at_a_time: Final = threading.Lock()
_MOST_KEPT: Final = 8  # in a session


def demanded(
    demand: OnDemand[S, M],
    settings: S,
    noise: Mapping[str, float],
    show: Callable[[Section], None],
    explored: Callable[[M], None] | None = None,
) -> None:
    """Draw the controls, and what was found for exactly these dials in this session; `explored` draws it once more."""
    key = demand.name.replace(".", ":")
    with st.container(horizontal=True, vertical_alignment="center"):
        asked = st.button(say(f"{demand.name}.start"), icon=":material/timer:", key=key)
        place = st.empty()
    if asked:
        _compute(demand, settings, place)
    found = _kept(demand).get(settings)
    if found is None:
        st.markdown(say(f"{demand.name}.none"))
        return
    section = demand.section(found)
    if section.exhibit is None:
        st.dataframe(table_of(without_noise(demand.rows(found), noise)), hide_index=True)
    show(section)
    if explored is not None:
        explored(found)


def rows_of(demand: OnDemand[S, M], settings: S) -> Mapping[str, Callable[[], Rows]]:
    """The title of the table and what makes it, if something was found for these dials before this run."""
    found = _kept(demand).get(settings)
    return {} if found is None else {f"{demand.name}.table": partial(demand.rows, found)}


def _kept(demand: OnDemand[S, M]) -> dict[S, M]:
    kept: dict[S, M] = st.session_state.setdefault(f"{demand.name}:kept", {})
    return kept


def _compute(demand: OnDemand[S, M], settings: S, place: st.delta_generator.DeltaGenerator) -> None:
    if not _one_at_a_time.acquire(blocking=False):
        st.info(say("on_demand.busy"))
        return
    try:
        place.button(
            say("on_demand.stop"), icon=":material/stop:", key=f"{demand.name}:stop"
        )  # any click ends this run
        bar, began = st.progress(0.0), time.monotonic()

        def after_round(done: int, rounds: int) -> None:
            left = (time.monotonic() - began) / done * (rounds - done)
            bar.progress(done / rounds, say("on_demand.progress", done=done, rounds=rounds, left=round(left)))

        kept = _kept(demand)
        kept[settings] = demand.run(settings, after_round)
        for old in list(kept)[:-_MOST_KEPT]:
            del kept[old]
        bar.empty()
        place.empty()
    finally:
        _one_at_a_time.release()
