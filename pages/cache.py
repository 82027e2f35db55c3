"""The cache lab: decoding with a KV cache, held against a fresh pass, step by step."""

from functools import partial

import streamlit as st

from qkdemo.labs import cache
from qkdemo.labs.cache.view import cache_exhibit, picked
from qkdemo.messages import say
from qkdemo.web.lab.controls import dials, turn
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.lab.takeaway import Takeaway, take_away

settings = dials(cache.Settings, cache.PRESETS, "cache")
result = cache.run(settings)
drawn = cache_exhibit(result)
exhibit(*drawn, key="cache.exhibit", on_pick=lambda pick: turn(cache.Settings, "cache", picked(settings, pick)))
st.markdown(" ".join(cache.explain(result)[1:]))
take_away(
    Takeaway(
        lab="cache",
        settings=settings,
        tables={
            say("cache.table.steps"): partial(cache.rows, result),
            say("cache.table.ways"): partial(cache.label_rows, settings),
        },
        programs={say("cache.program.title"): partial(cache.snippet, settings)},
    )
)
