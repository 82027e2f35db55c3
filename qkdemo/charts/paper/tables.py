"""Tables of an exhibit on paper: as HTML, where a reader can select them, and as a chart, for a file of its own.

* `table_html(table, panel, look)`; `table_chart(table, panel, look)`: of `Cells` or `Grid`;
* `tiles_chart(table, tiles, look)`: the exhibit's numbers at this row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from textwrap import wrap
from typing import Final

import pyarrow as pa

from qkdemo.charts.look import Look, cell
from qkdemo.charts.panels import Cells, Grid
from qkdemo.charts.paper.marks import SIZE, Field, Spec, layer, plane, whole, words
from qkdemo.charts.spec import Tile
from qkdemo.charts.theme import LIGHT, mixed

TONES: Final = ("", "quiet", "loud", "loudest")
SHADES: Final = (0.0, 0.04, 0.25, 0.45)  # of plain attention's colour, behind a tone
_WIDEST: Final = 38  # letters in a line of a cell
_LETTER: Final = 0.53 * SIZE
_BOLD: Final = 1.1
_GAP: Final = 12.0  # between columns
_PITCH: Final = 1.25 * SIZE


@dataclass(frozen=True)
class _Cell:
    """What is written, and how."""

    text: str
    colour: str = LIGHT.ink
    bold: bool = False
    tone: int = 0
    label: str = ""  # in full


def table_html(table: pa.Table, panel: Cells | Grid, look: Look) -> str:
    """A table with names for its rows and columns."""
    head, *body = _rows(table, panel, look)
    tops = "".join(
        f"<th scope='col'{_title(each)}{_coloured(each)}>{escape(each.text)}</th>" if each.text else "<td></td>"
        for each in head
    )
    lines = ""
    for first, *rest in body:
        strong = " class='strong'" if rest and all(each.bold for each in rest) else ""
        name = f"<th scope='row'{_title(first)}{_coloured(first)}>{escape(first.text)}</th>"
        cells = "".join(f"<td{_toned(each)}{_coloured(each)}>{escape(each.text)}</td>" for each in rest)
        lines += f"<tr{strong}>{name}{cells}</tr>"
    kind = " class='grid'" if panel["kind"] == "grid" else ""
    named = f"<table{kind} aria-label='{escape(panel['title'])}'>"
    return f"{named}<thead><tr>{tops}</tr></thead><tbody>{lines}</tbody></table>"


def table_chart(table: pa.Table, panel: Cells | Grid, look: Look) -> Spec:
    """The same, drawn: every column as wide as its words."""
    return _drawn(_rows(table, panel, look), panel["title"])


def tiles_chart(table: pa.Table, tiles: Sequence[Tile], look: Look) -> Spec:
    """A row for every quantity."""
    rows = [
        [
            _Cell(tile["label"]),
            *(
                _Cell(cell(table, line["column"], look.row), LIGHT.role(line["role"]), bold=True)
                for line in tile["lines"]
            ),
        ]
        for tile in tiles
    ]
    return _drawn(rows, "", headed=False)


def _rows(table: pa.Table, panel: Cells | Grid, look: Look) -> list[list[_Cell]]:
    """The head and all rows."""
    if panel["kind"] == "cells":
        inks = [LIGHT.role(role) if role else LIGHT.ink for role in panel["roles"]]
        head = [_Cell(cell(table, entry, look.row), ink) for entry, ink in zip(panel["head"], inks, strict=True)]
        inks = [LIGHT.ink, *inks[1:]]
        return [
            head,
            *(
                [
                    _Cell(cell(table, entry, look.row), ink, bold=at == panel.get("strong"))
                    for entry, ink in zip(entries, inks, strict=True)
                ]
                for at, entries in enumerate(panel["rows"])
            ),
        ]
    rows = [[_Cell(panel["corner"]), *(_Cell(each["text"], label=each["label"]) for each in panel["head"])]]
    for row in panel["rows"]:
        texts, tones = (cell(table, row[name], look.row) for name in ("column", "tones"))
        first = _Cell(row["text"], LIGHT.role(row["role"]), label=row["label"])
        pairs = zip(texts.split("\t"), tones, strict=True)
        rows.append([first, *(_Cell(text, tone=int(tone), bold=tone == "3") for text, tone in pairs)])
    return rows


def _drawn(rows: Sequence[Sequence[_Cell]], told: str, *, headed: bool = True) -> Spec:
    broken = [[wrap(each.text, _WIDEST) or [""] for each in row] for row in rows]
    letters = [
        [
            max(map(len, said)) * (_BOLD if each.bold or (headed and at == 0) else 1)
            for each, said in zip(*pair, strict=True)
        ]
        for at, pair in enumerate(zip(rows, broken, strict=True))
    ]
    count = max(map(len, rows))
    wide = [_LETTER * max(line[at] for line in letters if at < len(line)) + _GAP for at in range(count)]
    lefts = [0.0, *accumulate(wide)]
    tall = [_PITCH * max(map(len, lines)) + 0.5 * SIZE for lines in broken]
    tops = [0.0, *accumulate(tall)]
    fills, texts = [], dict[tuple[str, bool], list[dict[str, object]]]()
    for at, (row, lines) in enumerate(zip(rows, broken, strict=True)):
        for column, (each, said) in enumerate(zip(row, lines, strict=True)):
            spot = {"x": lefts[column] + _GAP / 2, "y": tops[at] + 0.3 * SIZE, "text": said}
            texts.setdefault((each.colour, each.bold or (headed and at == 0)), []).append(spot)
            if each.tone:
                ends = {"x": lefts[column], "right": lefts[column + 1], "y": tops[at], "below": tops[at + 1]}
                fills.append(ends | {"tone": mixed(LIGHT.paper, LIGHT.role("plain"), SHADES[each.tone])})
    rules = [{"x": 0, "right": lefts[-1], "y": top} for top in tops[1:-1]]
    layers = [
        layer({"type": "rect"}, fills, x2=Field("right"), y2=Field("below"), fill=_as_it_is("tone")),
        layer({"type": "rule", "color": LIGHT.grid}, rules, x2=Field("right")),
    ]
    for (colour, bold), spots in texts.items():
        style = {"align": "left", "baseline": "top", "lineHeight": _PITCH, "color": colour}
        layers += words(spots, style | {"fontWeight": "bold" if bold else "normal"}, halo=False)
    size = (lefts[-1], tops[-1])
    return whole(layers, size, plane(*size), told)


def _as_it_is(column: str) -> Spec:
    return {"field": column, "type": "nominal", "scale": None}


def _title(each: _Cell) -> str:
    return f" title='{escape(each.label)}'" if each.label else ""


def _toned(each: _Cell) -> str:
    return f" class='{TONES[each.tone]}'" if each.tone else ""


def _coloured(each: _Cell) -> str:
    return "" if each.colour == LIGHT.ink else f" style='color:{each.colour}'"
