"""Lecture mode: large type, a projector's palette, no sidebar, presenter's keys. `lecture=1` in the link says it.

* `on()`: whether it is on; `lit()`: what stands around a page in it; `switch()`: turns it on or off;
* `here()`: the address for a hall, without the lecture and without anybody's answers; `drawn(address)`: its QR code.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit, urlunsplit

import segno
import streamlit as st

from qkdemo.messages import say
from qkdemo.web.address.link import LECTURE, SAID, STOP, TRACK
from qkdemo.web.network import LOCAL, reachable
from qkdemo.web.pages import END, HOME
from qkdemo.web.presenter import PAGE_DOWN, PAGE_UP, keys
from qkdemo.web.track.lesson import asks, current
from qkdemo.web.track.shown import choices

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
def lit(page: str, *, dials: bool) -> Iterator[None]:
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
            st.html("".join(_cap(*each) for each in _known(page)))
    keys(lecture=on())


def _known(page: str) -> Sequence[tuple[str, str, str]]:
    """The keys that do something on a page: what the browser calls one, what stands on it, and what it does."""
    down, up = say("lecture.key.page_down"), say("lecture.key.page_up")
    lesson = current()
    if lesson is not None:
        known = [(PAGE_DOWN, down, "show" if asks() else "on"), (PAGE_UP, up, "back")]
        known += [("", say("lecture.key.choices", last=last), "choose")] if (last := choices()) else []
        known += [("0", "0", "reset"), ("m", "M", "more")]
    else:
        known = [(PAGE_DOWN, down, "track")] if page == HOME else [(PAGE_UP, up, "back")] if page == END else []
    return [*known, ("n", "N", "notes"), ("p", "P", "pointer"), ("q", "Q", "code"), ("l", "L", "leave")]


def _cap(key: str, cap: str, does: str) -> str:
    """A key of the bar, which can be pressed there too."""
    words = f"<kbd>{cap}</kbd> {say(f'lecture.does.{does}')}"
    tag = f"button type='button' data-key='{key}'" if key else "span"
    return f"<{tag} class='key'>{words}</{tag.split(maxsplit=1)[0]}>"


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
    """The address of what is on screen, for those who follow on their own device: no lecture, and nobody's answers.

    Of a track's stop it names the stop alone: dials that were turned with its answer would give that away.
    """
    parts = urlsplit(st.context.url or "")
    stays = (TRACK, STOP) if current() is not None else set(st.query_params) - {LECTURE, SAID}
    query = {name: text for name, text in st.query_params.to_dict().items() if name in stays}
    return urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(query), ""))


def drawn(address: str) -> str:
    """The QR code of an address as an image of its own, dark on white in every theme: readers expect that."""
    code: str = segno.make(address, error="l", micro=False).svg_data_uri(scale=8, border=4, light="white")
    return code
