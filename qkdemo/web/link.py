"""The link: one URL restores the page, every dial and the seed.

* `enter(page)`: called by the shell before a page runs;
* `arrive(cls, presets)`: the settings this run starts from, and notes on what a link asked for in vain;
* `keep(settings)`: writes them into the URL;
* `sought()`, `seek(text)`: what the link searches for, on a page with a search;
* `marked()`: the run that the link marks, on a page that marks one;
* `hidden()`: dials that the link hides; `address(settings)`: the full link, to be copied.

Streamlit can bind a widget to the URL, but it turns a bad value into the default without a word, and
forgets what a preset changed. So the URL is read and written here, by the one declaration of the dials.
"""

import re
import time
from collections.abc import Mapping
from typing import Final, TypeVar, cast
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from qkdemo.settings import Dials, declarations
from qkdemo.strings import say

D = TypeVar("D", bound=Dials)
HIDE: Final = "hide"
PRESET: Final = "preset"
FIND: Final = "find"
RUN: Final = "run"
_RESERVED: Final = (HIDE, PRESET, FIND, RUN)
_LONGEST_SEARCH: Final = 100
_RUN: Final = re.compile(r"[0-9a-f]{24}")
_MOST_NOTES: Final = 5  # a link of a thousand wrong names gets one message, not a thousand
_PAGE, _ENTERED, _SEEN, _SETTINGS = "link.page", "link.entered", "link.seen", "link.settings"
_ARRIVAL_S: Final = 0.2  # until the browser's address is that of the page it was sent to
_HIDDEN, _RETURNING = "link.hidden", "link.returning"


def enter(page: str) -> None:
    """Note which page this run shows, and whether it was another one before."""
    st.session_state[_ENTERED] = st.session_state.get(_PAGE) != page
    st.session_state[_PAGE] = page
    if _key(_RETURNING) in st.session_state:
        time.sleep(_ARRIVAL_S)


def arrive(cls: type[D], presets: Mapping[str, D]) -> tuple[D, list[str], bool]:
    """Settings to start from, notes for the visitor, and whether widgets must take these values over.

    They come from the URL if it is not the one this page wrote itself (a link was opened, the browser
    went back), else from what this visitor last had on this page.
    """
    query = st.query_params.to_dict()
    stored = cast(D | None, st.session_state.get(_key(_SETTINGS)))
    entered = st.session_state.get(_ENTERED, True)
    st.session_state[_ENTERED] = False
    if stored is not None and st.session_state.pop(_key(_RETURNING), False):
        return stored, [], True
    if stored is not None and query == st.session_state.get(_key(_SEEN)) and not entered:
        return stored, [], False
    if stored is not None and entered and not query:
        st.session_state[_key(_RETURNING)] = True
        st.rerun()  # the browser is still on its way from the last page, whose address would get this page's dials
    asked = {name: text for name, text in query.items() if name not in _RESERVED}
    st.session_state[_key(_HIDDEN)] = query.get(HIDE, "")
    settings, notes = _read(cls, presets, asked, query.get(PRESET))
    more = len(notes) - _MOST_NOTES
    return settings, [*notes[:_MOST_NOTES], *([say("note.more", count=more)] if more > 0 else [])], True


def keep(settings: Dials) -> None:
    """Remember the settings and show them in the address bar."""
    query = settings.to_texts() | _kept()
    st.session_state[_key(_SETTINGS)] = settings
    st.session_state[_key(_SEEN)] = query
    if st.query_params.to_dict() != query:
        st.query_params.from_dict(query)


def hidden() -> frozenset[str]:
    """Names of the dials that the link hides, so that a class sees only the two it needs."""
    return frozenset(name.strip() for name in st.session_state.get(_key(_HIDDEN), "").split(",") if name.strip())


def sought() -> str:
    """What the link searches for."""
    return st.query_params.get(FIND, "")[:_LONGEST_SEARCH]


def seek(text: str) -> None:
    """Search for `text` from the next run on; only in callbacks."""
    if text.strip():
        st.query_params[FIND] = text.strip()[:_LONGEST_SEARCH]
    else:
        st.query_params.pop(FIND, None)


def marked() -> str:
    """The name of the run that the link marks, or nothing."""
    name = st.query_params.get(RUN, "")
    return name if _RUN.fullmatch(name) else ""


def address(settings: Dials, hide: frozenset[str] | set[str] = frozenset()) -> str:
    """The whole link: every dial, also those at their default, so that it outlives a change of defaults."""
    kept = {HIDE: ",".join(sorted(hide)), FIND: sought(), RUN: marked()}
    query = settings.to_texts(defaults=True) | {name: text for name, text in kept.items() if text}
    here = urlsplit(st.context.url or "")
    return urlunsplit((here.scheme, here.netloc, here.path, urlencode(query), ""))


def _read(cls: type[D], presets: Mapping[str, D], asked: Mapping[str, str], preset: str | None) -> tuple[D, list[str]]:
    settings, notes = cls.from_texts(asked)
    if preset is None:
        return settings, notes
    if preset not in presets:
        return settings, [*notes, say("note.preset", known=", ".join(presets))]
    named = {dial.name: getattr(settings, dial.name) for dial in declarations(cls) if dial.name in asked}
    return presets[preset].but(**named), notes


def _kept() -> dict[str, str]:
    hide = st.session_state.get(_key(_HIDDEN), "")
    kept = {FIND: st.query_params.get(FIND, ""), RUN: marked()}
    return ({HIDE: hide} if hide else {}) | {name: text for name, text in kept.items() if text}


def _key(name: str) -> str:
    return f"{name}.{st.session_state.get(_PAGE, '')}"
