"""The page of any lab: its dials, its exhibit, what its numbers say, and what a visitor takes away.

* `lab_page(lab)`: draws it; `body` and `tabs` are for labs whose main part is no exhibit that is dragged;
* `show(lab, settings, section)`: a part of it.

While a track's question is open, no sentence and no table is on the page, whatever the lab: they would answer it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import streamlit as st

from qkdemo.charts.spec import Pick
from qkdemo.dials import Dials
from qkdemo.labs.lab import Lab, R, S, Section
from qkdemo.messages import has, say
from qkdemo.web.lab import own as own_tensors
from qkdemo.web.lab.controls import dials, turn
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.lab.kept import within
from qkdemo.web.lab.made import made, make
from qkdemo.web.lab.on_demand import demanded, rows_of
from qkdemo.web.lab.takeaway import Takeaway, take_away
from qkdemo.web.pages import PAGES
from qkdemo.web.track.lesson import asks, current
from qkdemo.web.track.shown import tell

Body = Callable[[S], R]
NO_TABS: Mapping[str, Callable[[R], None]] = {}


def lab_page(
    lab: Lab[S, R],
    body: Body[S, R] | None = None,
    tabs: Mapping[str, Callable[[R], None]] = NO_TABS,
    head: Callable[[S], None] = lambda settings: None,
    explored: Callable[[Any], None] | None = None,
    *,
    opened_first: bool = True,
) -> None:
    """Draw the page. `body` draws what stands between dials and takeaway, and returns the result it drew; `head` what
    stands before it; `explored` what was found on demand, below its exhibit. The first of `tabs` is open at first,
    unless `opened_first` is false."""
    settings = dials(lab.settings, lab.presets, lab.name, own_tensors.idle(lab))
    _ask(lab.name)
    drawn, settings = settings, own_tensors.taken(lab, settings)
    head(settings)
    shared = body is None and settings is drawn  # what is made of somebody's own tensors is kept with them alone
    result = _body(lab, settings, shared=shared) if body is None else body(settings)
    own: dict[str, Callable[[], None]] = {}
    for title, opens in lab.tabs(result).items():
        own[say(title)] = partial(
            _opened, lab, result.settings, partial(_tab, lab, settings, title) if shared else opens
        )
    own |= {say(title): partial(draw, result) for title, draw in tabs.items()}
    demand = lab.on_demand
    if demand is not None:
        shows = partial(show, lab, result.settings)
        own[say(f"{demand.name}.tab")] = lambda: demanded(demand, settings, lab.noise, shows, explored)
    offer = Takeaway(
        lab=lab.name,
        settings=result.settings,
        tables=lambda: {**lab.tables(result), **({} if demand is None else rows_of(demand, settings))},
        programs=lambda: lab.programs(result),
        noise=lab.noise,
        figures=None if lab.exhibit is None else lambda: lab.figures(result),
    )
    take_away(offer, own, opened_first=opened_first)
    if lab.plane is not None and not asks() and settings is drawn:
        page, query = PAGES["map"], {"lab": lab.name} | settings.to_texts()
        st.page_link(page.script, label=say("map.door"), icon=page.icon, query_params=query)


def show(lab: Lab[S, R], settings: Dials, section: Section) -> None:
    """A part of a page: its title, its exhibit, its sentences; `settings` are those that it answers."""
    if section.exhibit is not None:

        def picked(pick: Pick) -> None:
            turn(lab.settings, lab.name, section.picked(pick))

        exhibit(*section.exhibit, key=f"{lab.name}.{section.name}", on_pick=picked, made=(lab.name, settings))
    if section.title:
        with st.container(border=True):
            tell("\n\n".join([f"## {say(section.title)}", *section.sentences]))
    elif section.sentences:
        lines = section.sentences
        tell("\n".join(f"- {sentence}" for sentence in lines) if section.listed else " ".join(lines))


def _ask(name: str) -> None:
    """What the page is for, and the first thing to do; at a track's stop the stop asks."""
    if current() is None and has(f"question.{name}"):
        words = f"**{say(f'question.{name}')}** {say(f'instruction.{name}')}"
        with st.container(key="question"):
            st.markdown(words)


def _body(lab: Lab[S, R], settings: S, *, shared: bool) -> R:
    result, sections = (made if shared else make)(lab, settings)
    for section in sections:
        show(lab, result.settings, section)
    return result


@within(8 << 20)
def _tab(lab: Lab[S, R], settings: S, title: str) -> Section:
    """What stands under a tab, for all who open it in this state."""
    return lab.tabs(made(lab, settings)[0])[title]()


def _opened(lab: Lab[S, R], settings: Dials, make: Callable[[], Section]) -> None:
    section = make()
    if section.exhibit is None:
        st.info(" ".join(section.sentences))
    else:
        show(lab, settings, section)
