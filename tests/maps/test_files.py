"""What a map leaves the app as can be read again, has its words in it, and names where it comes from."""

import csv
import io
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from pyarrow import parquet

from qkdemo.charts.paper.files import Kind
from qkdemo.charts.theme import LIGHT, vega_config
from qkdemo.labs.registry import LABS
from qkdemo.maps import files
from qkdemo.maps.cells import Cells, table, whole
from qkdemo.maps.picture import look_of, marks_table, picture, spec
from qkdemo.maps.request import MAPPED, request_of
from qkdemo.maps.words import alt, caption, finding, relation


@pytest.fixture(scope="module")
def drift() -> Cells:
    return whole(request_of("drift", LABS["drift"].settings(seed=3), "scale:0.1:1000", "gain:0.1:100"), 9)


def test_csv_and_parquet_hold_every_digit(drift: Cells) -> None:
    read = list(csv.DictReader(io.StringIO(files.as_csv(drift).decode())))
    there, columns = parquet.read_table(io.BytesIO(files.as_parquet(drift))), table(drift)
    assert len(read) == there.num_rows == 2 * 81
    for name in ("scale", "gain", "entropy_fraction", "bound"):
        assert [float(row[name]) for row in read] == columns[name].tolist()
        assert np.array_equal(there[name].to_numpy(), columns[name])


def test_a_map_of_one_number_that_is_not_round_is_drawn() -> None:
    """A query of length 0 gives five keys an entropy of ln 5 everywhere."""
    flat = whole(request_of("arrows", LABS["arrows"].settings(query_length=0), "", "", "entropy"), 9)
    assert {float(each.round(12)) for side in flat.sides.values() for each in side["entropy"].ravel()} == {
        round(math.log(5), 12)
    }
    low, high = look_of(flat).domain
    assert low < math.log(5) < high
    assert files.as_picture(picture(flat, ""), "svg").startswith(b"<svg")


def test_json_has_the_grid_and_the_settings(drift: Cells) -> None:
    made = files.as_json(drift)
    assert made["settings"]["seed"] == 3
    assert np.array(made["sides"]["norm"]["entropy"]).shape == (9, 9)
    assert made["x"] == {"dial": "scale", "values": list(drift.x)}


def test_the_picture_has_its_words_as_text_in_svg_and_draws_them_in_pdf_and_png(drift: Cells) -> None:
    """A font that vl-convert does not have draws nothing, without an error."""
    whole_picture = picture(drift, caption(drift, "http://localhost/map?seed=3"))
    svg = files.as_picture(whole_picture, "svg").decode()
    for word in ("Weight scale", "Entropy, share of ln(visible keys)", "Plain attention", "seed=3", "torch"):
        assert word in svg
    small = {"data": {"values": [{}]}, "mark": "text", "encoding": {"text": {"value": "Weight scale"}}}
    empty = small | {"encoding": {"text": {"value": ""}}}
    config = {"config": vega_config(LIGHT)}
    for kind in get_args(Kind)[1:]:
        assert len(files.as_picture(small | config, kind)) > len(files.as_picture(empty | config, kind)) + 300
    assert files.as_picture(small | config, "pdf").startswith(b"%PDF")
    assert files.as_picture(small | config, "png").startswith(b"\x89PNG")


def test_the_program_draws_every_cell_again_from_the_file(drift: Cells, tmp_path: Path) -> None:
    """It finds the file under the name that the page gives it."""
    (tmp_path / "qkdemo-map.csv").write_bytes(files.as_csv(drift))
    (tmp_path / "draw.py").write_text(files.program(drift), encoding="utf-8")
    done = subprocess.run([sys.executable, "draw.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "162 cells drawn into map.html\n", done.stderr
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert '"log"' in page
    assert f'"value": {drift.shown("plain")[0, 0]}' in page


def test_a_spec_depends_neither_on_the_cross_nor_on_the_seed(drift: Cells) -> None:
    """Else the browser would build the picture anew whenever a dial turns."""
    moved = drift.request.settings.but(scale=100.0, gain=3.0, seed=8)
    other = whole(request_of("drift", moved, "scale:0.1:1000", "gain:0.1:100"), 9)
    assert json.dumps(spec(look_of(drift))) == json.dumps(spec(look_of(other)))


def test_a_spec_is_the_same_at_every_size(drift: Cells) -> None:
    for x, y in (("scale:0.1:1000", "gain:0.1:100"), ("d_head", "alignment")):
        request = request_of("drift", drift.request.settings, x, y)
        assert len({json.dumps(spec(look_of(whole(request, size)))) for size in (9, 17)}) == 1


def test_the_table_of_marks_has_every_cell_and_the_cross_where_the_dials_stand(drift: Cells) -> None:
    rows = marks_table(drift, "plain").to_pylist()
    assert sum(row["layer"] == "cell" for row in rows) == 81
    (cross,) = [row for row in rows if row["layer"] == "cross"]
    assert (cross["x"], cross["y"]) == (8.0, 10.0)
    outside = whole(request_of("drift", drift.request.settings, "scale:20:1000", "gain:0.1:100"), 9)
    assert "cross" not in marks_table(outside, "plain")["layer"].to_pylist()


def test_cells_that_are_no_number_are_drawn_as_such() -> None:
    base = LABS["drift"].settings(format="float16", scale=400)
    cells = whole(request_of("drift", base, "scale:0.1:1000", "gain:0.1:100", "max_abs_logit"), 9)
    layers = marks_table(cells, "plain")["layer"].to_pylist()
    assert layers.count("infinite") == np.isinf(cells.shown("plain")).sum() > 0
    assert f"{layers.count('infinite')} of 81 cells are infinite." in alt(cells, "plain")
    told = re.search(r"Where both are finite, .+ in (\d+) of (\d+) cells", alt(cells, "plain"))
    assert told is not None
    assert int(told[1]) <= int(told[2]) == 81 - layers.count("infinite")
    json.dumps(picture(cells, ""), allow_nan=False)


def test_the_words_of_a_side_say_where_it_parts_from_the_other(drift: Cells) -> None:
    plain, norm = drift.shown("plain"), drift.shown("norm")
    apart = np.abs(plain - norm) > 0.01 * np.maximum(plain, norm)
    told = [
        re.search(
            r"differ by more than 1 % of the larger one in (\d+) of 81 cells. The difference is largest at (.+): ",
            alt(drift, role),
        )
        for role in drift.sides
    ]
    assert [found and found[1] for found in told] == [str(apart.sum())] * 2


def test_the_words_say_which_dial_matters(drift: Cells) -> None:
    assert [relation(drift, role) for role in ("plain", "norm")] == ["x", "y"]
    assert finding(drift) == (
        "Plain attention changes along “Weight scale” alone. "
        "L2 norm and learned scale g changes along “Learned scale g” alone."
    )


@pytest.mark.parametrize("name", MAPPED)
def test_every_lab_has_a_picture_and_its_words(name: str) -> None:
    cells = whole(request_of(name, LABS[name].settings(), "", ""), 9)
    for measure in cells.request.plane.measures:
        of_measure = Cells(cells.request.but(measure), cells.x, cells.y, cells.sides)
        assert json.dumps(picture(of_measure, caption(of_measure)), allow_nan=False)
        for role in cells.sides:
            assert "{" not in alt(of_measure, role)
