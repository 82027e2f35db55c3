"""What the page of the claims shows: a card for each statement.

* `claim_card(at, stop, said)`: the statement, what one thinks of it, and then verdict and evidence;
* `tally(progress)`: how many were tested, and how many predicted.
"""

from typing import Final

import streamlit as st

from qkdemo.messages import say
from qkdemo.tracks.catalogue import CLAIMS, TRACKS, cited, is_trained, text, told
from qkdemo.tracks.progress import Progress, Said
from qkdemo.tracks.stop import Choose, Stop
from qkdemo.web.quiz.arrival import arrive_at
from qkdemo.web.track.evidence import evidence_now
from qkdemo.web.track.glossary import read_as
from qkdemo.web.track.lesson import page_of, place_of, say_at
from qkdemo.web.track.shown import was_right

_SHOWN: Final = "claims.shown"  # the claim whose verdict has just been asked for


def claim_card(at: int, stop: Stop, said: Said) -> None:
    """One claim. A trained one that is not recorded is tested where its run can be watched: on the page of its lab."""
    assert isinstance(stop.ask, Choose)
    found = evidence_now(stop) if said.shown or is_trained(stop) else None
    st.markdown(f"## {at + 1} · {told(CLAIMS, stop, 'title')}")
    key = f"claims:{stop.name}"
    if not said.shown:
        _prediction(at, stop, said, stop.ask, key)
    with st.container(horizontal=True, vertical_alignment="center"):
        if said.shown and found is not None:
            right = was_right(stop, said.guess, found)
            judged = told(CLAIMS, stop, f"choice.{found.answer}")
            words = say("claims.said", guess=told(CLAIMS, stop, f"choice.{said.guess}")) if right is not None else ""
            with st.container(key=f"{key}:verdict"):
                st.markdown(f"**{say('claims.verdict', verdict=judged)}** {words}")
            if st.session_state.pop(_SHOWN, "") == stop.name:
                arrive_at(f"{key}:verdict", stop.name)
        elif not is_trained(stop) or (found is not None and not said.shown):
            st.button(
                say("lesson.run"),
                on_click=_show,
                args=(at, stop.name, said),
                key=f"{key}:show",
                icon=":material/play_arrow:",
            )
        else:
            st.markdown(say("claims.trained"))
        page = page_of(stop)
        label = say("claims.door", page=say(f"page.{page.name}"))
        st.page_link(page.script, label=label, icon=page.icon, query_params=place_of(CLAIMS, at))
    if said.shown and found is not None:
        st.markdown(read_as(text(CLAIMS, stop, "explain", found.numbers)))
        if found.sources:
            st.markdown(cited(found))


def _show(at: int, name: str, said: Said) -> None:
    say_at(CLAIMS, at, Said(said.guess, shown=True))
    st.session_state[_SHOWN] = name


def _prediction(at: int, stop: Stop, said: Said, ask: Choose, key: str) -> None:
    st.session_state[key] = said.guess
    st.radio(
        told(CLAIMS, stop, "question"),
        ask.words,
        index=None,
        format_func=lambda word: told(CLAIMS, stop, f"choice.{word}"),
        key=key,
        horizontal=True,
        on_change=lambda: say_at(CLAIMS, at, Said(st.session_state[key])),
    )


def tally(progress: Progress) -> str:
    """How many claims were tested, and how many of them were predicted."""
    shown = [(stop, said) for stop, said in zip(TRACKS[CLAIMS], progress, strict=True) if said.shown]
    found = [(stop, said, evidence_now(stop)) for stop, said in shown]
    right = sum(bool(was_right(stop, said.guess, told)) for stop, said, told in found if told is not None)
    return say("claims.tally", shown=len(shown), of=len(progress), right=right)
