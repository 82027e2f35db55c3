"""A class and its quizzes: two links, what is kept under them, and who may read it.

* `arrive()`: called before the dials: a lecturer's link is opened, and its secret leaves the address bar;
* `joined()`: the code of the class that the link names, if there is one, and what a visitor has to know about it;
* `keep(code, result)`: keeps a finished quiz, in place of one that this browser sent before; `what_was_kept(result)`;
* `for_a_class(settings, code)`: the results of the class for whoever may read them, or how to make one.
"""

from functools import lru_cache
from typing import Final

import streamlit as st

from qkdemo.dials import declarations
from qkdemo.messages import say
from qkdemo.runs.kept.database import StoreError, default_url
from qkdemo.tracks.classes import MOST_ROWS, TERM_DAYS, UNUSED_DAYS, Classes, is_code
from qkdemo.tracks.quiz import Marked, Settings
from qkdemo.tracks.results import row_of
from qkdemo.web.address.given import code as as_code
from qkdemo.web.address.link import CLASS, address
from qkdemo.web.connection import ANSWERS
from qkdemo.web.quiz.class_results import read
from qkdemo.web.serving.limits import Limit
from qkdemo.web.serving.networks import here
from qkdemo.web.serving.visitors import mark
from qkdemo.web.training.shown import visitor

RESULTS: Final = "results"  # in a lecturer's link
_LONGEST: Final = 40
_MADE: Final = f"{ANSWERS}class"
_PART: Final = "quiz:class"
_KEPT, _TOLD = "quiz.kept", "quiz.told"
# A hall shares one address, and sends within a minute.
_SENT: Final = Limit(most=400, every_s=2)
_NEW: Final = Limit(most=10, every_s=360)
_TRIED: Final = Limit(most=20, every_s=10)


def arrive() -> None:
    """Open a lecturer's link: from then on this browser may read the class, and the link names its code alone."""
    secret = st.query_params.get(RESULTS, "")
    if not secret:
        return
    st.query_params.pop(RESULTS)
    try:
        code = _opened(secret)
    except StoreError as error:
        st.session_state[_TOLD] = str(error)
        return
    if code:
        st.query_params[CLASS] = code
    else:
        st.session_state[_TOLD] = say("quiz.class.no_secret")


def _opened(secret: str) -> str:
    if not _TRIED.allows(here()):
        raise StoreError(say("quiz.class.too_often"))
    code = _classes(default_url()).of_secret(secret[:_LONGEST])
    if code:
        _classes(default_url()).let_read(code, _reader(code))
    return code


def joined() -> str:
    """The code of the class that the link names; empty if it names none that there is."""
    if told := st.session_state.pop(_TOLD, ""):
        st.warning(told, icon=":material/link_off:")
    code = st.query_params.get(CLASS, "")[:_LONGEST]
    if not code:
        return ""
    try:
        known = is_code(code) and _classes(default_url()).knows(code)
    except StoreError as error:
        st.warning(str(error), icon=":material/cloud_off:")
        return ""
    if not known:
        key = "quiz.class.gone" if is_code(code) else "quiz.class.earlier"
        st.warning(say(key, code=as_code(code)), icon=":material/link_off:")
        return ""
    st.info(say("quiz.class.joined", code=code), icon=":material/groups:")
    return code


def keep(code: str, result: Marked) -> None:
    """Keep a finished quiz for its class, one for each browser; in callbacks."""
    state = result.settings
    kept: dict[tuple[str, Settings], str] = st.session_state.setdefault(_KEPT, {})
    try:
        if not _SENT.allows(here()):
            raise StoreError(say("quiz.class.too_often"))
        name = mark(visitor(), f"{code}:{state.track}:{state.when}")
        _classes(default_url()).answer(code, row_of(result, name))
    except StoreError as error:
        kept[code, state] = str(error)
    else:
        kept[code, state] = ""


def what_was_kept(result: Marked) -> None:
    """What became of a finished quiz in each class that it was sent in."""
    for (code, state), why in st.session_state.get(_KEPT, {}).items():
        if state != result.settings:
            continue
        if why:
            st.warning(say("quiz.class.not_kept", code=code, why=why), icon=":material/cloud_off:")
        else:
            st.success(say("quiz.class.kept", code=code), icon=":material/check:")


def for_a_class(settings: Settings, code: str) -> None:
    """Below the sheet, closed: the results of the class, or how to make one."""
    try:
        reads = bool(code) and _classes(default_url()).may_read(code, _reader(code))
    except StoreError as error:
        st.warning(str(error), icon=":material/cloud_off:")
        return
    title = say("quiz.class.results", code=code) if reads else say("quiz.class.for_lecturers")
    part = st.expander(title, icon=":material/groups:", key=_PART, on_change="rerun")
    if part.open:
        with part:
            if code:
                _links(settings, code)
            _results(settings, code) if reads else _offer(code)


def _offer(code: str) -> None:
    """How to make a class; in one that somebody else made, who reads it."""
    st.markdown(say("quiz.class.readers", code=code) if code else say("quiz.class.make_help"))
    st.button(say("quiz.class.make"), on_click=_make, key="quiz:make", icon=":material/group_add:")
    st.markdown(say("quiz.class.limits", rows=MOST_ROWS, days=TERM_DAYS, unused=UNUSED_DAYS))


def _make() -> None:
    """Make a class, and stand in it oneself: lecture mode then shows its link as a code."""
    try:
        if not _NEW.allows(here()):
            raise StoreError(say("quiz.class.too_often"))
        new = _classes(default_url()).make()
        _classes(default_url()).let_read(new.code, _reader(new.code))
    except StoreError as error:
        st.session_state[_TOLD] = str(error)
        return
    st.session_state[_MADE] = f"{new.code} {new.secret}"
    st.query_params[CLASS] = new.code
    st.session_state[_PART] = True  # its title is another one now, and it would close


def _links(settings: Settings, code: str) -> None:
    """The link to hand out; and to whoever has just made the class, once, the one that reads."""
    hide = {dial.name for dial in declarations(Settings)}
    st.markdown(say("quiz.class.made"))
    st.code(address(settings, hide, {CLASS: code}), language=None, wrap_lines=True)
    made, _, secret = st.session_state.get(_MADE, "").partition(" ")
    if made == code:
        st.markdown(say("quiz.class.secret"))
        st.code(address(settings, more={RESULTS: secret, CLASS: code}), language=None, wrap_lines=True)


def _results(settings: Settings, code: str) -> None:
    try:
        rows = _classes(default_url()).of_class(code)
    except StoreError as error:
        st.warning(str(error), icon=":material/cloud_off:")
        return
    read(settings, code, rows)
    if rows:
        sure = st.checkbox(say("quiz.class.sure", count=len(rows)), key="quiz:sure")
        st.button(
            say("quiz.class.clear"),
            on_click=_clear,
            args=(code,),
            key="quiz:clear",
            disabled=not sure,
            icon=":material/delete:",
        )


def _clear(code: str) -> None:
    st.session_state["quiz:sure"] = False
    try:
        if _classes(default_url()).may_read(code, _reader(code)):
            _classes(default_url()).clear(code)
    except StoreError as error:
        st.session_state[_TOLD] = str(error)


def _reader(code: str) -> str:
    return mark(visitor(), f"{code}:reads")


@lru_cache(maxsize=4)
def _classes(url: str) -> Classes:
    return Classes(url)
