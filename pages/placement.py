"""The placement lab: two pipelines over one checkpoint, and why unit gains hide what sets them apart."""

from functools import partial

import streamlit as st

from qkdemo.labs import placement
from qkdemo.labs.placement.mistakes import explain_mistakes
from qkdemo.labs.placement.view import picked, placement_exhibit
from qkdemo.messages import say
from qkdemo.web.lab.controls import dials, turn
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.lab.takeaway import Takeaway, table_of, take_away

settings = dials(placement.Settings, placement.PRESETS, "placement")
result = placement.run(settings)
drawn = placement_exhibit(result)
exhibit(
    *drawn,
    key="placement.exhibit",
    on_pick=lambda pick: turn(placement.Settings, "placement", picked(settings, pick)),
)
st.markdown("\n".join(f"- {sentence}" for sentence in placement.explain(result)[1:]))


def draws() -> None:
    """The known mistakes over several draws: a second of arithmetic, so only when asked for."""
    st.markdown(say("placement.draws_help"))
    if st.button(say("placement.draws_run"), key="placement:draws"):
        found = placement.mistakes(settings)
        st.dataframe(table_of([vars(mistake) for mistake in found]), hide_index=True)
        st.markdown(" ".join(explain_mistakes(found)))


take_away(
    Takeaway(
        lab="placement",
        settings=settings,
        tables={
            say("placement.table.spread"): partial(placement.spread_rows, settings),
            say("placement.table.mistakes"): partial(placement.mistake_rows, settings),
            say("placement.table.position"): partial(placement.rows, result),
        },
        programs={say("page.placement"): partial(placement.snippet, settings)},
    ),
    {say("placement.draws"): draws},
)
