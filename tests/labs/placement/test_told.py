"""A diagnosis names no cause that the logits do not tell from another one."""

import random
from typing import Any

import numpy as np
import pytest

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.pipeline import CHOICES, OnWord, Pipeline, trace
from qkdemo.charts.columns import gap
from qkdemo.facts.models import MODELS
from qkdemo.labs.placement import PRESETS, Settings, explain, run
from qkdemo.labs.placement.diagnosis import EXACT, diagnose
from qkdemo.labs.placement.words import caught, pattern
from qkdemo.notation import written
from tests.labs.placement.passes import About
from tests.labs.placement.truths import NAMED, NAMES, TRUTHS
from tests.labs.told import SEED, hold, states
from tests.oracles import heard


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


def test_one_changed_choice_that_a_cause_names_is_never_an_unknown_cause() -> None:
    """Beside every model of the table, and those that differ from one in a choice; what is named is true."""
    draw, models = random.Random(SEED), [model.pipeline for model in MODELS if model.pipeline]
    limits = {"d_model": 32, "n_heads": 4, "n_kv_heads": 4, "d_head": 16}
    for block in states(Settings, 40, limits, compare="two", format="float64", n_keys=16):
        left = draw.choice(models)
        left = left.but(**{name: draw.choice(CHOICES[name]) for name in draw.sample([*CHOICES], draw.randint(0, 1))})
        name = draw.choice([*NAMED])
        sides = {"left": left, "right": left.but(**{name: draw.choice(CHOICES[name])})}
        words = {f"{side}_{name}": getattr(one, name) for side, one in sides.items() for name in CHOICES}
        state = block.but(**words)
        verdict, about = run(state).verdict, About(state, state.gain_spread)
        if verdict.cause != "same":
            with heard() as said, np.errstate(all="ignore"):
                pattern(verdict, left, state.d_head, gap(verdict.misfit, EXACT, 2), block=about.block)
                hold(said, TRUTHS, NAMES, about, state)
