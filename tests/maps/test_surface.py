"""A map as surfaces: the same numbers as heights, and no number where a cell has none."""

import json
import math

import numpy as np
import pytest

from qkdemo.charts.theme import LIGHT
from qkdemo.labs.registry import LABS
from qkdemo.maps.cells import whole
from qkdemo.maps.request import MAPPED, request_of
from qkdemo.maps.surface import surfaces


def test_heights_are_the_cells_and_the_points_stand_on_them() -> None:
    cells = whole(request_of("drift", LABS["drift"].settings(), "scale:0.1:1000", "gain:0.1:100"), 9)
    made = surfaces(cells, LIGHT, 30, 20)
    grids = [trace for trace in made["data"] if trace["type"] == "surface"]
    assert [trace["name"] for trace in grids] == list(cells.names.values())
    for trace, role in zip(grids, cells.sides, strict=True):
        assert np.array_equal(np.array(trace["z"]), cells.shown(role))
        assert trace["x"] == [math.log10(value) for value in cells.x]
    points = [trace for trace in made["data"] if trace["type"] == "scatter3d"]
    assert [point["marker"]["color"] for point in points] == [LIGHT.role("plain"), LIGHT.role("norm")]


def test_a_cell_without_a_number_is_a_hole() -> None:
    base = LABS["drift"].settings(format="float16")
    cells = whole(request_of("drift", base, "scale:0.1:1000", "gain:0.1:100", "max_abs_logit"), 9)
    (plain, _) = [trace for trace in surfaces(cells, LIGHT, 0, 0)["data"] if trace["type"] == "surface"]
    holes = sum(height is None for row in plain["z"] for height in row)
    assert holes == (~np.isfinite(cells.shown("plain"))).sum() > 0


@pytest.mark.parametrize("name", MAPPED)
def test_every_lab_has_its_surfaces(name: str) -> None:
    cells = whole(request_of(name, LABS[name].settings(), "", ""), 9)
    for measure in cells.request.plane.measures:
        of_measure = type(cells)(cells.request.but(measure), cells.x, cells.y, cells.sides)
        json.dumps(surfaces(of_measure, LIGHT, 0, 0), allow_nan=False)


def test_no_point_stands_on_a_surface_that_the_dials_are_not_on() -> None:
    cells = whole(request_of("drift", LABS["drift"].settings(scale=1), "scale:10:1000", "gain:0.1:100"), 9)
    assert {trace["type"] for trace in surfaces(cells, LIGHT, 30, 20)["data"]} == {"surface"}
