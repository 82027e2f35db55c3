"""Where the placement page begins: whose weights, which code reads them, what each promises, and which test would tell.

* `contracts(settings)`: draws it; what is chosen turns the dials of both pipelines.
"""

from collections.abc import Mapping
from typing import Any, Final

import streamlit as st

from qkdemo.attention.pipeline import CHOICES, Pipeline
from qkdemo.facts.models import MODELS, Model
from qkdemo.labs.placement import LAB, Settings, pipeline_of
from qkdemo.labs.placement.comparisons import differing
from qkdemo.labs.placement.mistakes import MISTAKES, pair_of, possible
from qkdemo.labs.placement.words import caught, contract
from qkdemo.messages import say
from qkdemo.web.lab.controls import turn
from qkdemo.web.track.lesson import current

_SIDES: Final = ("left", "right")
_SAME: Final = "same"
_READ: Final[Mapping[str, Model]] = {model.id: model for model in MODELS if model.pipeline}
_ALIKE: Final[dict[tuple[str, ...], list[str]]] = {}  # rows by the words of their pipeline
for _row in _READ.values():
    _ALIKE.setdefault(tuple(_row.choices("").values()), []).append(_row.id)


def contracts(settings: Settings) -> None:
    """Draw both choices and what follows from them; at a track's stop the stop asks instead."""
    if current() is not None or settings.compare != "two":
        return
    pair = [pipeline_of(settings, side) for side in _SIDES]
    with st.container(border=True):
        for side, made, other, column in zip(_SIDES, pair, pair[::-1], st.columns(2), strict=True):
            with column:
                _choose(settings, side)
                st.markdown(contract(made, other))
        names = ", ".join(say(f"choice_name.{name}") for name in differing(*pair))
        told = [say("placement.choose.differs", names=names)] if names else []
        st.markdown(" ".join([*told, caught(settings)]))


def _choose(settings: Settings, side: str) -> None:
    key = f"{LAB.name}:{side}"
    of_port = [_SAME, *possible(pipeline_of(settings, "left"))]
    options = [*(of_port if side == "right" else []), *_READ]
    if st.session_state.get(key) not in (fitting := _fitting(settings, side)):
        st.session_state[key] = fitting[0] if fitting else None
    st.selectbox(
        say(f"placement.choose.{side}"),
        options,
        index=None,
        format_func=_name,
        placeholder=say("placement.choose.custom"),
        key=key,
        on_change=_take,
        args=(settings, side),
    )


def _fitting(settings: Settings, side: str) -> list[str]:
    """What may be chosen and makes this side what it is, the most telling first."""
    pair = [pipeline_of(settings, each) for each in _SIDES]
    told = []
    if side == "right":
        told = [_SAME] if pair[0] == pair[1] else [name for name in MISTAKES if _is(name, *pair)]
    return [*told, *_ALIKE.get(tuple(getattr(settings, f"{side}_{name}") for name in CHOICES), [])]


def _is(mistake: str, left: Pipeline, right: Pipeline) -> bool:
    """Whether the right side is the left one with a known mistake."""
    return mistake in possible(left) and pair_of(mistake, left) == (left, right)


def _name(option: str) -> str:
    if option == _SAME:
        return say("placement.choose.same")
    if option in MISTAKES:
        return say("placement.choose.mistake", name=say(f"mistake_name.{option}"))
    return _READ[option].model


def _take(settings: Settings, side: str) -> None:
    """Turn the dials to what was chosen; the code stays the same code, or keeps its mistake if it can."""
    chosen = st.session_state[f"{LAB.name}:{side}"]
    code = st.session_state.get(f"{LAB.name}:right")
    if chosen is None:
        return
    words: dict[str, Any] = dict(_READ[chosen].choices(side)) if chosen in _READ else {}
    if side == "left" and code in _READ:
        turn(Settings, LAB.name, words)
        return
    if chosen not in _READ or side == "left":
        left = Pipeline(**{name: words.get(f"left_{name}", getattr(settings, f"left_{name}")) for name in CHOICES})
        sides = pair_of(code, left) if code in possible(left) else (left, left)
        pairs = zip(_SIDES, sides, strict=True)
        words = {f"{each}_{name}": getattr(made, name) for each, made in pairs for name in CHOICES}
    turn(Settings, LAB.name, words)
