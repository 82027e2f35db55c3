"""What stands on the page of live training, between its dials and what a visitor takes away.

* `training_body(settings)`: the run on screen, what can be done with it, and what it says; `seeds(result)`: a tab.
"""

import streamlit as st

from qkdemo.labs.training import Result, Settings
from qkdemo.labs.training.view import NO_ROWS, live_view
from qkdemo.labs.training.words import definitions
from qkdemo.messages import has, say
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.track.lesson import current
from qkdemo.web.track.shown import tell
from qkdemo.web.training import shown as runs
from qkdemo.web.training.forks import among_rates, beside, came_along, forks
from qkdemo.web.training.seeds import seeds_tab
from qkdemo.web.training.shown import attend


def training_body(settings: Settings) -> Result:
    """Draw it; the result is that of the run on screen, which may be another one than the dials describe."""
    shown = attend(settings)
    if isinstance(shown, str):
        st.title(say("page.training"))
        st.info(shown)
        st.stop()
    words = shown.words
    view = live_view(shown.settings, shown.plan, shown.source(), " ".join(words[:1]))
    recorded = shown.recorded if current() is not None else None
    made = ("training", shown.settings)
    exhibit(NO_ROWS, view, key="training.exhibit", on_pick=runs.on_pick, made=made, recorded=recorded)
    came_along(shown)
    beside(shown)
    forks(shown)
    tell("\n\n".join([*shown.lessons, " ".join([*words[1:-1], definitions(shown.plan)])]))
    among_rates(shown)
    acts = f"variant.{shown.settings.variant}.acts"
    tell(" ".join([*([say(acts)] if has(acts) else []), say("training.untuned")]))
    return Result(shown.settings, shown.plan, shown.live.chunk.curves)


def seeds(result: Result) -> None:
    """The same twins from many seeds."""
    seeds_tab(result.settings)
