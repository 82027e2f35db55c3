"""What the page of the tracks shows: a card for each, and the points of the subject with the stops that teach them.

* `track_card(track)`: for whom it is, how far one is, its stops, each a link, its quizzes and handouts;
* `point_index()`: the points.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import get_args

import streamlit as st

from qkdemo.messages import say
from qkdemo.tracks.catalogue import TRACKS, told
from qkdemo.tracks.points import POINTS
from qkdemo.tracks.stop import Stop
from qkdemo.web.address.link import home
from qkdemo.web.handout.deck import deck
from qkdemo.web.handout.markdown import markdown
from qkdemo.web.handout.page import AnswersWord, handout
from qkdemo.web.pages import PAGES
from qkdemo.web.track.glossary import linked
from qkdemo.web.track.lesson import page_of, place_of, progress_in


def track_card(track: str) -> None:
    """One track: begin it, or go on where one was."""
    stops, progress = TRACKS[track], progress_in(track)
    done = sum(said.shown for said in progress)
    at = next((at for at, said in enumerate(progress) if not said.shown), 0)
    st.markdown(f"## {say(f'track.{track}.name')}")
    st.markdown(say(f"track.{track}.text"))
    door = say("tracks.begin") if done == 0 else say("tracks.go_on", at=at + 1, of=len(stops))
    _door(track, at, f"**{door}**", ":material/play_arrow:")
    for number, (stop, said) in enumerate(zip(stops, progress, strict=True), 1):
        icon = ":material/check_circle:" if said.shown else ":material/radio_button_unchecked:"
        _door(track, number - 1, f"{number} · {told(track, stop, 'title')}", icon)
    quiz = PAGES["quiz"]
    for when in ("pre", "post"):
        label = say(f"tracks.quiz.{when}")
        st.page_link(quiz.script, label=label, icon=quiz.icon, query_params={"track": track, "when": when})
    for answers in get_args(AnswersWord):
        _download(track, answers, partial(handout, track, progress, home(), answers), ":material/print:")
    _download(track, "slides", partial(deck, track, home()), ":material/slideshow:")
    _download(track, "markdown", partial(markdown, track, home()), ":material/edit_note:")


def _download(track: str, form: str, make: Callable[[], str], icon: str) -> None:
    """A file that is made when it is asked for."""
    ending, kind = ("md", "text/markdown") if form == "markdown" else ("html", "text/html")
    st.download_button(
        say(f"tracks.handout.{form}"),
        make,
        f"qkdemo-{track}-{form}.{ending}",
        kind,
        on_click="ignore",
        key=f"tracks:{track}:{form}",
        icon=icon,
        type="tertiary",
    )


def point_index() -> None:
    """Every point of the subject, and where it is taught."""
    for point in POINTS:
        sentence, doors = st.columns((3, 2), vertical_alignment="center")
        sentence.markdown(linked(f"{point}. {say(f'point.{point}')}"))
        with doors:
            for track, at, stop in taught_at()[point]:
                _door(track, at, f"{say(f'track.{track}.name')}: {told(track, stop, 'title')}", page_of(stop).icon)


@cache
def taught_at() -> dict[int, list[tuple[str, int, Stop]]]:
    """Point → track, place and stop of everything that teaches it."""
    every = [(track, at, stop) for track, stops in TRACKS.items() for at, stop in enumerate(stops)]
    return {point: [entry for entry in every if point in entry[2].points] for point in POINTS}


def _door(track: str, at: int, label: str, icon: str) -> None:
    st.page_link(page_of(TRACKS[track][at]).script, label=label, icon=icon, query_params=place_of(track, at))
