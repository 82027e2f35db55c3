"""The training page: twins train live, one with plain attention and one with a remedy."""

from functools import partial

import streamlit as st

from qkdemo.labs.training import lab as twins
from qkdemo.labs.training.view import NO_ROWS, live_view, table_rows
from qkdemo.messages import has, say
from qkdemo.runs.program import program_of
from qkdemo.web.lab.controls import dials
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.lab.takeaway import Takeaway, take_away
from qkdemo.web.training import shown as runs
from qkdemo.web.training.forks import among_rates, beside, forks
from qkdemo.web.training.seeds import seeds_tab
from qkdemo.web.training.shown import PREFIX, attend

settings = dials(twins.Settings, twins.PRESETS, PREFIX)
shown = attend(settings)
if isinstance(shown, str):
    st.title(say("page.training"))
    st.info(shown)
    st.stop()
curves = shown.live.chunk.curves
words = shown.words
view = live_view(shown.settings, shown.plan, shown.source(), " ".join(words[:1]))
exhibit(NO_ROWS, view, key="training.exhibit", on_pick=runs.on_pick)
beside(shown)
forks(shown)
st.markdown("\n\n".join([*shown.lessons, " ".join([*words[1:-1], twins.definitions(shown.plan)])]))
acts = f"variant.{shown.settings.variant}.acts"
among_rates(shown)
st.markdown(" ".join([*([say(acts)] if has(acts) else []), say("training.untuned")]))
take_away(
    Takeaway(
        lab="training",
        settings=shown.settings,
        tables={say("training.table"): partial(table_rows, shown.plan, curves)},
        programs={say("training.program"): partial(program_of, shown.plan)},
    ),
    {say("training.seeds.tab"): partial(seeds_tab, shown.settings)},
)
