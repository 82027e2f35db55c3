"""An exhibit as HTML that nothing moves: what the browser's scripts would build, at the value of the dial.

* `drawn(table, view)`: its finding, tiles, dial and panels, in the classes of `exhibit/exhibit.css`.

Words keep the room of their longest version, as they do in `exhibit/frame.js`: nothing jumps when that takes over.
"""

from collections.abc import Sequence
from html import escape

import pyarrow as pa

from qkdemo.charts.panels import Cells, Entry, Grid, Panel
from qkdemo.charts.spec import Exhibit
from qkdemo.web.first.curves import curves
from qkdemo.web.first.pictures import arcs, arrows, bars, heat
from qkdemo.web.first.row import Row


def drawn(table: pa.Table, view: Exhibit, *, lecture: bool = False) -> str:
    """The exhibit's HTML; all that it says is escaped."""
    row = Row(table, view)
    dial = view["dial"]
    done = 100 * row.at / max(1, table.num_rows - 1)
    tiles = "".join(
        f'<div class="tile"><span class="label">{escape(tile["label"])}</span>'
        + "".join(_steady("span", f"value role-{line['role']}", row, line["column"]) for line in tile["lines"])
        + "</div>"
        for tile in view["tiles"]
    )
    scrubber = (
        f'<span class="label">{escape(dial["label"])}</span>'
        f'<button class="play">{escape(view["words"].get("play", ""))}</button>'
        f'<div class="rail"><input type="range" min="0" max="{table.num_rows - 1}" value="{row.at}" '
        f'style="--done:{done:.1f}%"></div>'
        + _steady("span", "reading", row, dial["text"])
        + f'<span class="hint">{escape(view["words"].get("hint", ""))}</span>'
    )
    folded = " folded" if "fold" in view else ""
    return (
        f'<section class="exhibit{folded}{" lecture" if lecture else ""}">'
        + _steady("p", "finding", row, view["finding"], view.get("room", ""))
        + f'<div class="tiles" style="--tiles:{len(view["tiles"])}">{tiles}</div>'
        + f'<div class="scrubber plays">{scrubber}</div>'
        + f'<div class="panels">{"".join(_panel(panel, row, view) for panel in view["panels"])}</div>'
        + (f'<button class="fold">{escape(view["fold"]["more"])}</button>' if "fold" in view else "")
        + "</section>"
    )


def _panel(panel: Panel, row: Row, view: Exhibit) -> str:
    match panel["kind"]:
        case "curves":
            body = _plot(curves(panel, row, view))
        case "heat":
            body = _plot(heat(panel, row))
        case "bars":
            body = _plot(bars(panel, row))
        case "arrows":
            body = _plot(arrows(panel, row))
        case "arcs":
            body = _plot(arcs(panel, row))
        case "cells":
            body = _cells(panel, row)
        case "grid":
            body = _grid(panel, row)
    title = f'<p class="title">{escape(panel["title"])}</p>'
    if subtitle := panel.get("subtitle"):
        title += f'<p class="subtitle">{escape(subtitle)}</p>'
    names = ["panel", panel["kind"], *(["tall"] if panel.get("tall") else []), *(["rest"] if panel.get("rest") else [])]
    wide = panel.get("wide", 6)
    return (
        f'<figure class="{" ".join(names)}" style="--wide:{wide};--folded:{panel.get("folded", wide)}">'
        f"<figcaption>{title}</figcaption>{body}</figure>"
    )


def _plot(picture: str) -> str:
    return f'<div class="plot"><div class="canvas">{picture}</div></div>'


def _cells(panel: Cells, row: Row) -> str:
    roles = panel["roles"]

    def line(tag: str, entries: Sequence[Entry], name: str = "") -> str:
        cells = [
            _steady("th" if tag == "th" or not at else "td", _class(_of(roles[at]), name), row, entry)
            for at, entry in enumerate(entries)
        ]
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(
        line("td", entries, "strong" if at == panel.get("strong") else "") for at, entries in enumerate(panel["rows"])
    )
    place = "scroller" if panel.get("breaks") else "sideways"
    return f'<div class="{place}"><table><thead>{line("th", panel["head"])}</thead><tbody>{body}</tbody></table></div>'


def _grid(panel: Grid, row: Row) -> str:
    def rest(of: object) -> str:
        return "rest" if isinstance(of, dict) and of.get("rest") else ""

    head = "".join(
        f'<th{_named(rest(cell))}><span class="short">{escape(cell["text"])}</span>'
        f'<span class="full">{escape(cell["label"])}</span></th>'
        for cell in panel["head"]
    )
    rows = ""
    for line in panel["rows"]:
        texts, tones = row.text(line["column"]).split("\t"), row.text(line["tones"])
        cells = "".join(
            f'<td role="gridcell"{_named(rest(cell))} data-tone="{escape(tone)}">{escape(text)}</td>'
            for text, tone, cell in zip(texts, tones, panel["head"], strict=False)
        )
        label = f"<th{_named(_of(line['role']))}>{escape(line['text'])}</th>"
        names = _class("of-" + line["role"], rest(line))
        rows += f"<tr{_named(names)}>{label}{cells}</tr>"
    corner = f"<td>{escape(panel['corner'])}</td>"
    return f'<div class="scroller"><table><thead><tr>{corner}{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _steady(tag: str, name: str, row: Row, entry: Entry, room: str = "") -> str:
    longest = max((row.longest(entry), room), key=len)
    words = f'<span class="steady" data-longest="{escape(longest)}"><span>{escape(row.text(entry))}</span></span>'
    return f"<{tag}{_named(name)}>{words}</{tag}>"


def _of(role: str | None) -> str:
    return f"role-{role}" if role else ""


def _class(*names: str) -> str:
    return " ".join(name for name in names if name)


def _named(name: str) -> str:
    return f' class="{name}"' if name else ""
