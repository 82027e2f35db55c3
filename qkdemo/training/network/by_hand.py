"""Loss and gradients of most runs without autograd, whose book-keeping costs as much as models this small.

* `takes(remedy)`: whether it can: where logits are those of the product, of RMSNorm, or capped;
* `by_hand(leaves, tokens, ...)`: the loss, every layer's attention, and the gradient of every leaf that has one.

It is `model.forward` and autograd but for rounding, in two thirds of the time; a test holds the two together. A run
goes one of the two ways, whatever trains beside it.
"""

from collections.abc import Mapping
from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from qkdemo.training.network.kernels import CausalAttention, Entering, Leaving, Losses, Mlp, RmsNorm
from qkdemo.training.network.model import Attention, Setup, by_part, embedded, rows_of
from qkdemo.training.remedies import Remedy, gains_of

_GAINS: Final = ("gamma_q", "gamma_k")
_WEIGHTS: Final = ("attention_gain", "qkv", "out", "mlp_gain", "up", "down")


def takes(remedy: Remedy) -> bool:
    """Whether the forward pass with this remedy is the plain one, with RMSNorm or a softcap at most."""
    return remedy.forms in ("none", "rms") and not remedy.reparametrises and not remedy.on_sphere


def by_hand(
    leaves: Mapping[str, Tensor],
    tokens: Int[Tensor, "runs batch positions"],
    targets: Int[Tensor, "runs batch counted"],
    counted: Float[Tensor, "runs batch counted"],
    z_loss: Float[Tensor, "runs"],
    setup: Setup,
) -> tuple[Float[Tensor, "runs"], list[Attention], dict[str, Tensor]]:
    """For runs that it `takes`, in float32, with keys for every head. Arguments are those of `model`'s functions."""
    shape, rows, blocks, layers = setup.shape, rows_of(tokens, setup.shape), [], []
    x = embedded(leaves, rows)
    for layer in range(shape.n_layers):
        blocks.append(_Block(leaves, layer, setup))
        x, attention = blocks[-1].forward(x)
        layers.append(attention)
    last, end = Entering(), Losses()
    loss = end.forward(last.forward(x, leaves["gain"], leaves["head"]), targets, counted, z_loss)

    of: dict[str, Tensor] = {}
    of_x, of["gain"], of["head"] = last.backward(end.backward())
    for block in reversed(blocks):
        of_x, of_weights = block.backward(of_x)
        of |= of_weights
    of["position"] = of_x.sum(1)
    of_rows = torch.ops.aten.embedding_dense_backward(of_x, rows, len(tokens) * shape.n_symbols, -1, False)
    of["embedding"] = of_rows.view(leaves["embedding"].shape)
    return loss, layers, of


class _Block:
    """One layer of all runs: there, and back once."""

    def __init__(self, leaves: Mapping[str, Tensor], layer: int, setup: Setup) -> None:
        self._layer, self._setup, self._mask = layer, setup, setup.mask(layer)
        self._weights = [leaves[f"{layer}.{name}"] for name in _WEIGHTS]
        normed, self._rows = setup.groups.formed_alike[-1]
        self._norm = None
        if normed.forms == "rms":
            parameters = normed.parameters({name: leaves[f"{layer}.{name}"] for name in _GAINS}, self._rows)
            self._norm = RmsNorm(gains_of(parameters))
        self._entering, self._attention, self._leaving, self._mlp = Entering(), CausalAttention(), Leaving(), Mlp()

    def forward(self, x: Tensor) -> tuple[Tensor, Attention]:
        attention_gain, qkv, out, mlp_gain, up, down = self._weights
        heads = by_part(self._entering.forward(x, attention_gain, qkv), self._setup.shape.d_head)
        if self._norm is not None:
            self._norm.forward(heads[:2, self._rows])
        mixed, logits, weights = self._attention.forward(heads, self._mask, self._setup.cap)
        x = self._leaving.forward(mixed, out, x[:, :, self._mask.first :])
        return self._mlp.forward(x, mlp_gain, up, down), Attention(logits=logits, weights=weights, qkv=qkv)

    def backward(self, gradient: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        gradient, *of_mlp = self._mlp.backward(gradient)
        of_mixed, of_out, of_answered = self._leaving.backward(gradient)
        of_heads = self._attention.backward(of_mixed)
        of: dict[str, Tensor] = {}
        if self._norm is not None:
            of_gains = self._norm.backward(of_heads[:2, self._rows]).flatten(2)
            before = (0, 0, self._rows.start, 0)  # the runs without RMSNorm stand there
            of |= {name: functional.pad(g, before) for name, g in zip(_GAINS, of_gains, strict=True)}
        of_made = of_heads.permute(1, 2, 4, 0, 3, 5).flatten(3)
        of_x, *of_entering = self._entering.backward(of_made)
        of_x[:, :, self._mask.first :] += of_answered
        of |= zip(_WEIGHTS, (*of_entering, of_out, *of_mlp), strict=True)
        return of_x, {f"{self._layer}.{name}": gradient for name, gradient in of.items()}
