"""The models page: a hundred public implementations, each choice in words, with its source."""

from functools import partial

import streamlit as st

from qkdemo.labs import models
from qkdemo.messages import say
from qkdemo.web.lab.controls import dials
from qkdemo.web.lab.models_table import search_box, show_families, show_pair, show_rows
from qkdemo.web.lab.takeaway import Takeaway, take_away

settings = dials(models.Settings, models.PRESETS, "models")
heading = st.empty()
result = models.searched(models.run(settings), search_box())
heading.title(models.finding(result))
show_rows(result)
st.markdown(" ".join(models.explain(result)[1:]))
st.header(say("models.compare"))
show_pair(result)
st.header(say("models.often"))
st.markdown("\n".join(f"- {sentence}" for sentence in models.corrections()))
take_away(
    Takeaway(
        lab="models",
        settings=settings,
        tables={
            say("models.table"): partial(models.rows, result),
            say("models.by_family"): partial(models.family_rows, result),
        },
        programs={say("models.program"): partial(models.snippet, settings)},
    ),
    {say("models.families"): partial(show_families, result)},
)
