"""The placement exhibit: a bar sets the pipelines of its mistake, and rounding is drawn as nothing."""

import pyarrow as pa
import pytest

from qkdemo.labs.placement import PRESETS, Settings, run
from qkdemo.labs.placement.mistakes import MISTAKES
from qkdemo.labs.placement.view import picked, placement_exhibit
from qkdemo.notation import written

SMALL = Settings(d_model=32, n_heads=2, d_head=8, n_keys=8)


@pytest.mark.parametrize(("at", "name"), list(enumerate(MISTAKES)))
def test_a_click_on_a_bar_sets_both_pipelines_and_leaves_the_block(at: int, name: str) -> None:
    state = SMALL.but(left_norm="l2", right_cap="softcap", compare="all_mistakes", seed=3)
    chosen = state.but(**picked(state, {"key": at}))
    preset = PRESETS[name].but(d_model=32, n_heads=2, d_head=8, n_keys=8, seed=3)
    assert chosen == preset


def test_a_click_beyond_the_last_key_or_bar_stays_within() -> None:
    assert picked(SMALL, {"query": 99, "key": 99}) == {"query": 7, "key": 7}
    assert picked(SMALL, {"key": 99})["right_scale"] == "one"


@pytest.mark.parametrize("compare", ["two", "all_mistakes"])
def test_every_column_that_the_view_names_is_in_the_table(compare: str) -> None:
    table, view = placement_exhibit(run(SMALL.but(compare=compare)))  # type: ignore[arg-type]
    named = [line["column"] for panel in view["panels"] for line in panel.get("lines", ())]
    named += [panel["column"] for panel in view["panels"] if "column" in panel]
    named += [line["column"] for tile in view["tiles"] for line in tile["lines"]]
    named += [cell for panel in view["panels"] if panel["kind"] == "cells" for row in panel["rows"] for cell in row[1:]]
    assert set(named) <= set(table.column_names)


def test_rounding_is_drawn_as_nothing() -> None:
    table, _ = placement_exhibit(run(SMALL))
    assert isinstance(table, pa.Table)
    assert table["rotary_first.error"][0].as_py() == 0
    assert table["pair.logits.text"][0].as_py() == "< 10⁻¹²"


def test_a_float16_logit_that_overflows_leaves_an_infinite_error_and_the_exhibit_is_drawn() -> None:
    wide = {"d_model": 512, "n_heads": 8, "n_kv_heads": 8, "d_head": 128}
    state = SMALL.but(**wide, head_spread=16, token_spread=16, mean=3).but(
        format="float16", right_norm="none", right_scale="learned", gain=100
    )
    table, _ = placement_exhibit(run(state))
    assert max(table["pair.logits"].to_pylist()) == float("inf")


@pytest.mark.parametrize("order", ["norm_rotary", "rotary_norm"])
def test_the_strongest_colour_is_said_to_be_what_it_is(order: str) -> None:
    """Also where nothing is apart: rounding has no colour."""
    _, view = placement_exhibit(run(SMALL.but(right_order=order)))
    gap = next(panel for panel in view["panels"] if "ramp" in panel)
    assert gap["subtitle"].endswith(f"; {gap['ramp'][-1][1]} has the strongest colour")


def test_the_largest_logit_of_a_head_is_one_that_is_seen() -> None:
    result = run(SMALL.but(causal=True, seed=2))
    table, _ = placement_exhibit(result)
    logits = result.left.logits[0].abs()
    assert logits.tril().max() < logits.max()
    at = table["spread"].to_pylist().index(0.5)
    assert table["left.largest.text"][at].as_py() == written(logits.tril().max().item())
