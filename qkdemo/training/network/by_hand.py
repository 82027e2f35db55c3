"""Loss and gradients of plain runs without autograd, whose book-keeping costs as much as models this small.

* `by_hand(leaves, tokens, ...)`: the loss, every layer's attention, and the gradient of every leaf that has one.

It chains the halves that `kernels` gives to autograd too, so that the numbers are those of `model.forward` and
autograd to the last bit.
"""

from collections.abc import Mapping
from typing import Any, Final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from qkdemo.training.network.kernels import (
    CausalAttention,
    Entering,
    Leaving,
    Losses,
    Mlp,
    by_part,
    of_rms_normal,
    rms_normal,
)
from qkdemo.training.network.model import Attention, Setup, embedded, rows_of
from qkdemo.training.remedies import gains_of

_GAINS: Final = ("gamma_q", "gamma_k")
_WEIGHTS: Final = ("attention_gain", "qkv", "out", "mlp_gain", "up", "down")


def by_hand(
    leaves: Mapping[str, Tensor],
    tokens: Int[Tensor, "runs batch positions"],
    targets: Int[Tensor, "runs batch counted"],
    counted: Float[Tensor, "runs batch counted"],
    z_loss: Float[Tensor, "runs"],
    setup: Setup,
) -> tuple[Float[Tensor, "runs"], list[Attention], dict[str, Tensor]]:
    """For a `setup` that is plain. Arguments are those of `model.forward` and `kernels.losses`."""
    shape, rows, blocks, layers = setup.shape, rows_of(tokens, setup.shape), [], []
    x = embedded(leaves, rows)
    for layer in range(shape.n_layers):
        blocks.append(_Block(leaves, layer, setup))
        x, attention = blocks[-1].forward(x)
        layers.append(attention)
    last, end = _Kept(), _Kept()
    outputs = Entering.forward(last, x, leaves["gain"], leaves["head"])
    minimised, loss = Losses.forward(end, outputs, targets, counted, z_loss)

    of: dict[str, Tensor] = {}
    of_x, of["gain"], of["head"] = Entering.backward(last, Losses.backward(end, torch.ones_like(minimised))[0])
    for block in reversed(blocks):
        of_x, of_weights = block.backward(of_x)
        of |= of_weights
    of["position"] = of_x.sum(1)
    of_rows = torch.ops.aten.embedding_dense_backward(of_x, rows, len(tokens) * shape.n_symbols, -1, False)
    of["embedding"] = of_rows.view(leaves["embedding"].shape)
    return loss, layers, of


class _Kept:
    """What one step keeps for its derivative: autograd's context, as far as the steps use it."""

    saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *_: Tensor) -> None: ...

    def set_materialize_grads(self, _: object) -> None: ...


class _Block:
    """One layer of all runs: there, and back once."""

    def __init__(self, leaves: Mapping[str, Tensor], layer: int, setup: Setup) -> None:
        self._layer, self._setup, self._mask = layer, setup, setup.mask(layer)
        self._weights = [leaves[f"{layer}.{name}"] for name in _WEIGHTS]
        normed, self._rows = setup.groups.formed_alike[-1]
        self._norm = None
        if normed.forms == "rms":
            gains = gains_of(normed.parameters({name: leaves[f"{layer}.{name}"] for name in _GAINS}, self._rows))
            self._norm = _RmsNorm(gains)
        self._entering, self._attention, self._leaving, self._mlp = (_Kept() for _ in range(4))

    def forward(self, x: Tensor) -> tuple[Tensor, Attention]:
        attention_gain, qkv, out, mlp_gain, up, down = self._weights
        made = Entering.forward(self._entering, x, attention_gain, qkv)
        heads = by_part(made, self._setup.shape.d_head)
        if self._norm is not None:
            self._norm.forward(heads[:2, self._rows])
        mixed, logits, weights = CausalAttention.forward(self._attention, heads, self._mask, self._setup.cap)
        x = Leaving.forward(self._leaving, mixed, out, x[:, :, self._mask.first :])
        return Mlp.forward(self._mlp, x, mlp_gain, up, down), Attention(logits=logits, weights=weights, qkv=qkv)

    def backward(self, gradient: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        gradient, *of_mlp = Mlp.backward(self._mlp, gradient)
        of_mixed, of_out, of_answered = Leaving.backward(self._leaving, gradient)
        of_heads = CausalAttention.backward(self._attention, of_mixed)[0]
        of: dict[str, Tensor] = {}
        if self._norm is not None:
            of_gains = self._norm.backward(of_heads[:2, self._rows]).flatten(2)
            before = (0, 0, self._rows.start, 0)  # the runs without RMSNorm stand there
            of |= {name: functional.pad(g, before) for name, g in zip(_GAINS, of_gains, strict=True)}
        of_made = of_heads.permute(1, 2, 4, 0, 3, 5).flatten(3)
        of_x, *of_entering = Entering.backward(self._entering, of_made)
        of_x[:, :, self._mask.first :] += of_answered
        of |= zip(_WEIGHTS, (*of_entering, of_out, *of_mlp), strict=True)
        return of_x, {f"{self._layer}.{name}": gradient for name, gradient in of.items()}


class _RmsNorm:
    """RMSNorm of q and k with gains, [2, runs, 1, 1, 1, d_head], in place both ways."""

    def __init__(self, gains: Tensor) -> None:
        self._gains = gains

    def forward(self, qk: Tensor) -> None:
        self._normal, self._scale = rms_normal(qk)
        torch.mul(self._normal, self._gains, out=qk)

    def backward(self, gradient: Tensor) -> Tensor:
        """Turns the gradient of its result into that of q and k; returns that of the gains."""
        of_gains: Tensor = (gradient * self._normal).sum((2, 3, 4), keepdim=True)
        of_rms_normal(gradient.mul_(self._gains), self._normal, self._scale)
        return of_gains
