"""What stands on the page of losses over learning rates.

* `curves(sweep)`: progress, exhibit and words, drawn anew while runs finish; `offer(sweep)`: what a visitor takes away.
"""

from functools import lru_cache, partial
from typing import Final

import streamlit as st

from qkdemo.charts.spec import Pick
from qkdemo.labs.learning_rates import lab as rates
from qkdemo.labs.learning_rates.view import Own, picked, rates_exhibit
from qkdemo.messages import say
from qkdemo.runs.program import sweep_program
from qkdemo.web.lab.controls import turn
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.lab.takeaway import Takeaway, take_away
from qkdemo.web.training.rates_runs import PREFIX, Sweep, look, own_run, start, stop

_EVERY_S: Final = 1.0
_PICKED: Final = f"{PREFIX}:picked"


def curves(sweep: Sweep) -> None:
    """The exhibit and what belongs to it; while something trains, once a second."""
    going, own = sweep.going, own_run(sweep.settings)

    @st.fragment(run_every=_EVERY_S if going else None)
    def drawn() -> None:
        now = look(sweep.settings, sweep.workers)
        if going != now.going or st.session_state.pop(_PICKED, False):
            st.rerun()  # what stands outside the fragment follows
        _draw(now, own)

    drawn()


def _draw(sweep: Sweep, own: Own | None) -> None:
    result = sweep.result
    table, view = rates_exhibit(result, own)
    sentences = _said(result)
    exhibit(table, view, key="sensitivity.exhibit", on_pick=partial(_pick, sweep.settings))
    with st.container(horizontal=True, vertical_alignment="center"):
        if sweep.going:
            st.button(say("rates.stop"), on_click=stop, icon=":material/stop:", key="sensitivity.stop")
        elif not result.whole:
            label = say("rates.go_on" if sweep.share else "rates.start")
            st.button(
                label, on_click=start, args=(sweep.settings,), icon=":material/play_arrow:", key="sensitivity.start"
            )
        if result.whole:
            st.markdown(sweep.words)
        else:
            st.progress(sweep.share, sweep.words)
    if not sweep.going and not result.whole:
        st.markdown(sweep.price)
    for notice in sweep.notices:
        st.info(notice)
    st.markdown(" ".join([*sentences[1:], *_about(own, sweep.settings)]))


@lru_cache(maxsize=32)
def _said(result: rates.Result) -> tuple[str, ...]:
    return tuple(rates.explain(result))


def _about(own: Own | None, settings: rates.Settings) -> list[str]:
    """What the marked run is, and in what it differs."""
    if own is None:
        return []
    other = own.schedule != settings.schedule
    key = "rates.own.other_schedule" if other else "rates.own.words"
    return [say(key, schedule=say(f"schedule.{own.schedule}.short"), ours=say(f"schedule.{settings.schedule}.short"))]


def offer(sweep: Sweep) -> None:
    """Tables, link, and how it was computed."""
    take_away(
        Takeaway(
            lab=PREFIX,
            settings=sweep.settings,
            tables={
                say("rates.table.points"): lambda: rates.point_rows(sweep.result),
                say("rates.table.runs"): lambda: rates.run_rows(sweep.result),
            },
            programs={say("training.program"): partial(sweep_program, sweep.plans)},
        )
    )


def _pick(settings: rates.Settings, pick: Pick) -> None:
    turn(rates.Settings, PREFIX, picked(settings, pick))
    st.session_state[_PICKED] = True
