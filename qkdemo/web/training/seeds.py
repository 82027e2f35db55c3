"""The same twins from many seeds: the tab that trains them together and counts what became of them.

* `seeds_tab(settings)`.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

import pyarrow as pa
import streamlit as st

from qkdemo.labs.training.lab import Settings, plan_of
from qkdemo.labs.training.view import View, seeds_exhibit, status_words, table_rows
from qkdemo.labs.training.words import definitions
from qkdemo.messages import say
from qkdemo.runs.live import RESTING, Live
from qkdemo.runs.pool import PoolError
from qkdemo.runs.program import program_of
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.lab.takeaway import csv_of, parquet_of
from qkdemo.web.training.shown import visitor
from qkdemo.web.training.stream import pool

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
        twins = workers.live(plan_of(settings).name)
        if twins is not None and twins.state not in RESTING and visitor() in twins.visitors:
            st.markdown(say("training.seeds.rests"))
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
        workers.attend(visitor())  # no stream says so: a run that waits for a worker would be dropped
        status = workers.status(live)
        if going and live.state in RESTING:
            st.rerun()
        if live.state != "finished":
            text = say("training.seeds.progress", runs=plan.width, status=status_words(status, plan))
            st.progress(status.steps / plan.steps, text)
            if going and workers.owns(live, visitor()):
                st.button(
                    say("exhibit.stop"),
                    key="training:seeds.stop",
                    on_click=workers.stop,
                    args=(live, visitor()),
                    icon=":material/stop:",
                )
            if status.notice:
                st.info(status.notice)
            return
        exhibit(*_drawn(live), key="training.seeds.exhibit", on_pick=lambda pick: None)
        st.markdown(definitions(plan))
        _downloads(live)

    watch()


def _downloads(live: Live) -> None:
    """Every step of every seed, and the program that trains them again; made when they are asked for."""
    plan = live.plan
    rows = partial(table_rows, plan, live.chunk.curves)
    files: tuple[tuple[str, str, str, Callable[[], bytes]], ...] = (
        ("csv", "csv", "text/csv", lambda: csv_of(rows())),
        ("parquet", "parquet", "application/vnd.apache.parquet", lambda: parquet_of(rows())),
        ("program", "py", "text/x-python", lambda: program_of(plan).encode()),
    )
    with st.container(horizontal=True):
        for word, ending, mime, data in files:
            st.download_button(
                say(f"training.seeds.{word}"),
                data,
                f"qkdemo-training-{plan.width // 2}-seeds.{ending}",
                mime,
                key=f"training:seeds.{word}",
                on_click="ignore",
                icon=":material/download:",
            )
    st.markdown(say("training.seeds.rounding"))


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
