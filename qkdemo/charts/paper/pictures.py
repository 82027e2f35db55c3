"""Pictures of weights on paper: a matrix, one query's bars, a sentence under arcs, arrows.

* `heat`, `bars`, `arcs`, `arrows`: a panel as a chart, whose description says it to those who do not see it.
"""

import math
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from qkdemo.charts.columns import coded, span, step_of
from qkdemo.charts.look import Look, cell, numbers, vector
from qkdemo.charts.panels import BRIGHTEST, MASKED, UNDEFINED, Arcs, Arrows, Bars, BarsLine, Heat
from qkdemo.charts.paper.marks import SIZE, TINT, Field, Spec, labels, layer, listed, over, plane, whole, words
from qkdemo.charts.theme import LIGHT, mixed
from qkdemo.messages import say
from qkdemo.notation import written

_HEAT: Final = 110.0  # pixels of the longer side
_BARS: Final = (170.0, 110.0)
_ARCS: Final = (420.0, 80.0)  # of one side, without the words
_ARROWS: Final = 150.0
_LEAST: Final = 0.05  # of colour, that shows a cell is there at all
_LEAST_ARC: Final = 0.03  # a weight that is drawn
_THICKEST: Final = 6.0  # arc
_CORNERS: Final = 24  # of an arc
_FINE: Final = 5.0  # pixels of a cell, up to which none has an edge
_FEW: Final = 4  # numbers along a side of a matrix
_PARTS: Final = tuple(math.sqrt(weight) for weight in (0, 0.1, 0.5, 1))  # of the colour, that have a number
_LETTER: Final = 0.56 * SIZE  # about how wide one is
_CROSS: Final = "M-1,-1L1,1M1,-1L-1,1"
_HEAD: Final = "M0,0L-0.4,1L0.4,1Z"


# ---- a matrix of weights


def heat(table: pa.Table, panel: Heat, look: Look) -> Spec:
    """Squares, the darker the larger, beside a ramp; what is undefined is crossed, what is masked is left out."""
    codes, rows, columns = vector(table, panel["column"], look.row), panel["rows"], panel["columns"]
    side, colour = _HEAT / max(rows, columns), LIGHT.role(panel["role"])
    spots = [(at % columns, at // columns, code) for at, code in enumerate(codes) if code != MASKED]
    cells = [
        {"x": x, "right": x + 1, "y": y, "below": y + 1, "weight": (code / BRIGHTEST) ** 2}
        for x, y, code in spots
        if code != UNDEFINED
    ]
    ramp = {"type": "sqrt", "domain": [0, 1], "range": [mixed(LIGHT.paper, colour, _LEAST), colour]}
    shade = {"field": "weight", "type": "quantitative", "scale": ramp, "legend": _legend(panel)}
    ends = {"x2": Field("right"), "y2": Field("below")}
    edge = {"stroke": LIGHT.paper, "strokeWidth": 0.3} if side > _FINE else {}
    layers = [layer({"type": "rect", **edge}, cells, fill=shade, **ends)]
    crossed = [{"x": x + 0.5, "y": y + 0.5} for x, y, code in spots if code == UNDEFINED]
    if crossed:
        cross = {"type": "point", "shape": _CROSS, "size": side**2, "stroke": colour, "strokeWidth": 0.6, "opacity": 1}
        layers.append(layer(cross, crossed))
    selected = panel["selected"]
    if selected is not None:
        query, key = selected
        chosen = [{"x": key, "right": key + 1, "y": query, "below": query + 1}]
        frame = {"type": "rect", "filled": False, "stroke": LIGHT.ink, "strokeWidth": 1.4, "opacity": 1}
        layers.append(layer(frame, chosen, **ends))
    pooled = panel.get("pooled")
    encoding = {}
    for name, count, which in (("x", columns, 1), ("y", rows, 0)):
        at = None if selected is None else selected[which]
        picked = None if at is None else (at, span(at, pooled) if pooled else str(at))
        title = panel["key_label"] if name == "x" else panel["query_label"]
        scale = {"domain": [0, count] if name == "x" else [count, 0], "nice": False}
        axis = {"title": title, "grid": False} | _numbered(count, pooled["each"] if pooled else 1, picked)
        encoding[name] = {"field": name, "type": "quantitative", "scale": scale, "axis": axis}
    return whole(layers, (side * columns, side * rows), encoding, _heat_told(codes, panel))


def _legend(panel: Heat) -> Spec:
    """What some colours stand for, the darkest first. A gradient would need a name, which two drawings may share."""
    ticks = reversed(panel.get("ramp") or [(part, written(part**2)) for part in _PARTS])
    said = labels([(part**2, text) for part, text in ticks]) | {"labelFontSize": SIZE, "labelColor": LIGHT.muted}
    return said | {"type": "symbol", "symbolType": "square", "symbolStrokeWidth": 0, "title": None}


def _heat_told(codes: Sequence[float], panel: Heat) -> str:
    """The chosen weight, or the title again if there is nothing to be read off it."""
    if panel["selected"] is None or "ramp" in panel:
        return panel["title"]
    query, key = panel["selected"]
    code = codes[query * panel["columns"] + key]
    if code in (MASKED, UNDEFINED):
        return panel["title"]
    return f"{_placed(query, key, panel)}: {coded(int(code), step_of(codes, panel.get('coarse', 1)))}"


def _placed(query: int, key: int, panel: Heat) -> str:
    """The query and the key of a cell, or all those that it stands for."""
    pooled = panel.get("pooled")
    if not pooled:
        return f"{panel['query_label']} {query}, {panel['key_label']} {key}"
    where = f"{pooled['queries']} {span(query, pooled)}, {pooled['keys']} {span(key, pooled)}"
    return say("exhibit.pooled", where=where)


def _numbered(count: int, each: int, chosen: tuple[int, str] | None) -> Spec:
    """Numbers at some cells, and the chosen one in bold, with all that it stands for."""
    step = max(1, math.ceil(count / _FEW))
    at, number = chosen or (None, "")
    ticks = [
        (cell + 0.5, str(cell * each))
        for cell in range(0, count, step)
        if at is None or abs(cell - at) >= max(2, 0.12 * count)
    ]
    if at is None:
        return labels(ticks)
    bold = {"condition": {"test": f"datum.value === {at + 0.5}", "value": "bold"}, "value": "normal"}
    ink = {"condition": {"test": f"datum.value === {at + 0.5}", "value": LIGHT.ink}, "value": LIGHT.muted}
    said = labels(sorted([*ticks, (at + 0.5, number)]))
    return said | {"labelFontWeight": bold, "labelColor": ink, "labelOverlap": False}


# ---- one query's weights


def bars(table: pa.Table, panel: Bars, look: Look) -> Spec:
    """Bars side by side over every key."""
    each = [vector(table, line["column"], look.row) for line in panel["lines"]]
    told = "; ".join(_bars_told(table, line, weights, look) for line, weights in zip(panel["lines"], each, strict=True))
    rows = [
        {"key": key, "side": side, "role": line["role"], "weight": min(1.0, weight)}
        for side, (line, weights) in enumerate(zip(panel["lines"], each, strict=True))
        for key, weight in enumerate(weights)
        if not math.isnan(weight)
    ]
    roles = list(dict.fromkeys(line["role"] for line in panel["lines"]))
    width, height = _BARS
    names, widest = panel["labels"], max(map(len, panel["labels"])) * _LETTER
    room = width / len(names)
    slanted = widest > room and not ("pooled" in panel or all(name.isdecimal() for name in names))
    width = max(width, len(names) * 1.4 * SIZE) if slanted else width
    words_of_keys = {"labelExpr": f"{listed(names)}[datum.value]", "labelOverlap": not slanted}
    across = {"title": panel["key_label"] or None, "labelAngle": -40 if slanted else 0, **words_of_keys}
    ticks = panel["y"]["ticks"] if "y" in panel else [(0.0, "0"), (1.0, "1")]
    title = (panel.get("subtitle") or "").strip(" \u00a0") or say("figure.weight")
    keys = {"type": "ordinal", "scale": {"domain": list(range(len(names))), "paddingInner": 0.2}}
    encoding = {
        "x": {"field": "key", **keys, "axis": across},
        "y": {
            "field": "weight",
            "type": "quantitative",
            "scale": {"domain": [0, 1], "nice": False},
            "axis": over(title, width) | labels(ticks),
        },
    }
    colours = {"domain": roles, "range": [LIGHT.role(role) for role in roles]}
    fill = {"field": "role", "type": "nominal", "legend": None, "scale": colours}
    beside = {"field": "side", "type": "nominal"}
    layers = [layer({"type": "bar"}, rows, color=fill, xOffset=beside)]
    if panel["selected"] is not None:
        back = {"type": "rect", "color": TINT}
        layers.insert(0, layer(back, [{"key": panel["selected"]}], y=-4, y2=height))
    return whole(layers, (width, height), encoding, told)


def _bars_told(table: pa.Table, line: BarsLine, weights: Sequence[float], look: Look) -> str:
    """The numbers of one side, in the order of the keys, and whose they are."""
    texts = [cell(table, f"{name}.text", look.row) for name in line.get("numbers", [])]
    said = ", ".join(texts or [written(weight, 2) for weight in weights])
    return f"{line['label']}: {said}" if "label" in line else said


# ---- a sentence under arcs


def arcs(table: pa.Table, panel: Arcs, look: Look) -> Spec:
    """The words in a line, and between the chosen one and the others arcs, as thick as their weights."""
    names, chosen, (width, half), count = panel["labels"], panel["selected"], _ARCS, len(panel["labels"])
    pitch = min(width / count, 9 * SIZE)
    widest = max(map(len, names)) * 1.1 * _LETTER
    turned = widest + 4 > pitch
    band, left = (widest + 8 if turned else 2 * SIZE), (width - pitch * count) / 2
    height = half * len(panel["lines"]) + band
    where = [left + (at + 0.5) * pitch for at in range(count)]
    layers, told = [], []
    for bold in (False, True):
        rows = [
            {"x": where[at], "y": half + band / 2, "text": name}
            for at, name in enumerate(names)
            if (at == chosen) is bold
        ]
        style = {"angle": 270 if turned else 0, "fontWeight": "bold" if bold else "normal"}
        layers += words(rows, style, halo=False)
    for side, line in enumerate(panel["lines"]):
        colour, (edge, up) = LIGHT.role(line["role"]), (half, -1) if side == 0 else (half + band, 1)
        weights = vector(table, line["column"], look.row)[chosen * count : (chosen + 1) * count]
        seen = (f"{name} {written(weight, 2)}" for name, weight in zip(names, weights, strict=True) if weight)
        told.append(f"{line['label']}: {', '.join(seen)}")
        curves = []
        for key, weight in enumerate(weights):
            if weight < _LEAST_ARC:
                continue
            if key == chosen:
                dot = {"type": "circle", "color": colour, "size": math.pi * (1.2 + 3 * weight) ** 2, "opacity": 1}
                layers.append(layer(dot, [{"x": where[key], "y": edge + 4 * up, "weight": weight}]))
                continue
            tall = (half - SIZE) * min(1.0, 0.18 + 0.82 * abs(chosen - key) / max(1, count - 1))
            middle, far = (where[key] + where[chosen]) / 2, abs(where[key] - where[chosen]) / 2
            turns = [math.pi * corner / _CORNERS for corner in range(_CORNERS + 1)]
            curves += [
                {"x": middle - far * math.cos(turn), "y": edge + up * tall * math.sin(turn)}
                | {"key": key, "weight": weight, "thick": max(0.5, _THICKEST * weight)}
                for turn in turns
            ]
        thick = {"field": "thick", "type": "quantitative", "scale": None}
        layers.append(layer({"type": "line", "color": colour}, curves, detail=Field("key"), strokeWidth=thick))
        name = [{"x": 0, "y": SIZE / 2 if up < 0 else height - SIZE / 2, "text": line["label"]}]
        layers += words(name, {"align": "left", "fontWeight": "bold", "color": colour}, halo=False)
    return whole(layers, (width, height), plane(width, height), "; ".join(told))


# ---- arrows


def arrows(table: pa.Table, panel: Arrows, look: Look) -> Spec:
    """A query to the right, and its keys by angle and length; one that leaves the frame has no head."""
    half, colour = _ARROWS / 2, LIGHT.role(panel["role"])
    lengths, angles = (vector(table, panel[name], look.row) for name in ("lengths", "angles"))
    chosen = panel["selected"]
    faint = mixed(LIGHT.paper, colour, 0.5)
    drawn = [
        (angle * (1 if key % 2 else -1), lengths[key], (colour, 2.4) if key == chosen else (faint, 0.8))
        for key, angle in enumerate(angles)
    ]
    query = (0.0, float(numbers(table, panel["query"])[look.row]), (LIGHT.ink, 2.0))
    kept = [*(one for key, one in enumerate(drawn) if key != chosen), query, *drawn[chosen : chosen + 1]]
    layers = []
    ring = panel["ring"]
    if ring is not None and ring <= panel["reach"]:
        size = math.pi * (ring / panel["reach"] * half) ** 2
        line = {"filled": False, "stroke": LIGHT.role("bound"), "strokeDash": [1, 3], "opacity": 1}
        layers.append(layer({"type": "point", "shape": "circle", "size": size, **line}, [{"x": half, "y": half}]))
    for angle, length, (stroke, thick) in kept:
        if math.isnan(length):
            continue
        dx, dy = math.cos(angle), math.sin(angle)
        wanted, most = length / panel["reach"] * half, half / max(abs(dx), abs(dy))
        shown = min(wanted, most)
        way = [{"x": half, "y": half, "to_x": half + dx * shown, "to_y": half + dy * shown}]
        style = {"type": "rule", "color": stroke, "strokeWidth": thick}
        layers.append(layer(style, way, x2=Field("to_x"), y2=Field("to_y")))
        if wanted <= most:
            tip = [{"x": half + dx * shown, "y": half + dy * shown}]
            turn = math.degrees(math.atan2(dy, dx)) + 90
            head = {"type": "point", "shape": _HEAD, "size": (2 * min(6.0, shown)) ** 2, "fill": stroke, "angle": turn}
            layers.append(layer(head | {"strokeWidth": 0, "opacity": 1}, tip))
    label = panel.get("label") or ""
    text = cell(table, label, look.row) if label else ""
    style = {"align": "left", "fontWeight": "bold", "color": colour}
    layers += words([{"x": 5, "y": 1.2 * SIZE, "text": text}] if text else [], style)
    told, framed = text or panel["title"], {"stroke": LIGHT.grid}
    return whole(layers, (_ARROWS, _ARROWS), plane(_ARROWS, _ARROWS), told, view=framed)
