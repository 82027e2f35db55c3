"""The phase diagram of training on the page of maps: the record that comes with the app, or one over other dials.

* `phases_shown()`: the choices, both sides, and the table.

Another diagram is trained by the server's workers, batch after batch, each of which is a run of its own in the store:
what is trained is there at once the next time, also for others, and after a restart. `phases` in the link says which,
and `share` what a tile counts.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
import streamlit as st

from qkdemo.dials import SettingsError
from qkdemo.maps.phases.cells import RECORDED_ON, SHARES, Cell, End, cells, ends_of_plan, read, rows
from qkdemo.maps.phases.diagram import (
    DEFAULT,
    MOST_REMEDIES,
    MOST_SEEDS,
    SIDES,
    Diagram,
    diagram_of,
    from_link,
    remedy_words,
    training_dials,
)
from qkdemo.maps.phases.picture import alt, finding, phase_spec, phase_table, side_name
from qkdemo.messages import now, say
from qkdemo.notation import written
from qkdemo.runs.budget import plan_bytes, price
from qkdemo.runs.durations import duration
from qkdemo.runs.plan import Plan
from qkdemo.runs.workers.live import RESTING, Live
from qkdemo.runs.workers.pool import Pool, PoolError
from qkdemo.web import lecture
from qkdemo.web.address.given import as_text
from qkdemo.web.address.language import speak_on
from qkdemo.web.address.link import ask, asked
from qkdemo.web.lab.takeaway import csv_of
from qkdemo.web.serving.networks import here
from qkdemo.web.training.shown import visitor
from qkdemo.web.training.stream import pool

_EVERY_S: Final = 1.0
_SIZE: Final = 5  # cells along a side of a diagram that is not the default one


def phases_shown() -> None:
    """Where training survives: the share of seeds that solve the task, remedy beside remedy."""
    first = st.container() if lecture.on() else nullcontext()  # a hall sees the tiles, then what can be chosen
    diagram = _chosen()
    with first:
        if diagram == DEFAULT:
            ends = read()
            seconds = round(sum(end.seconds for end in ends))
            lead = say("phases.lead", seeds=len(diagram.seeds), seconds=seconds, day=RECORDED_ON, what=_what(_share()))
            _drawn(diagram, ends, lead)
        else:
            _trained(diagram)


# ---- which one


def _chosen() -> Diagram:
    """As the link says; a word about what it asks in vain."""
    diagram, text = DEFAULT, asked("phases")
    if text:
        try:
            diagram = from_link(text)
        except SettingsError as error:
            st.warning(as_text(say("phases.bad", why=error)), icon=":material/link_off:")
    _choices(diagram)
    return diagram


def _choices(diagram: Diagram) -> None:
    known = training_dials(diagram.remedies)
    size = next((side for side in SIDES if side >= max(len(diagram.xs), len(diagram.ys))), SIDES[-1])
    columns = st.columns([4, 4, 2, 2])
    options: tuple[tuple[str, list[Any], Any], ...] = (
        ("x", list(known), diagram.x),
        ("y", list(known), diagram.y),
        ("cells", list(SIDES), size),
        ("seeds", list(range(1, MOST_SEEDS + 1)), len(diagram.seeds)),
    )
    for column, (name, words, at) in zip(columns, options, strict=True):
        st.session_state[f"phases:{name}"] = at
        with column:
            st.selectbox(
                say(f"phases.choose_{name}"),
                words,
                key=f"phases:{name}",
                format_func=lambda word: known[word].label if word in known else str(word),
                on_change=partial(_choose, diagram),
            )
    beside, counted = st.columns([7, 5])
    st.session_state["phases:remedies"], st.session_state["phases:share"] = list(diagram.remedies), _share()
    with beside:
        st.multiselect(
            say("phases.choose_remedies"),
            list(remedy_words()),
            key="phases:remedies",
            format_func=side_name,
            max_selections=MOST_REMEDIES,
            on_change=partial(_choose, diagram),
        )
    with counted:
        st.selectbox(
            say("phases.choose_share"),
            SHARES,
            key="phases:share",
            format_func=_what,
            on_change=lambda: ask("share", st.session_state["phases:share"].removeprefix(SHARES[0])),
        )
    if asked("share") not in ("", *SHARES):
        bad = say("phases.bad_share", text=repr(asked("share")), known=", ".join(SHARES))
        st.warning(as_text(bad), icon=":material/link_off:")


def _share() -> str:
    """What a tile counts, as the link says."""
    return asked("share") if asked("share") in SHARES else SHARES[0]


def _what(share: str) -> str:
    return say(f"phases.counted.{share}")


def _choose(before: Diagram) -> None:
    """Another dial over its whole range; what stays keeps its range. Two equal ones change places."""
    at = {name: st.session_state[f"phases:{name}"] for name in ("x", "y", "cells", "seeds", "remedies")}
    if at["x"] == at["y"]:
        at["x"], at["y"] = (before.y, before.x)
    held = dict(zip((before.x, before.y), before.text.split(";"), strict=False))
    size = at["cells"] if before != DEFAULT or {at["x"], at["y"]} == {before.x, before.y} else _SIZE
    remedies = at["remedies"] or before.remedies
    try:
        made = diagram_of(held.get(at["x"], at["x"]), held.get(at["y"], at["y"]), size, at["seeds"], remedies)
    except SettingsError as error:
        st.toast(as_text(str(error)))
        return
    ask("phases", "" if made == DEFAULT else made.text)


# ---- one that is trained here


@dataclass(frozen=True, eq=False)
class _Batches:
    """The plans of a diagram as they stand; None for one that nothing is known of."""

    diagram: Diagram
    workers: Pool
    lives: tuple[Live | None, ...]

    @classmethod
    def of(cls, diagram: Diagram, workers: Pool) -> "_Batches":
        return cls(diagram, workers, tuple(workers.look(plan) for plan in diagram.plans))

    @property
    def ends(self) -> list[End]:
        """What became of the runs of every batch that is finished."""
        finished = (live for live in self.lives if live is not None and live.state == "finished")
        return [end for live in finished for end in live.once("phases", partial(_ends_of, live))]

    @property
    def rest(self) -> list[Plan]:
        """What is not trained to its end."""
        pairs = zip(self.diagram.plans, self.lives, strict=True)
        return [plan for plan, live in pairs if live is None or live.state != "finished"]

    @property
    def going(self) -> bool:
        """Whether some of it trains, or waits, for this visitor or for another one."""
        active = any(live is not None and live.state not in RESTING for live in self.lives)
        return active or self.workers.still_wants(visitor(), self.diagram.plans)

    @property
    def left_s(self) -> float:
        """Seconds of computing that are left."""
        return self.workers.seconds_of(self.rest)


def _ends_of(live: Live) -> list[End]:
    return ends_of_plan(live.plan, live.chunk.curves)


def _trained(diagram: Diagram) -> None:
    workers = pool()
    if workers is None:
        st.info(say("phases.no_server"))
        return
    going = _Batches.of(diagram, workers).going

    @st.fragment(run_every=_EVERY_S if going else None)
    def watch() -> None:
        speak_on()
        workers.attend(visitor())
        batches = _Batches.of(diagram, workers)
        if going != batches.going:
            st.rerun()
        with st.container():
            _controls(batches)
        _drawn(diagram, batches.ends, say("phases.own", what=_what(_share()), rate=written(diagram.base.learning_rate)))

    watch()


def _controls(batches: _Batches) -> None:
    rest, ends = batches.rest, batches.ends
    if batches.going:
        st.button(say("phases.stop"), icon=":material/stop:", key="phases:stop", on_click=_stop, args=(batches,))
        total = len(batches.diagram.runs)
        words = say("phases.progress_here", done=len(ends), total=total)
        left = say("phases.left", left=duration(batches.left_s))
        st.progress(min(1.0, len(ends) / total), f"{words} {left}")
    elif rest:
        cost = price(batches.left_s, max(map(plan_bytes, rest)))
        st.markdown(say("phases.price", runs=sum(plan.width for plan in rest), price=cost))
        word = "go_on" if len(rest) < len(batches.diagram.plans) else "start"
        st.button(
            say(f"phases.{word}"), icon=":material/play_arrow:", key="phases:start", on_click=_start, args=(batches,)
        )
    for notice in dict.fromkeys(now(live.notice) for live in batches.lives if live is not None and live.notice):
        st.info(notice)


def _start(batches: _Batches) -> None:
    try:
        batches.workers.start_all(batches.rest, visitor(), here())
    except PoolError as error:
        st.toast(str(error))


def _stop(batches: _Batches) -> None:
    batches.workers.leave(visitor())


# ---- what it shows


def _drawn(diagram: Diagram, ends: list[End], lead: str) -> None:
    made = cells(ends, diagram)
    st.markdown(f"## {finding(made, diagram, _share())}" if made else "")
    if not lecture.on():
        st.markdown(lead)
    if made:
        _sides(diagram, made)
    if lecture.on():
        st.markdown(lead)
    if made:
        _table(rows(made, diagram))


def _sides(diagram: Diagram, made: list[Cell]) -> None:
    share = _share()
    places = [column for _ in diagram.remedies[::2] for column in st.columns(2)]
    for remedy, column in zip(diagram.remedies, places, strict=False):
        with column:
            name = side_name(remedy)
            st.markdown(f"### {name[0].upper() + name[1:]}")
            st.vega_lite_chart(
                phase_table(made, remedy, share),
                phase_spec(diagram, share, hall=lecture.on()),
                key=f"phases:{remedy}",
                alt=alt(made, remedy, diagram, share),
                width="stretch",
            )


def _table(found: list[dict[str, Any]]) -> None:
    with st.expander(say("phases.table")):
        st.dataframe(pa.Table.from_pylist(found), hide_index=True, key="phases:table")
        st.download_button(
            say("takeaway.csv"),
            lambda: csv_of(found),
            "qkdemo-phases.csv",
            "text/csv",
            on_click="ignore",
            icon=":material/download:",
        )
