"""Charts on paper: every panel of every lab has its numbers, colours and axis titles, is drawn, and says itself."""

import itertools
import json
import math
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import altair as alt
import numpy as np
import pyarrow as pa
import pytest

from qkdemo.charts.look import Look, cell, numbers, row_of, vector, whole
from qkdemo.charts.paper import files
from qkdemo.charts.paper.curves import apart
from qkdemo.charts.paper.files import as_file, svgs
from qkdemo.charts.paper.page import chart, figure, figure_html, filled, page
from qkdemo.charts.theme import DASHES, LIGHT
from qkdemo.labs import drift
from qkdemo.labs.drift.view import drift_exhibit
from tests.strategies import COMPUTED

MOST = 4  # states of a lab
DRAWN = {name: lab for name, lab in COMPUTED.items() if lab.exhibit is not None}
STATES = [
    pytest.param(lab, state, id=f"{lab.name}-{name}")
    for lab in DRAWN.values()
    for name, state in itertools.islice({"default": lab.settings(), **lab.presets}.items(), MOST)
]


def marks(spec: dict[str, Any], *kinds: str) -> list[dict[str, Any]]:
    """The layers of these kinds."""
    return [layer for layer in spec["layer"] if layer["mark"]["type"] in kinds]


def rows(spec: dict[str, Any], *kinds: str) -> list[dict[str, Any]]:
    return [row for layer in marks(spec, *kinds) for row in layer["data"]["values"]]


def texts(spec: dict[str, Any]) -> list[str]:
    said = (row["text"] for row in rows(spec, "text"))
    return [" ".join(text) if isinstance(text, list) else text for text in said]


def texts_of(svg: str) -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def titles(spec: dict[str, Any]) -> tuple[Any, Any]:
    return tuple(spec["encoding"][name]["axis"]["title"] for name in ("x", "y"))


def numbers_in(value: Any) -> Iterator[float]:
    match value:
        case dict():
            yield from itertools.chain.from_iterable(map(numbers_in, value.values()))
        case list():
            yield from itertools.chain.from_iterable(map(numbers_in, value))
        case bool() | str() | None:
            pass
        case _:
            yield float(value)


def lies_within(spec: dict[str, Any], y: float) -> bool:
    low, high = spec["encoding"]["y"]["scale"]["domain"]
    return bool(low <= y <= high)


def check_curves(table: pa.Table, view: Any, panel: Any, spec: dict[str, Any]) -> None:
    assert titles(spec)[0] == view["dial"]["label"]
    assert " ".join(titles(spec)[1] or ()) == (panel.get("subtitle") or "")
    at = {x: row for row, x in enumerate(numbers(table, view["dial"]["column"]))}
    drawn = marks(spec, "line")
    assert len(drawn) == len(panel["lines"])
    for layer, line in zip(reversed(drawn), panel["lines"], strict=True):
        assert layer["mark"]["color"] == LIGHT.role(line["role"])
        assert layer["mark"]["strokeDash"] == (DASHES[line["role"]] or [1, 0])
        values = numbers(table, line["column"])
        seen = [row for row in layer["data"]["values"] if lies_within(spec, row["y"])]
        assert all(row["y"] == values[at[row["x"]]] for row in seen)
        shown = [value for value in values if math.isfinite(value) and lies_within(spec, value)]
        assert len(seen) >= len(shown) - 1 - 2 * int((~np.isfinite(values)).sum())
        assert not line["label"] or line["label"] in texts(spec)


def check_heat(table: pa.Table, panel: Any, spec: dict[str, Any], row: int) -> None:
    assert titles(spec) == (panel["key_label"], panel["query_label"])
    codes = np.array(vector(table, panel["column"], row)).reshape(panel["rows"], panel["columns"])
    (cells, *more) = marks(spec, "rect")
    seen = np.full(codes.shape, np.nan)
    for each in cells["data"]["values"]:
        seen[each["y"], each["x"]] = each["weight"]
    expected = np.where(codes <= 250, (codes / 250) ** 2, np.nan)
    np.testing.assert_array_equal(seen, expected)
    assert len(rows(spec, "point")) == (codes == 255).sum()
    assert cells["encoding"]["fill"]["scale"]["range"][1] == LIGHT.role(panel["role"])
    assert len(more) == (panel["selected"] is not None)


def check_bars(table: pa.Table, panel: Any, spec: dict[str, Any], row: int) -> None:
    assert titles(spec)[0] == (panel["key_label"] or None)
    assert titles(spec)[1]
    colours = dict(zip(*marks(spec, "bar")[0]["encoding"]["color"]["scale"].values(), strict=True))
    for side, line in enumerate(panel["lines"]):
        drawn = {each["key"]: each["weight"] for each in rows(spec, "bar") if each["side"] == side}
        values = dict(enumerate(vector(table, line["column"], row)))
        assert drawn == {key: min(1.0, value) for key, value in values.items() if not math.isnan(value)}
        assert colours[line["role"]] == LIGHT.role(line["role"])


def check_table(table: pa.Table, panel: Any, spec: dict[str, Any], row: int) -> None:
    said = texts(spec)
    entries = (
        [entry for line in panel["rows"] for entry in line]
        if panel["kind"] == "cells"
        else [line["column"] for line in panel["rows"]]
    )
    for entry in entries:
        for part in cell(table, entry, row).split("\t"):
            assert " ".join(re.split(r"[ \n]+", part.strip())) in said or re.search(r"\s{2}|\S{39}", part)


@pytest.mark.parametrize(("lab", "state"), STATES)
def test_every_panel_of_every_lab_holds_its_numbers_its_colours_and_its_axis_titles(lab: Any, state: Any) -> None:
    table, view = lab.exhibit(lab.run(state))
    look = whole(table, view)
    for panel in view["panels"]:
        spec = chart(table, view, panel, look)
        json.dumps(spec, allow_nan=False)
        assert all(map(math.isfinite, numbers_in([layer["data"] for layer in spec["layer"]])))
        assert any(layer["data"]["values"] for layer in spec["layer"])
        assert spec["description"]
        match panel["kind"]:
            case "curves":
                check_curves(table, view, panel, spec)
            case "heat":
                check_heat(table, panel, spec, look.row)
            case "bars":
                check_bars(table, panel, spec, look.row)
            case "cells" | "grid":
                check_table(table, panel, spec, look.row)
            case "arcs":
                assert set(panel["labels"]) <= set(texts(spec))
            case "arrows":
                lengths = vector(table, panel["lengths"], look.row)
                assert len(rows(spec, "rule")) == 1 + np.isfinite(lengths).sum()


@pytest.mark.parametrize("name", DRAWN)
def test_every_panel_is_drawn_in_a_document_and_says_itself(name: str) -> None:
    lab = DRAWN[name]
    table, view = lab.exhibit(lab.run(lab.settings()))
    look = whole(table, view)
    html = filled("<div>" + "".join(figure_html(table, view, panel, look) for panel in view["panels"]) + "</div>")
    panels = ElementTree.fromstring(html.replace('xmlns="http://www.w3.org/2000/svg"', ""))
    assert len(panels) == len(view["panels"])
    for drawn, panel in zip(panels, view["panels"], strict=True):
        assert (drawn.findtext("p") or "") == panel["title"]
        assert len(list(drawn.iter("svg"))) + len(list(drawn.iter("table"))) == 1
        for svg in drawn.iter("svg"):
            assert svg.get("role") == "img"
            assert svg.get("aria-label", "").startswith(panel["title"])
            assert svg.findtext("title") == panel["title"]
            assert svg.findtext("desc")
            assert "NaN" not in "".join(path.get("d", "") for path in svg.iter("path"))
    assert "url(" not in html  # two drawings of a document would share a name


def test_altair_knows_every_word_of_a_chart() -> None:
    """Its classes are made from Vega-Lite's schema."""
    kinds: dict[str, dict[str, Any]] = {}
    for lab in DRAWN.values():
        table, view = lab.exhibit(lab.run(lab.settings()))
        for panel in view["panels"]:
            if panel["kind"] not in kinds:
                kinds[panel["kind"]] = chart(table, view, panel, whole(table, view))
    assert kinds.keys() == {"curves", "heat", "bars", "cells", "grid", "arcs", "arrows"}
    for spec in kinds.values():
        alt.Chart.from_dict(spec)
    wrong = kinds["heat"] | {"layer": [{"mark": {"type": "scribble"}}]}
    with pytest.raises(Exception, match="scribble"):
        alt.Chart.from_dict(wrong)


# ---- one panel


def sweep(**columns: Any) -> pa.Table:
    dial = np.array([1.0, 10.0, 100.0, 1000.0])
    return pa.table({"dial": dial, "dial.text": [f"×{x:g}" for x in dial], **columns})


def panel_of(*names: str, log: bool = False, low: float = 0, high: float = 10, **more: Any) -> Any:
    lines = [
        {"role": role, "column": name, "label": name} for role, name in zip(("plain", "norm"), names, strict=False)
    ]
    y = {"log": log, "domain": [low, high], "ticks": [[low, "low"], [high, "high"]]}
    x = {"ticks": [[1, "1"], [1000, "1000"]]}
    return {"kind": "curves", "title": "T", "subtitle": "unit", "x": x, "y": y, "lines": lines, "marks": []} | more


VIEW: Any = {"dial": {"column": "dial", "text": "dial.text", "label": "Dial", "log": True, "at": 10.0}}


def drawn(table: pa.Table, panel: Any, row: int, **more: Any) -> dict[str, Any]:
    return chart(table, VIEW, panel, Look(row, **{"first": 0, "last": table.num_rows - 1, **more}))


def test_a_line_goes_where_its_numbers_say() -> None:
    spec = drawn(sweep(a=[0.0, 5.0, 10.0, 2.5]), panel_of("a"), 1)
    assert [(row["x"], row["y"]) for row in rows(spec, "line")] == [(1, 0), (10, 5), (100, 10), (1000, 2.5)]
    assert spec["encoding"]["x"]["scale"] == {"type": "log", "domain": [1, 1000], "nice": False}
    assert spec["encoding"]["y"]["scale"] == {"type": "linear", "domain": [0, 10], "nice": False}
    assert spec["encoding"]["y"]["axis"]["values"] == [0, 10]
    (dot,) = rows(spec, "circle")
    assert (dot["x"], dot["y"]) == (10, 5)
    assert spec["description"] == "Dial ×10: a 5"


def test_axes_are_laid_out_as_the_panel_and_the_dial_say() -> None:
    spec = drawn(sweep(a=[1.0, 10.0, 100.0, 1000.0]), panel_of("a", log=True, low=1, high=1000), 0)
    assert spec["encoding"]["y"]["scale"]["type"] == "log"
    table = sweep(a=[1.0] * 4).set_column(0, "dial", pa.array([0.0, 1.0, 10.0, 100.0]))
    assert drawn(table, panel_of("a"), 0)["encoding"]["x"]["scale"]["type"] == "symlog"  # log(1 + x)


def test_infinity_leaves_through_the_top_and_an_undefined_number_is_a_gap() -> None:
    table = sweep(a=[1.0, math.inf, 2.0, 3.0], b=[1.0, 2.0, math.nan, 3.0])
    spec = drawn(table, panel_of("a", "b"), 1)
    norm, plain = (layer["data"]["values"] for layer in marks(spec, "line"))
    runs = [[row["y"] for row in plain if row["run"] == run] for run in (0, 1)]
    assert [len(run) for run in runs] == [2, 3]
    assert runs[0][1] == runs[1][0]
    assert 10 < runs[0][1] < 10.2  # just above the frame
    assert [row["y"] for row in norm] == [1, 2]  # the lone point after the gap makes no line
    assert "∞" in texts(spec)


def test_what_is_still_to_be_predicted_is_not_in_the_file() -> None:
    every = [1.11, 2.22, 7.77, 8.88]
    table = sweep(a=every)
    marked = panel_of("a", marks=[{"x": 2.0, "label": "low mark", "role": "plain"}])
    for row, first, last, seen in ((1, 0, 1, [1, 10]), (2, 2, 3, [100, 1000])):
        spec = drawn(table, marked, row, first=first, last=last)
        assert [each["x"] for each in rows(spec, "line")] == seen
        assert "?" in texts(spec)
        assert ("low mark" in texts(spec)) == (first == 0)
        hidden = set(every) - {each["y"] for each in rows(spec, "line")}
        assert len(hidden) == 2
        assert not [value for value in hidden if str(value) in json.dumps(spec)]


def test_a_prediction_is_marked_where_it_was_made() -> None:
    table = sweep(a=[1.0, 2.0, 3.0, 4.0])
    guess = {"column": "a", "x": 100.0, "y": 5.0, "label": "you: 5"}
    spec = drawn(table, panel_of("a"), 2, guesses=[guess])
    assert rows(spec, "point") == [{"x": 100, "y": 5}]
    assert "you: 5" in texts(spec)
    assert not rows(drawn(table, panel_of("a"), 2, guesses=[guess | {"column": "b"}]), "point")


def test_a_band_and_dots_are_drawn_where_rows_are_known() -> None:
    panel = panel_of("a")
    panel["lines"][0] |= {"low": "low", "high": "high", "dots": True}
    table = sweep(a=[1.0, 2.0, math.nan, 4.0], low=[0.5, 1.0, math.nan, 3.0], high=[2.0, 3.0, math.nan, 5.0])
    spec = drawn(table, panel, 2)
    assert [(row["y"], row["high"]) for row in rows(spec, "area")] == [(0.5, 2), (1, 3), (3, 5)]
    assert [row["y"] for row in rows(spec, "circle")] == [1, 2, 4]


def test_an_axis_that_grows_takes_everything_in() -> None:
    panel = panel_of("a")
    panel["y"]["grows"] = True
    spec = drawn(sweep(a=[1.0, 2.0, 20.0, math.inf]), panel, 2)
    assert spec["encoding"]["y"]["scale"]["domain"][1] > 20


def test_a_heat_map_has_a_cell_for_every_pair_and_crosses_what_is_undefined() -> None:
    codes = pa.FixedSizeListArray.from_arrays(pa.array(np.array([0, 250, 254, 255], np.uint8)), 4)
    size = {"kind": "heat", "title": "T", "role": "norm", "column": "heat", "rows": 2, "columns": 2}
    panel: Any = size | {"selected": [0, 1], "query_label": "q", "key_label": "k"}
    spec = chart(pa.table({"heat": codes}), VIEW, panel, Look(0, 0, 0))
    assert [(row["x"], row["y"], row["weight"]) for row in marks(spec, "rect")[0]["data"]["values"]] == [
        (0, 0, 0),
        (1, 0, 1),
    ]
    assert rows(spec, "point") == [{"x": 1.5, "y": 1.5}]
    assert spec["description"] == "q 0, k 1: more than 0.996"
    assert {"0", "0.1", "0.5", "1"} <= set(texts_of(*svgs([spec])))
    sized = panel | {"ramp": [(0.0, "0"), (0.2, "1e-6"), (1.0, "6e4")]}  # what is no weight is not said as one
    spec = chart(pa.table({"heat": codes}), VIEW, sized, Look(0, 0, 0))
    assert spec["description"] == "T"
    assert {"1e-6", "6e4"} <= set(texts_of(*svgs([spec])))


def test_names_of_lines_keep_apart_and_near_their_ends() -> None:
    assert apart([10, 50, 90], 12, 0, 100) == [10, 50, 90]
    assert apart([50, 51, 52], 12, 0, 100) == [50, 62, 74]
    assert apart([96, 97, 98], 12, 0, 100) == [76, 88, 100]
    assert apart([], 12, 0, 100) == []


def test_what_is_drawn_is_text_and_no_markup() -> None:
    panel = panel_of("a", title='<b>"&') | {"subtitle": "<i>unit & more"}
    html = filled(figure_html(sweep(a=[1.0, 2.0, 3.0, 4.0]), VIEW, panel, Look(0, 0, 3)))
    root = ElementTree.fromstring(html.replace('xmlns="http://www.w3.org/2000/svg"', ""))
    assert root.findtext("p") == '<b>"&'
    assert "<i>unit & more" in [text.text for text in root.iter("text")]


def test_the_figure_of_the_drift_page_shows_the_number_that_the_lab_finds() -> None:
    state = drift.Settings()
    found = drift.run(state)
    table, view = drift_exhibit(found)
    panel = next(panel for panel in view["panels"] if panel["kind"] == "curves")
    spec = chart(table, view, panel, Look(row_of(table, view, state.scale), 0, table.num_rows - 1))
    assert "plain 169; L2 · g 3.3; bound 10 10" in spec["description"]
    bars = next(panel for panel in view["panels"] if panel["kind"] == "bars")
    said = chart(table, view, bars, Look(row_of(table, view, state.scale), 0, table.num_rows - 1))["description"]
    assert [side.split(": ")[0] for side in said.split("; ")] == ["plain", "L2 · g"]
    assert round(found.plain.max_abs_logit[found.at]) == 169


# ---- files


def test_a_figure_and_a_page_say_where_they_are_from_and_come_in_three_kinds() -> None:
    lab = DRAWN["mla"]
    exhibits = lab.figures(lab.run(lab.settings()))
    assert len(exhibits) == 2  # the second one stands under the first
    (table, view), _ = exhibits
    alone = figure(table, view, view["panels"][0], "settings\nhttps://example.org/mla")
    for said in (view["panels"][0]["title"], view["dial"]["label"], "https://example.org/mla"):
        assert f">{said}</text>" in alone.replace("</tspan>", "</text>") or said in alone
    sheet = page(exhibits, "A page", "settings", a4=True)
    assert 'width="595" height="842"' in sheet
    words = re.sub(r"<[^>]*>", " ", sheet)
    for _, shown in exhibits:
        for panel in shown["panels"]:
            assert panel["title"].split()[0] in words
    assert str(table.column(view["finding"])[row_of(table, view, view["dial"]["at"])]).split()[0] in words
    begins = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}
    assert {kind: as_file(alone, kind)[: len(begin)] for kind, begin in begins.items()} == begins  # type: ignore[arg-type]


def test_a_chart_is_drawn_once_and_one_that_cannot_be_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = drawn(sweep(a=[1.0, 2.0, 3.0, 4.5]), panel_of("a"), 1)
    once = svgs([spec, spec])
    assert once[0] == once[1]
    with pytest.raises(RuntimeError):
        svgs([{"mark": "scribble", "data": {"values": []}}])
    monkeypatch.setattr(files, "_made", lambda *_: pytest.fail("drawn again"))
    assert svgs([spec]) == once[:1]
