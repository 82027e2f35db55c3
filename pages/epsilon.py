"""The epsilon lab: one vector that shrinks, under every rule for what keeps its divisor from zero."""

from functools import partial

import streamlit as st

from qkdemo.labs import epsilon
from qkdemo.labs.epsilon.view import epsilon_exhibit, picked
from qkdemo.messages import say
from qkdemo.web.lab.controls import dials, turn
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.lab.takeaway import Takeaway, take_away

settings = dials(epsilon.Settings, epsilon.PRESETS, "epsilon")
result = epsilon.run(settings)
drawn = epsilon_exhibit(settings)
exhibit(*drawn, key="epsilon.exhibit", on_pick=lambda pick: turn(epsilon.Settings, "epsilon", picked(pick)))
st.markdown(" ".join(epsilon.explain(result)[1:]))
take_away(
    Takeaway(
        lab="epsilon",
        settings=settings,
        tables={
            say("epsilon.table.rules"): partial(epsilon.rows, result),
            say("epsilon.table.sizes"): partial(epsilon.size_rows, result),
            say("epsilon.table.formats"): partial(epsilon.format_rows, settings),
        },
        programs={say(f"choice.rule.{settings.rule}"): partial(epsilon.snippet, settings)},
    )
)
