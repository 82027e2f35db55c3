"""The link: one URL restores the page, every dial and the seed.

* `enter(page)`: called by the shell before a page runs;
* `arrive(cls, presets)`: the settings this run starts from, and notes on what a link asked for in vain;
* `read(cls, presets, query, base)`: the same of any query, without a session;
* `keep(settings)`: writes them into the URL;
* `asked(name)`, `ask(name, text)`: what else the link holds, one of KEPT: a search, a pair of models, a marked run;
* `carried()`: all of it that is no dial;
* `marked()`: the run that the link marks, on a page that marks one;
* `hidden()`: dials that the link hides; `address(settings)`: the full link, to be copied;
* `stand_on(base)`: the state that dials which the link does not name have, instead of their defaults.

Streamlit can bind a widget to the URL, but it turns a bad value into the default without a word, and
forgets what a preset changed. So the URL is read and written here, by the one declaration of the dials.
"""

import re
import time
from collections.abc import Mapping
from typing import Final, TypeVar, cast
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from qkdemo.dials import Dials, declarations
from qkdemo.messages import LANGUAGE, say
from qkdemo.web.address import echo
from qkdemo.web.address.carried import carry, set_here

D = TypeVar("D", bound=Dials)
HIDE: Final = "hide"
PRESET: Final = "preset"
RUN: Final = "run"
OWN: Final = "own"  # q and k are a visitor's own, which no link holds: see qkdemo.web.lab.own
KEPT: Final = (  # on pages that ask for them
    *("find", "left", "right", RUN, OWN),
    *("lab", "x", "y", "measure", "cells", "minus", "phases", "share", "turn", "tilt"),
)
TRACK, STOP, SAID, LECTURE = "track", "stop", "said", "lecture"  # see qkdemo.web.track.lesson and qkdemo.web.lecture
CLASS: Final = "class"  # see qkdemo.web.quiz.page
_CARRIED: Final = (*KEPT, TRACK, STOP, SAID, LECTURE, LANGUAGE, CLASS)  # beside the dials, where no dial has the name
_STATELESS: Final = (SAID, LECTURE, LANGUAGE, CLASS)  # no dial depends on them
_RESERVED: Final = (HIDE, PRESET, *_CARRIED)
_LONGEST: Final = 100
_RUN: Final = re.compile(r"[0-9a-f]{24}")
_MOST_NOTES: Final = 5  # a link of a thousand wrong names gets one message, not a thousand
_PAGE, _ENTERED, _SEEN, _SETTINGS = "link.page", "link.entered", "link.seen", "link.settings"
_ARRIVAL_S: Final = 0.2  # until the browser's address is that of the page it was sent to
_HIDDEN, _RETURNING, _KEPT, _BASE = "link.hidden", "link.returning", "link.kept", "link.base"


def enter(page: str) -> None:
    """Note which page this run shows, and whether it was another one before."""
    st.session_state[_ENTERED] = st.session_state.get(_PAGE) != page
    st.session_state[_PAGE] = page
    if _key(_RETURNING) in st.session_state:
        time.sleep(_ARRIVAL_S)


def entered() -> bool:
    """Whether this run came from another page."""
    return bool(st.session_state.get(_ENTERED, True))


def arrive(cls: type[D], presets: Mapping[str, D]) -> tuple[D, list[str], bool]:
    """Settings to start from, notes for the visitor, and whether widgets must take these values over.

    They come from the URL if it is not the one this page wrote itself (a link was opened, the browser
    went back), else from what this visitor last had on this page, and set on others since.
    """
    query = _state_part(st.query_params.to_dict())
    held = st.session_state.get(_key(_SETTINGS))
    stored = held if isinstance(held, cls) else None  # a page may turn to another lab
    came = entered()
    st.session_state[_ENTERED] = False
    if stored is not None and st.session_state.pop(_key(_RETURNING), False):
        for name, text in st.session_state.get(_key(_KEPT), {}).items():
            st.query_params[name] = text
        return stored, [], True
    if stored is not None and query == st.session_state.get(_key(_SEEN)) and not came:
        return stored, [], False
    had = stored or _base(cls)
    here = had if echo.by_history() or st.session_state.get(_BASE) is not None else carry(had)
    if came and not query and (stored is not None or here != had):
        st.session_state[_key(_RETURNING)] = True
        st.session_state[_key(_SETTINGS)] = here
        st.rerun()  # the browser is still on its way from the last page, whose address would get this page's dials
    st.session_state[_key(_HIDDEN)] = query.get(HIDE, "")
    settings, notes = read(cls, presets, query, _base(cls))
    more = len(notes) - _MOST_NOTES
    return settings, [*notes[:_MOST_NOTES], *([say("note.more", count=more)] if more > 0 else [])], True


def read(cls: type[D], presets: Mapping[str, D], query: Mapping[str, str], base: D) -> tuple[D, list[str]]:
    """The settings that a query says, where dials that it does not name stand as in `base`, and notes on the rest."""
    asked = {name: text for name, text in query.items() if name not in _RESERVED or name in _names(cls)}
    settings, notes = cls.from_texts(asked)
    preset = query.get(PRESET)
    if preset is not None and preset not in presets:
        notes.append(say("note.preset", known=", ".join(presets)))
    named = {dial.name: getattr(settings, dial.name) for dial in declarations(cls) if dial.name in asked}
    return presets.get(preset or "", base).but(**named), notes


def keep(settings: Dials) -> None:
    """Remember the settings and show them in the address bar."""
    query = settings.to_texts(base=_base(type(settings))) | _kept(settings)
    if st.session_state.get(_BASE) is None:  # what a track's stop stands at is nobody's choice
        before = st.session_state.get(_key(_SETTINGS))
        set_here(before if isinstance(before, type(settings)) else _base(type(settings)), settings)
    st.session_state[_key(_SETTINGS)] = settings
    st.session_state[_key(_KEPT)] = {name: query[name] for name in KEPT if name in query}
    st.session_state[_key(_SEEN)] = _state_part(query)
    if st.query_params.to_dict() != query:
        st.query_params.from_dict(query)
        echo.note()


def stand_on(base: Dials | None) -> None:
    """What dials have that a link does not name: a stop's state; None: their defaults. Called before a page runs."""
    if st.session_state.get(_BASE) != base:
        st.session_state.pop(_key(_SEEN), None)  # the same link now says another state
    st.session_state[_BASE] = base


def standing() -> Dials | None:
    """What the dials of this page stood at when it was last drawn."""
    return cast(Dials | None, st.session_state.get(_key(_SETTINGS)))


def hidden() -> frozenset[str]:
    """Names of the dials that the link hides, so that a class sees only the two it needs."""
    return frozenset(name.strip() for name in st.session_state.get(_key(_HIDDEN), "").split(",") if name.strip())


def asked(name: str) -> str:
    """What the link holds under one of KEPT; empty without it."""
    return st.query_params.get(name, "")[:_LONGEST]


def ask(name: str, text: str) -> None:
    """Let the link hold `text`, or nothing if it is empty, from the next run on; only in callbacks."""
    if text.strip():
        st.query_params[name] = text.strip()[:_LONGEST]
    else:
        st.query_params.pop(name, None)


def carried() -> dict[str, str]:
    """What the link holds that is no dial of any lab."""
    query = st.query_params.to_dict()
    return {name: query[name] for name in _CARRIED if name in query}


def marked() -> str:
    """The name of the run that the link marks, or nothing."""
    name = asked(RUN)
    return name if _RUN.fullmatch(name) else ""


def address(
    settings: Dials, hide: frozenset[str] | set[str] = frozenset(), more: Mapping[str, str] | None = None
) -> str:
    """The whole link: every dial, also those at their default, so that it outlives a change of defaults; and `more`."""
    query = settings.to_texts(defaults=True) | ({HIDE: ",".join(sorted(hide))} if hide else {}) | _carried(settings)
    query |= more or {}
    here = urlsplit(st.context.url or "")
    return urlunsplit((here.scheme, here.netloc, here.path, urlencode(query), ""))


def home() -> str:
    """Where the app answers, without a page: a proxy may have put it below another path than the server knows."""
    here = urlsplit(st.context.url or "")
    path = here.path.rstrip("/").removesuffix(f"/{st.session_state.get(_PAGE, '')}")
    return urlunsplit((here.scheme, here.netloc, path, "", ""))


def _kept(settings: Dials) -> dict[str, str]:
    hide = st.session_state.get(_key(_HIDDEN), "")
    return ({HIDE: hide} if hide else {}) | _carried(settings)


def _carried(settings: Dials) -> dict[str, str]:
    taken, query = _names(type(settings)), st.query_params.to_dict()
    held = {name: query[name] for name in _CARRIED if name in query and name not in taken}
    if RUN in held and not marked():
        del held[RUN]
    return held


def _names(cls: type[Dials]) -> frozenset[str]:
    return frozenset(dial.name for dial in declarations(cls))


def _state_part(query: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in query.items() if name not in _STATELESS}


def _base(cls: type[D]) -> D:
    base = st.session_state.get(_BASE)
    return base if isinstance(base, cls) else _defaults(cls)


def _defaults(cls: type[D]) -> D:
    """All at their default: made, and so checked, once."""
    return cast(D, _DEFAULTS[cls] if cls in _DEFAULTS else _DEFAULTS.setdefault(cls, cls()))


_DEFAULTS: Final[dict[type[Dials], Dials]] = {}


def _key(name: str) -> str:
    return f"{name}.{st.session_state.get(_PAGE, '')}"
