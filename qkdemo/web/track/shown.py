"""What a page shows while a track's question is open, and how it answers.

* `choices()`: how many answers the question offers; `was_right(stop, guess, found)`: whether a prediction was right;
* `tell(words)`: what a page's numbers say, unless that would answer it;
* `veil(dial)`, `marks(dial)`: what an exhibit may not show yet, and the prediction that it draws;
* `read_off(table, view)`: where the numbers of the explanation are read.
"""

import math

import pyarrow as pa
import streamlit as st

from qkdemo.charts.panels import Panel
from qkdemo.charts.spec import Exhibit, Guess, Veil
from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.tracks.stop import Choose, Estimate, Evidence, Stop
from qkdemo.web.address.link import standing
from qkdemo.web.read_off import dial_name, that_matter, with_marks
from qkdemo.web.track.glossary import linked
from qkdemo.web.track.lesson import asks, current


def choices() -> int:
    """How many answers the open question offers; 0 if there is none, or its answer is a number."""
    lesson = current()
    ask = lesson.stop.ask if lesson is not None and asks() else None
    return len(ask.words) if isinstance(ask, Choose) else 0


def tell(words: str) -> None:
    """Write what a page's numbers say, unless that would answer an open question."""
    if not asks():
        st.markdown(linked(words))


def veil(dial: str) -> Veil | None:
    """What is not shown while the question is open: all beyond, towards where the run turns `dial`; None: nothing.

    Where the answer is a number that is drawn, also its column, and from where to where it can be predicted.
    """
    lesson = current()
    if lesson is None or lesson.said.shown or dial not in lesson.stop.turned:
        return None
    ask, x = lesson.stop.ask, lesson.stop.turned[dial]
    hidden: Veil = {"x": x, "from": getattr(lesson.stop.start, dial)}
    return hidden | {"column": ask.column, "low": ask.low, "high": ask.high} if isinstance(ask, Estimate) else hidden


def marks(dial: str) -> list[Guess]:
    """The prediction that the exhibit draws: column, place along the dial if the run turns it, height and words."""
    lesson = current()
    if lesson is None or not isinstance(lesson.stop.ask, Estimate):
        return []
    ask, guess = lesson.stop.ask, lesson.said.guess
    x = lesson.stop.turned.get(dial, getattr(lesson.stop.state, dial, None))
    if not isinstance(guess, float) or x is None:
        return []
    return [{"column": ask.column, "x": x, "y": guess, "label": say("lesson.guess_mark", guess=written(guess, 3))}]


def read_off(table: pa.Table, view: Exhibit) -> Exhibit:
    """An exhibit's view with the panels named that this stop is about, and the numbers written where they are read.

    While the question is open, those numbers alone that stand in what is not veiled.
    """
    lesson = current()
    if lesson is None:
        return view
    stop, dials = lesson.stop, standing()
    matter = that_matter(view, stop)
    panels: list[Panel] = [panel | {"matters": panel in matter} for panel in view["panels"]]
    view = view | {"panels": panels}
    hidden, at = veil(dial_name(view)), float(view["dial"]["at"])
    if asks() and (hidden is None or at != hidden["from"]):
        return view
    others = {} if dials is None else {name: x for name, x in dials.as_dict().items() if name != dial_name(view)}
    if any(x != getattr(stop.state, name) for name, x in others.items()):  # another state has other numbers
        return view
    low, high = (-math.inf, math.inf) if hidden is None else sorted((math.copysign(math.inf, at - hidden["x"]), at))
    found = lesson.evidence
    return view if found is None else with_marks(table, view, (lesson.track, stop), found, (low, high))


def was_right(stop: Stop, guess: str | float | None, found: Evidence) -> bool | None:
    """Whether the prediction was right; None if there was none."""
    if guess is None:
        return None
    if isinstance(stop.ask, Choose):
        return guess == found.answer
    assert isinstance(guess, float)
    assert isinstance(found.answer, float)
    return stop.ask.says(guess, found.answer)
