"""The panels of the first picture: where things stand, read back from what is drawn."""

import math
import re

import pyarrow as pa
import pytest

from qkdemo.charts.panels import Curves
from qkdemo.labs.registry import LABS
from qkdemo.web.first.curves import SIZE, curves, gutters
from qkdemo.web.first.drawn import drawn
from qkdemo.web.first.row import Row
from qkdemo.web.first.sheet import sheet


def exhibit_of(name, **dials):  # type: ignore[no-untyped-def]
    lab = LABS[name]
    return lab.exhibit(lab.run(lab.settings().but(**dials)))


def points(path: str) -> list[list[tuple[int, int]]]:
    """The runs of a path, in units of its frame."""
    runs: list[list[tuple[int, int]]] = []
    for kind, x, y in re.findall(r"([Ml])\s*(-?\d+)\s*(-?\d+)", path):
        if kind == "M":
            runs.append([(int(x), int(y))])
        else:
            runs[-1].append((runs[-1][-1][0] + int(x), runs[-1][-1][1] + int(y)))
    return runs


def test_a_curve_goes_through_its_values() -> None:
    table, view = exhibit_of("drift", scale=4)
    row = Row(table, view)
    panel = next(panel for panel in view["panels"] if panel["kind"] == "curves")
    low, high = panel["y"]["domain"]
    for line in panel["lines"]:
        path = re.search(rf'class="line {line["role"]}" d="([^"]*)"', curves(panel, row, view))
        assert path is not None
        (run,) = points(path[1])
        for (x, y), place, value in zip(run, row.places, row.numbers(line["column"]), strict=True):
            assert x == pytest.approx(SIZE * place, abs=1)
            assert y == pytest.approx(SIZE * (1 - math.log(value / low) / math.log(high / low)), abs=1)
    assert f'class="cursor" d="M{SIZE * row.place(4):.0f} 0V{SIZE}"' in curves(panel, row, view)


def test_a_line_stops_where_it_is_not_known_and_leaves_the_frame_where_it_is_infinite() -> None:
    values = [1.0, 2.0, math.nan, 3.0, 4.0, math.inf, math.inf]
    table = pa.table({"x": [0.0, 1, 2, 3, 4, 5, 6], "y": values, "words": ["word"] * 7})
    panel: Curves = {
        "kind": "curves",
        "title": "",
        "wide": 6,
        "x": {"ticks": [(0.0, "0")]},
        "y": {"log": False, "domain": (0.0, 5.0), "ticks": [(0.0, "0"), (5.0, "5")]},
        "lines": [{"role": "plain", "column": "y", "label": "plain"}],
        "marks": [{"x": 3.0, "label": "there", "role": "norm"}, {"x": 9.0, "label": "beyond", "role": "norm"}],
    }
    dial = {"column": "x", "text": "words", "label": "x", "at": 4.0, "log": False}
    view = {"dial": dial, "finding": "words", "tiles": [], "panels": [panel], "words": {}, "alt": ""}
    text = curves(panel, Row(table, view), view)  # type: ignore[arg-type]
    runs = points(re.search(r'class="line plain" d="([^"]*)"', text)[1])  # type: ignore[index]
    assert [len(run) for run in runs] == [2, 3]
    assert runs[1][-1][1] < 0  # above the frame, which cuts it
    assert text.count('class="mark') == 1


def test_every_word_is_escaped() -> None:
    table, view = exhibit_of("drift")
    evil = "<b onclick=x>&"
    texts = pa.array([evil] * table.num_rows)
    for name in table.column_names:
        if pa.types.is_string(table.schema.field(name).type):
            table = table.set_column(table.column_names.index(name), name, texts)
    view = view | {"tiles": [tile | {"label": evil} for tile in view["tiles"]], "words": {"play": evil, "hint": evil}}
    panels = [panel | {"title": evil, "subtitle": evil} for panel in view["panels"]]
    text = drawn(table, view | {"panels": panels})  # type: ignore[arg-type]
    assert "onclick" in text
    assert "<b onclick" not in text


def test_words_beside_the_frames_have_room() -> None:
    _, view = exhibit_of("drift")
    left, right = gutters([panel for panel in view["panels"] if panel["kind"] == "curves"])
    assert 1 < left < 3
    assert 1 < right < 8


def test_the_style_knows_every_class_and_colour_that_is_drawn() -> None:
    text = sheet("exhibit")
    assert "canvas{" not in text.replace(".canvas{", "")
    for name in ("LIGHT", "DARK"):
        assert f'data-look="{name.lower()}"' in text
    used = set(re.findall(r"var\((--[a-z-]+)[,)]", text))
    given = set(re.findall(r"(--[a-z-]+):", text))
    elsewhere = {
        "--gutter",
        "--room",
        "--wide",
        "--folded",
        "--tiles",
        "--done",
        "--header",
        "--ink",
        "--least",
        "--stage",
    }
    assert used - given - elsewhere <= {"--rest", "--rest-grid", "--rest-flex", "--dash"}
