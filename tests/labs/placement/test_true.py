"""Every sentence of the placement lab that depends on a result, held against both passes at random settings."""

import dataclasses
import itertools
import math
import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from qkdemo.attention.blocks import Block, BlockRecipe, draw_block
from qkdemo.attention.pipeline import CHOICES as CHOICES_OF
from qkdemo.attention.pipeline import Pipeline, trace
from qkdemo.facts.models import acting_gain, same_function
from qkdemo.floats.formats import FORMATS, rounded
from qkdemo.labs.placement import Settings, explain, run
from qkdemo.labs.placement.lab import PRESETS, mistakes_of, spreads_of
from qkdemo.labs.placement.mistakes import MISTAKES, explain_mistakes
from qkdemo.labs.placement.scales import norm_too
from qkdemo.labs.placement.words import caught, contract, findings
from tests.labs.placement.passes import About
from tests.labs.placement.truths import CAUSES, NAMES, TRUTHS, mistaken
from tests.labs.told import HOW_MANY, SEED, computed, hold, reads, states
from tests.oracles import heard

SMALL: dict[str, Any] = {"d_model": 32, "n_heads": 4, "n_kv_heads": 4, "d_head": 16, "n_keys": 16}


def drawn() -> Iterator[Settings]:
    """Random blocks under random pipelines, of which half differ in one choice or two alone."""
    draw = random.Random(SEED)
    for state in states(Settings, 8, SMALL):
        left = {name: getattr(state, f"left_{name}") for name in CHOICES}
        if draw.random() < 0.4:
            left = {name: getattr(Settings(), f"left_{name}") for name in CHOICES} | {"norm": left["norm"]}
        changed = draw.sample(CHOICES, draw.choice([0, 1, 1, 1, 2]))
        right = left | {name: getattr(state, f"right_{name}") for name in changed}
        alike = {
            f"{side}_{name}": word for side, words in (("left", left), ("right", right)) for name, word in words.items()
        }
        kind = draw.random()
        if kind < 0.2:
            yield state.but(compare="all_mistakes", format="float64")
        elif kind < 0.35:
            preset = draw.choice(list(PRESETS.values())).as_dict()
            yield state.but(
                compare="two", **{name: word for name, word in preset.items() if name.startswith(("left_", "right_"))}
            )
        else:
            yield state.but(**alike if kind < 0.9 else {}, compare="two")


CHOICES = [name.removeprefix("left_") for name in Settings().as_dict() if name.startswith("left_")]


def test_every_sentence_of_a_result_has_an_oracle() -> None:
    needed = computed(r"placement\.(finding|caught)\..*", r"placement\.(vanishing|vanishing_with_one_head|same|lost)")
    needed |= computed(r"placement\.(nothing|rounding|rounding_and_output|only_output|apart|by_position)")
    needed |= {f"cause.{word}" for word in CAUSES}
    assert needed == set(TRUTHS)


def test_every_sentence_is_true_wherever_the_dials_stand() -> None:
    held, draw = set[str](), random.Random(SEED)
    with np.errstate(all="ignore"):
        for state in drawn():
            result, spreads = run(state), spreads_of(state)
            with heard() as said:
                told = caught(state)
                explain(result)
                headlines = findings(state)
            assert told
            assert len(headlines) == len(spreads)
            own = [each for each in said if not each.key.startswith("placement.finding")]
            held |= hold(own, TRUTHS, NAMES, About(state, state.gain_spread, result), state)
            of_spreads = [each for each in said if each.key.startswith("placement.finding")][: len(spreads)]
            for at in draw.sample(range(len(spreads)), 2):
                held |= hold([of_spreads[at]], TRUTHS, NAMES, About(state, spreads[at]), state)
    if HOW_MANY:
        print(len(held), "of", len(TRUTHS), "were heard; not", sorted(set(TRUTHS) - held))
    assert len(held) > 8


def held(state: Settings) -> set[str]:
    """What is said of one state, all of it true."""
    at = spreads_of(state).index(state.gain_spread)
    with heard() as said, np.errstate(all="ignore"):
        assert caught(state)
        explain(run(state))
        assert findings(state)
    headlines = [each for each in said if each.key.startswith("placement.finding")]
    of_state = [each for each in said if each not in headlines] + headlines[at : at + 1]
    return hold(of_state, TRUTHS, NAMES, About(state, state.gain_spread, run(state)), state)


SCALES = ("inverse_root", "one", "root", "inverse")


@pytest.mark.parametrize(
    "norms", [("none", "none"), ("rms", "rms"), ("rms", "l2"), ("l2", "rms"), ("layernorm", "rms")]
)
@pytest.mark.parametrize("left", SCALES)
def test_a_scale_is_told_from_what_the_left_side_has(left: Any, norms: Any) -> None:
    """Only where it has 1/√d can that be missing, and only where it has RMSNorm can L2 stand in its place."""
    state = Settings(**SMALL, left_scale=left, left_norm=norms[0], right_norm=norms[1], right_order="norm_rotary")
    for right in SCALES:
        for on in ("qk", "q"):
            held(state.but(right_scale=right, left_on=on, right_on=on))


@pytest.mark.parametrize("gains", ["none", "channel"])
@pytest.mark.parametrize("bias", ["none", "channel"])
def test_gains_and_biases_are_named_where_a_side_has_them(gains: Any, bias: Any) -> None:
    alike = {"left_gain": gains, "right_gain": gains, "left_bias": bias, "right_order": "norm_rotary"}
    for changes in (
        {},
        {"right_norm": "layernorm"},
        {"gain_spread": 0.0},
        {"gains": "unit"},
        {"right_key_gain": "k_alone"},
    ):
        held(Settings(**SMALL | alike | changes))
    held(Settings(**SMALL | alike, left_on="q", right_on="q", left_key_gain="k_alone", right_key_gain="k_alone"))


@pytest.mark.parametrize("format", ["float64", "bfloat16", "float16"])
@pytest.mark.parametrize("changes", [{}, {"right_cast": "gain_first"}, {"right_order": "rotary_norm"}, {"mean": 3.0}])
def test_a_test_in_a_narrow_format_is_told_by_that_format(format: Any, changes: Any) -> None:
    held(Settings(**SMALL, format=format).but(**{"right_order": "norm_rotary"} | changes))


@pytest.mark.parametrize("changes", [{"right_place": "weights", "right_norm": "l2"}, {"right_on": "qkv"}])
def test_what_comes_after_the_logits_is_not_put_down_to_the_format(changes: dict[str, Any]) -> None:
    left = "none" if "right_place" in changes else "rms"
    state = Settings(**SMALL, format="bfloat16", left_norm=left, right_order="norm_rotary").but(**changes)
    assert "placement.rounding_and_output" in held(state.but(right_cast="gain_first"))
    assert "placement.only_output" in held(state)


def test_of_one_pipeline_on_both_sides_nothing_differs_not_even_by_rounding() -> None:
    state = Settings(**SMALL, right_order="norm_rotary", seed=12)
    assert "placement.nothing" in held(state) & held(state.but(format="bfloat16"))


@pytest.mark.parametrize("gains", ["unit", "tied", "untied"])
def test_what_fresh_weights_hide_gains_uneven_within_pairs_show(gains: Any) -> None:
    assert "placement.vanishing" in held(Settings(**SMALL, compare="all_mistakes", gains=gains))


BARE = Pipeline(norm="none", gain="none", order="none")
BY_HEAD = Pipeline(on="k", key_gain="q_alone", gain="head_channel", bias="channel")
BLOCK = draw_block(BlockRecipe(d_model=32, n_heads=4, n_kv_heads=2, d_head=8, n_keys=6, offset=3))


def computed_by(pipeline: Pipeline) -> list[list[float]]:
    """Logits, weights and output, in bfloat16, which feels the order of gain and cast."""
    made = trace(pipeline, BLOCK, store=partial(rounded, format=FORMATS["bfloat16"]))
    return [x.flatten().tolist() for x in (made.logits, made.weights, made.output)]


def test_two_sides_that_compute_something_else_have_different_contracts() -> None:
    for base in (
        Pipeline(),
        BARE,
        Pipeline(norm="none"),
        Pipeline(norm="none", on="q"),
        BY_HEAD,
        Pipeline(place="input"),
        Pipeline(place="weights"),
        Pipeline(place="weights", gain="none"),
        Pipeline(place="weights", bias="channel"),
    ):
        made = {
            base.but(**{name: word}): computed_by(base.but(**{name: word}))
            for name, words in CHOICES_OF.items()
            for word in words
        }
        for one, other in itertools.permutations(made, 2):
            if contract(one, other) == contract(other, one):
                assert made[one] == made[other] or same_function(one) == same_function(other), (one, other)


def numbers(pipeline: Pipeline, block: Block = BLOCK) -> torch.Tensor:
    made = trace(pipeline, block)
    return torch.cat([made.logits.flatten(), made.weights.flatten(), made.output.flatten()])


def test_what_is_called_one_function_is_one_and_a_gain_is_named_where_it_acts() -> None:
    """Of 68 000 random pipelines not one was otherwise; these are the first."""
    draw = random.Random(SEED)
    other = dataclasses.replace(BLOCK, gain_q=1.3 * BLOCK.gain_q + 0.1, gain_k=1.2 * BLOCK.gain_k + 0.2)
    for _ in range(HOW_MANY or 300):
        one = Pipeline(**{name: draw.choice(words) for name, words in CHOICES_OF.items()})
        for same in (same_function(one), one.but(**acting_gain(one))):
            torch.testing.assert_close(numbers(same), numbers(one), rtol=1e-6, atol=1e-8)
        acts = not torch.equal(trace(one, other).raw, trace(one, BLOCK).raw)
        assert ("a gain" in contract(one)) == bool(one.multiplied) == acts, one


def test_a_contract_names_nothing_that_does_nothing() -> None:
    """Rotary alone comes before nothing, and what has no gain reads none from anywhere."""
    for order in ("norm_rotary", "rotary_norm"):
        alone = "rotary positions; logits times 1/√d."
        bare = BARE.but(order=order)
        assert contract(bare, BARE) == f"no norm on q and k; {alone}"
        assert contract(Pipeline(place="input", gain="none", order=order)) == f"RMSNorm, before the projection; {alone}"
    for changes in ({"key_gain": "of_q"}, {"stored": "one_plus"}, {"place": "full_width"}, {"on": "qkv"}, {"on": "q"}):
        assert contract(BARE.but(**changes), BARE) == contract(BARE, BARE.but(**changes)) == contract(BARE)
    assert contract(BY_HEAD).startswith("RMSNorm, per head; bias: per head and channel; then rotary positions;")
    assert contract(Pipeline(norm="none", on="q", key_gain="k_alone")) == contract(BARE.but(order="norm_rotary"))
    of_weights = contract(Pipeline(place="weights", norm="l2", gain="none"))
    assert of_weights == "no norm on q and k; rotary positions; logits times 1/√d; L2, after softmax: no QK norm."


@pytest.mark.parametrize("layout", ["half_split", "interleaved", "half_split_swapped"])
@pytest.mark.parametrize("rotated", ["all", "half", "quarter"])
@pytest.mark.parametrize("conversion", ["none", "weights_and_gain"])
def test_gains_tied_within_rotary_pairs_hide_the_order_in_every_layout(
    layout: Any, rotated: Any, conversion: Any
) -> None:
    words = {"layout": layout, "rotated": rotated, "conversion": conversion}
    alike = {f"{side}_{name}": word for side in ("left", "right") for name, word in words.items()}
    state = Settings(**SMALL, **alike, gains="tied", gain_spread=0.5, seed=11)
    assert "placement.finding.same" in held(state)
    assert "placement.finding.apart" in held(state.but(gains="untied"))
    assert "placement.finding.apart" in held(state.but(left_order="none", left_layout="half_split"))


@pytest.mark.parametrize("right", ["layernorm", "none"])
def test_an_output_of_nothing_is_no_score_that_was_lost(right: Any) -> None:
    """Two keys at one end of a softcap have weights alike, of which LayerNorm leaves 0."""
    cap = {
        f"{side}_{name}": word
        for side in ("left", "right")
        for name, word in (("cap", "softcap"), ("scale", "learned"))
    }
    base = Settings(n_keys=2, d_head=8, d_model=8, n_heads=1, n_kv_heads=1, softcap=1, gain=100, seed=11, **cap)
    seeds = (
        base.but(seed=seed, right_order="norm_rotary", left_place="weights", left_norm="layernorm")
        for seed in range(200)
    )
    alike = (state.but(right_place="weights", right_norm=right, format="bfloat16") for state in seeds)
    state = next(state for state in alike if not run(state).left.output.any())
    assert "placement.lost" not in held(state)
    assert not math.isnan(run(state).relative_output_error)


def test_a_ratio_of_four_may_also_be_gains_of_one_read_as_two() -> None:
    state = Settings(**SMALL, gains="unit", right_order="norm_rotary", seed=11)
    for changes in ({"right_stored": "one_plus"}, {"right_scale": "one"}):
        assert {"cause.scale_one", "cause.gains_too"} <= held(state.but(**changes))
    assert "cause.gains_too" not in held(state.but(right_scale="root"))
    assert "cause.gains_too" not in held(state.but(gains="tied", right_scale="one"))
    other = state.but(left_scale="learned", right_scale="learned", right_stored="one_plus")
    assert "cause.gains_alone" in held(other)
    assert "cause.rms_alone" in held(other.but(left_norm="l2", right_stored="gamma"))


@pytest.mark.parametrize(
    ("alike", "changes", "cause"),
    [
        ({"place": "in_product"}, {"right_stored": "one_plus"}, "gamma_as_one_plus"),
        ({"place": "in_product"}, {"right_layout": "interleaved"}, "layout"),
        ({"conversion": "weights_and_gain"}, {"right_stored": "one_plus"}, "gamma_as_one_plus"),
        ({"conversion": "weights_and_gain", "layout": "interleaved"}, {"right_order": "rotary_norm"}, "rotary_first"),
        ({"conversion": "weights"}, {"right_key_gain": "of_q"}, "q_gain_on_k"),
        ({"grouping": "tile"}, {"right_norm": "none"}, "norm_skipped"),
        ({"gain": "head", "order": "none"}, {"right_stored": "one_plus", "right_order": "none"}, "gain"),
        ({"gain": "head"}, {"right_stored": "one_plus"}, "gain"),
    ],
)
def test_a_cause_is_found_however_the_left_side_says_the_same(alike: Any, changes: Any, cause: str) -> None:
    both = {f"{side}_{name}": word for side in ("left", "right") for name, word in alike.items()}
    state = Settings(**SMALL | {"n_kv_heads": 2, "right_order": "norm_rotary"} | both | changes)
    assert f"cause.{cause}" in held(state)


def test_a_contract_without_a_norm_on_q_and_k_does_not_say_that_they_are_normalised() -> None:
    for changes in ({"place": "weights"}, {"norm": "none"}):
        for on, gain, bias in itertools.product(CHOICES_OF["on"], CHOICES_OF["gain"], CHOICES_OF["bias"]):
            pipeline = Pipeline(on=on, gain=gain, bias=bias, **changes)  # type: ignore[arg-type]
            told = contract(pipeline)
            assert told.startswith("no norm on q and k;")
            assert "what is normalised" not in told
            assert ("acting on" in told) == (on in ("q", "k") and bias != "none")
            assert ("v normalised as well" in told) == (on == "qkv" and "place" in changes)


@pytest.mark.parametrize("words", [{"on": "q"}, {"on": "q", "key_gain": "of_q"}, {"on": "k"}])
@pytest.mark.parametrize("other", ["own", "of_q", "q_alone", "k_alone"])
def test_of_a_gain_on_k_nothing_is_said_where_the_norm_acts_on_one_side(words: Any, other: Any) -> None:
    """That side is said, and a side without a norm has no gain."""
    told = contract(Pipeline(**words), Pipeline(key_gain=other))
    assert "gain on k" not in told
    assert f"what is normalised: {words['on']} alone" in told


def test_rotary_before_the_gain_alone_is_not_said_to_come_before_a_norm() -> None:
    turned = Pipeline(place="input", order="rotary_norm")
    assert "; rotary positions before the gain; " in contract(turned)
    assert "; rotary positions before the bias; " in contract(turned.but(gain="none", bias="channel"))
    assert "; rotary positions before it; " in contract(turned.but(place="per_head"))


def test_what_is_not_usual_is_named_even_if_both_sides_have_it() -> None:
    told = contract(Pipeline(on="q"), Pipeline(on="q"))
    assert told.endswith("; what is normalised: q alone.")
    assert "normalised" not in contract(Pipeline(), Pipeline())


def test_what_is_said_of_eight_draws_is_their_numbers() -> None:
    settings = Settings(n_keys=8, d_head=8, d_model=16, gains="unit", token_spread=4)
    found = mistakes_of(settings)
    with heard() as said:
        explain_mistakes(found)
    errors = mistaken(About(settings, settings.gain_spread))
    for each in said[:-1]:
        name = each.key.removeprefix("mistake.")
        error, lowest, highest = (str(each.values[word]) for word in ("error", "lowest", "highest"))
        assert error == "< 10⁻¹²" if errors[name] < 1e-12 else reads(error, errors[name], 3)
        assert {lowest, error, highest} == {error} or lowest != highest
    assert said[-1].key == "placement.hidden"
    hidden = sum(x < 1e-12 for x in mistaken(About(settings, 0.0)).values())
    assert (said[-1].number("hidden"), said[-1].number("all")) == (hidden, len(MISTAKES))
    assert hidden == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"on": "k", "key_gain": "q_alone"}, "; what is normalised: k alone."),
        ({"on": "q", "key_gain": "k_alone"}, "; what is normalised: q alone."),
        ({"on": "q", "key_gain": "of_q"}, "; what is normalised: q alone."),
    ],
)
def test_a_contract_names_no_gain_that_multiplies_nothing(words: Any, said: str) -> None:
    """A gain follows a norm: the side without one has none."""
    pipeline = Pipeline(**words)
    told = contract(pipeline, pipeline)
    assert told.endswith(said)
    assert ("a gain per channel" in told) == (words["key_gain"] == "of_q")
    assert "gain on k" not in told


@pytest.mark.parametrize("norm", ["rms", "l2"])
def test_no_other_norm_makes_one_ratio_of_logits_with_a_bias(norm: Any) -> None:
    """A bias is added after the norm, and does not grow with it."""
    power = -2 if norm == "rms" else 2
    assert norm_too(16.0 ** (power / 2), Pipeline(norm=norm), 16) is not None
    assert norm_too(16.0 ** (power / 2), Pipeline(norm=norm, bias="channel"), 16) is None


def test_the_format_that_unit_gains_hide_is_found_with_uneven_ones() -> None:
    order = Settings(**SMALL, format="bfloat16", right_order="norm_rotary", right_cast="gain_first", gains="unit")
    assert "placement.caught.rounding_with" in held(order)


@pytest.mark.parametrize("stored", [("gamma", "one_plus"), ("one_plus", "gamma")])
def test_gains_that_the_right_side_alone_has_are_those_that_are_named(stored: Any) -> None:
    """A gain of 1 changes nothing, however it is stored: a model without gains stores none."""
    state = Settings(
        **SMALL, right_order="norm_rotary", left_gain="none", left_stored=stored[0], right_stored=stored[1]
    )
    assert {"placement.caught.grown", "placement.finding.apart"} <= held(state)
    assert "placement.finding.same" in held(state.but(gains="unit"))


@pytest.mark.parametrize(
    ("alike", "changes", "cause"),
    [
        (
            {"order": "rotary_norm", "layout": "half_split_swapped", "gain": "none"},
            {"layout": "half_split"},
            "direction",
        ),
        ({"order": "rotary_norm", "gain": "head"}, {"layout": "half_split_swapped"}, "direction"),
        ({"place": "full_width"}, {"norm": "none"}, "norm_skipped"),
        ({"place": "full_width"}, {"place": "input"}, "input"),
        ({"place": "input"}, {"norm": "none"}, "norm_skipped"),
        ({"on": "q"}, {"norm": "none"}, "norm_skipped"),
        ({"on": "k"}, {"place": "full_width"}, "full_width"),
        ({"norm": "layernorm"}, {"norm": "none"}, "no_norm"),
        ({"norm": "layernorm"}, {"place": "full_width"}, "over_all_heads"),
        ({"bias": "channel"}, {"layout": "interleaved"}, "layout"),
        ({"bias": "channel"}, {"stored": "one_plus"}, "gamma_as_one_plus"),
        ({"bias": "channel"}, {"place": "input"}, "of_input"),
    ],
)
def test_a_cause_is_found_whatever_else_fits_and_wherever_the_norm_acts(alike: Any, changes: Any, cause: str) -> None:
    pair = {"left": alike, "right": alike | changes}
    words = {f"{side}_{name}": word for side, one in pair.items() for name, word in one.items()}
    state = Settings(**SMALL | {"token_spread": 4, "head_spread": 2, "right_order": "norm_rotary"} | words)
    assert f"cause.{cause}" in held(state)
