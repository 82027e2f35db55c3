"""Choices of a pipeline by hand: small vectors, one choice at a time, numbers worked out on paper."""

import dataclasses
import math
from typing import Any, get_args

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from qkdemo.attention.blocks import Block, BlockRecipe, draw_block
from qkdemo.attention.norms import NORMS, normalise
from qkdemo.attention.pipeline import CAPS, CHOICES, GROUPINGS, KeyGainWord, Pipeline, trace
from qkdemo.attention.rotary import other_layout, partners, reordering, rotate

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


LAYOUTS = st.sampled_from(["half_split", "interleaved", "half_split_swapped"])
SHARES = st.sampled_from(["all", "half", "quarter"])


@given(st.integers(1, 9), LAYOUTS, SHARES)
def test_reordering_carries_pairs_onto_pairs(half: int, to: Any, rotated: Any) -> None:
    x = torch.randn(3, 2 * half, dtype=torch.float64)
    at, order = torch.tensor([0.0, 5, 70]).double(), reordering(2 * half, to, rotated)
    ours = rotate(x[..., order], at, to, rotated=rotated)
    torch.testing.assert_close(ours, rotate(x, at, other_layout(to), rotated=rotated)[..., order])
    assert sorted(torch.cat(partners(2 * half, to)).tolist()) == list(range(2 * half))


@given(st.sampled_from([4, 6, 8, 16]), LAYOUTS, SHARES, st.integers(0, 5000))
def test_a_rotation_turns_complex_numbers_and_leaves_the_rest(d: int, layout: Any, rotated: Any, position: int) -> None:
    """Su et al. 2021 in complex numbers: a pair is z, and becomes z·exp(i·m·θ); swapped, its conjugate does."""
    x = np.random.default_rng(d).standard_normal(d)
    width = d // {"all": 1, "half": 2, "quarter": 4}[rotated]
    pairs = width // 2
    turn = np.exp(1j * position * 10000.0 ** (-np.arange(pairs) / max(pairs, 1)))
    expected = x.copy()
    if layout == "interleaved":
        z = (x[0 : 2 * pairs : 2] + 1j * x[1 : 2 * pairs : 2]) * turn
        expected[0 : 2 * pairs : 2], expected[1 : 2 * pairs : 2] = z.real, z.imag
    else:
        z = (x[:pairs] + 1j * x[pairs : 2 * pairs]) * (turn if layout == "half_split" else turn.conj())
        expected[:pairs], expected[pairs : 2 * pairs] = z.real, z.imag
    ours = rotate(torch.from_numpy(x)[None], torch.tensor([float(position)]), layout, rotated=rotated)[0]
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_the_gain_of_one_side_alone_and_one_gain_for_both_are_what_zaya_dory_and_ngpt_do() -> None:
    """Unit vectors q̂ and k̂ times √d: Σ q̂ᵢ k̂ᵢ times γᵢ, times a number, or times γᵢ²."""
    q, k = np.array([3.0, 4.0]), np.array([1.0, 2.0])
    unit = q / 5 * k / 5**0.5
    gain, other = np.array([2.0, 0.5]), np.array([7.0, 3.0])
    stored = {"gain": torch.from_numpy(gain)[None], "gain_k": torch.from_numpy(other)[None]}
    block = block_of(q.tolist(), k.tolist(), **stored)
    root = EXACT.but(norm="l2", scale="root", gain="head_channel", rule="absent")
    made = {word: logit(root.but(key_gain=word), block) for word in get_args(KeyGainWord)}
    assert made == pytest.approx(
        {
            "own": 2**0.5 * (unit * gain * other).sum(),
            "q_alone": 2**0.5 * (unit * gain).sum(),
            "k_alone": 2**0.5 * (unit * other).sum(),
            "of_q": 2**0.5 * (unit * gain**2).sum(),
        }
    )
    assert logit(root.but(gain="head", key_gain="k_alone"), block) == pytest.approx(2**0.5 * 7 * unit.sum())


def test_v_is_normalised_where_q_and_k_are() -> None:
    block = draw_block(BlockRecipe(d_model=12, n_heads=2, n_kv_heads=2, d_head=4, n_keys=3))
    v = (block.x @ block.w_v.mT).unflatten(-1, (2, 4)).movedim(1, 0)

    def weighed(place: Any, values: Tensor) -> None:
        made = trace(Pipeline(place=place, on="qkv", epsilon=0.0), dataclasses.replace(block, w_o=None))
        expected = (made.weights @ values).movedim(0, 1).flatten(1)
        torch.testing.assert_close(made.output, expected)

    def sized(x: Tensor, *axes: int) -> Tensor:
        return x / x.square().mean(axes, keepdim=True).sqrt()

    weighed("per_head", sized(v, -1))
    weighed("full_width", sized(v, 0, -1))
    weighed("input", (sized(block.x, -1) @ block.w_v.mT).unflatten(-1, (2, 4)).movedim(1, 0))
