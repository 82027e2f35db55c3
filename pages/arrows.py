"""The arrows: one query and five keys in the plane, which can be taken hold of."""

from functools import partial

import streamlit as st

from qkdemo.labs import arrows
from qkdemo.messages import say
from qkdemo.web import lecture
from qkdemo.web.lab.arrows_exhibit import arrows as exhibit
from qkdemo.web.lab.controls import dials, turn
from qkdemo.web.lab.takeaway import Takeaway, take_away
from qkdemo.web.track import lesson

settings = dials(arrows.Settings, arrows.PRESETS, "arrows")
if lesson.current() is None:
    st.title(say("arrows.question"))
    if not lecture.on():
        st.markdown(say("arrows.instruction"))
exhibit(settings, key="arrows.exhibit", turned=partial(turn, arrows.Settings, "arrows"))
result = arrows.run(settings)
lesson.tell(" ".join(arrows.explain(result)[1:]))
take_away(
    Takeaway(
        lab="arrows",
        settings=settings,
        tables={
            say("arrows.table.keys"): partial(arrows.rows, result),
            say("arrows.table.scales"): partial(arrows.scale_rows, result),
        },
        programs={say("page.arrows"): partial(arrows.snippet, settings)},
    )
)
