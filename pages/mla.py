"""The latent-attention lab: QK norm on keys that are never formed."""

from functools import partial

import streamlit as st

from qkdemo.labs import mla
from qkdemo.labs.mla.view import mla_exhibit, other_ways_exhibit, picked, picked_scale
from qkdemo.messages import say
from qkdemo.web.lab.controls import dials, turn
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.lab.takeaway import Takeaway, take_away

settings = dials(mla.Settings, mla.PRESETS, "mla")
result = mla.run(settings)
drawn, others = mla_exhibit(result), other_ways_exhibit(result)
exhibit(*drawn, key="mla.exhibit", on_pick=lambda pick: turn(mla.Settings, "mla", picked(settings, pick)))
st.markdown(" ".join(mla.explain(result)[1:]))
exhibit(*others, key="mla.others", on_pick=lambda pick: turn(mla.Settings, "mla", picked_scale(pick)))
st.markdown("\n".join(f"- {sentence}" for sentence in mla.explain_other_ways(result)))
take_away(
    Takeaway(
        lab="mla",
        settings=settings,
        tables={
            say("mla.table.here"): partial(mla.rows, result),
            say("mla.table.contexts"): partial(mla.context_rows, result),
            say("mla.table.ways"): partial(mla.other_rows, result),
            say("mla.table.scales"): partial(mla.scale_rows, result),
        },
        programs={
            say("mla.program.title"): partial(mla.snippet, settings),
            say("mla.program.ways"): partial(mla.alternatives_snippet, settings),
        },
    )
)
