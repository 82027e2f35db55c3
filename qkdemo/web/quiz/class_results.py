"""What a lecturer reads of a class: choices, means, rows; and clears.

* `read(settings, code, rows)`: draws it.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

import streamlit as st

from qkdemo.charts.columns import percent
from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.tracks import results
from qkdemo.tracks.quiz import QUIZZES, Settings, text
from qkdemo.tracks.results import Row
from qkdemo.web import lecture
from qkdemo.web.explored import changes_explored
from qkdemo.web.lab.takeaway import csv_of, table_of

_SHARES: Final = ("pre", "post")


def read(settings: Settings, code: str, rows: list[Row]) -> None:
    """Draw what the class `code` answered."""
    if not rows:
        st.info(say("quiz.class.none"))
        return
    _votes(settings, rows)
    st.markdown(say("quiz.class.means", of=max(len(questions) for questions in QUIZZES.values())))
    _table(results.means(rows))
    st.markdown(say("quiz.class.shares"))
    lines = results.shares(rows)
    _table(lines)
    if lines:
        names = [_cell(line, "question") for line in lines]
        words = (say("column.quiz.pre"), say("column.quiz.post"))
        changes_explored(
            lines, names, words, "; ".join(_in_short(line, name) for line, name in zip(lines, names, strict=True))
        )
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


def _in_short(line: Mapping[str, Any], name: str) -> str:
    return f"{name}: {' → '.join(_cell(line, when) for when in _SHARES)}"


def _download(code: str, rows: list[Row]) -> None:
    name = f"qkdemo-class-{code}.csv"
    data = csv_of(results.table(rows))
    st.download_button(say("quiz.class.csv"), data, name, "text/csv", on_click="ignore", icon=":material/download:")
