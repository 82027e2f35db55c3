"""A panel of an exhibit as a figure on paper: the same table and view that the browser draws, at one row of the sweep.

* `figure(table, view, panel, look)`: HTML of one panel: a drawing (SVG) or a table, with its text equivalent.

Colours and dashes are those of the light theme. Text stays text, nothing is fetched, and no script runs. What a panel
may hold is said in `qkdemo.web.lab.exhibit`; how curves are drawn in `qkdemo.charts.figure_curves`.
"""

import math
from collections.abc import Sequence
from html import escape
from typing import Final

import pyarrow as pa

from qkdemo.charts.figure_curves import curves
from qkdemo.charts.look import Look, cell, numbers, vector
from qkdemo.charts.panels import Arcs, Arrows, Bars, Cells, Grid, Heat, Panel
from qkdemo.charts.spec import Exhibit
from qkdemo.charts.svg import CAPTION, COLOURS, INK, MUTED, PAPER, Drawing, mixed, text_width
from qkdemo.notation import written

HEAT_SIZE: Final = (138.0, 160.0)
BARS_SIZE: Final = (200.0, 150.0)
ARCS_SIZE: Final = (420.0, 80.0)  # of one side, without the words
ARROWS_SIZE: Final = (150.0, 150.0)
_MASKED, _UNDEFINED, _BRIGHTEST = 254, 255, 250  # codes of a heat map
_SHADES: Final = 25
_LEAST: Final = 0.05  # of colour, that shows a cell is there at all
_LEAST_ARC: Final = 0.03  # a weight that is drawn
_THICKEST: Final = 6.0  # arc
_TONES: Final = ("", "quiet", "loud", "loudest")


def figure(table: pa.Table, view: Exhibit, panel: Panel, look: Look) -> str:
    """One panel: its title, its axis in words, and the drawing or table."""
    under = f"<p class='axis'>{escape(panel['subtitle'])}</p>" if panel.get("subtitle") else ""
    drawn = _drawn(table, view, panel, look)
    return f"<div class='panel {panel['kind']}'><p class='title'>{escape(panel['title'])}</p>{under}{drawn}</div>"


# ---- a matrix of weights


def _heat(table: pa.Table, panel: Heat, look: Look) -> str:
    codes = vector(table, panel["column"], look.row)
    rows, columns = panel["rows"], panel["columns"]
    width, height = HEAT_SIZE
    left, below = 2.6 * CAPTION, 1.6 * CAPTION
    side = min((width - left - 1) / columns, (height - below - 1) / rows)
    drawing = Drawing(left + side * columns + 1, side * rows + below + 1)
    colour = COLOURS[panel["role"]]
    shades: dict[int, list[tuple[float, float]]] = {}
    for at, code in enumerate(codes):
        if code == _MASKED:
            continue
        x, y = left + at % columns * side, at // columns * side
        shade = -1 if code == _UNDEFINED else round(code / _BRIGHTEST * _SHADES)
        shades.setdefault(shade, []).append((x, y))
    for shade, cells in sorted(shades.items()):
        squares = "".join(f"M{x:.1f} {y:.1f}h{side:.2f}v{side:.2f}h-{side:.2f}z" for x, y in cells)
        if shade < 0:  # undefined: crossed out
            crosses = (f"M{x:.1f} {y:.1f}l{side:.2f} {side:.2f}m-{side:.2f} 0l{side:.2f} -{side:.2f}" for x, y in cells)
            drawing.path(squares + "".join(crosses), stroke=colour, stroke_width=0.5)
        else:
            ink = mixed(PAPER, colour, _LEAST + (1 - _LEAST) * shade / _SHADES)
            drawing.path(squares, fill=ink, stroke=PAPER, stroke_width=0.4)
    base = side * rows + 1.25 * CAPTION
    drawing.text(left - 2.05 * CAPTION, side * rows / 2, panel["query_label"], fill=MUTED, text_anchor="middle", turn=1)
    drawing.text(left, base, panel["key_label"], fill=MUTED)
    selected = panel["selected"]
    if selected is not None:
        query, key = selected
        query_number, key_number = panel.get("chosen", selected)
        drawing.box((left + key * side, query * side), (side, side), stroke=INK, stroke_width=1.4)
        drawing.text(
            left - 4, (query + 0.5) * side + 0.35 * CAPTION, str(query_number), text_anchor="end", font_weight=600
        )
        after = left + text_width(panel["key_label"]) + CAPTION
        drawing.text(
            max(left + (key + 0.5) * side, after), base, str(key_number), text_anchor="middle", font_weight=600
        )
    return drawing.html(panel["title"], _heat_in_words(codes, columns, panel))


def _heat_in_words(codes: Sequence[float], columns: int, panel: Heat) -> str:
    """The chosen cell, or the title again if there is nothing to be read off it."""
    selected = panel["selected"]
    if selected is None:
        return panel["title"]
    query, key = selected
    code = codes[query * columns + key]
    if code in (_MASKED, _UNDEFINED):
        return panel["title"]
    query, key = panel.get("chosen", selected)
    name = f"{panel['query_label']} {query}, {panel['key_label']} {key}"
    return f"{name}: {written((code / _BRIGHTEST) ** 2, 2)}"


# ---- one query's weights


def _bars(table: pa.Table, panel: Bars, look: Look) -> str:
    width, height = BARS_SIZE
    ticks = panel["y"]["ticks"] if "y" in panel else [(0.0, "0"), (1.0, "1")]
    left = max(text_width(words) for _, words in ticks) + 5
    top, bottom = 6.0, height - 1.6 * CAPTION
    drawing = Drawing(width, height)
    group = (width - left - 2) / len(panel["labels"])
    selected = panel["selected"]
    if selected is not None:
        drawing.box((left + selected * group, top - 4), (group, bottom - top + 4), fill=mixed(PAPER, INK, 0.07))
    for value, words in ticks:
        y = bottom - value * (bottom - top)
        drawing.line([(left, y), (width - 2, y)], stroke=mixed(PAPER, INK, 0.12))
        drawing.text(left - 4, y + 0.35 * CAPTION, words, fill=MUTED, text_anchor="end")
    thick = 0.78 * group / len(panel["lines"])
    told = []
    for at, line in enumerate(panel["lines"]):
        weights = vector(table, line["column"], look.row)
        told.append(", ".join(written(weight, 2) for weight in weights))
        for key, weight in enumerate(weights):
            if weight > 0:
                tall = min(1.0, weight) * (bottom - top)
                x = left + (key + 0.11) * group + at * thick
                drawing.box((x, bottom - tall), (max(thick - 0.4, 0.4), tall), fill=COLOURS[line["role"]])
    every = max(1, math.ceil((max(text_width(words) for words in panel["labels"]) + 5) / group))
    for key, words in enumerate(panel["labels"]):
        if key % every == 0:
            drawing.text(left + (key + 0.5) * group, bottom + 1.25 * CAPTION, words, fill=MUTED, text_anchor="middle")
    return drawing.html(panel["title"], "; ".join(told))


# ---- a sentence under arcs


def _arcs(table: pa.Table, panel: Arcs, look: Look) -> str:
    labels, chosen = panel["labels"], panel["selected"]
    (width, half), count = ARCS_SIZE, len(labels)
    pitch = min(width / count, 9 * CAPTION)
    widest = max(text_width(words, bold=True) for words in labels)
    turned = widest + 4 > pitch
    band, left = (widest + 8 if turned else 2 * CAPTION), (width - pitch * count) / 2
    drawing = Drawing(width, half * len(panel["lines"]) + band)
    for at, words in enumerate(labels):
        x, y = left + (at + 0.5) * pitch, half + band / 2
        if turned:
            x += 0.35 * CAPTION
        else:
            y += 0.35 * CAPTION
        bold = 650 if at == chosen else 400
        drawing.text(x, y, words, text_anchor="middle", font_weight=bold, turn=1 if turned else "")
    told = []
    for side, line in enumerate(panel["lines"]):
        row = vector(table, line["column"], look.row)[chosen * count : (chosen + 1) * count]
        seen = ", ".join(f"{words} {written(weight, 2)}" for words, weight in zip(labels, row, strict=True) if weight)
        told.append(f"{line['label']}: {seen}")
        edge, up = (half, -1) if side == 0 else (half + band, 1)
        for key, weight in enumerate(row):
            x, far = left + (key + 0.5) * pitch, abs(chosen - key) * pitch / 2
            if weight >= _LEAST_ARC and key != chosen:
                tall = (half - CAPTION) * min(1.0, 0.18 + 0.82 * abs(chosen - key) / max(1, count - 1))
                way = f"M{x:.1f} {edge}a{far:.1f} {tall:.1f} 0 0 {int(up < 0)} {2 * far:.1f} 0"
                drawing.path(way, stroke=COLOURS[line["role"]], stroke_width=max(0.5, _THICKEST * weight))
            elif weight >= _LEAST_ARC:
                drawing.dot(x, edge + 4 * up, 1.2 + 3 * weight, fill=COLOURS[line["role"]])
        place = CAPTION if up < 0 else drawing.height - 3
        drawing.text(0, place, line["label"], fill=COLOURS[line["role"]], font_weight=600)
    return drawing.html(panel["title"], "; ".join(told))


# ---- arrows


def _arrows(table: pa.Table, panel: Arrows, look: Look) -> str:
    width, height = ARROWS_SIZE
    half = min(width, height) / 2 - 1
    drawing = Drawing(width, height)
    drawing.box((width / 2 - half, height / 2 - half), (2 * half, 2 * half), stroke=mixed(PAPER, INK, 0.2))
    colour = COLOURS[panel["role"]]

    def arrow(angle: float, length: float, stroke: str, thick: float) -> None:
        if math.isnan(length):
            return
        dx, dy = math.cos(angle), math.sin(angle)
        wanted, most = length / panel["reach"] * half, half / max(abs(dx), abs(dy))
        shown = min(wanted, most)
        tip = (width / 2 + dx * shown, height / 2 + dy * shown)
        drawing.line([(width / 2, height / 2), tip], stroke=stroke, stroke_width=thick)
        head = min(6.0, shown) if wanted <= most else 0.0
        if head:
            base = (tip[0] - dx * head, tip[1] - dy * head)
            sides = ((base[0] - s * dy * head, base[1] + s * dx * head) for s in (-0.4, 0.4))
            drawing.polygon([tip, *sides], fill=stroke)

    lengths, angles = (vector(table, panel[name], look.row) for name in ("lengths", "angles"))
    chosen = panel.get("selected")
    for key, angle in enumerate(angles):
        if key != chosen:
            arrow(angle * (1 if key % 2 else -1), lengths[key], mixed(PAPER, colour, 0.5), 0.8)
    arrow(0, float(numbers(table, panel["query"])[look.row]), INK, 2)
    if chosen is not None:
        arrow(angles[chosen] * (1 if chosen % 2 else -1), lengths[chosen], colour, 2.4)
    label = panel.get("label") or ""
    words = cell(table, label, look.row) if label else ""
    drawing.text(width / 2 - half + 5, height / 2 - half + 1.3 * CAPTION, words, fill=colour, font_weight=600)
    return drawing.html(panel["title"], words or panel["title"])


# ---- tables


def _cells(table: pa.Table, panel: Cells, look: Look) -> str:
    colours = [COLOURS.get(role or "", INK) for role in panel["roles"]]
    heads = zip((cell(table, entry, look.row) for entry in panel["head"]), colours, strict=True)
    head = "".join(
        f"<th scope='col' style='color:{colour}'>{escape(words)}</th>" if words else "<td></td>"
        for words, colour in heads
    )
    body = ""
    for at, entries in enumerate(panel["rows"]):
        first, *rest = (escape(cell(table, entry, look.row)) for entry in entries)
        pairs = zip(rest, colours[1:], strict=True)
        cells = "".join(f"<td style='color:{colour}'>{words}</td>" for words, colour in pairs)
        strong = " class='strong'" if at == panel.get("strong") else ""
        body += f"<tr{strong}><th scope='row'>{first}</th>{cells}</tr>"
    return f"<table aria-label='{escape(panel['title'])}'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _grid(table: pa.Table, panel: Grid, look: Look) -> str:
    head = "".join(
        f"<th scope='col' title='{escape(each['label'])}'>{escape(each['text'])}</th>" for each in panel["head"]
    )
    body = ""
    for row in panel["rows"]:
        texts, tones = (cell(table, row[name], look.row) for name in ("column", "tones"))
        pairs = zip(texts.split("\t"), tones, strict=True)
        cells = "".join(f"<td class='{_TONES[int(tone)]}'>{escape(words)}</td>" for words, tone in pairs)
        colour, label = COLOURS[row["role"]], escape(row["label"])
        name = f"<th scope='row' style='color:{colour}' title='{label}'>{escape(row['text'])}</th>"
        body += f"<tr>{name}{cells}</tr>"
    corner = escape(panel.get("corner", ""))
    named = f"<table class='grid' aria-label='{escape(panel['title'])}'>"
    return f"{named}<thead><tr><td>{corner}</td>{head}</tr></thead><tbody>{body}</tbody></table>"


def _drawn(table: pa.Table, view: Exhibit, panel: Panel, look: Look) -> str:  # noqa: PLR0911
    match panel["kind"]:
        case "curves":
            return curves(table, view, panel, look)
        case "heat":
            return _heat(table, panel, look)
        case "bars":
            return _bars(table, panel, look)
        case "arcs":
            return _arcs(table, panel, look)
        case "arrows":
            return _arrows(table, panel, look)
        case "cells":
            return _cells(table, panel, look)
        case "grid":
            return _grid(table, panel, look)
