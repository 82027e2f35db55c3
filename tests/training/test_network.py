"""One plain model and one fast step: the derivatives that are written out are autograd's."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from qkdemo.attention.inputs import causal_mask
from qkdemo.training.network.by_hand import by_hand, takes
from qkdemo.training.network.groups import Groups
from qkdemo.training.network.kernels import CausalAttention, Entering, Leaving, Losses, Mlp, RmsNorm
from qkdemo.training.network.model import HIDDEN, Cap, Mask, Setup, causal_attention, forward, losses
from qkdemo.training.network.parameters import Shape, n_parameters, views
from qkdemo.training.remedies import REMEDIES

BY_HAND = tuple(word for word, remedy in REMEDIES.items() if takes(remedy))


def fresh(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed)).double()


def layer_norm(x: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def test_most_remedies_and_the_plain_run_go_by_hand() -> None:
    assert {"none", "rms", "qk_clip", "qk_lr", "quack", "softcap"} == {*BY_HAND}


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("words", [BY_HAND, ("none",), ("rms", "rms"), ("softcap", "rms"), ("quack", "softcap")])
def test_the_fast_step_is_the_plain_model_and_autograd(words: Any, first: int) -> None:
    """Loss, logits, weights and every gradient, in float64: what a formula got wrong would show at 1e-12."""
    runs, shape = len(words), Shape(n_symbols=5, n_keys=6, n_layers=2, n_heads=2, n_kv_heads=2, d_head=4)
    groups = Groups.of(words)
    capped = next((rows for remedy, rows in groups.slices if remedy.caps), None)
    setup = Setup(
        shape=shape,
        groups=groups,
        hidden=torch.zeros(6, 6).double().masked_fill(~causal_mask(6), HIDDEN),
        cap=Cap(capped, torch.full((1, 1, 1, 1, 1), 0.7).double()) if capped is not None else None,
        power_vectors=torch.zeros(runs, 0),
        first_counted=first,
    )
    leaves = views(fresh(runs, n_parameters(shape)), shape)
    tokens, targets = torch.arange(runs * 18).view(runs, 3, 6) * 7 % 5, torch.arange(runs * 18).view(runs, 3, 6) % 5
    counted, z_loss = fresh(runs, 3, 6 - first, seed=1).softmax(-1) / 3, torch.linspace(0, 0.3, runs).double()

    found, layers, of = by_hand(leaves, tokens, targets[..., first:], counted, z_loss, setup)
    plain = {name: leaf.clone().requires_grad_() for name, leaf in leaves.items()}
    outputs, expected = forward(plain, tokens, setup)
    minimised, loss = losses(outputs, targets[..., first:], counted, z_loss)
    gradients = torch.autograd.grad(minimised.sum(), list(plain.values()), allow_unused=True)

    single = {"rtol": 1e-5, "atol": 1e-6}  # weights are formed in float32
    assert torch.allclose(found, loss, **single)
    for mine, theirs in zip(layers, expected, strict=True):
        assert torch.allclose(mine.logits, theirs.logits, **single)
        assert torch.allclose(mine.weights, theirs.weights.to(mine.weights.dtype), **single)
    for name, gradient in zip(plain, gradients, strict=True):
        assert (gradient is None) == (name not in of), name
        if gradient is not None:
            assert torch.allclose(of[name].view_as(gradient), gradient, rtol=1e-4, atol=1e-5), name


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("capped", [False, True])
def test_the_derivatives_of_attention_are_those_of_autograd(capped: bool, first: int) -> None:
    """Also where the first queries are not answered."""
    qkv = torch.stack([fresh(2, 1, 2, 4, 3, seed=seed) for seed in range(3)]).requires_grad_()
    hidden = torch.zeros(4, 4).double().masked_fill(~causal_mask(4), HIDDEN)
    cap = Cap(slice(1, 2), torch.tensor([0.5]).double()[:, None, None, None, None]) if capped else None

    def plainly(qkv: Tensor) -> Tensor:
        q, k, v = qkv
        s = q @ k.mT / math.sqrt(3)
        if capped:
            s = torch.stack([s[0], 0.5 * torch.tanh(s[1] / 0.5)])
        return (s.masked_fill(hidden < 0, -torch.inf).softmax(-1) @ v)[..., first:, :]

    step = CausalAttention()
    mixed, _, weights = step.forward(qkv.detach(), Mask(hidden, first), cap)
    assert torch.allclose(mixed, plainly(qkv), rtol=1e-12)
    assert torch.allclose(causal_attention(qkv[:2], qkv[2], Mask(hidden, first), cap)[0], mixed, rtol=1e-5)
    assert not weights[..., hidden < 0].any()
    seed = fresh(*mixed.shape, seed=9)
    assert torch.allclose(step.backward(seed), torch.autograd.grad(plainly(qkv), qkv, seed)[0], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("size", [3.0, 1e-3])
@pytest.mark.parametrize(
    ("step", "plainly", "shapes"),
    [
        (
            Entering,
            lambda x, gain, w: layer_norm(x) * gain[:, None, None] @ w[:, None],
            ((2, 3, 4, 6), (2, 6), (2, 6, 5)),
        ),
        (
            Leaving,
            lambda mixed, w, x: x + mixed.transpose(2, 3).flatten(3) @ w[:, None],
            ((2, 3, 2, 4, 3), (2, 6, 6), (2, 3, 4, 6)),
        ),
        (
            Mlp,
            lambda x, gain, up, down: x + torch.relu(layer_norm(x) * gain[:, None, None] @ up[:, None]) @ down[:, None],
            ((2, 3, 4, 6), (2, 6), (2, 6, 8), (2, 8, 6)),
        ),
    ],
)
def test_the_halves_of_a_block_and_their_derivatives_are_torchs(
    step: Any, plainly: Any, shapes: Any, size: float
) -> None:
    """Also for vectors so small that epsilon shows."""
    given = [(size * fresh(*shape, seed=at)).requires_grad_() for at, shape in enumerate(shapes)]
    mine, theirs = (made := step()).forward(*(x.detach() for x in given)), plainly(*given)
    assert torch.allclose(mine, theirs, rtol=1e-10, atol=1e-12 * size)
    seed = fresh(*mine.shape, seed=9)
    for found, expected in zip(made.backward(seed), torch.autograd.grad(theirs, given, seed), strict=True):
        assert torch.allclose(found, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("size", [3.0, 1e-3])
def test_rms_norm_and_its_derivatives_are_torchs(size: float) -> None:
    qk, gains = (size * fresh(2, 2, 3, 4, 5, 6)).requires_grad_(), fresh(2, 2, 1, 1, 1, 6, seed=1).requires_grad_()
    theirs = torch.nn.functional.rms_norm(qk, (6,), eps=1e-6) * gains
    step, mine = RmsNorm(gains.detach()), qk.detach().clone()
    step.forward(mine)
    assert torch.allclose(mine, theirs, rtol=1e-12)
    gradient = fresh(*qk.shape, seed=2)
    of_qk, of_gains = torch.autograd.grad(theirs, (qk, gains), gradient)
    assert torch.allclose(step.backward(gradient), of_gains, rtol=1e-9)
    assert torch.allclose(gradient, of_qk, rtol=1e-8, atol=1e-12)  # in place


def test_what_is_minimised_and_its_derivative_are_torchs() -> None:
    """Cross-entropy over the counted positions, and the z-loss."""
    outputs = (2 * fresh(2, 3, 4, 5)).requires_grad_()
    targets = torch.arange(24).view(2, 3, 4) % 5
    counted = fresh(2, 3, 4, seed=1) > -0.5
    shares = counted.double() / counted.sum((1, 2), keepdim=True)
    z_loss = torch.tensor([0.0, 0.3]).double()
    minimised, read = losses(outputs, targets, shares, z_loss)
    step = Losses()
    assert step.forward(outputs.detach(), targets, shares, z_loss).tolist() == pytest.approx(read.tolist(), rel=1e-12)
    for run in range(2):
        kept = outputs[run][counted[run]]
        entropy = torch.nn.functional.cross_entropy(kept, targets[run][counted[run]])
        total = entropy + z_loss[run] * torch.logsumexp(kept, -1).square().mean()
        assert read[run].item() == pytest.approx(entropy.item(), rel=1e-12)
        assert minimised[run].item() == pytest.approx(total.item(), rel=1e-12)
        expected = torch.autograd.grad(total, outputs, retain_graph=True)[0][run]
        assert torch.allclose(step.backward()[run], expected, rtol=1e-9, atol=1e-15)
    assert not read.requires_grad
