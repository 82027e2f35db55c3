"""The other panels as SVG: matrices, bars, arrows, and arcs over a sentence, where the dial stands."""

import math
from collections import defaultdict
from html import escape
from typing import Final

from qkdemo.charts.panels import BRIGHTEST, UNDEFINED, Arcs, Arrows, Bars, Heat
from qkdemo.web.first.row import Row

_TONES: Final = 20
_LEAST: Final = 0.05  # share of colour that shows a cell is there at all


def heat(panel: Heat, row: Row) -> str:
    """Cells of one tone are one path."""
    columns, rows = panel["columns"], panel["rows"]
    toned = defaultdict[int, list[str]](list)
    codes = row.vector(panel["column"])
    hatched = [at for at, code in enumerate(codes) if code == UNDEFINED]
    for at, code in enumerate(codes):
        if code <= BRIGHTEST:
            toned[round(_TONES * code / BRIGHTEST)].append(f"M{at % columns} {at // columns}h1v1h-1")
    paths = "".join(
        f'<path fill-opacity="{_LEAST + (1 - _LEAST) * tone / _TONES:.2g}" d="{"".join(cells)}"/>'
        for tone, cells in sorted(toned.items())
    )
    seams = "".join(f"M{x} 0V{rows}" for x in range(1, columns)) + "".join(f"M0 {y}H{columns}" for y in range(1, rows))
    unknown = "".join(f"M{at % columns} {at // columns + 1}l1-1" for at in hatched)
    chosen = f'<path class="unknown {panel["role"]}" d="{unknown}"/>' if unknown else ""
    if panel["selected"]:
        query, key = panel["selected"]
        chosen += f'<path class="chosen" d="M0 {query}h{columns}v1H0zM{key} {query}h1v1h-1z"/>'
    return (
        f'<svg class="heat {panel["role"]}" viewBox="-.1 -.1 {columns + 0.2:g} {rows + 0.2:g}" '
        f'preserveAspectRatio="xMinYMin meet">{paths}<path class="seam" d="{seams}"/>{chosen}</svg>'
    )


def bars(panel: Bars, row: Row) -> str:
    """The sides of a key stand side by side."""
    count, sides = len(panel["labels"]), len(panel["lines"])
    wide = 780 / sides
    drawn = []
    for side, line in enumerate(panel["lines"]):
        tops = [
            (key, 0.0 if math.isnan(tall) else min(1.0, tall)) for key, tall in enumerate(row.vector(line["column"]))
        ]
        path = "".join(
            f"M{1000 * key + 110 + side * wide:.0f} 1000v-{1000 * tall:.0f}h{wide:.0f}V1000"
            for key, tall in tops
            if tall > 0
        )
        drawn.append(f'<path class="{line["role"]}" d="{path}"/>')
    ticks = panel["y"]["ticks"] if "y" in panel else [(0.0, "0"), (1.0, "1")]
    grid = "".join(f'<path class="grid" d="M0 {1000 - 1000 * at:.0f}H{1000 * count}"/>' for at, _ in ticks)
    words = "".join(f'<i class="up" style="top:{100 - 100 * at:.0f}%">{escape(word)}</i>' for at, word in ticks)
    every = math.ceil(count / 8)
    names = "".join(
        f'<i class="along" style="left:{100 * (key + 0.5) / count:.1f}%">{escape(label)}</i>'
        for key, label in enumerate(panel["labels"])
        if key % every == 0
    )
    band = ""
    if panel["selected"] is not None:
        band = f'<path class="behind" d="M{1000 * panel["selected"]} 0h1000v1000h-1000z"/>'
    view = f'viewBox="0 0 {1000 * count} 1000" preserveAspectRatio="none"'
    return f'<div class="frame bars"><svg {view}>{band}{grid}{"".join(drawn)}</svg>{words}{names}</div>'


def arrows(panel: Arrows, row: Row) -> str:
    """The query to the right, each key at its angle to it, by turns above and below; cut at the frame."""
    lengths, angles = row.vector(panel["lengths"]), row.vector(panel["angles"])

    def arm(angle: float, length: float) -> str:
        x, y = math.cos(angle), math.sin(angle)
        reach = min(length / panel["reach"], 1 / max(abs(x), abs(y)))
        return f"M0 0L{100 * x * reach:.1f} {100 * y * reach:.1f}"

    known = [
        (key, arm(angle * (1 if key % 2 else -1), length))
        for key, (angle, length) in enumerate(zip(angles, lengths, strict=True))
        if not math.isnan(length)
    ]
    others = "".join(path for key, path in known if key != panel["selected"])
    chosen = "".join(path for key, path in known if key == panel["selected"])
    query = row.number(panel["query"])
    ring = f'<circle r="{100 * panel["ring"] / panel["reach"]:.1f}"/>' if panel["ring"] else ""
    return (
        f'<svg class="arrows {panel["role"]}" viewBox="-101 -101 202 202" preserveAspectRatio="xMinYMin meet">'
        f'<path class="grid" d="M-100-100h200v200h-200z"/>{ring}<path class="others" d="{others}"/>'
        f'<path class="query" d="{"" if math.isnan(query) else arm(0, query)}"/>'
        f'<path class="line {panel["role"]}" d="{chosen}"/></svg>'
    )


def arcs(panel: Arcs, row: Row) -> str:
    """The arcs of the word that is chosen, above for the first side and below for the second; words between them."""
    count, chosen = len(panel["labels"]), panel["selected"]
    drawn = []
    for side, line in enumerate(panel["lines"]):
        weights = row.vector(line["column"])[chosen * count : (chosen + 1) * count]
        for key, weight in enumerate(weights):
            if weight >= 0.03 and key != chosen:
                (left, right), base = sorted((key, chosen)), 430 if side == 0 else 570
                tall = 400 * (0.18 + 0.82 * (right - left) / max(1, count - 1))
                start, end = 1000 * left + 500, 1000 * right + 500
                top = base + (-4 if side == 0 else 4) * tall / 3
                drawn.append(
                    f'<path class="{line["role"]}" stroke-width="{max(0.75, 9 * weight):.1f}" '
                    f'd="M{start} {base}C{start} {top:.0f} {end} {top:.0f} {end} {base}"/>'
                )
    names = "".join(
        f'<i class="word{" here" if at == chosen else ""}" style="left:{100 * (at + 0.5) / count:.1f}%">'
        f"{escape(word)}</i>"
        for at, word in enumerate(panel["labels"])
    )
    view = f'viewBox="0 0 {1000 * count} 1000" preserveAspectRatio="none"'
    return f'<div class="frame whole"><svg class="arcs" {view}>{"".join(drawn)}</svg>{names}</div>'
