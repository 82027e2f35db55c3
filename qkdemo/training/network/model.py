"""The forward pass of many small decoder-only transformers at once.

* `forward(leaves, tokens, setup)`: outputs of every run, and each layer's attention;
* `Setup`: what it knows besides; `embedded(leaves, rows)`, `rows_of(tokens, shape)`: what it begins with.

Pre-norm blocks without biases (LayerNorm with a gain), learned positions, ReLU, an untied head. Every run has its
own weights: what is a matrix product for one run is a batched one here, so that no run sees another's numbers.
Gains are folded into the matrices behind them, which are smaller than what flows through them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from qkdemo.attention.norms import l2_normalise
from qkdemo.training.network.groups import Groups, by_rows
from qkdemo.training.network.kernels import Cap, Mask, by_part, causal_attention, entering, layer_norm, leaving, mlp
from qkdemo.training.network.parameters import ALPHA_START, LATER_OF_LAYER, MATRICES, OF_LAYER, Shape
from qkdemo.training.remedies import block_matrices, normalised, power_vectors_of, reparametrised


@dataclass(frozen=True, eq=False)
class Setup:
    """What the forward pass knows besides weights and tokens."""

    shape: Shape
    groups: Groups
    hidden: Float[Tensor, "queries keys"]  # 0 where a query sees a key, `HIDDEN` elsewhere
    cap: Cap | None
    power_vectors: Float[Tensor, "runs entries"]
    first_counted: int  # outputs are formed from this position on
    fused: bool  # blocks in few operations: for runs without nGPT's, in float32; the numbers are the same

    @cached_property
    def plain(self) -> bool:
        """Whether runs differ in RMSNorm and a softcap at most, so that `by_hand` can take their gradients."""
        *others, (last, _) = self.groups.formed_alike
        alike = all(remedy.forms == "none" for remedy, _ in others) and last.forms in ("none", "rms")
        divided = any(remedy.reparametrises for remedy, _ in self.groups.slices)
        return self.fused and alike and not divided and self.shape.n_kv_heads == self.shape.n_heads

    def mask(self, layer: int) -> Mask:
        """What the queries of a layer see; of the last one only those are answered whose outputs are formed."""
        return Mask(self.hidden, self.first_counted if layer == self.shape.n_layers - 1 else 0)


@dataclass(frozen=True, eq=False)
class Attention:
    """One layer's attention."""

    logits: Float[Tensor, "runs batch heads queries keys"]  # with `hidden` added
    weights: Float[Tensor, "runs batch heads queries keys"]
    qkv: Float[Tensor, "runs d_model columns"]  # the weights that made q, k and v


def forward(
    leaves: Mapping[str, Tensor], tokens: Int[Tensor, "runs batch positions"], setup: Setup
) -> tuple[Float[Tensor, "runs batch counted symbols"], list[Attention]]:
    """Output logits from the first counted position on, and the attention of every layer."""
    groups = setup.groups
    x = embedded(leaves, rows_of(tokens, setup.shape))
    if not setup.fused:
        x = by_rows(groups.of_sphere(lambda x: x, l2_normalise), x)
    layers = []
    for layer in range(setup.shape.n_layers):
        own = _of_layer(leaves, layer, setup)
        x, attention = (_fused if setup.fused else _block)(x, own, setup.mask(layer), setup)
        layers.append(attention)
    if setup.fused:
        return entering(x, leaves["gain"], leaves["head"]), layers
    outputs = _entering(x, leaves["gain"], leaves["head"], groups)
    scale = leaves["s_logits"][:, None, None, :] * math.sqrt(setup.shape.d_model)  # nGPT's, per symbol; starts at 1
    return by_rows(groups.of_sphere(lambda x, s: x, lambda x, s: x * s), outputs, scale), layers


def rows_of(tokens: Int[Tensor, "runs batch positions"], shape: Shape) -> Int[Tensor, "runs batch positions"]:
    """Which row each token is of the embeddings of all runs, one below the other."""
    return tokens + torch.arange(len(tokens), device=tokens.device)[:, None, None] * shape.n_symbols


def embedded(
    leaves: Mapping[str, Tensor], rows: Int[Tensor, "runs batch positions"]
) -> Float[Tensor, "runs batch positions d_model"]:
    """The hidden state before the first block."""
    return functional.embedding(rows, leaves["embedding"].flatten(0, 1)) + leaves["position"][:, None]


def _fused(x: Tensor, own: Mapping[str, Tensor], mask: Mask, setup: Setup) -> tuple[Tensor, Attention]:
    mixed, attention = _attend(entering(x, own["attention_gain"], own["qkv"]), own, mask, setup)
    return mlp(leaving(mixed, own["out"], x[:, :, mask.first :]), own["mlp_gain"], own["up"], own["down"]), attention


def _block(x: Tensor, own: Mapping[str, Tensor], mask: Mask, setup: Setup) -> tuple[Tensor, Attention]:
    groups = setup.groups
    mixed, attention = _attend(_entering(x, own["attention_gain"], own["qkv"], groups), own, mask, setup)
    left = _product(mixed.transpose(2, 3).flatten(3), own["out"])
    x = _joined(x[:, :, mask.first :], left, own["alpha_attention"], groups)
    inner = _mlp(_entering(x, own["mlp_gain"], own["up"], groups), own, groups)
    return _joined(x, inner, own["alpha_mlp"], groups), attention


def _of_layer(leaves: Mapping[str, Tensor], layer: int, setup: Setup) -> dict[str, Tensor]:
    """The leaves of one layer, without its number; σReparam's weights are already divided."""
    own = {name: leaves[f"{layer}.{name}"] for name in (*OF_LAYER, *LATER_OF_LAYER)}
    remedy, rows = setup.groups.slices[0]
    if not remedy.reparametrises:
        return own
    vectors = power_vectors_of(setup.power_vectors[rows], setup.shape)[6 * layer : 6 * layer + 6]
    gains, count = own["sigma_gain"], rows.stop
    of_rows = {name: own[name].split_with_sizes([count, len(gains) - count])[0] for name in MATRICES}
    matrices = block_matrices(of_rows, setup.shape)
    divided = [reparametrised(w, gains[rows, at], u) for at, (w, u) in enumerate(zip(matrices, vectors, strict=True))]
    new = {"qkv": torch.cat(divided[:3], dim=-1), "out": divided[3], "up": divided[4], "down": divided[5]}
    return own | {name: torch.cat([matrix, own[name][count:]]) for name, matrix in new.items()}


def _product(x: Tensor, matrix: Tensor) -> Tensor:
    """x W, with a W of its own for every run."""
    return torch.bmm(x.flatten(1, 2), matrix).view(*x.shape[:3], -1)


def _entering(x: Tensor, gain: Tensor, matrix: Tensor, groups: Groups) -> Tensor:
    """The first product of a block, of LayerNorm with gain; in nGPT of the hidden state as it is."""
    x = by_rows(groups.of_sphere(layer_norm, lambda x: x), x)
    matrix = by_rows(groups.of_sphere(lambda w, gain: w * gain, lambda w, gain: w), matrix, gain[:, :, None])
    return _product(x, matrix)


def _joined(x: Tensor, block: Tensor, alpha: Tensor, groups: Groups) -> Tensor:
    """The hidden state after a block."""
    return by_rows(groups.of_sphere(lambda x, block, alpha: x + block, _towards), x, block, alpha[:, None, None, :])


def _towards(x: Tensor, block: Tensor, alpha: Tensor) -> Tensor:
    """nGPT: from x a share |α| of the way to the block's direction, and back to unit length."""
    share = alpha.abs() * (ALPHA_START * math.sqrt(x.shape[-1]))
    return l2_normalise(x + share * (l2_normalise(block) - x))


def _mlp(up: Tensor, own: Mapping[str, Tensor], groups: Groups) -> Tensor:
    up = by_rows(groups.of_sphere(lambda up, s: up, lambda up, s: up * s), up, own["s_up"][:, None, None, :])
    return _product(torch.relu(up), own["down"])


def _attend(made: Tensor, own: Mapping[str, Tensor], mask: Mask, setup: Setup) -> tuple[Tensor, Attention]:
    """`made` holds q, k and v of every position side by side."""
    qk, v = _heads(made, setup.shape)
    parts = [
        (rows.stop - rows.start, partial(normalised, remedy=remedy, parameters=remedy.parameters(own, rows)))
        for remedy, rows in setup.groups.formed_alike
    ]
    qkv = torch.cat([by_rows(parts, qk, dim=1).to(v.dtype), v[None]])
    mixed, logits, weights = causal_attention(qkv, mask, setup.cap)
    return mixed, Attention(logits=logits, weights=weights, qkv=own["qkv"].detach())


def _heads(made: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    """[runs, batch, positions, columns] → q and k, [2, runs, batch, heads, positions, d_head], and v, likewise."""
    if shape.n_kv_heads == shape.n_heads:
        qk, v = by_part(made, shape.d_head).split_with_sizes([2, 1])
        return qk, v[0]
    by_head = made.view(*made.shape[:3], -1, shape.d_head).transpose(2, 3)
    q, k, v = by_head.split_with_sizes([shape.n_heads, 1, 1], dim=2)
    return torch.stack([q, k.expand_as(q)]), v.expand_as(q)
