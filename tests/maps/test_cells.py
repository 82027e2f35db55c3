"""A map's numbers are the lab's own, at any size, whichever dial lies along which axis."""

import random
import re

import numpy as np
import pytest

from qkdemo.labs import placement
from qkdemo.labs.registry import LABS
from qkdemo.maps.cells import Canvas, Cells, fill, odd, read_row, table, whole
from qkdemo.maps.request import MAPPED, SIZES, request_of
from qkdemo.maps.words import alt, cell_words, filling_words, relation

DRIFT = LABS["drift"]


def one_by_one(cells: Cells, i: int, j: int) -> dict[str, dict[str, float]]:
    """What the lab says of one cell, asked for it alone."""
    request = cells.request
    state = request.at(cells.x[i], cells.y[j])
    found = request.plane.read(state, request.x.dial.name, [cells.x[i]])
    return {role: {name: float(column[0]) for name, column in side.items()} for role, side in found.items()}


@pytest.mark.parametrize("name", MAPPED)
def test_every_lab_gives_in_each_cell_what_it_gives_for_that_state_alone(name: str) -> None:
    cells = whole(request_of(name, LABS[name].settings(), "", ""), 9)
    draw = random.Random(3)
    for _ in range(12):
        i, j = draw.randrange(len(cells.x)), draw.randrange(len(cells.y))
        for role, columns in one_by_one(cells, i, j).items():
            for column, value in columns.items():
                assert np.array_equal(cells.sides[role][column][j, i], value, equal_nan=True), (role, column)


@pytest.mark.parametrize(
    "base",
    [
        DRIFT.settings(),
        DRIFT.settings(variant="rms", causal=True, format="float16", gamma=4),
        DRIFT.settings(variant="layernorm", mean=1, n_heads=2, head_spread=4),
    ],
)
def test_two_hundred_cells_of_drift_are_the_rows_that_its_command_prints(base) -> None:
    cells = whole(request_of("drift", base, "scale:0.1:1000", "d_head" if base.variant == "l2" else "alignment"), 33)
    draw, measures = random.Random(17), [*cells.request.plane.measures]
    for _ in range(200 if base.variant == "l2" else 20):
        i, j = draw.randrange(len(cells.x)), draw.randrange(len(cells.y))
        assert DRIFT.report is not None
        rows = DRIFT.report(cells.request.at(cells.x[i], cells.y[j]))["rows"]
        for role, row in zip(("plain", "norm"), rows, strict=True):
            told = [row[name] for name in measures]
            assert np.array_equal(told, [cells.sides[role][name][j, i] for name in measures], equal_nan=True)


def test_a_map_is_the_same_when_the_two_dials_change_places() -> None:
    across, up = "scale:0.1:1000", "gain:0.1:100"
    one, other = (whole(request_of("drift", DRIFT.settings(), *axes), 9) for axes in ((across, up), (up, across)))
    for role in one.sides:
        for name in one.sides[role]:
            assert np.array_equal(one.sides[role][name], other.sides[role][name].T, equal_nan=True)


def test_a_finer_map_holds_every_cell_of_a_coarser_one_and_reads_none_twice() -> None:
    request = request_of("drift", DRIFT.settings(), "scale:0.1:1000", "gain:0.1:100")
    canvas, read = Canvas(request), set()
    for size in SIZES[:3]:
        for row in canvas.rows_of(size):
            assert not read & {*row.at}
            read |= {*row.at}
            canvas.put(row, read_row(row))
        fresh, kept = whole(request, size), canvas.cells(size, request.measure)
        assert kept is not None
        assert np.array_equal(fresh.shown("norm"), kept.shown("norm"))
        assert (kept.x, kept.y) == (fresh.x, fresh.y)


def test_a_size_is_shown_when_its_last_row_is_in_and_not_before() -> None:
    canvas = Canvas(request_of("arrows", LABS["arrows"].settings(), "", ""))
    states = [(done, total, canvas.cells(9, "top_weight") is not None) for done, total in fill(canvas, 9)]
    assert states == [(done, 9, done == 9) for done in range(1, 10)]


def test_plain_attention_knows_nothing_of_g_and_the_other_side_nothing_of_the_scale() -> None:
    cells = whole(request_of("drift", DRIFT.settings(), "scale:0.1:1000", "gain:0.1:100"), 17)
    plain, norm = cells.shown("plain"), cells.shown("norm")
    assert (plain == plain[:1]).all()
    assert np.allclose(norm, norm[:, :1], rtol=1e-9)
    assert np.ptp(plain) > 0.9
    assert np.ptp(norm) > 0.8


def test_a_change_by_several_times_is_a_change_beside_one_over_many_decades() -> None:
    state = DRIFT.settings(variant="rms", gamma=4, d_head=256, n_keys=128)
    cells = whole(request_of("drift", state, "scale", "alignment", "softmax_slope"), 9)
    slopes = cells.shown("norm")
    along_scale = max(row.max() / row.min() for row in slopes)
    assert 5 < along_scale < slopes.max() / slopes.min() / 1e50
    assert relation(cells, "norm") == "both"


def test_the_table_has_a_row_per_cell_and_side_at_its_own_place() -> None:
    cells = whole(request_of("drift", DRIFT.settings(), "scale:0.1:1000", "d_head"), 9)
    columns = table(cells)
    assert len(columns["side"]) == 2 * len(cells.x) * len(cells.y)
    at = (columns["side"] == "norm") & (columns["scale"] == cells.x[3]) & (columns["d_head"] == cells.y[2])
    assert columns["max_abs_logit"][at] == [cells.sides["norm"]["max_abs_logit"][2, 3]]


def test_while_it_fills_in_it_says_how_many_cells_it_will_have() -> None:
    request = request_of("drift", DRIFT.settings(), "scale:0.1:1000", "n_heads")
    made = whole(request, 9)
    assert len(made.y) < len(made.x) == 9
    assert filling_words(request, 9, 1, 4) == f"9 × {len(made.y)} cells: row 1 of 4."


def test_cells_that_are_no_number_are_counted() -> None:
    base = DRIFT.settings(format="float16")
    cells = whole(request_of("drift", base, "scale:0.1:1000", "gain:0.1:100", "softmax_slope"), 9)
    infinite, undefined = odd(cells.shown("plain"))
    assert undefined == np.isnan(cells.shown("plain")).sum() > 0
    assert infinite == 0
    assert odd(np.array([np.inf, -np.inf, np.nan, 1.0])) == (2, 1)


def test_what_is_rounding_alone_is_said_to_be_less_than_that_and_has_no_pattern() -> None:
    """Two sides that agree: their difference is some 10⁻¹⁶, whose digits are the machine's."""
    agree = placement.Settings(right_order="norm_rotary", right_place="in_product", n_keys=4, d_head=8, d_model=16)
    made = whole(request_of("placement", agree, "gain_spread", "mean", "relative_score_error"), 8)
    assert float(made.sides["right"]["relative_score_error"].max()) < 1e-12
    assert "less than 10⁻¹²" in cell_words(made, 0, 0)
    assert relation(made, "right") == "flat"
    assert not re.search("10⁻¹[3-9]", alt(made, "right"))


def test_a_lowest_value_that_is_rounding_is_not_written_with_its_digits() -> None:
    hidden = placement.Settings(n_keys=4, d_head=8, d_model=16)
    made = whole(request_of("placement", hidden, "gain_spread", "mean", "relative_score_error"), 8)
    assert "Lowest: less than 10⁻¹², at " in alt(made, "right")
