"""The latent-attention lab: QK norm on keys that are never formed."""

from functools import partial

import streamlit as st

from qkdemo.labs import mla
from qkdemo.strings import say
from qkdemo.web.controls import dials, turn
from qkdemo.web.exhibit import exhibit
from qkdemo.web.mla_view import mla_exhibit, picked
from qkdemo.web.server import arithmetic
from qkdemo.web.takeaway import Takeaway, take_away

settings = dials(mla.Settings, mla.PRESETS, "mla")
with arithmetic:
    result = mla.run(settings)
    drawn = mla_exhibit(result)
exhibit(*drawn, key="mla.exhibit", on_pick=lambda pick: turn(mla.Settings, "mla", picked(settings, pick)))
st.markdown(" ".join(mla.explain(result)[1:]))
take_away(
    Takeaway(
        lab="mla",
        settings=settings,
        tables={
            say("mla.table.here"): partial(mla.rows, result),
            say("mla.table.contexts"): partial(mla.context_rows, result),
        },
        programs={say("mla.program.title"): partial(mla.snippet, settings)},
    )
)
