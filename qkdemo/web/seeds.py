"""The same twins from many seeds: the tab that trains them together and counts what became of them.

* `seeds_tab(settings)`.
"""

from functools import lru_cache
from typing import Final

import pyarrow as pa
import streamlit as st

from qkdemo.strings import say
from qkdemo.training.live import RESTING, Live
from qkdemo.training.pool import PoolError
from qkdemo.training.twins import Settings, definitions, plan_of
from qkdemo.web.exhibit import exhibit
from qkdemo.web.live import pool
from qkdemo.web.runs import visitor
from qkdemo.web.training_view import View, seeds_exhibit

COUNTS: Final = (5, 10, 20)
_EVERY_S: Final = 1.0


def seeds_tab(settings: Settings) -> None:
    """Choose how many, start, watch them come in, read the count."""
    workers = pool()
    if workers is None:
        return
    st.markdown(say("training.seeds.lead"))
    count: int = st.radio(say("training.seeds.count"), COUNTS, index=1, horizontal=True, key="training:seeds")
    plan = plan_of(settings, seeds_of(settings, count))
    live = workers.look(plan)
    if live is None or (live.state in RESTING and live.state != "finished"):
        st.button(
            say("training.seeds.start", count=count),
            key="training:seeds.start",
            on_click=_start,
            args=(settings, count),
        )
    if live is None:
        return
    going = live.state not in RESTING

    @st.fragment(run_every=_EVERY_S if going else None)
    def watch() -> None:
        status = workers.status(live)
        if going and live.state in RESTING:
            st.rerun()
        if live.state != "finished":
            text = say("training.seeds.progress", step=status.steps, steps=plan.steps, runs=plan.width)
            st.progress(status.steps / plan.steps, text)
            if status.notice:
                st.info(status.notice)
            return
        exhibit(*_drawn(live), key="training.seeds.exhibit", on_pick=lambda pick: None)
        st.markdown(definitions(plan))

    watch()


def seeds_of(settings: Settings, count: int) -> tuple[int, ...]:
    """That many seeds, from the dial's on."""
    first = min(settings.seed, 10_000 - count)
    return tuple(range(first, first + count))


@lru_cache(maxsize=16)
def _drawn(live: Live) -> tuple[pa.Table, View]:
    """Of a run that is finished."""
    return seeds_exhibit(live.plan, live.chunk.curves)


def _start(settings: Settings, count: int) -> None:
    workers = pool()
    if workers is not None:
        try:
            workers.start(plan_of(settings, seeds_of(settings, count)), visitor(), pace=float("inf"))
        except PoolError as error:
            st.toast(str(error))
