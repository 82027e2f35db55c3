"""A diagnosis names no cause that the logits do not tell from another one."""

from typing import Any

import pytest

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.pipeline import OnWord, Pipeline, trace
from qkdemo.labs.placement import PRESETS, explain, run
from qkdemo.labs.placement.diagnosis import diagnose
from qkdemo.labs.placement.words import caught
from qkdemo.notation import written


def _cause(left: Pipeline, right: Pipeline, recipe: BlockRecipe) -> str:
    block = draw_block(recipe)
    return diagnose(left, block, trace(right, block).logits).cause


def test_an_order_is_not_named_where_the_tokens_are_too_few_for_the_references_own() -> None:
    """One gain for all channels may stand before rotary or after it."""
    for gain in ("none", "scalar"):
        assert _cause(Pipeline(), Pipeline(gain=gain), BlockRecipe(d_head=8, n_keys=4)) == "too_few"
        assert _cause(Pipeline(), Pipeline(gain=gain), BlockRecipe(d_head=8, n_keys=8)) == "gain"


def test_a_bias_left_out_is_not_called_other_gains() -> None:
    recipe = BlockRecipe(d_head=8, gains="untied", gain_spread=0.5)
    assert _cause(Pipeline(bias="channel"), Pipeline(), recipe) == "unknown"
    assert _cause(Pipeline(bias="channel"), Pipeline(gain="none"), recipe) == "gain"


@pytest.mark.parametrize("on", ["q", "k"])
def test_the_side_that_is_not_normalised_has_no_gain_in_a_diagnosis(on: OnWord) -> None:
    recipe = BlockRecipe(d_head=8, gains="untied", gain_spread=0.5)
    for cause, changes in {
        "direction": {"layout": "half_split_swapped"},
        "gamma_as_one_plus": {"stored": "one_plus"},
    }.items():
        assert _cause(Pipeline(on=on), Pipeline(on=on).but(**changes), recipe) == cause


@pytest.mark.parametrize("change", [{"gains": "unit"}, {"gain_spread": 0.0}, {}])
def test_an_output_that_alone_tells_the_sides_apart_is_off_by_what_the_dials_make_of_it(change: dict[str, Any]) -> None:
    state = PRESETS["values_too"].but(**change)
    assert caught(state).endswith(f"by {written(100 * run(state).relative_output_error, 3)} %.")


def test_logits_that_are_all_zero_have_a_cause_too() -> None:
    told = " ".join(explain(run(PRESETS["one_plus_as_gamma"].but(gains="unit"))))
    assert "every logit is 0 times the expected one" in told
