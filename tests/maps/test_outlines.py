"""Lines between cells lie where a state and its neighbour differ in kind, and nowhere else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qkdemo.labs.registry import LABS
from qkdemo.maps.cells import whole
from qkdemo.maps.outlines import label_at, outline
from qkdemo.maps.request import request_of


@given(arrays(bool, st.tuples(st.integers(1, 7), st.integers(1, 7))))
def test_a_line_crosses_every_step_from_yes_to_no_and_no_other(holds) -> None:
    edges = outline(holds)
    steps = int((holds[:, 1:] != holds[:, :-1]).sum() + (holds[1:] != holds[:-1]).sum())
    assert sum(abs(x1 - x0) + abs(y1 - y0) for x0, y0, x1, y1 in edges) == steps
    for x0, y0, x1, y1 in edges:
        if x0 == x1:
            assert all(holds[y, x0 - 1] != holds[y, x0] for y in range(y0, y1))
        else:
            assert all(holds[y0 - 1, x] != holds[y0, x] for x in range(x0, x1))


def test_a_square_has_four_sides() -> None:
    holds = np.zeros((4, 4), dtype=bool)
    holds[1:3, 1:3] = True
    assert sorted(outline(holds)) == [(1, 1, 1, 3), (1, 1, 3, 1), (1, 3, 3, 3), (3, 1, 3, 3)]


def test_a_word_stands_on_its_line() -> None:
    assert label_at([(1, 0, 1, 4)], (0.5, 0.75), (4, 4)) == (1.0, 3.0)


def test_float16_loses_scores_from_where_the_lab_says_that_it_does() -> None:
    base = LABS["drift"].settings()
    cells = whole(request_of("drift", base, "scale:0.1:1000", "gain:0.1:100"), 33)
    (edge,) = outline(cells.holds("plain", "float16"))
    first = LABS["drift"].run(base.but(format="float16")).plain.first_raw_loss
    assert edge[0] == edge[2]
    assert cells.x[edge[0] - 1] < first <= cells.x[edge[0]]
    assert not cells.holds("norm", "float16").any()


def test_entropy_is_below_a_tenth_on_one_side_of_its_line() -> None:
    cells = whole(request_of("drift", LABS["drift"].settings(), "scale:0.1:1000", "gain:0.1:100"), 33)
    assert np.array_equal(cells.holds("plain", "decided"), cells.sides["plain"]["entropy_fraction"] < 0.1)


def test_a_bound_is_reached_by_aligned_vectors() -> None:
    base = LABS["drift"].settings(alignment=0.99)
    cells = whole(request_of("drift", base, "scale:0.1:1000", "gain:0.1:100"), 9)
    close = cells.sides["norm"]["max_abs_logit"] / cells.sides["norm"]["bound"]
    assert np.array_equal(cells.holds("norm", "bounded"), close >= 0.99)
    assert cells.holds("norm", "bounded").all()
    assert not cells.holds("plain", "bounded").any()  # it has none
