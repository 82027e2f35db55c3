"""A class and its quizzes: the code in the link, what is kept under it, and what the lecturer reads.

* `joined()`: the code that the link names, if it can be one, and what a visitor has to know about it;
* `kept()`: what became of a session's quizzes; `keep(code, result, into)`: keeps a finished one, the first of its kind
  in a session; `what_was_kept(result)` says so;
* `for_a_class(settings, code)`: the results of the class, or how to make a link for one.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from threading import Lock
from typing import Any, Final, TypeAlias

import streamlit as st

from qkdemo.charts.columns import percent
from qkdemo.dials import declarations
from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.runs.database import StoreError, default_url
from qkdemo.tracks import results
from qkdemo.tracks.quiz import QUIZZES, Marked, Settings, text
from qkdemo.tracks.results import MOST_IN_ALL, MOST_ROWS, Results, Row, is_code, row_of
from qkdemo.web import lecture
from qkdemo.web.lab.takeaway import csv_of, table_of
from qkdemo.web.link import CLASS, address

_SHARES: Final = ("pre", "post")
Kept: TypeAlias = dict[tuple[str, str, str], tuple[Settings, str]]  # class, track, when → settings; why not kept

_KEPT: Final = "quiz.kept"
_ONE_AT_A_TIME: Final = Lock()  # Streamlit runs the callbacks of two quick clicks beside each other


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


def kept() -> Kept:
    """What became of this session's quizzes, for `keep`; asked for while the page is drawn."""
    found: Kept = st.session_state.setdefault(_KEPT, {})
    return found


def keep(code: str, result: Marked, into: Kept) -> None:
    """Keep a finished quiz for its class: the first before a track and the first after it; in callbacks."""
    kind = (code, result.settings.track, result.settings.when)
    with _ONE_AT_A_TIME:
        if kind in into and not into[kind][1]:
            return
        try:
            _results(default_url()).add(code, row_of(result))
        except StoreError as error:
            into[kind] = (result.settings, str(error))
        else:
            into[kind] = (result.settings, "")


def what_was_kept(result: Marked) -> None:
    """What became of a finished quiz in each class that it was sent in."""
    for (code, *kind), (settings, why) in kept().items():
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
            _read(settings, code) if code else _make(settings)


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


def _read(settings: Settings, code: str) -> None:
    st.markdown(say("quiz.class.readers", code=code))
    try:
        rows = _results(default_url()).of_class(code)
    except StoreError as error:
        st.warning(str(error), icon=":material/cloud_off:")
        return
    if not rows:
        st.info(say("quiz.class.none"))
        return
    _votes(settings, rows)
    st.markdown(say("quiz.class.means", of=max(len(questions) for questions in QUIZZES.values())))
    _table(results.means(rows))
    st.markdown(say("quiz.class.shares"))
    _table(results.shares(rows))
    _download(code, rows)


def _votes(settings: Settings, rows: Sequence[Row]) -> None:
    """A bar for every choice, whatever is right: a hall talks about it first."""
    of_kind = [row for row in rows if (row.track, row.when) == (settings.track, settings.when)]
    sent = sum(row.seed == settings.seed for row in of_kind)
    st.markdown(say("quiz.class.votes", sent=sent) if sent else say("quiz.class.no_votes"))
    if sent < len(of_kind):
        st.markdown(say("quiz.class.other_numbers", other=len(of_kind) - sent))
    for at, each in enumerate(results.votes(rows, settings) if sent else (), 1):
        lines = [text(settings.track, each.question, f"choice.{word}") for word in each.question.choices]
        bars = [*zip(lines, each.counts, strict=True), (say("quiz.class.left_open"), each.left_open)]
        st.markdown(f"**{at}.** {text(settings.track, each.question, 'ask')}")
        st.html(f"<table class='votes'>{''.join(_bar(line, count, sent) for line, count in bars)}</table>")


def _bar(line: str, count: int, of: int) -> str:
    width = f"{100 * count / of:.1f}%"
    return f"<tr><th scope='row'>{escape(line)}</th><td>{count}</td><td><i style='width: {width}'></i></td></tr>"


def _table(lines: Sequence[Mapping[str, Any]]) -> None:
    """In words: what nobody answered is a dash."""
    names = list(lines[0])
    heads = {name: st.column_config.TextColumn(say(f"column.quiz.{name}")) for name in names}
    cells = [{name: _cell(line, name) for name in names} for line in lines]
    if lecture.on():  # the letters of a data frame do not grow with the page
        st.table([{say(f"column.quiz.{name}"): row[name] for name in names} for row in cells], hide_index=True)
    else:
        st.dataframe(table_of(cells), hide_index=True, column_config=heads)


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
