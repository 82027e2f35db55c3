"""Figures that leave the app: a panel in a handout, a panel as a file of its own, all panels on a page.

* `chart(table, view, panel, look)`: a panel as Vega-Lite, whose description says what it shows there;
* `figure_html(...)`: title, note and picture or table of a panel; `filled(html)`: a document with its pictures, all
  drawn in one go;
* `figure(...)`: one panel as SVG, with its title and a caption; `page(...)`: all panels, with numbers and a headline.
"""

import json
import math
import re
from collections.abc import Sequence
from html import escape
from textwrap import wrap
from typing import Final

import pyarrow as pa

from qkdemo.charts.look import Look, cell
from qkdemo.charts.look import whole as at
from qkdemo.charts.panels import Panel
from qkdemo.charts.paper import curves, pictures, tables
from qkdemo.charts.paper.files import svgs
from qkdemo.charts.paper.marks import SIZE, Spec, plane, whole, words
from qkdemo.charts.spec import Drawn, Exhibit
from qkdemo.charts.theme import LIGHT

_PLACE: Final = re.compile("\x02(.*?)\x03", re.DOTALL)  # of a picture in a document; JSON holds neither character
_SIZE: Final = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"')
_ROW: Final = 690.0  # pixels of a page, within its margins
_GAP: Final = 14.0
_BESIDE: Final = 44.0  # a picture, its axis has
_A4: Final = (595, 842, 36)  # points: width, height, margin
_TITLE, _HEADLINE = 1.15 * SIZE, 1.5 * SIZE
_LETTER: Final = 0.52  # of its size, about how wide one is


def chart(table: pa.Table, view: Exhibit, panel: Panel, look: Look) -> Spec:
    """The panel as `look` has it."""
    match panel["kind"]:
        case "curves":
            return curves.curves(table, view, panel, look)
        case "heat":
            return pictures.heat(table, panel, look)
        case "bars":
            return pictures.bars(table, panel, look)
        case "arcs":
            return pictures.arcs(table, panel, look)
        case "arrows":
            return pictures.arrows(table, panel, look)
        case "cells" | "grid":
            return tables.table_chart(table, panel, look)


def figure_html(table: pa.Table, view: Exhibit, panel: Panel, look: Look) -> str:
    """One panel: a table, or the place of a picture."""
    note = _note(panel)
    under = f"<p class='axis'>{escape(note)}</p>" if note else ""
    if panel["kind"] in ("cells", "grid"):
        drawn = tables.table_html(table, panel, look)
    else:
        order = json.dumps([panel["title"], chart(table, view, panel, look)], allow_nan=False)
        drawn = f"\x02{order}\x03"
    return f"<div class='panel {panel['kind']}'><p class='title'>{escape(panel['title'])}</p>{under}{drawn}</div>"


def filled(html: str) -> str:
    """The document with its pictures."""
    orders = [json.loads(order) for order in _PLACE.findall(html)]
    drawn = svgs([spec for _, spec in orders])
    pictured = iter(
        [_spoken(svg, title, spec["description"]) for (title, spec), svg in zip(orders, drawn, strict=True)]
    )
    return _PLACE.sub(lambda _: next(pictured), html)


def figure(table: pa.Table, view: Exhibit, panel: Panel, caption: str) -> str:
    """SVG of one panel where the dial stands: its title above it, and the caption below."""
    spec = _titled(table, view, panel, at(table, view))
    wide = max(300.0, _wide(spec))
    drawn, foot = svgs([spec, _text(caption.splitlines(), wide, SIZE * 0.9, LIGHT.muted)])
    return _spoken(_stacked([[drawn], [foot]]), panel["title"], spec["description"])


def page(exhibits: Sequence[Drawn], title: str, caption: str, *, a4: bool = False) -> str:
    """SVG of what the exhibits show where their dials stand, in rows, below the first one's headline and numbers.

    What is folded away is left out. `a4`: as a page of that size, on which it is as large as there is room.
    """
    specs, found = [_text([title], _ROW, _TITLE, LIGHT.muted)], ""
    for table, view in exhibits[:1]:
        look = at(table, view)
        found = cell(table, view["finding"], look.row)
        specs.append(_text([found], _ROW, _HEADLINE, LIGHT.ink, bold=True))
        specs += [tables.tiles_chart(table, view["tiles"], look)] if view["tiles"] else []
    heads = len(specs)
    seen = [(*each, panel) for each in exhibits for panel in each[1]["panels"] if not panel.get("rest")]
    specs += [_titled(rows, shown, panel, at(rows, shown)) for rows, shown, panel in seen]
    specs.append(_text(caption.splitlines(), _ROW, SIZE * 0.9, LIGHT.muted))
    *drawn, foot = svgs(specs)
    rows = [*([svg] for svg in drawn[:heads]), *_in_rows(drawn[heads:]), [foot]]
    return _spoken(_stacked(rows, a4=a4), title, found)


# ---- parts of a page


def _note(panel: Panel) -> str:
    """What a subtitle adds where no axis is named by it."""
    named = panel["kind"] in ("curves", "bars")
    return "" if named else panel.get("on_paper", panel.get("subtitle") or "").strip(" \u00a0")


def _titled(table: pa.Table, view: Exhibit, panel: Panel, look: Look) -> Spec:
    spec = chart(table, view, panel, look)
    wide = max(_wide(spec), 150.0)
    lines, note = _broken(panel["title"], wide, _TITLE), _broken(_note(panel), wide, SIZE)
    style = {"anchor": "start", "frame": "bounds", "fontSize": _TITLE, "color": LIGHT.ink, "offset": 6}
    under = {"subtitle": note, "subtitleColor": LIGHT.muted, "subtitleFontSize": SIZE} if note else {}
    return spec | {"title": {"text": lines, **style, **under}}


def _wide(spec: Spec) -> float:
    fits = "autosize" in spec
    return float(spec["width"]) + (0.0 if fits else _BESIDE)


def _broken(text: str, wide: float, size: float) -> list[str]:
    return wrap(text, max(12, int(wide / (_LETTER * size))))


def _text(lines: Sequence[str], wide: float, size: float, colour: str, *, bold: bool = False) -> Spec:
    """Words alone, in as many lines as they need."""
    broken = [part for line in lines for part in _broken(line, wide, size * (1.05 if bold else 1))]
    style = {"align": "left", "baseline": "top", "fontSize": size, "lineHeight": 1.3 * size, "color": colour}
    height = 1.3 * size * len(broken)
    rows = [{"x": 0, "y": 0, "text": broken}]
    marks = words(rows, style | {"fontWeight": "bold" if bold else "normal"}, halo=False)
    return whole(marks, (wide, height), plane(wide, height), " ".join(lines))


def _in_rows(drawn: Sequence[str]) -> list[list[str]]:
    """Beside each other, as long as there is room."""
    rows: list[list[str]] = []
    used = _ROW + 1
    for svg in drawn:
        wide, _ = _size(svg)
        if used + wide > _ROW + _GAP:
            rows.append([])
            used = 0.0
        rows[-1].append(svg)
        used += wide + _GAP
    return rows


def _stacked(rows: Sequence[Sequence[str]], *, a4: bool = False) -> str:
    """Drawings in rows as one; on A4, as large as it holds."""
    placed, top, wide = [], 0.0, 0.0
    for row in rows:
        left = 0.0
        for svg in row:
            placed.append(svg.replace("<svg ", f'<svg x="{left:g}" y="{top:g}" ', 1))
            left += _size(svg)[0] + _GAP
        wide = max(wide, left - _GAP)
        top += max(_size(svg)[1] for svg in row) + _GAP / 2
    wide, top = math.ceil(wide), math.ceil(top)
    if a4:
        width, height, margin = _A4
        scale = min((width - 2 * margin) / wide, (height - 2 * margin) / top)
        box = (-margin / scale, -margin / scale, width / scale, height / scale)
    else:
        width, height = round(wide + 2 * _GAP), round(top + _GAP)
        box = (-_GAP, -_GAP, width, height)
    sized = f'width="{width}" height="{height}" viewBox="{" ".join(f"{each:g}" for each in box)}"'
    back = f'<rect x="{box[0]:g}" y="{box[1]:g}" width="{box[2]:g}" height="{box[3]:g}" fill="{LIGHT.paper}"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {sized}>{back}{"".join(placed)}</svg>'


def _size(svg: str) -> tuple[float, float]:
    found = _SIZE.search(svg)
    assert found is not None
    return float(found[1]), float(found[2])


def _spoken(svg: str, title: str, said: str) -> str:
    """The drawing, which says itself to those who do not see it: its title, and what it shows."""
    head, body = svg.split(">", 1)
    head = head.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}: {escape(said)}" ', 1)
    return f"{head}><title>{escape(title)}</title><desc>{escape(said)}</desc>{body}"
