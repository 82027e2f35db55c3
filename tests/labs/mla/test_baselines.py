"""What is done under latent attention instead of QK norm: bounds, growth, and a program that writes the weights out."""

import contextlib
import dataclasses
import io
import json
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.labs.mla.baselines import METHODS, STEP, LatentRecipe, compare
from qkdemo.labs.mla.costs import Widths, burden, cost_of
from qkdemo.labs.mla.lab import Settings, run
from qkdemo.labs.mla.program import alternatives_program
from qkdemo.labs.mla.view import other_ways_exhibit

SMALL = LatentRecipe(
    n_heads=3,
    n_keys=6,
    latent=16,
    d_content=8,
    d_rotary=4,
    joint=True,
    gain_spread=0.5,
    head_spread=4.0,
    threshold=5.0,
    scales=(0.1, 1.0, 3.0, 10.0, 30.0),
    seed=0,
)
WIDTHS = Widths(n_heads=128, latent=512, d_content=128, d_rotary=64, joint=True)  # DeepSeek-V3


@hypothesis.settings(max_examples=25)
@given(
    st.builds(
        dataclasses.replace,
        st.just(SMALL),
        joint=st.booleans(),
        n_heads=st.integers(1, 4),
        n_keys=st.integers(1, 7),
        gain_spread=st.sampled_from([0.0, 0.5, 0.95]),
        threshold=st.sampled_from([1.0, 5.0, 200.0]),
        seed=st.integers(0, 99),
    )
)
def test_qk_norm_bounds_all_tokens_and_qk_clip_those_it_has_seen(recipe: LatentRecipe) -> None:
    found = compare(recipe)
    for largest in (found.largest["qk_norm"], found.unseen["qk_norm"]):
        assert (largest <= found.bound * (1 + 1e-12)).all()
    assert (found.factors <= 1).all()
    assert (found.factors[0] == 1).all() or recipe.threshold < 5  # at a small scale nothing is clipped
    assert (found.largest["qk_clip"] <= found.largest["latent_norm"] * (1 + 1e-12)).all()
    clipped_all = (found.factors < 1).all(1)
    assert (found.shared_key[clipped_all] == 0).all()


def test_norms_on_the_latents_bound_the_latents_share_alone() -> None:
    """Ten times the projections: 10⁴ in a content logit without a norm, 10³ in a rotary one, 10² with the norms."""
    found = compare(dataclasses.replace(SMALL, scales=(3.0, 30.0)))
    growth = {word: column[1] / column[0] for word, column in found.largest.items()}
    assert growth["latent_norm"] == pytest.approx(100, rel=1e-5)
    assert 1000 < growth["nothing"] <= 10_000
    assert growth["rates"] == growth["latent_norm"]
    assert growth["qk_norm"] < 2


def test_a_step_moves_a_logit_the_more_the_larger_the_weights_unless_the_rates_shrink_with_them() -> None:
    found = compare(dataclasses.replace(SMALL, scales=(3.0, 30.0)))
    growth = {word: column[1] / column[0] for word, column in found.moved.items()}
    assert growth["latent_norm"] == pytest.approx(10, rel=0.05)
    assert growth["rates"] == pytest.approx(1, rel=0.05)
    assert growth["qk_norm"] < 0.2
    assert STEP == 1e-3


def test_from_scale_1_on_the_rates_keep_a_step_alike_and_below_it_they_do_not() -> None:
    """Below, a rate of 0.001 over the length of a small head is a long step, and two of them multiply."""
    moved = compare(dataclasses.replace(SMALL, head_spread=4.0, scales=(0.1, 1.0, 30.0))).moved["rates"]
    assert moved[1] == pytest.approx(moved[2], rel=0.15)
    assert moved[0] > 1.5 * moved[1]


def test_qk_clip_scales_a_head_to_its_threshold_and_leaves_the_others_alone() -> None:
    """By the weights themselves: see the program below; here by what the factors say."""
    found = compare(dataclasses.replace(SMALL, scales=(1.0, 2.0, 3.0)))
    partly = [at for at, row in enumerate(found.factors) if 0 < (row < 1).sum() < len(row)]
    assert partly
    for at in partly:
        assert (found.factors[at] == 1).any()
        assert found.shared_key[at] > 0  # what a factor on the shared rotary key would have done to them


@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("joint", [True, False])
def test_a_program_with_the_weights_written_out_finds_the_same(scale: float, joint: Any) -> None:
    recipe = dataclasses.replace(SMALL, joint=joint, scales=(scale,))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(alternatives_program(recipe, scale), {})
    printed, found = json.loads(out.getvalue()), compare(recipe)
    assert "qkdemo" not in alternatives_program(recipe, scale)
    assert list(printed) == list(METHODS)
    for word in METHODS:
        assert found.largest[word][0] == pytest.approx(printed[word]["largest"], rel=1e-10)
        assert found.moved[word][0] == pytest.approx(printed[word]["moved"], rel=1e-7)


def test_other_tokens_pass_the_threshold_of_a_clip_that_has_not_seen_them() -> None:
    passed = [
        compare(dataclasses.replace(SMALL, n_heads=1, scales=(30.0,), seed=seed)).unseen["qk_clip"][0] > 5.0
        for seed in range(20)
    ]
    assert np.mean(passed) > 0.3


def test_burdens_at_the_widths_of_deepseek_v3_are_counted_by_hand() -> None:
    latent_norm, clip, rates, qk_norm = (burden(word, WIDTHS, 4096) for word in METHODS[1:])
    weights = 128 * 512 * (128 + 64) + 128 * 512 * 128
    assert (latent_norm.step_flops, latent_norm.cached_numbers, latent_norm.stays) == (8 * 512, 0, True)
    assert (clip.step_flops, clip.training_flops, clip.update_flops) == (0, 128 * 4097 // 2, weights)
    assert (rates.step_flops, rates.training_flops, rates.update_flops) == (0, 0, 3 * weights)
    assert qk_norm.cached_numbers == 128
    forming, query = 2 * 128 * 512 * 128, 4 * 128 * 192
    assert qk_norm.step_flops == 4096 * 128 + query + forming + 2 * (128 * 128 + 64) + 64
    assert [one.keys for one in (latent_norm, clip, rates, qk_norm)] == ["never"] * 3 + ["once"]
    assert [one.stays for one in (latent_norm, clip, rates, qk_norm)] == [True, False, False, True]
    assert cost_of("without_norm", WIDTHS, 4096).flops + qk_norm.step_flops == cost_of("absorbed", WIDTHS, 4096).flops


def test_a_mean_of_comparisons_keeps_its_half() -> None:
    """Over two tokens one head compares 1 and 2 logits."""
    one = dataclasses.replace(WIDTHS, n_heads=1)
    assert [burden("qk_clip", one, context).training_flops for context in (1, 2, 3)] == [1, 1.5, 2]
    cells = other_ways_exhibit(run(Settings(n_heads=1, context=32768)))[1]["panels"][-1]
    assert "16\u202f384.5" in json.dumps(cells, ensure_ascii=False)
