"""How the first picture stands in a page.

* `pictured(title, question, table, view)`: an exhibit's `Picture`; `pictured_arrows(title, lead, result)`: that of the
  arrows;
* `Picture.into(page)`: Streamlit's page with it.

It lies in a closed tree of its own, so that neither the page's styles nor its scripts reach it, and it is one image for
those who hear the page. It is painted before anything else is fetched: Streamlit's styles stand behind it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import pyarrow as pa

from qkdemo.charts.spec import Exhibit
from qkdemo.labs.arrows import Result, explain
from qkdemo.locale import language
from qkdemo.messages import say
from qkdemo.web.first.curves import gutters
from qkdemo.web.first.drawn import drawn
from qkdemo.web.first.plane import plane
from qkdemo.web.first.sheet import sheet

ID: Final = "qkdemo-first"
_HALL, _BESIDE = "hall", "beside"  # in a lecture; beside a sidebar
_SHEETS: Final = re.compile(rb'<link rel="stylesheet"[^>]*>')
# What a visitor chose in Streamlit's menu; without this script the look is the system's.
_LOOK: Final = (
    "<script>try{const look=/Dark|Light/.exec(localStorage.getItem(`stActiveTheme-${location.pathname}-v2`));"
    f'if(look)document.getElementById("{ID}").dataset.look=look[0].toLowerCase()}}catch{{}}</script>'
)


@dataclass(frozen=True)
class Picture:
    """Its title, which is the page's, and its HTML."""

    title: str
    html: str

    def into(self, page: bytes) -> bytes:
        """The page, at whose beginning it is painted."""
        sheets = b"".join(_SHEETS.findall(page))
        page = re.sub(rb"<title>.*?</title>", lambda _: f"<title>{escape(self.title)}</title>".encode(), page, count=1)
        return _SHEETS.sub(b"", page).replace(b"<body>", b"<body>" + self.html.encode() + sheets, 1)


def pictured(title: str, question: Sequence[str], table: pa.Table, view: Exhibit, *, lecture: bool = False) -> Picture:
    """The picture of a page that begins with a question, what to do, and an exhibit."""
    left, right = gutters([panel for panel in view["panels"] if panel["kind"] == "curves"])
    asks = f'<p class="question"><b>{escape(question[0])}</b> {escape(question[1])}</p>' if question[0] else ""
    room = f"--gutter:calc({left:.2f}em + 7px);--room:{right:.2f}em"
    inside = asks + drawn(table, view, lecture=lecture)
    return _framed(title, f"{title}. {view['alt']}", "exhibit", inside, _HALL if lecture else _BESIDE, room)


def pictured_arrows(title: str, lead: str, result: Result, *, lecture: bool = False, beside: bool = True) -> Picture:
    """The picture of a page that begins with the arrows; `beside`: whether it has a sidebar."""
    asks = f'<p class="heading">{escape(say("arrows.question"))}</p>'
    asks += "" if lecture else f'<p class="lead">{escape(lead)}</p>'
    heard = " ".join([f"{title}.", *explain(result)])
    place = _HALL if lecture else _BESIDE if beside else ""
    return _framed(title, heard, "arrows", asks + plane(result, lecture=lecture), place)


def _framed(title: str, heard: str, kind: str, inside: str, place: str, style: str = "") -> Picture:
    html = (
        f'<div id="{ID}" lang="{language.get()}" role="img" aria-label="{escape(heard)}" '
        f'class="{place}" style="{style}">'
        f'<template shadowrootmode="closed"><style>{sheet(kind)}</style><div class="page {place}" inert>{inside}</div>'
        f'<p class="coming">{escape(say("server.coming"))}</p></template></div>{_LOOK}'
    )
    return Picture(say("app.titled", page=title), html)
