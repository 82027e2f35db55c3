"""Which language a visitor reads: `lang=` in the link, and on every page after it.

* `speak(asked)`: from now on this thread speaks it, if there is such a language; `settle()`: what the link says;
* `speak_on()`: what the visitor reads, where the shell did not run: in callbacks and fragments.
"""

from typing import Final

import streamlit as st

from qkdemo.messages import ENGLISH, LANGUAGE, in_link, known, language

_HELD: Final = "language"


def speak(asked: str | None) -> None:
    """Speak the language that was asked for; English if there is none of that name."""
    language.set(asked if asked and known(asked) else ENGLISH)


def speak_on() -> None:
    """Speak what this visitor reads."""
    speak(st.session_state.get(_HELD))


def settle() -> None:
    """Speak what the link says, else what this visitor read before; the link then says it. English needs no word."""
    held: str = st.session_state.get(_HELD, ENGLISH)
    asked = st.query_params.get(LANGUAGE, held)
    speak(asked)
    st.session_state[_HELD] = language.get()
    if said := in_link():
        st.query_params.update(said)
    elif LANGUAGE in st.query_params:
        st.query_params.pop(LANGUAGE)
