"""What a visitor takes away from a lab: table, CSV, JSON, Parquet, figures, code, link, and how it was computed.

* `take_away(...)`: the row of choices under a lab's exhibit; only what is open is made, and files when asked for.
"""

import io
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar, get_args

import pyarrow as pa
import streamlit as st
from pyarrow import csv

from qkdemo.charts.paper.files import MIMES, Kind, as_file
from qkdemo.charts.paper.page import figure, page
from qkdemo.charts.spec import Drawn
from qkdemo.dials import Dials, declarations
from qkdemo.labs.caption import caption, citation, origin, parquet_file
from qkdemo.messages import has, say
from qkdemo.web.address.link import address, hidden
from qkdemo.web.track import lesson
from qkdemo.web.track.glossary import linked

Row = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Takeaway:
    """What a lab offers; everything is a function, called only when its tab is open."""

    lab: str
    settings: Dials
    tables: Callable[[], Mapping[str, Callable[[], Sequence[Row]]]]  # a title's key → rows, one for every chart
    programs: Callable[[], Mapping[str, Callable[[], str]]]  # a title's key → program
    noise: Mapping[str, float]  # column → below which its numbers are rounding
    figures: Callable[[], Sequence[Drawn]] | None = None  # what the page shows


def take_away(
    offer: Takeaway, extra: Mapping[str, Callable[[], None]] | None = None, *, opened_first: bool = True
) -> None:
    """The row: the lab's own (`extra`, title → what draws it) first, open, then what every lab has, one click away.

    While a track's question is open there is none: it would give the answer away.
    """
    if lesson.asks():
        return
    own = dict(extra or {})
    draws: dict[str, Callable[[], None]] = {
        **own,
        say("takeaway.table"): lambda: _table(offer),
        **({} if offer.figures is None else {say("takeaway.figures"): lambda: _figures(offer)}),
        say("takeaway.code"): lambda: _code(offer),
        say("takeaway.link"): lambda: _link(offer),
        say("takeaway.how"): lambda: _how(offer),
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        opened = st.segmented_control(
            say("takeaway.open"),
            list(draws),
            default=next(iter(own), None) if opened_first else None,
            key=f"{offer.lab}:takeaway",
        )
        if offer.figures is not None:
            _file(offer, say("takeaway.page_pdf"), "pdf", None)
    if opened in draws:
        with st.container(key=f"{offer.lab}:opened"):
            draws[opened]()


def table_of(rows: Sequence[Row]) -> pa.Table:
    """The rows as an Arrow table, which the page shows and the CSV holds."""
    return pa.Table.from_pylist([dict(row) for row in rows])


def without_noise(rows: Sequence[Row], noise: Mapping[str, float]) -> list[Row]:
    """The rows for the eye: a difference that is rounding is 0, for its digits are the machine's. Files keep them."""
    return [{name: 0.0 if _is_less(x, noise.get(name, 0)) else x for name, x in row.items()} for row in rows]


def _is_less(value: Any, noise: float) -> bool:
    return isinstance(value, float) and abs(value) < noise


def csv_of(rows: Sequence[Row]) -> bytes:
    """The rows as CSV, numbers in full precision; a missing bound is an empty field."""
    sink = io.BytesIO()
    csv.write_csv(table_of(rows), sink)
    return sink.getvalue()


def parquet_of(rows: Sequence[Row], made: Mapping[str, Any]) -> bytes:
    """The rows as a Parquet file, whose metadata says how they were `made`."""
    return parquet_file(table_of(rows), made)


def json_of(rows: Sequence[Row], made: Mapping[str, Any]) -> str:
    """How they were `made`, and rows, as JSON; ∞ and NaN as the words inf, -inf and nan."""
    words = [{name: _word(value) for name, value in row.items()} for row in rows]
    return json.dumps({**made, "rows": words}, indent=1, ensure_ascii=False)


def _word(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _table(offer: Takeaway) -> None:
    rows = _chosen(say("takeaway.which"), offer.tables(), f"{offer.lab}:which")()
    if not rows:
        st.info(say("takeaway.empty"))
        return
    table = table_of(without_noise(rows, offer.noise))
    digits = {
        name: st.column_config.NumberColumn(format="%.4g") for name in table.column_names if _is_real(table, name)
    }
    st.dataframe(table, hide_index=True, height=320, key=f"{offer.lab}:table", column_config=digits)
    made = origin(offer.lab, offer.settings.as_dict(), address(offer.settings))
    files: tuple[tuple[str, str, Callable[[], bytes | str]], ...] = (  # made when they are asked for
        ("csv", "text/csv", lambda: csv_of(rows)),
        ("json", "application/json", lambda: json_of(rows, made)),
        ("parquet", "application/vnd.apache.parquet", lambda: parquet_of(rows, made)),
    )
    with st.container(horizontal=True):
        for kind, mime, data in files:
            st.download_button(
                say(f"takeaway.{kind}"),
                data,
                f"qkdemo-{offer.lab}.{kind}",
                mime,
                on_click="ignore",
                icon=":material/download:",
            )
    st.caption(say("takeaway.files_help"))


def _figures(offer: Takeaway) -> None:
    """Every panel, as a file to print or to put into a paper."""
    assert offer.figures is not None
    titles = [panel["title"] for _, view in offer.figures() for panel in view["panels"]]
    if not titles:
        st.info(say("takeaway.empty"))
        return

    def name(at: int) -> str:
        return titles[at] if at >= 0 else say("takeaway.figures_all")

    key = f"{offer.lab}:figure"
    chosen = st.selectbox(
        say("takeaway.figures_which"),
        range(-1, len(titles)),
        format_func=name,
        key=key,
        help=say("takeaway.figures_help"),
    )
    with st.container(horizontal=True):
        for kind in get_args(Kind):
            _file(offer, say(f"takeaway.{kind}"), kind, chosen if chosen >= 0 else None, titles)


def _file(offer: Takeaway, label: str, kind: Kind, panel: int | None, titles: Sequence[str] = ()) -> None:
    """A button for one figure, or for the whole page; it is drawn when it is asked for, in the language spoken here."""
    spoken, make = copy_context(), partial(_drawn, offer, kind, panel, address(offer.settings))
    name = f"qkdemo-{offer.lab}" + ("" if panel is None else f"-{_in_a_name(titles[panel])}")
    st.download_button(
        label,
        lambda: spoken.copy().run(make),
        f"{name}.{kind}",
        MIMES[kind],
        on_click="ignore",
        icon=":material/download:",
        key=f"{offer.lab}:{kind}:{'' if titles else 'page'}",
    )


def _drawn(offer: Takeaway, kind: Kind, panel: int | None, link: str) -> bytes:
    exhibits = offer.figures() if offer.figures is not None else ()
    below = caption(offer.lab, offer.settings, link)
    if panel is None:
        return as_file(page(exhibits, say(f"page.{offer.lab}"), below, a4=kind == "pdf"), kind)
    table, view, chosen = [(*each, one) for each in exhibits for one in each[1]["panels"]][panel]
    return as_file(figure(table, view, chosen, below), kind)


def _in_a_name(title: str) -> str:
    return re.sub(r"[\W_]+", "-", title.lower()).strip("-")


def _code(offer: Takeaway) -> None:
    program = _chosen(say("takeaway.side"), offer.programs(), f"{offer.lab}:program")
    own = f"takeaway.code_help_{offer.lab}"
    st.markdown(say(own if has(own) else "takeaway.code_help"))
    st.code(program(), language="python")


def _link(offer: Takeaway) -> None:
    labels = {dial.name: dial.label for dial in declarations(type(offer.settings))}
    chosen = st.multiselect(
        say("takeaway.hide"),
        list(labels),
        default=sorted(hidden() & labels.keys()),
        format_func=lambda name: labels[name],
        help=say("takeaway.hide_help"),
        key=f"{offer.lab}:hide",
    )
    st.markdown(say("takeaway.link_help"))
    link = address(offer.settings, set(chosen))
    st.code(link, language=None, wrap_lines=True)
    st.markdown(say("takeaway.cite_help"))
    line, entry = citation(offer.lab, offer.settings, link, datetime.now(UTC).date())
    st.code(line, language=None, wrap_lines=True)
    st.code(entry, language="latex", wrap_lines=True)


def _how(offer: Takeaway) -> None:
    st.markdown(linked(say(f"how.{offer.lab}")))


def _is_real(table: pa.Table, column: str) -> bool:
    return bool(pa.types.is_floating(table.schema.field(column).type))


def _chosen(label: str, made: Mapping[str, Callable[[], T]], key: str) -> Callable[[], T]:
    """One of them, by its title."""
    titles = {say(title): make for title, make in made.items()}
    names = list(titles)
    return titles[names[0] if len(names) == 1 else st.radio(label, names, horizontal=True, key=key)]
