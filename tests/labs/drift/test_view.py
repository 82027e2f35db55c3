"""What the drift page's tables and picks make of the lab's numbers."""

import math

import numpy as np
import pytest
import torch

from qkdemo.attention.inputs import Inputs
from qkdemo.charts.look import Look
from qkdemo.charts.paper.page import chart
from qkdemo.labs.drift import Settings, explain, on, run
from qkdemo.labs.drift.view import drift_exhibit, picked


def tile(settings: Settings, column: str) -> str:
    result = run(settings)
    table, _ = drift_exhibit(result)
    return table.column(column)[result.at].as_py()


def test_a_logit_that_rounding_lifts_above_its_bound_is_not_said_to_be_below_it() -> None:
    state = Settings(gain=0.3, format="bfloat16", alignment=0.99, d_head=4)
    assert tile(state, "norm.tile.logit") == "0.3008 ≈ 0.3"
    assert any("lifts a |logit| above the bound, to 0.3008" in sentence for sentence in explain(run(state)))
    assert tile(Settings(), "norm.tile.logit") == "3.302 ≤ 10"
    assert not any("lifts a |logit|" in sentence for sentence in explain(run(Settings())))


def test_entropy_stands_beside_the_most_of_the_rows_that_it_is_of() -> None:
    """At scale 80 the first rows of a causal draw keep their softmax in float16, the longer ones lose it."""
    state = Settings(scale=80, format="float16", causal=True)
    q, k = (80 * np.random.default_rng(0).standard_normal((2, 16, 64))).astype(np.float16).astype(np.float64)
    with np.errstate(over="ignore"):
        rows = [(q[at] @ k[: at + 1].T).astype(np.float16).astype(np.float64) / 8 for at in range(16)]
    kept = [row for row in rows if np.isfinite(row.max())]
    assert 0 < len(kept) < 16
    assert tile(state, "plain.tile.entropy").endswith(f" of {np.mean([np.log(len(row)) for row in kept]):.3g}")
    assert tile(state, "norm.tile.entropy").endswith(f" of {np.log(np.arange(1, 17)).mean():.3g}")


def test_of_several_heads_each_picture_of_one_says_which() -> None:
    several = drift_exhibit(run(Settings(n_heads=3, head=1, variant="full_width", n_keys=4)))[1]["panels"]
    assert {panel["kind"] for panel in several if panel["title"].endswith(" (head 1)")} == {
        *("heat", "bars", "cells", "arrows")
    }
    assert all(panel["title"].endswith(" (head 1)") == (panel["kind"] != "curves") for panel in several)
    assert not any("head" in panel["title"] for panel in drift_exhibit(run(Settings()))[1]["panels"])


def test_what_float32_would_make_infinite_is_drawn_as_the_number_that_it_is() -> None:
    """Of one's own q and k of 1e160 no square is a number of float64, and their lengths and angles are."""
    q, k = (torch.tensor([[[size, 0, 0, 0], [0, size, size, 0]]], dtype=torch.float64) for size in (1e160, 1e25))
    result = run(on(Settings(scale=1, query=1, key=1), Inputs(q, k)))
    table, _ = drift_exhibit(result)
    for name, value in {"max_abs_logit": 1e185, "arm": 2**0.5 * 1e160, "arms": 2**0.5 * 1e25, "angles": 0.0}.items():
        held = np.array(table.column(f"plain.{name}")[result.at].as_py()).flat[-1]
        np.testing.assert_allclose(held, value, rtol=1e-6, atol=1e-6)
    assert math.isclose(result.plain.angles[result.at][0], math.pi / 2)
    assert math.isclose(result.plain.cosine[result.at], 1)


def test_a_capped_twin_that_moved_is_not_said_to_have_noticed_nothing() -> None:
    moved = explain(run(Settings(scale=1000, variant="softcap", softcap=5)))[0]
    assert "With softcap, attention spreads over its keys on average" in moved
    assert "nearly as at weight scale 1" in explain(run(Settings()))[0]


def test_the_default_pair_is_the_one_that_wins() -> None:
    result = run(Settings())
    assert result.plain.row[result.at].argmax() == Settings().key


def test_the_length_beside_the_arrows_is_said_to_be_that_of_q() -> None:
    """It has the colour of the keys: in the opening state the shown one is 66.5 long, and q is not."""
    length = 8 * np.linalg.norm(np.random.default_rng(0).standard_normal((16, 64))[5])
    assert tile(Settings(), "plain.arm.text") == f"‖q‖ = {length:.4g}"
    assert tile(Settings(), "norm.arm.text") == "‖q‖ = 1"


@pytest.mark.parametrize(("n_keys", "key"), [(16, 15), (64, 7), (64, 40)])
def test_the_shown_key_is_one_of_the_arrows(n_keys: int, key: int) -> None:
    result = run(Settings(n_keys=n_keys, key=key))
    table, view = drift_exhibit(result)
    q, k = np.random.default_rng(0).standard_normal((2, n_keys, 64)) * 8
    cosine = q[5] @ k[key] / np.linalg.norm(q[5]) / np.linalg.norm(k[key])
    for panel in view["panels"]:
        if panel["kind"] == "arrows":
            at = panel["selected"]
            assert panel.get("keys", range(16))[at] == key
            assert panel["subtitle"].startswith("16 of the keys; ") == (n_keys > 16)
            length = np.linalg.norm(k[key]) if panel["role"] == "plain" else 1
            for name, value in {"lengths": length, "angles": math.acos(cosine)}.items():
                held = table.column(panel[name])[result.at].as_py()
                assert len(held) == 16
                assert math.isclose(held[at], value, rel_tol=1e-6)


@pytest.mark.parametrize("pick", [{"row": 1, "column": 1}, {"column": 3}, {"news": 3}])
def test_a_pick_of_another_exhibit_is_dropped(pick: dict[str, int]) -> None:
    assert picked(Settings(), pick) == {}


def test_a_cell_of_a_pooled_heat_map_stands_for_its_first_key() -> None:
    assert picked(Settings(n_keys=256), {"query": 19, "key": 31}) == {"query": 152, "key": 248}


@pytest.mark.parametrize(
    ("n_keys", "cell", "spans", "bar"),
    [(64, (29, 6), ("58–59", "12–13"), (12, "12")), (256, (7, 1), ("56–63", "8–15"), (3, "12–15"))],
)
def test_a_pooled_picture_names_all_queries_and_keys_that_the_chosen_cell_stands_for(
    n_keys: int, cell: tuple[int, int], spans: tuple[str, str], bar: tuple[int, str]
) -> None:
    result = run(Settings(n_keys=n_keys, query=59, key=12))
    table, view = drift_exhibit(result)
    heats = [panel for panel in view["panels"] if panel["kind"] == "heat"]
    (bars,) = (panel for panel in view["panels"] if panel["kind"] == "bars")
    for heat in heats:
        assert heat["selected"] == cell
        assert str(heat["pooled"]["each"]) in heat["subtitle"]
        spec = chart(table, view, heat, Look(1, 0, table.num_rows - 1))
        for side, name, numbers in zip("yx", ("queries", "keys"), spans, strict=True):
            assert f'"{numbers}"' in spec["encoding"][side]["axis"]["labelExpr"]
            assert f"{name} {numbers}" in spec["description"]
    assert bars["labels"][bar[0]] == bar[1]
    assert bars["selected"] == bar[0]
    assert ("pooled" in bars) == (n_keys > 64)
    assert bool(bars["subtitle"]) == (n_keys > 64)


@pytest.mark.parametrize(
    ("format", "title"),
    [
        ("float64", "No score overflows float64"),
        ("bfloat16", "No score overflows bfloat16"),
        ("float16", "Lost to float16"),
    ],
)
def test_a_format_that_no_score_overflows_is_said_to_hold_them_all(format: str, title: str) -> None:
    view = drift_exhibit(run(Settings(format=format)))[1]  # type: ignore[arg-type]
    assert view["panels"][-1]["title"].startswith(title)
