"""The drift lab: plain attention beside its normalised twin, while the weights grow."""

from functools import partial

import streamlit as st

from qkdemo.labs import drift
from qkdemo.labs.drift.view import drift_exhibit, picked, sharpness_exhibit
from qkdemo.messages import say
from qkdemo.web.lab.controls import dials, turn
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.lab.takeaway import Takeaway, take_away
from qkdemo.web.track.lesson import tell

settings = dials(drift.Settings, drift.PRESETS, "drift")
result = drift.run(settings)
drawn = drift_exhibit(result)
exhibit(*drawn, key="drift.exhibit", on_pick=lambda pick: turn(drift.Settings, "drift", picked(settings, pick)))


tell(" ".join(drift.explain(result)[1:]))


def sharpness() -> None:
    """The same measures against the variant's own dial."""
    if swept is None:
        st.info(say("sharpness.none"))
        return
    exhibit(
        *sharpness_exhibit(swept, result),
        key="drift.sharpness",
        on_pick=lambda pick: turn(drift.Settings, "drift", {swept.dial: pick["dial"]} if "dial" in pick else {}),
    )


swept = drift.sharpness(settings)
sides = {say(f"variant.{side.variant}.name"): side.variant for side in reversed(result.sides)}
tables = {say("drift.table.scale"): partial(drift.rows, result)}
if swept is not None:
    tables |= {say("drift.table.dial"): partial(drift.sharpness_rows, swept)}
take_away(
    Takeaway(
        lab="drift",
        settings=settings,
        tables=tables,
        programs={title: partial(drift.snippet, settings, variant) for title, variant in sides.items()},
    ),
    {say("sharpness.tab"): sharpness},
)
