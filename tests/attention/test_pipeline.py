"""Choices of a pipeline by hand: small vectors, one choice at a time, numbers worked out on paper."""

import math
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from qkdemo.attention.blocks import Block, BlockRecipe, draw_block
from qkdemo.attention.norms import NORMS, normalise
from qkdemo.attention.pipeline import CAPS, CHOICES, GROUPINGS, Pipeline, trace
from qkdemo.attention.rotary import partners, reordering, rotate

EXACT = Pipeline(epsilon=0.0, order="none", gain="none")


def block_of(q: list[float], k: list[float] | None = None, **more: Any) -> Block:
    """One token, one head, whose query and key are given."""
    d = len(q)
    ones = torch.ones(1, d, dtype=torch.float64)
    return Block(
        x=torch.tensor([q + (k or q)], dtype=torch.float64),
        w_q=torch.eye(d, 2 * d, dtype=torch.float64),
        w_k=torch.eye(2 * d, dtype=torch.float64)[d:],
        w_v=torch.eye(d, 2 * d, dtype=torch.float64),
        gain_q=more.pop("gain", ones),
        gain_k=more.pop("gain_k", ones),
        positions=torch.zeros(1, dtype=torch.float64),
        **more,
    )


def logit(pipeline: Pipeline, block: Block) -> float:
    return trace(pipeline, block).logits.item()


def test_a_stored_gain_of_one_twentieth_is_nearly_one_or_nearly_nothing() -> None:
    """[3, 4], stored (0.05, −0.1): 1.29 read as 1 + γ, 0.0103 read as γ."""
    stored = torch.tensor([[0.05, -0.1]], dtype=torch.float64)
    block = block_of([3.0, 4.0], gain=stored, gain_k=stored)
    gained = EXACT.but(gain="channel")
    assert logit(gained.but(stored="one_plus"), block) == pytest.approx(1.29443, rel=1e-5)
    assert logit(gained, block) == pytest.approx(0.01032376, rel=1e-6)


def test_a_missing_gain_of_ones_is_still_a_norm() -> None:
    """[3, 4] with itself: 17.68 without a norm, 1.414 with one."""
    assert logit(EXACT.but(norm="none"), block_of([3.0, 4.0])) == pytest.approx(17.67767, rel=1e-6)
    assert logit(EXACT, block_of([3.0, 4.0])) == pytest.approx(math.sqrt(2), rel=1e-12)


@pytest.mark.parametrize(
    ("scale", "expected"), [("inverse_root", 8.0), ("one", 64.0), ("root", 512.0), ("inverse", 1.0), ("learned", 7.68)]
)
def test_the_scale_is_a_choice(scale: Any, expected: float) -> None:
    block = block_of([1.0] * 64, learned_scale=0.12)
    assert logit(EXACT.but(norm="none", scale=scale), block) == pytest.approx(expected)


def test_unit_vectors_need_a_scale_above_one_and_rms_brings_its_own() -> None:
    block = block_of([2.0] * 64)
    assert logit(EXACT.but(norm="l2"), block) == pytest.approx(0.125)
    assert logit(EXACT.but(norm="l2", scale="root"), block) == pytest.approx(8)
    assert logit(EXACT, block) == pytest.approx(8)


def test_a_head_of_width_one_keeps_the_sign_alone() -> None:
    assert [normalise(torch.tensor([[x]]), NORMS["l2"]).item() for x in (3.0, -2.0)] == [1, -1]
    assert normalise(torch.tensor([5.0]), NORMS["layernorm"]).item() == 0
    assert normalise(torch.tensor([3.0, 7.0]).double(), NORMS["layernorm"], epsilon=0.0).tolist() == [-1, 1]


def test_softcap_is_odd_and_keeps_small_logits() -> None:
    x = torch.tensor([5.0, -5.0, 30.0, 124.0], dtype=torch.float64)
    assert CAPS["softcap"](x, 30.0).tolist() == pytest.approx([4.954212, -4.954212, 22.84782, 29.98459], rel=1e-6)


def test_a_cap_far_above_the_bound_of_a_norm_is_nearly_idle() -> None:
    """√128 = 11.31 becomes 11.12 under a cap of 50."""
    assert logit(EXACT.but(cap="softcap"), block_of([1.0] * 128)) == pytest.approx(11.1245, rel=1e-5)


def test_grouped_heads_repeat_and_tiling_is_the_mistake() -> None:
    keys = torch.tensor([1.0, 10.0])[:, None, None]
    assert GROUPINGS["repeat"](keys, 2).flatten().tolist() == [1, 1, 10, 10]
    assert GROUPINGS["tile"](keys, 2).flatten().tolist() == [1, 10, 1, 10]


def test_one_token_shows_nothing_whatever_the_pipeline() -> None:
    block = block_of([100.0, -7.0], [5.0, 3.0])
    for norm in CHOICES["norm"]:
        assert trace(EXACT.but(norm=norm), block).weights.item() == 1


def test_the_largest_logit_of_a_full_width_norm_is_heads_times_that_of_a_head() -> None:
    """All of the norm in one of 8 heads of width 16: 8 · √16 = 32, not 4."""
    d, heads = 16, 8
    x = torch.zeros(1, heads * d, dtype=torch.float64)
    x[0, :d] = 1.0
    eye, ones = torch.eye(heads * d, dtype=torch.float64), torch.ones(heads, d, dtype=torch.float64)
    block = Block(
        x=x, w_q=eye, w_k=eye, w_v=eye[: heads * d], gain_q=ones, gain_k=ones, positions=torch.zeros(1).double()
    )
    assert trace(EXACT.but(place="full_width"), block).logits[0].item() == pytest.approx(32)
    assert trace(EXACT, block).logits[0].item() == pytest.approx(4)


SHAPES = st.builds(
    BlockRecipe,
    d_model=st.just(12),
    n_heads=st.sampled_from([1, 2, 4]),
    n_kv_heads=st.sampled_from([1, 2, 4]),
    d_head=st.sampled_from([4, 6, 8]),
    n_keys=st.integers(1, 5),
    mean=st.sampled_from([0.0, 1.0]),
    head_spread=st.sampled_from([1.0, 8.0]),
    offset=st.integers(0, 5000),
    seed=st.integers(0, 99),
)


@hypothesis.settings(max_examples=40)
@given(SHAPES, st.sampled_from(["rms", "l2"]), st.sampled_from(["norm_rotary", "rotary_norm", "none"]))
def test_logits_under_a_norm_do_not_depend_on_the_size_of_the_weights(
    recipe: BlockRecipe, norm: Any, order: Any
) -> None:
    block = draw_block(recipe)
    larger = Block(
        **(vars(block) | {"w_q": 7 * block.w_q, "b_q": 7 * block.b_q, "w_k": block.w_k / 3, "b_k": block.b_k / 3})
    )
    pipeline = Pipeline(norm=norm, order=order, epsilon=0.0)
    torch.testing.assert_close(trace(pipeline, larger).logits, trace(pipeline, block).logits)
    bare = pipeline.but(norm="none", gain="none")
    torch.testing.assert_close(trace(bare, larger).logits, trace(bare, block).logits * 7 / 3)


@hypothesis.settings(max_examples=40)
@given(SHAPES, st.sampled_from(["per_head", "full_width"]))
def test_norms_have_the_length_they_promise(recipe: BlockRecipe, place: Any) -> None:
    q = trace(EXACT.but(place=place), draw_block(recipe)).q
    size: Tensor = q.square().mean(-1) if place == "per_head" else q.square().mean((0, 2))
    torch.testing.assert_close(size, torch.ones_like(size))


@given(st.integers(1, 9), st.sampled_from(["half_split", "interleaved"]))
def test_reordering_carries_pairs_onto_pairs(half: int, to: Any) -> None:
    other = "half_split" if to == "interleaved" else "interleaved"
    x = torch.randn(3, 2 * half, dtype=torch.float64)
    at, order = torch.tensor([0.0, 5, 70]).double(), reordering(2 * half, to)
    torch.testing.assert_close(rotate(x[..., order], at, to), rotate(x, at, other)[..., order])
    assert sorted(torch.cat(partners(2 * half, to)).tolist()) == list(range(2 * half))
