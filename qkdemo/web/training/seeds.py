"""The same twins from many seeds: the tab that trains them together and counts what became of them.

* `seeds_tab(settings)`; `Seeds`: how they stand. Where they would take too much memory together, groups of them train
  one after another.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import streamlit as st

from qkdemo.labs.caption import origin
from qkdemo.labs.training.lab import Settings, plan_of
from qkdemo.labs.training.seeds_view import seeds_exhibit
from qkdemo.labs.training.view import status_words, table_rows
from qkdemo.labs.training.words import definitions
from qkdemo.messages import now, say
from qkdemo.runs.budget import Part, by_seeds, joined_curves, plan_bytes, price
from qkdemo.runs.plan import Plan
from qkdemo.runs.program import program_of
from qkdemo.runs.workers.live import RESTING, Live
from qkdemo.runs.workers.pool import Pool, PoolError
from qkdemo.web.address.language import speak_on
from qkdemo.web.address.link import address
from qkdemo.web.explored import seeds_explored
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.lab.takeaway import csv_of, parquet_of
from qkdemo.web.serving.networks import here
from qkdemo.web.training.shown import visitor
from qkdemo.web.training.stream import pool

COUNTS: Final = (5, 10, 20)
_EVERY_S: Final = 1.0


@dataclass(frozen=True, eq=False)
class Seeds:
    """Pairs of one plan, in the parts in which they train; None for one that nothing is known of."""

    settings: Settings  # of the first pair
    plan: Plan
    parts: tuple[Part, ...]
    lives: tuple[Live | None, ...]
    workers: Pool

    @classmethod
    def of(cls, settings: Settings, count: int, workers: Pool) -> "Seeds":
        """How that many stand now."""
        seeds = seeds_of(settings, count)
        plan = plan_of(settings, seeds)
        parts = by_seeds(plan)
        lives = tuple(workers.look(part.plan) for part in parts)
        return cls(settings.but(seed=seeds[0]), plan, parts, lives, workers)

    @property
    def count(self) -> int:
        """How many pairs."""
        return len(self.plan.legs[0].runs) // 2

    @property
    def known(self) -> list[Live]:
        """The parts that something is known of."""
        return [live for live in self.lives if live is not None]

    @property
    def finished(self) -> bool:
        """Whether all are trained."""
        return all(live is not None and live.state == "finished" for live in self.lives)

    @property
    def active(self) -> Live | None:
        """The part that trains or waits for a worker."""
        return next((live for live in self.known if live.state not in RESTING), None)

    @property
    def going(self) -> bool:
        """Whether one is, or is about to be."""
        return self.active is not None or self.workers.still_wants(visitor(), [part.plan for part in self.parts])

    @property
    def share(self) -> float:
        """The share of all steps that is trained."""
        return sum(live.steps * live.plan.width for live in self.known) / (self.plan.steps * self.plan.width)

    @property
    def price(self) -> str:
        """What the rest takes."""
        plans = [part.plan for part in self.parts]
        return price(self.workers.seconds_of(plans) * (1 - self.share), max(map(plan_bytes, plans)))


def seeds_tab(settings: Settings) -> None:
    """Choose how many, start, watch them come in, read the count."""
    workers = pool()
    if workers is None:
        return
    st.markdown(say("training.seeds.lead"))
    count: int = st.radio(say("training.seeds.count"), COUNTS, index=1, horizontal=True, key="training:seeds")
    seeds = Seeds.of(settings, count, workers)
    if not seeds.finished and not seeds.going:
        _offer(settings, seeds, count)
    if seeds.known:
        _watched(seeds)


def _offer(settings: Settings, seeds: Seeds, count: int) -> None:
    twins = seeds.workers.live(plan_of(settings).name)
    if twins is not None and twins.state not in RESTING and visitor() in twins.visitors:
        st.markdown(say("training.seeds.rests"))
    st.button(say("training.seeds.start", count=count), key="training:seeds.start", on_click=_start, args=(seeds,))
    st.markdown(say("training.seeds.price", price=seeds.price))


def _watched(seeds: Seeds) -> None:
    going, workers = seeds.going, seeds.workers

    @st.fragment(run_every=_EVERY_S if going else None)
    def watch() -> None:
        speak_on()
        workers.attend(visitor())  # no stream says so: a run that waits for a worker would rest
        now = Seeds.of(seeds.settings, seeds.count, workers)
        if going and not now.going:
            st.rerun()
        if now.finished:
            _found(now)
        else:
            _progress(now)

    watch()


def _progress(seeds: Seeds) -> None:
    live = seeds.active or seeds.known[-1]
    status = seeds.workers.status(live)
    words = status_words(status, live.plan)
    st.progress(seeds.share, say("training.seeds.progress", runs=live.plan.width, status=words))
    if seeds.active is not None and seeds.workers.owns(live, visitor()):
        st.button(say("exhibit.stop"), key="training:seeds.stop", on_click=_stop, args=(seeds,), icon=":material/stop:")
    if status.notice:
        st.info(now(status.notice))


def _found(seeds: Seeds) -> None:
    curves = joined_curves(seeds.parts, [live.chunk.curves for live in seeds.known])
    drawn = seeds.known[-1].once("seeds", lambda: seeds_exhibit(seeds.plan, curves))
    told = seeds.settings
    exhibit(*drawn, key="training.seeds.exhibit", on_pick=lambda pick: None, made=("training", told))
    seeds_explored(seeds.plan, curves)
    st.markdown(definitions(seeds.plan))
    rows = partial(table_rows, seeds.plan, curves)
    made = origin("training", told.as_dict() | {"seeds": seeds.count}, address(told))
    files: tuple[tuple[str, str, str, Callable[[], bytes]], ...] = (
        ("csv", "csv", "text/csv", lambda: csv_of(rows())),
        ("parquet", "parquet", "application/vnd.apache.parquet", lambda: parquet_of(rows(), made)),
        ("program", "py", "text/x-python", lambda: program_of(seeds.plan).encode()),
    )
    with st.container(horizontal=True):
        for word, ending, mime, data in files:  # made when they are asked for
            st.download_button(
                say(f"training.seeds.{word}"),
                data,
                f"qkdemo-training-{seeds.count}-seeds.{ending}",
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


def _start(seeds: Seeds) -> None:
    plans = [part.plan for part in seeds.parts]
    try:
        if len(plans) == 1:
            seeds.workers.start(plans[0], visitor(), pace=float("inf"), address=here())
        else:
            seeds.workers.start_all(plans, visitor(), here())
    except PoolError as error:
        st.toast(str(error))


def _stop(seeds: Seeds) -> None:
    if len(seeds.parts) == 1 and seeds.active is not None:
        seeds.workers.stop(seeds.active, visitor())
    else:
        seeds.workers.leave(visitor())
