"""Charts that are explored: their specs read the columns they are given, in the one palette, and Vega draws them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from qkdemo.charts import explored
from qkdemo.charts.theme import DARK, DASHES, LIGHT, Theme, mixed, vega_config

ROOT = Path(__file__).parents[2]
SERIES = [("plain attention", "plain"), ("RMSNorm", "norm")]
ROWS: dict[str, list[dict[str, Any]]] = {
    "bands": [
        {"name": name, "x": 10.0**at, "mean": 1.0, "low": 0.5, "high": 2.0, "extra": "1", "said": "s"}
        for name, _ in SERIES
        for at in (-2, -1)
    ],
    "dots": [
        {"name": name, "x": 0.1 * (1 + at), "shape": "solved", "level": at / 2, "said": "s"}
        for name, _ in SERIES
        for at in range(3)
    ],
    "matrix": [{"across": "per head", "up": "L2", "place": "per_head", "norm": "l2", "count": 3, "first": True}],
    "changes": [{"name": "q", "when": "before", "share": 0.4}, {"name": "q", "when": "after", "share": 0.8}],
}


def spec(name: str, theme: Theme = LIGHT) -> explored.Spec:
    match name:
        case "bands":
            return explored.bands(theme, SERIES, "rate", "loss", extra="logit")
        case "dots":
            return explored.dots(theme, SERIES, "loss", ["solved", "partly", "failed"])
        case "matrix":
            return explored.matrix(["per head"], ["L2"], "place", "norm", "rows", ["norm", "place"])
        case _:
            return explored.changes(theme, ["q"], ["before", "after"], "right")


@pytest.mark.parametrize("name", ROWS)
def test_vega_draws_it_and_every_field_is_a_column(name: str) -> None:
    made = spec(name)
    fields = set(re.findall(r'"field": "(\w+)"', json.dumps(made)))
    assert fields
    assert fields <= ROWS[name][0].keys()
    whole = made | {"data": {"values": ROWS[name]}, "config": vega_config(LIGHT)}
    assert vl_convert.vegalite_to_svg(whole).startswith("<svg")


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_data_colours_of_axes_and_fonts_come_from_the_page(name: str, theme: Theme) -> None:
    made = spec(name, theme)
    assert not {"data", "datasets", "config", "$schema"} & made.keys()
    assert not any("data" in layer for layer in made["layer"])


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_plain_attention_and_its_twin_have_their_colours_and_dashes(theme: Theme) -> None:
    _, line, _ = spec("bands", theme)["layer"]
    assert line["encoding"]["color"]["scale"]["range"] == [theme.categorical[0], theme.categorical[1]]
    assert line["encoding"]["strokeDash"]["scale"]["range"] == [[6, 4], [1, 0]]


def test_paper_canvas_and_vega_have_one_set_of_colours_and_dashes() -> None:
    source = (ROOT / "qkdemo" / "web" / "exhibit" / "pens" / "theme.js").read_text(encoding="utf-8")
    found = re.search(r"DASH = \{(.*)\};", source)
    assert found
    canvas = {name: json.loads(f"[{dash}]") for name, dash in re.findall(r"(\w+): \[([\d, ]*)\]", found[1])}
    assert canvas == DASHES
    places = re.search(r"ROLES = \{(.*?)\}", source)
    assert places
    for role, place in re.findall(r"(\w+): (\d)", places[1]):
        for theme in (LIGHT, DARK):
            assert theme.role(role) == theme.categorical[int(place)]
    share = re.search(r"other: mix\(background, text, ([\d.]+)\)", source)
    assert share
    assert DARK.role("other") == mixed(DARK.paper, DARK.ink, float(share[1]))
    assert mixed("#000000", "#FFFFFF", 0.5) == "#808080"
    assert mixed(LIGHT.paper, LIGHT.ink, 1) == LIGHT.ink
