"""A diagnosis names no cause that the logits do not tell from another one."""

import dataclasses
import random
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.pipeline import CHOICES, OnWord, Pipeline, trace
from qkdemo.charts.columns import gap
from qkdemo.facts.models import MODELS
from qkdemo.floats.formats import FORMATS, rounded
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


@pytest.mark.parametrize("softcap", [1, 2])
@pytest.mark.parametrize(("mean", "head_spread"), [(2.5, 1), (3, 1), (1, 8)])
@pytest.mark.parametrize("left", [{}, {"scale": "one"}, {"norm": "none"}])
def test_what_a_softcap_hides_is_named_as_it_is_without_one_or_not_at_all(
    left: dict[str, Any], mean: float, head_spread: float, softcap: float
) -> None:
    """Nearly every logit stands at an end of the softcap: those few that do not are what a cause is read from."""
    recipe = BlockRecipe(d_model=32, d_head=16, n_keys=16, n_kv_heads=2, gain_spread=0.5, mean=mean, seed=1)
    block = draw_block(dataclasses.replace(recipe, head_spread=head_spread, softcap=softcap))
    reference = Pipeline(gain="channel").but(**left)
    for changes in (
        {"scale": "root"},
        {"scale": "learned"},
        {"stored": "one_plus"},
        {"key_gain": "k_alone"},
        {"gain": "none"},
        {"rotated": "half"},
        {"order": "rotary_norm"},
        {"norm": "none"},
    ):
        port = reference.but(**changes)
        if port == reference:
            continue
        bare, capped = (
            diagnose(reference.but(cap=cap), block, trace(port.but(cap=cap), block).logits)
            for cap in ("none", "softcap")
        )
        assert capped.cause in (bare.cause, "same", "too_few"), changes
        if capped.cause == "constant":
            assert capped.ratio == pytest.approx(bare.ratio, rel=1e-4)


@pytest.mark.parametrize("mean", [2.5, 3])
def test_a_ratio_of_logits_that_nearly_all_stand_at_the_softcap_is_the_true_one_or_none(mean: float) -> None:
    """It was 3.8 for 64."""
    both = {f"{side}_cap": "softcap" for side in ("left", "right")}
    for softcap in (1, 2, 3):
        state = PRESETS["scale_one"].but(mean=mean, softcap=softcap, **both)
        for right, ratio in (("one", 8), ("root", 64)):
            verdict = run(state.but(right_scale=right)).verdict
            assert verdict.cause == "too_few" or verdict.ratio == pytest.approx(ratio, rel=1e-4)
    assert run(state.but(mean=0)).verdict.ratio == pytest.approx(8)
    assert run(state.but(mean=0, format="bfloat16")).verdict.ratio == pytest.approx(8)


def test_a_head_at_the_ends_of_a_softcap_neither_confirms_nor_rejects_a_cause() -> None:
    """The last head is at the ends, so that its logits are the expected ones; the gains are wrong in all."""
    block = draw_block(BlockRecipe(d_model=32, d_head=8, n_keys=24, gain_spread=0.5, softcap=1))
    of_last = torch.tensor([0, 0, 0, 1e3]).double().repeat_interleave(8)  # added by its projections
    size = torch.tensor([0.3, 0.3, 0.3, 1e3]).double()
    block = dataclasses.replace(block, b_q=of_last, b_k=of_last, learned_scale=size)
    reference = Pipeline(cap="softcap", scale="learned", order="none")
    other = dataclasses.replace(block, gain_q=block.gain_q.flip(-1))
    expected, observed = (trace(reference, one).logits for one in (block, other))
    assert torch.equal(expected[3], observed[3])
    assert diagnose(reference, block, observed).cause == "gain"


def test_a_cause_is_read_from_a_narrow_format_beside_a_softcap_too() -> None:
    """bfloat16 keeps eight bits, so that logits near an end of the softcap tell less."""
    store = partial(rounded, format=FORMATS["bfloat16"])
    block = draw_block(BlockRecipe(d_model=32, d_head=16, n_keys=16, gain_spread=0.5, mean=1, softcap=1))
    reference = Pipeline(gain="channel", cap="softcap")
    for changes, causes in (({"scale": "one"}, {"scale_one"}), ({"scale": "root"}, {"scale_root", "too_few"})):
        observed = trace(reference.but(**changes), block, store=store).logits.double()
        assert diagnose(reference, block, observed, 0.0104).cause in causes
