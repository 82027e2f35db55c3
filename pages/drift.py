"""The drift lab: plain attention beside its normalised twin, while the weights grow."""

from functools import partial

import streamlit as st

from qkdemo.labs import drift
from qkdemo.strings import say
from qkdemo.web.controls import dials, turn
from qkdemo.web.drift_view import drift_exhibit, picked, sharpness_exhibit
from qkdemo.web.exhibit import exhibit
from qkdemo.web.server import arithmetic
from qkdemo.web.takeaway import Takeaway, take_away

settings = dials(drift.Settings, drift.PRESETS, "drift")
with arithmetic:
    result = drift.run(settings)
    drawn = drift_exhibit(result)
exhibit(*drawn, key="drift.exhibit", on_pick=lambda pick: turn(drift.Settings, "drift", picked(settings, pick)))


def sharpness() -> None:
    """The same measures against the variant's own dial."""
    with arithmetic:
        swept = drift.sharpness(settings)
    if swept is None:
        st.info(say("sharpness.none"))
        return
    dial = swept.dial
    exhibit(
        *sharpness_exhibit(swept, result),
        key="drift.sharpness",
        on_pick=lambda pick: turn(drift.Settings, "drift", {dial: pick["dial"]} if "dial" in pick else {}),
    )


sides = {say(f"variant.{side.variant}.name"): side.variant for side in reversed(result.sides)}
take_away(
    Takeaway(
        lab="drift",
        settings=settings,
        rows=lambda: drift.rows(result),
        programs={title: partial(drift.snippet, settings, variant) for title, variant in sides.items()},
    ),
    {say("sharpness.tab"): sharpness},
)
