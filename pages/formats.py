"""The formats lab: attention stage by stage in five number formats, and what each of them loses."""

from functools import partial

import streamlit as st

from qkdemo.labs import formats
from qkdemo.labs.formats.claims import claims
from qkdemo.labs.formats.view import formats_exhibit, picked
from qkdemo.messages import say
from qkdemo.web.lab.controls import dials, turn
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.lab.takeaway import Takeaway, take_away

settings = dials(formats.Settings, formats.PRESETS, "formats")
result = formats.run(settings)
drawn = formats_exhibit(result)
sayings = claims()
exhibit(*drawn, key="formats.exhibit", on_pick=lambda pick: turn(formats.Settings, "formats", picked(settings, pick)))
st.markdown("\n".join(f"- {sentence}" for sentence in formats.explain(result)))
with st.container(border=True):
    st.markdown(f"## {say('formats.sayings')}")
    for claim in sayings:
        st.markdown(say("formats.saying", said=claim.said, answer=claim.answer))
sides = {say(f"variant.{side.variant}.name"): side.variant for side in result.sides}
take_away(
    Takeaway(
        lab="formats",
        settings=settings,
        tables={
            say("formats.table.counts"): partial(formats.rows, result),
            say("formats.table.first"): partial(formats.first_failures, result),
            say("formats.table.scales"): partial(formats.sweep_rows, settings),
            say("formats.table.ladder"): partial(formats.ladder_rows, result),
        },
        programs={title: partial(formats.snippet, settings, variant) for title, variant in sides.items()},
    )
)
