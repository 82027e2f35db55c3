"""What stands on the page of losses over learning rates.

* `rates_body(settings)`: between dials and what a visitor takes away;
* `curves(sweep)`: progress, exhibit and words, drawn anew while runs finish.
"""

from functools import partial
from typing import Final

import streamlit as st

from qkdemo.charts.spec import Pick
from qkdemo.labs.learning_rates import lab as rates
from qkdemo.labs.learning_rates.view import Own, picked, rates_exhibit, words_of_own
from qkdemo.labs.learning_rates.words import explain
from qkdemo.messages import in_each_language, say
from qkdemo.web.address.language import speak_on
from qkdemo.web.lab.controls import turn
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.track.shown import tell
from qkdemo.web.training.rates_runs import PREFIX, Sweep, attend, came, look, own_run, show_shipped, start, stop

_EVERY_S: Final = 1.0
_PICKED: Final = f"{PREFIX}:picked"


def rates_body(settings: rates.Settings) -> rates.Result:
    """Draw it; the result is what was trained when the page was drawn."""
    sweep = attend(settings)
    if isinstance(sweep, str):
        st.title(say("page.sensitivity"))
        st.info(sweep)
        st.stop()
    curves(sweep)
    return sweep.result


def curves(sweep: Sweep) -> None:
    """The exhibit and what belongs to it; while something trains, once a second."""
    going, own = sweep.going, own_run(sweep.settings)

    @st.fragment(run_every=_EVERY_S if going else None)
    def drawn() -> None:
        speak_on()
        now = look(sweep.settings, sweep.workers)
        if going != now.going or st.session_state.pop(_PICKED, False):
            st.rerun()  # what stands outside the fragment follows
        _draw(now, own)

    drawn()


def _draw(sweep: Sweep, own: Own | None) -> None:
    result = sweep.result
    table, view = rates_exhibit(result, own)
    sentences = _said(result)
    pick, made = partial(_pick, sweep.settings), ("sensitivity", result.settings)
    exhibit(table, view, key="sensitivity.exhibit", on_pick=pick, made=made)
    with st.container(horizontal=True, vertical_alignment="center"):
        if sweep.going:
            st.button(say("rates.stop"), on_click=stop, icon=":material/stop:", key="sensitivity.stop")
        elif sweep.shipped or not result.whole:
            label = say("rates.live_here" if sweep.shipped else "rates.go_on" if sweep.share else "rates.start")
            st.button(
                label, on_click=start, args=(sweep.settings,), icon=":material/play_arrow:", key="sensitivity.start"
            )
            if not sweep.shipped and came(sweep.settings, sweep.workers):
                st.button(say("rates.show_shipped"), on_click=show_shipped, key="sensitivity.shipped")
        if result.whole:
            st.markdown(sweep.words)
        else:
            st.progress(sweep.share, sweep.words)
    if not sweep.going and (sweep.shipped or not result.whole):
        st.markdown(sweep.price)
    for notice in sweep.notices:
        st.info(notice)
    tell(" ".join([*sentences[1:], *(words_of_own(own, sweep.settings) if own is not None else [])]))


@in_each_language(32)
def _said(result: rates.Result) -> tuple[str, ...]:
    return tuple(explain(result))


def _pick(settings: rates.Settings, pick: Pick) -> None:
    turn(rates.Settings, PREFIX, picked(settings, pick))
    st.session_state[_PICKED] = True
