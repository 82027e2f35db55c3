"""Lecture mode: large type, a projector's palette, no sidebar, presenter's keys. `lecture=1` in the link says it.

* `on()`: whether it is on; `lit()`: what stands around a page in it; `switch()`: turns it on or off.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit, urlunsplit

import segno
import streamlit as st

from qkdemo.messages import say
from qkdemo.web.link import LECTURE
from qkdemo.web.network import LOCAL, reachable
from qkdemo.web.presenter import keys
from qkdemo.web.track.lesson import choices, current

_ON: Final = "1"
_SHEET: Final = Path(__file__).parent / "static" / "lecture.css"


def on() -> bool:
    """Whether the link asks for it."""
    return st.query_params.get(LECTURE) == _ON


def switch() -> None:
    """Turn it on, or off; in callbacks."""
    if on():
        st.query_params.pop(LECTURE, None)
    else:
        st.query_params[LECTURE] = _ON


@contextmanager
def lit(*, dials: bool) -> Iterator[None]:
    """Around a page: in lecture mode its style and the presenter's bar, else the switch; below the dials, if any."""
    if on():
        st.html(_SHEET)
    yield
    with st.sidebar if dials and not on() else st.container(horizontal=True, key="lecture:bar" if on() else None):
        label, icon = ("lecture.off", ":material/close:") if on() else ("lecture.on", ":material/co_present:")
        st.button(say(label), on_click=switch, key="lecture:switch", icon=icon, help=say("lecture.help"))
        if on():
            if st.button(say("lecture.qr"), key="lecture:code", icon=":material/qr_code_2:"):
                st.dialog(say("lecture.qr_title"), width="large")(_code)()
            st.html(f"<span class='keys'>{_listed()}</span>")
    keys(lecture=on())


def _listed() -> str:
    """Which keys do something here."""
    if answers := choices():
        return say("lecture.choice_keys", last=answers)
    return say("lecture.lesson_keys" if current() is not None else "lecture.keys")


def _code() -> None:
    opened = here()
    address = reachable(opened)
    st.html(f'<img class="qr" alt="{say("lecture.qr_alt")}" src="{drawn(address)}">')
    st.code(address, language=None, wrap_lines=True)
    if urlsplit(address).hostname in LOCAL:
        st.warning(say("lecture.local"), icon=":material/wifi_off:")
    elif address != opened:
        st.info(say("lecture.network"), icon=":material/wifi:")


def here() -> str:
    """The address of what is on screen, for those who follow on their own device: without lecture mode."""
    parts = urlsplit(st.context.url or "")
    query = {name: text for name, text in st.query_params.to_dict().items() if name != LECTURE}
    return urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(query), ""))


def drawn(address: str) -> str:
    """The QR code of an address as an image of its own, dark on white in every theme: readers expect that."""
    code: str = segno.make(address, error="l", micro=False).svg_data_uri(scale=8, border=4, light="white")
    return code
