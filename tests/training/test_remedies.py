"""The remedies, one by one: what each does to weights, rates and logits."""

import math

import pytest
import torch
from torch import Tensor

from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.training.network.model import Cap, Mask, causal_attention
from qkdemo.training.network.parameters import Shape, columns
from qkdemo.training.remedies import (
    REMEDIES,
    clip_heads,
    normalised,
    power_step,
    rates_by_norm,
    reparametrised,
    scale_rates,
    to_sphere,
)

SHAPE = Shape(n_symbols=4, n_keys=5, n_layers=1, n_heads=2, n_kv_heads=2, d_head=3)
SHARED = Shape(n_symbols=4, n_keys=5, n_layers=1, n_heads=2, n_kv_heads=1, d_head=3)


def fresh(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed))


def clipped(largest: list[float], threshold: float, shape: Shape = SHAPE) -> tuple[Tensor, Tensor]:
    """What QK-clip multiplied W_q by, per head, and W_k."""
    before = fresh(1, shape.d_model, shape.d_model + 2 * shape.d_kv)
    after = before.clone()
    clip_heads(after, torch.tensor([largest]), torch.tensor([[threshold]]), shape)
    factor = (after / before)[0]
    assert torch.equal(factor[:, columns(shape, "v")], torch.ones_like(factor[:, columns(shape, "v")]))
    q, k = (factor[:, columns(shape, part)].unflatten(1, (-1, shape.d_head)) for part in ("q", "k"))
    for x in (q, k):  # one factor per head
        assert torch.allclose(x, x[:1, :, :1].expand_as(x))
    return q[0, :, 0], k[0, :, 0]


# --- QK-clip ------------------------------------------------------------------------------------------------------


def test_qk_clip_splits_the_factor_evenly_between_queries_and_keys_of_the_head_that_exceeded() -> None:
    q, k = clipped([40.0, 12.0], 10.0)
    assert q.tolist() == pytest.approx([0.5, math.sqrt(10 / 12)])
    assert k.tolist() == pytest.approx(q.tolist())


def test_qk_clip_brings_the_largest_logit_back_to_the_threshold() -> None:
    x, shape = fresh(7, SHAPE.d_model), SHAPE
    qkv = 3 * fresh(1, SHAPE.d_model, 3 * SHAPE.d_model, seed=1)

    def largest() -> Tensor:
        q, k = ((x @ qkv[0, :, columns(shape, part)]).unflatten(1, (2, 3)).transpose(0, 1) for part in ("q", "k"))
        return (q @ k.mT).amax((1, 2))

    before = largest()
    threshold = float(before.min() + before.max()) / 2
    clip_heads(qkv, before[None], torch.tensor([[threshold]]), shape)
    assert largest().tolist() == pytest.approx([min(b, threshold) for b in before.tolist()], rel=1e-5)


def test_qk_clip_puts_the_whole_factor_on_the_queries_if_heads_share_their_keys() -> None:
    q, k = clipped([40.0, 5.0], 10.0, SHARED)
    assert q.tolist() == pytest.approx([0.25, 1])
    assert k.tolist() == [1]


def test_a_single_head_shares_its_keys_with_nobody() -> None:
    alone = Shape(n_symbols=4, n_keys=5, n_layers=1, n_heads=1, n_kv_heads=1, d_head=3)
    q, k = clipped([40.0], 10.0, alone)
    assert (q.item(), k.item()) == (pytest.approx(0.5), pytest.approx(0.5))


@pytest.mark.parametrize("largest", [10.0, 9.99, 0.0, -3.0, -1e30, math.inf, math.nan])
@pytest.mark.parametrize("shape", [SHAPE, SHARED])
def test_qk_clip_never_acts_up_to_the_threshold_or_on_what_is_not_finite(largest: float, shape: Shape) -> None:
    q, k = clipped([largest, largest], 10.0, shape)
    assert q.tolist() == [1, 1]
    assert set(k.tolist()) == {1}


@pytest.mark.parametrize("largest", [-5.0, 0.0])
def test_qk_clip_never_acts_on_a_maximum_of_zero_or_less_even_below_it(largest: float) -> None:
    q, k = clipped([largest, largest], -10.0)
    assert q.tolist() == k.tolist() == [1, 1]


# --- learning rates -----------------------------------------------------------------------------------------------


def test_a_lower_rate_is_that_of_queries_and_keys_alone() -> None:
    rates = torch.ones(2, 6, 18)
    scale_rates(rates, rates, SHAPE, torch.tensor([0.1, 0.5]))
    assert rates[..., :12].unique(dim=-1).squeeze()[:, 0].tolist() == pytest.approx([0.1, 0.5])
    assert set(rates[..., 12:].flatten().tolist()) == {1}


@pytest.mark.parametrize("shape", [SHAPE, SHARED])
def test_quack_rates_fall_as_the_other_side_grows_and_are_one_for_a_fresh_model(shape: Shape) -> None:
    size = (1, shape.d_model, shape.d_model + 2 * shape.d_kv)
    wide = torch.zeros(size)
    for part in ("q", "k"):
        own = wide[..., columns(shape, part)]  # type: ignore[arg-type]
        own += math.sqrt(2 / (shape.d_model + own.shape[-1]))  # of the size that fresh entries have on average
    rates = torch.ones(size)
    rates_by_norm(rates, wide, shape, torch.ones(1))
    assert torch.allclose(rates, torch.ones(size))
    wide[..., columns(shape, "k")] *= 4
    wide[..., columns(shape, "q")] *= 3
    rates_by_norm(rates, wide, shape, torch.ones(1))
    assert torch.allclose(rates[..., columns(shape, "q")], torch.tensor(1 / 4))
    assert torch.allclose(rates[..., columns(shape, "k")], torch.tensor(1 / 3))
    assert torch.equal(rates[..., columns(shape, "v")], torch.ones_like(rates[..., columns(shape, "v")]))


# --- weights ------------------------------------------------------------------------------------------------------


def test_sigma_reparam_has_its_gain_as_largest_singular_value_once_the_iteration_has_settled() -> None:
    matrix, vector = fresh(2, 6, 4), torch.nn.functional.normalize(fresh(2, 4, seed=1), dim=1)
    for _ in range(300):
        vector = power_step(matrix, vector)
    divided = reparametrised(matrix, torch.tensor([1.0, 2.5]), vector)
    assert torch.linalg.matrix_norm(divided, 2).tolist() == pytest.approx([1, 2.5], rel=1e-5)


def test_on_the_sphere_every_matrix_has_unit_length_along_the_hidden_state() -> None:
    leaves = {"embedding": fresh(1, 4, 6), "0.qkv": fresh(1, 6, 18), "0.out": fresh(1, 6, 6), "0.down": fresh(1, 12, 6)}
    others = {"0.gamma_q": fresh(1, 3), "gain": fresh(1, 6)}
    kept = {name: leaf.clone() for name, leaf in others.items()}
    to_sphere({**leaves, **others})
    for name, axis in (("embedding", 2), ("0.qkv", 1), ("0.out", 2), ("0.down", 2)):
        norms = torch.linalg.vector_norm(leaves[name], dim=axis)
        assert torch.allclose(norms, torch.ones_like(norms)), name
    assert all(torch.equal(kept[name], leaf) for name, leaf in others.items())


# --- logits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", REMEDIES)
def test_logits_are_those_of_the_variant_that_the_labs_show(word: str) -> None:
    remedy = REMEDIES[word]  # type: ignore[index]
    leaves = {
        "gamma_q": 1 + fresh(2, 4, seed=2) / 4,
        "gamma_k": 1 + fresh(2, 4, seed=3) / 4,
        "alpha_q": torch.tensor([[0.3], [0.9]]),
        "alpha_k": torch.tensor([[0.5], [2.0]]),
        "g": 5 + fresh(2, 3, seed=4),
        "log_scale": torch.tensor([[0.0, 2.0, 6.0]]).expand(2, 3),  # the last is clamped: 1/τ = 403
        "s_qk": fresh(2, 3, 4, seed=5),
    }
    qk = 2 * fresh(2, 2, 3, 3, 5, 4)
    parameters = remedy.parameters(leaves, slice(0, 2))
    normal = normalised(qk, remedy=remedy, parameters=parameters)
    cap = Cap(slice(0, 2), torch.tensor([3.0, 5.0])[:, None, None, None, None]) if remedy.caps else None
    found = causal_attention(normal, qk[0], Mask(torch.zeros(5, 5)), cap)[1]
    if remedy.caps:
        expected = scores(*qk, VARIANTS["softcap"], Parameters(softcap=cap.at)).logits  # type: ignore[union-attr]
    else:
        expected = scores(*qk, VARIANTS[remedy.forms], parameters).logits
    assert torch.allclose(found, expected, rtol=1e-5, atol=1e-5)
