"""q and k that somebody brought, in a lab that draws them otherwise.

* `bring(own)`: keep them for this session, in memory alone; `OWN`: what a link says for them, which never holds them;
* `taken(lab, settings)`: the settings on them, where the link asks for them, and what the page says of it;
* `idle(lab)`: the dials that do nothing then.
"""

import io
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
import streamlit as st

from qkdemo.attention.inputs import Inputs
from qkdemo.labs.lab import Lab, S
from qkdemo.messages import say
from qkdemo.web.address.given import as_text
from qkdemo.web.address.link import OWN, ask, asked
from qkdemo.web.pages import PAGES
from qkdemo.web.track.lesson import current

_HELD: Final = "own.held"
FILE: Final = "qk.npz"


@dataclass(frozen=True, eq=False)
class Own:
    """q and k, and sentences on what they are."""

    inputs: Inputs
    told: str


def bring(own: Own) -> None:
    """Keep them until the session ends, others are brought, or somebody lets them go."""
    st.session_state[_HELD] = own


def idle(lab: Lab) -> Collection[str]:
    """Dials of `lab` that do nothing because q and k are somebody's own."""
    return lab.drawn if _wanted(lab) and _held() is not None else ()


def taken(lab: Lab[S], settings: S) -> S:
    """The settings on them if the link asks for them and this session has them; else as they are. The page says it."""
    if not _wanted(lab):
        return settings
    own = _held()
    assert lab.on is not None
    if own is None:
        st.warning(say("own.absent"), icon=":material/link_off:")
        page = PAGES["diagnose"]
        with st.container(horizontal=True):
            st.page_link(page.script, label=say("own.bring"), icon=page.icon)
            st.button(say("own.draw"), key="own:draw", on_click=ask, args=(OWN, ""))
        return settings
    with st.container(border=True, key="own"):
        st.markdown(f"{as_text(own.told)} {say('own.link')}")
        with st.container(horizontal=True):
            st.download_button(
                say("own.file"),
                lambda: _packed(own.inputs),
                FILE,
                "application/octet-stream",
                on_click="ignore",
                icon=":material/download:",
            )
            st.button(say("own.forget"), key="own:forget", on_click=_forget)
    return lab.on(settings, own.inputs)


def _wanted(lab: Lab) -> bool:
    return lab.on is not None and bool(asked(OWN)) and current() is None


def _held() -> Own | None:
    own: Own | None = st.session_state.get(_HELD)
    return own


def _forget() -> None:
    st.session_state.pop(_HELD, None)
    ask(OWN, "")


def _packed(inputs: Inputs) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, allow_pickle=False, q=inputs.q.numpy(), k=inputs.k.numpy())
    return out.getvalue()
