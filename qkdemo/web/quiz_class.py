"""A class and its quizzes: the code in the link, what is kept under it, and what the lecturer reads.

* `joined()`: the code that the link names, if it can be one, and what a visitor has to know about it;
* `keep(code, result)`: keeps a finished quiz, the first of its kind in a session; `what_was_kept(result)` says so;
* `for_a_class(settings, code)`: the results of the class, or how to make a link for one.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import streamlit as st

from qkdemo.notation import written
from qkdemo.settings import declarations
from qkdemo.strings import say
from qkdemo.tracks import results
from qkdemo.tracks.quiz import QUIZZES, Marked, Settings
from qkdemo.tracks.results import MOST_IN_ALL, MOST_ROWS, Results, Row, is_code, row_of
from qkdemo.training.database import StoreError, default_url
from qkdemo.web.columns import percent
from qkdemo.web.link import CLASS, address
from qkdemo.web.takeaway import csv_of, table_of

_SHARES: Final = ("pre", "post")
_KEPT: Final = "quiz.kept"  # (class, track, when) of a quiz → its settings, and why it was not kept


def joined() -> str:
    """The code of the class that the link names; empty if it names none, or one that cannot be."""
    code = st.query_params.get(CLASS, "")
    if not code:
        return ""
    if not is_code(code):
        st.warning(say("quiz.class.bad_code"), icon=":material/link_off:")
        return ""
    st.info(say("quiz.class.joined", code=code), icon=":material/groups:")
    return code


def keep(code: str, result: Marked) -> None:
    """Keep a finished quiz for its class: the first before a track and the first after it; in callbacks."""
    kept: dict[tuple[str, str, str], tuple[Settings, str]] = st.session_state.setdefault(_KEPT, {})
    kind = (code, result.settings.track, result.settings.when)
    if kind in kept and not kept[kind][1]:
        return
    try:
        _results(default_url()).add(code, row_of(result))
    except StoreError as error:
        kept[kind] = (result.settings, str(error))
    else:
        kept[kind] = (result.settings, "")


def what_was_kept(result: Marked) -> None:
    """What became of a finished quiz in each class that it was sent in."""
    kept: dict[tuple[str, str, str], tuple[Settings, str]] = st.session_state.get(_KEPT, {})
    for (code, *kind), (settings, why) in kept.items():
        if kind != [result.settings.track, result.settings.when]:
            continue
        if why and settings == result.settings:
            st.warning(say("quiz.class.not_kept", code=code, why=why), icon=":material/cloud_off:")
        elif settings == result.settings:
            st.success(say("quiz.class.kept", code=code), icon=":material/check:")
        elif not why:
            st.info(say("quiz.class.once", code=code), icon=":material/info:")


def for_a_class(settings: Settings, code: str) -> None:
    """Below the sheet, closed: the results of the class, or a link for one."""
    title = say("quiz.class.results", code=code) if code else say("quiz.class.for_lecturers")
    part = st.expander(title, icon=":material/groups:", key="quiz:class", on_change="rerun")
    if part.open:
        with part:
            _read(code) if code else _make(settings)


def _make(settings: Settings) -> None:
    code: str = st.text_input(say("quiz.class.make"), key="quiz:code", max_chars=40, help=say("quiz.class.make_help"))
    if not code:
        return
    if not is_code(code):
        st.warning(say("quiz.class.no_code"))
        return
    st.markdown(say("quiz.class.made"))
    hide = {dial.name for dial in declarations(Settings)}
    st.code(address(settings, hide, {CLASS: code}), language=None, wrap_lines=True)
    st.button(say("quiz.class.enter"), on_click=_enter, args=(code,), key="quiz:enter", icon=":material/groups:")
    st.markdown(say("quiz.class.limits", rows=MOST_ROWS, all=MOST_IN_ALL))


def _enter(code: str) -> None:
    """Stand in the class oneself: its results are then below the sheet, and lecture mode shows its link as a code."""
    st.query_params[CLASS] = code


def _read(code: str) -> None:
    st.markdown(say("quiz.class.readers", code=code))
    try:
        rows = _results(default_url()).of_class(code)
    except StoreError as error:
        st.warning(str(error), icon=":material/cloud_off:")
        return
    if not rows:
        st.info(say("quiz.class.none"))
        return
    st.markdown(say("quiz.class.means", of=max(len(questions) for questions in QUIZZES.values())))
    _table(results.means(rows))
    st.markdown(say("quiz.class.shares"))
    _table(results.shares(rows))
    _download(code, rows)


def _table(lines: Sequence[Mapping[str, Any]]) -> None:
    """In words: what nobody answered is a dash."""
    names = list(lines[0])
    heads = {name: st.column_config.TextColumn(say(f"column.quiz.{name}")) for name in names}
    table = table_of([{name: _cell(line, name) for name in names} for line in lines])
    st.dataframe(table, hide_index=True, column_config=heads)


def _cell(line: Mapping[str, Any], name: str) -> str:
    match line[name]:
        case None:
            return say("quiz.class.nothing")
        case str() as word if name == "question":
            return say(f"quiz.{line['track']}.{word}.about")
        case str() as word:
            return say(f"track.{word}.name")
        case number if name in _SHARES:
            return percent(number)
        case number:
            return written(number, 3)


def _download(code: str, rows: list[Row]) -> None:
    name = f"qkdemo-class-{code}.csv"
    data = csv_of(results.table(rows))
    st.download_button(say("quiz.class.csv"), data, name, "text/csv", on_click="ignore", icon=":material/download:")


@lru_cache(maxsize=4)
def _results(url: str) -> Results:
    return Results(url)
