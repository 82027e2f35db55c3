"""Figures on paper: every panel of every lab is well-formed, says itself in words, and has its numbers in place."""

import itertools
import math
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from qkdemo.charts.figure import figure
from qkdemo.charts.figure_curves import _apart
from qkdemo.charts.look import Look, row_of
from qkdemo.charts.svg import COLOURS, Drawing, mixed, text_width
from qkdemo.labs import drift
from qkdemo.labs.drift.view import drift_exhibit
from tests.strategies import COMPUTED

CONFIG = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
MOST = 4  # states of a lab
STATES = [
    pytest.param(lab, state, id=f"{lab.name}-{name}")
    for lab in COMPUTED.values()
    if lab.exhibit is not None
    for name, state in itertools.islice({"default": lab.settings(), **lab.presets}.items(), MOST)
]


def whole(table: pa.Table, row: int, **more: Any) -> Look:
    return Look(row, 0, table.num_rows - 1, **more)


def parsed(panel: str) -> ElementTree.Element:
    return ElementTree.fromstring(panel)


def svg_of(html: str) -> ElementTree.Element:
    found = parsed(html).find("svg")
    assert found is not None
    return found


@pytest.mark.parametrize(("lab", "state"), STATES)
def test_every_panel_of_every_lab_is_drawn_well_formed_and_says_itself(lab: Any, state: Any) -> None:
    table, view = lab.exhibit(lab.run(state))
    row = row_of(table, view, view["dial"]["at"])
    for panel in view["panels"]:
        html = figure(table, view, panel, whole(table, row))
        root = parsed(html)
        heading = root.find("p")
        assert heading is not None
        assert heading.text == panel["title"]
        assert "nan," not in html
        for svg in root.iter("svg"):
            assert svg.get("role") == "img"
            assert svg.get("aria-label", "").startswith(panel["title"])
            assert svg.findtext("title") == panel["title"]
            assert svg.findtext("desc")
        assert len(list(root.iter("svg"))) + len(list(root.iter("table"))) == 1


def test_paper_has_the_colours_of_the_light_theme() -> None:
    light = CONFIG["theme"]["light"]
    assert [COLOURS[role] for role in ("plain", "norm", "bound")] == light["chartCategoricalColors"][:3]
    assert (COLOURS["left"], COLOURS["right"]) == (light["textColor"], light["chartCategoricalColors"][4])
    assert mixed("#FFFFFF", light["textColor"], 0) == "#FFFFFF"
    assert mixed("#FFFFFF", light["textColor"], 1) == light["textColor"]
    assert mixed("#000000", "#FFFFFF", 0.5) == "#808080"


def sweep(**columns: Any) -> pa.Table:
    dial = np.array([1.0, 10.0, 100.0, 1000.0])
    return pa.table({"dial": dial, "dial.text": [f"×{x:g}" for x in dial], **columns})


def panel_of(*names: str, log: bool = False, low: float = 0, high: float = 10, **more: Any) -> dict[str, Any]:
    lines = [
        {"role": role, "column": name, "label": name} for role, name in zip(("plain", "norm"), names, strict=False)
    ]
    y = {"log": log, "domain": [low, high], "ticks": [[low, "low"], [high, "high"]]}
    return {"kind": "curves", "title": "T", "x": {"ticks": [[1, "1"], [1000, "1000"]]}, "y": y, "lines": lines, **more}


VIEW = {"dial": {"column": "dial", "text": "dial.text", "label": "Dial", "log": True, "at": 10.0}}


def places(svg: ElementTree.Element, colour: str) -> list[list[tuple[float, float]]]:
    """The points of every line of that colour."""
    lines = [line for line in svg.iter("polyline") if line.get("stroke") == colour]
    return [[tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()] for line in lines]  # type: ignore[misc]


def frame_of(svg: ElementTree.Element) -> tuple[float, float, float, float]:
    """left, right, top, bottom: of the lines of the two ticks."""
    (a, b), (c, _) = places(svg, mixed("#FFFFFF", "#14171C", 0.12))
    return a[0], b[0], min(a[1], c[1]), max(a[1], c[1])


def test_a_line_goes_where_its_numbers_say() -> None:
    table = sweep(a=[0.0, 5.0, 10.0, 2.5])
    svg = svg_of(figure(table, VIEW, panel_of("a"), whole(table, 1)))
    left, right, top, bottom = frame_of(svg)
    (line,) = places(svg, COLOURS["plain"])
    assert [x for x, _ in line] == pytest.approx(
        [left + (right - left) * share for share in (0, 1 / 3, 2 / 3, 1)], abs=0.1
    )
    assert [y for _, y in line] == pytest.approx(
        [bottom - (bottom - top) * share for share in (0, 0.5, 1, 0.25)], abs=0.1
    )
    (dot,) = svg.iter("circle")
    assert float(dot.get("cx", "")) == pytest.approx(line[1][0], abs=0.1)
    assert float(dot.get("cy", "")) == pytest.approx(line[1][1], abs=0.1)
    assert svg.findtext("desc") == "Dial ×10: a 5"


def test_a_logarithmic_axis_puts_equal_ratios_apart_equally() -> None:
    table = sweep(a=[1.0, 10.0, 100.0, 1000.0])
    svg = svg_of(figure(table, VIEW, panel_of("a", log=True, low=1, high=1000), whole(table, 0)))
    (line,) = places(svg, COLOURS["plain"])
    steps = np.diff([y for _, y in line])
    assert steps == pytest.approx([steps[0]] * 3, abs=0.15)


def test_infinity_leaves_through_the_top_and_an_undefined_number_is_a_gap() -> None:
    table = sweep(a=[1.0, math.inf, 2.0, 3.0], b=[1.0, 2.0, math.nan, 3.0])
    svg = svg_of(figure(table, VIEW, panel_of("a", "b"), whole(table, 1)))
    top = frame_of(svg)[2]
    runs = places(svg, COLOURS["plain"])
    assert [run[-1][1] for run in runs] == [pytest.approx(top - 1, abs=0.1), pytest.approx(runs[1][-1][1])]
    assert runs[1][0][1] == pytest.approx(top - 1, abs=0.1)
    (kept,) = places(svg, COLOURS["norm"])  # the lone point after the gap makes no line
    assert len(kept) == 2
    assert "∞" in [text.text for text in svg.iter("text")]


def test_what_is_still_to_be_predicted_is_not_in_the_file() -> None:
    table = sweep(a=[1.0, 2.0, 7.77, 8.88])
    for look, hidden in ((Look(1, 0, 1), (2, 3)), (Look(2, 2, 3), (0, 1))):
        svg = svg_of(figure(table, VIEW, panel_of("a"), look))
        left, right, *_ = frame_of(svg)
        (line,) = places(svg, COLOURS["plain"])
        seen = {round(3 * (x - left) / (right - left)) for x, _ in line}
        assert seen == {0, 1, 2, 3} - set(hidden)
        assert "?" in [text.text for text in svg.iter("text")]


def test_a_prediction_is_marked_where_it_was_made() -> None:
    table = sweep(a=[1.0, 2.0, 3.0, 4.0])
    guess = {"column": "a", "x": 100.0, "y": 5.0, "label": "you: 5"}
    svg = svg_of(figure(table, VIEW, panel_of("a"), whole(table, 2, guesses=[guess])))
    left, right, top, bottom = frame_of(svg)
    (mark,) = svg.iter("polygon")
    corners = [tuple(map(float, pair.split(","))) for pair in mark.get("points", "").split()]
    assert np.mean(corners, axis=0) == pytest.approx([left + (right - left) * 2 / 3, (top + bottom) / 2], abs=0.1)
    assert "you: 5" in [text.text for text in svg.iter("text")]
    elsewhere = svg_of(figure(table, VIEW, panel_of("a"), whole(table, 2, guesses=[guess | {"column": "b"}])))
    assert not list(elsewhere.iter("polygon"))


def test_an_axis_that_grows_takes_everything_in() -> None:
    table = sweep(a=[1.0, 2.0, 20.0, math.inf])
    panel = panel_of("a")
    panel["y"]["grows"] = True
    svg = svg_of(figure(table, VIEW, panel, whole(table, 2)))
    (dot,) = svg.iter("circle")
    assert float(dot.get("cy", "")) > 8  # below the top of the frame


def test_a_heat_map_has_a_cell_for_every_pair_and_crosses_what_is_undefined() -> None:
    codes = pa.FixedSizeListArray.from_arrays(pa.array(np.array([0, 250, 254, 255], np.uint8)), 4)
    table = pa.table({"heat": codes})
    panel = {
        "kind": "heat",
        "title": "T",
        "role": "norm",
        "column": "heat",
        "rows": 2,
        "columns": 2,
        "selected": [0, 1],
    }
    svg = svg_of(figure(table, VIEW, panel | {"query_label": "q", "key_label": "k"}, Look(0, 0, 0)))
    paths = {path.get("fill"): path.get("d", "") for path in svg.iter("path")}
    assert sorted(data.count("z") for data in paths.values()) == [1, 1, 1]  # the hidden one is left out
    assert COLOURS["norm"] in paths
    assert paths["none"].count("M") == 2  # a square and its cross
    assert svg.findtext("desc") == "q 0, k 1: 1"


def test_names_of_lines_keep_apart_and_near_their_ends() -> None:
    assert _apart([10, 50, 90], 12, 0, 100) == [10, 50, 90]
    assert _apart([50, 51, 52], 12, 0, 100) == [50, 62, 74]
    assert _apart([96, 97, 98], 12, 0, 100) == [76, 88, 100]
    assert _apart([], 12, 0, 100) == []


def test_words_are_estimated_about_as_wide_as_they_are() -> None:
    """Widths of Arial's like at size 9.5, measured in a browser: regular, bold."""
    measured = {"bound 10": (39.6, 42.2), "RMSNorm": (44.3, 45.9), "floor under a root": (72.3, 79.2)}
    for words, widths in measured.items():
        assert [text_width(words), text_width(words, bold=True)] == pytest.approx(widths, rel=0.1)


def test_what_is_drawn_is_text_and_no_markup() -> None:
    drawing = Drawing(10, 10)
    drawing.text(1, 1, "<b>&")
    html = drawing.html('a "title"', "<told>")
    assert "<b>" not in html
    assert ElementTree.fromstring(html).findtext("text") == "<b>&"


def test_the_figure_of_the_drift_page_shows_the_number_that_the_lab_finds() -> None:
    state = drift.Settings()
    found = drift.run(state)
    table, view = drift_exhibit(found)
    panel = next(panel for panel in view["panels"] if panel["kind"] == "curves")
    svg = svg_of(figure(table, view, panel, whole(table, row_of(table, view, state.scale))))
    assert "plain 169; L2 · g 3.3; bound 10 10" in (svg.findtext("desc") or "")
    assert round(found.plain.max_abs_logit[found.at]) == 169
