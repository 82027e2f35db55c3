"""The cost lab: what norms cost by formula, and on the machine that serves the page."""

from functools import partial

import streamlit as st

from qkdemo.labs import cost
from qkdemo.labs.cost.view import cost_exhibit, picked, times_exhibit
from qkdemo.messages import say
from qkdemo.web.lab.controls import dials, turn
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.lab.on_demand import last_measured, measured_here
from qkdemo.web.lab.takeaway import Takeaway, take_away

settings = dials(cost.Settings, cost.PRESETS, "cost")
result = cost.run(settings)
drawn = cost_exhibit(settings)
exhibit(*drawn, key="cost.exhibit", on_pick=lambda pick: turn(cost.Settings, "cost", picked(pick)))
st.markdown(" ".join(cost.explain(result)[1:]))


def clock() -> None:
    """Times, only when asked."""
    measured = measured_here(settings)
    if measured is not None:
        exhibit(*times_exhibit(measured), key="cost.times", on_pick=lambda pick: None)
        st.markdown(" ".join(cost.explain_times(measured)[1:]))


tables = {
    say("cost.table_parts"): partial(cost.rows, result),
    say("cost.table_sweep"): partial(cost.sweep_rows, cost.sweep(settings)),
}
measured = last_measured(settings)
if measured is not None:
    tables |= {say("cost.table_times"): partial(cost.time_rows, measured)}
take_away(
    Takeaway(
        lab="cost",
        settings=settings,
        tables=tables,
        programs={say("cost.program"): partial(cost.snippet, settings)},
    ),
    {say("cost.measure.tab"): clock},
)
