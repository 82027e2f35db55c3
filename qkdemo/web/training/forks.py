"""What stands around the exhibit of twins: whether the dials describe it, and the forks.

* `came_along(shown)`: where the run came with the app, what training it here takes;
* `beside(shown)`: a word where the dials describe another run; `forks(shown)`: going on otherwise from a step;
* `among_rates(shown)`: the door to the page of learning rates.
"""

from typing import Final

import streamlit as st

from qkdemo.dials import preferred_numbers
from qkdemo.labs.learning_rates import lab as rates
from qkdemo.labs.training.lab import MOST_FORKS, run_of
from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.runs.plan import MOST_STEPS
from qkdemo.web.address.link import RUN
from qkdemo.web.pages import PAGES
from qkdemo.web.training import shown as runs
from qkdemo.web.training.shown import Shown

_RATES: Final = preferred_numbers(1e-5, 3, per_decade=10)


def came_along(shown: Shown) -> None:
    """Says what it takes to train it here; the exhibit has the button."""
    if shown.live.shipped:
        st.markdown(say("training.shipped", price=shown.cost))


def beside(shown: Shown) -> None:
    """Says so if the dials describe another run than the one on screen, before anything is reset."""
    going = not shown.resting
    if not shown.other and (shown.own or not going):
        return
    with st.container(key="notice" if shown.other else "watching"):  # at the foot of the window: the exhibit stays put
        if not shown.other:
            st.info(say("training.watching"), icon=":material/visibility:")
            return
        key = "other_going" if going else "other_from" if shown.begins else "other"
        st.info(say(f"training.{key}", step=shown.begins), icon=":material/tune:")
        with st.container(horizontal=True):
            if shown.new_rate is not None:
                st.button(
                    say("training.fork.new_rate_here", rate=written(shown.new_rate)),
                    help=say("training.fork.rate_help"),
                    on_click=runs.fork,
                    args=(shown, "rate", shown.new_rate, 0),
                    icon=":material/fork_right:",
                    key="training.fork.new_rate_here",
                )
            st.button(say("training.start"), on_click=runs.start, icon=":material/play_arrow:")
            st.button(say("training.put_back"), on_click=runs.put_back, args=(shown,), icon=":material/undo:")


def forks(shown: Shown) -> None:
    """What forks need besides the buttons of the exhibit: a rate of one's own, a run once more, and how they chain."""
    chain = say("training.fork.chain", most=MOST_FORKS, steps=MOST_STEPS)
    st.markdown(f"{say('training.fork.how')} {chain}" if shown.settings.fork != "none" else say("training.fork.how"))
    with st.container(horizontal=True):
        if shown.live.state == "finished" and not shown.live.shipped:
            st.button(say("training.again"), on_click=runs.again, icon=":material/replay:", key="training.again")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        rate = st.select_slider(
            say("training.fork.new_rate"),
            sorted({*_RATES, shown.settings.fork_rate}),
            value=shown.settings.fork_rate,
            format_func=written,
            key="training:new_rate",
            width=360,
        )
        st.button(
            say("training.fork.rate"),
            help=say("training.fork.rate_help"),
            on_click=runs.fork,
            args=(shown, "rate", rate, 0),
            key="training.fork.rate",
        )


def among_rates(shown: Shown) -> None:
    """A door to the curves over learning rates, in which a run that is finished is marked."""
    if shown.live.state == "finished" and shown.settings.fork == "none":
        st.page_link(
            PAGES["sensitivity"].script,
            label=say("training.among_rates"),
            icon=PAGES["sensitivity"].icon,
            query_params=rates.around(run_of(shown.settings)).to_texts() | {RUN: shown.plan.name},
        )
