"""The forward pass of many small decoder-only transformers at once, written plainly; autograd takes its derivatives.

* `forward(leaves, tokens, setup)`: outputs of every run, and each layer's attention; `losses(outputs, ...)`;
* `Setup`: what it knows besides; `embedded(leaves, rows)`, `rows_of(tokens, shape)`: what it begins with.

Pre-norm blocks without biases (LayerNorm with a gain), learned positions, ReLU, an untied head. Every run has its
own weights: what is a matrix product for one run is a batched one here, so that no run sees another's numbers.
Gains are folded into the matrices behind them, which are smaller than what flows through them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from qkdemo.attention.norms import BLOCK_EPSILON, l2_normalise
from qkdemo.training.network.groups import Groups, by_rows, replaced
from qkdemo.training.network.parameters import ALPHA_START, LATER_OF_LAYER, MATRICES, OF_LAYER, Shape
from qkdemo.training.remedies import block_matrices, normalised, power_vectors_of, reparametrised

HIDDEN: Final = -1e30  # added to the logit of a key that a query may not see: its weight becomes exactly 0


@dataclass(frozen=True, eq=False)
class Mask:
    """Which keys a query sees, and the first query that is answered: of the last block few answers are used."""

    hidden: Float[Tensor, "queries keys"]  # 0 where a query sees a key and `HIDDEN` elsewhere
    first: int = 0


@dataclass(frozen=True, eq=False)
class Cap:
    """Runs whose logits are capped, and at what: c · tanh(s/c)."""

    rows: slice
    at: Float[Tensor, "capped 1 1 1 1"]


@dataclass(frozen=True, eq=False)
class Setup:
    """What the forward pass knows besides weights and tokens."""

    shape: Shape
    groups: Groups
    hidden: Float[Tensor, "queries keys"]  # 0 where a query sees a key, `HIDDEN` elsewhere
    cap: Cap | None
    power_vectors: Float[Tensor, "runs entries"]
    first_counted: int  # outputs are formed from this position on

    def mask(self, layer: int) -> Mask:
        """What the queries of a layer see; of the last one only those are answered whose outputs are formed."""
        return Mask(self.hidden, self.first_counted if layer == self.shape.n_layers - 1 else 0)


@dataclass(frozen=True, eq=False)
class Attention:
    """One layer's attention."""

    logits: Float[Tensor, "runs batch heads queries keys"]  # with `hidden` added
    weights: Float[Tensor, "runs batch heads queries keys"]
    qkv: Float[Tensor, "runs d_model columns"]  # the weights that made q, k and v

    @classmethod
    def beside(cls, parts: Sequence["Attention"]) -> "Attention":
        """That of several groups of runs, as of one."""
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in ("logits", "weights", "qkv")))


def forward(
    leaves: Mapping[str, Tensor], tokens: Int[Tensor, "runs batch positions"], setup: Setup
) -> tuple[Float[Tensor, "runs batch counted symbols"], list[Attention]]:
    """Output logits from the first counted position on, and the attention of every layer."""
    groups = setup.groups
    x = embedded(leaves, rows_of(tokens, setup.shape))
    x = by_rows(groups.of_sphere(lambda x: x, l2_normalise), x)
    layers = []
    for layer in range(setup.shape.n_layers):
        x, attention = _block(x, _of_layer(leaves, layer, setup), setup.mask(layer), setup)
        layers.append(attention)
    outputs = _entering(x, leaves["gain"], leaves["head"], groups)
    scale = leaves["s_logits"][:, None, None, :] * math.sqrt(setup.shape.d_model)  # nGPT's, per symbol; starts at 1
    return by_rows(groups.of_sphere(lambda x, s: x, lambda x, s: x * s), outputs, scale), layers


def losses(
    outputs: Float[Tensor, "runs batch counted symbols"],
    targets: Int[Tensor, "runs batch counted"],
    counted: Float[Tensor, "runs batch counted"],
    z_loss: Float[Tensor, "runs"],
) -> tuple[Float[Tensor, "runs"], Float[Tensor, "runs"]]:
    """What each run minimises, and of that the mean cross-entropy over the counted positions, nats.

    The rest is `z_loss` times the mean square of ln Σ exp. `counted` holds each position's share: they sum to 1 for
    every run. The cross-entropy is for reading: it has no gradient.
    Source of the z-loss: Chowdhery et al. 2022, "PaLM", section 5.
    """
    normaliser = outputs.logsumexp(-1)
    own = outputs.gather(-1, targets[..., None]).squeeze(-1)
    entropy = ((normaliser - own) * counted).sum((1, 2))
    return entropy + z_loss * (normaliser.square() * counted).sum((1, 2)), entropy.detach()


def rows_of(tokens: Int[Tensor, "runs batch positions"], shape: Shape) -> Int[Tensor, "runs batch positions"]:
    """Which row each token is of the embeddings of all runs, one below the other."""
    return tokens + torch.arange(len(tokens), device=tokens.device)[:, None, None] * shape.n_symbols


def embedded(
    leaves: Mapping[str, Tensor], rows: Int[Tensor, "runs batch positions"]
) -> Float[Tensor, "runs batch positions d_model"]:
    """The hidden state before the first block."""
    return functional.embedding(rows, leaves["embedding"].flatten(0, 1)) + leaves["position"][:, None]


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
    rows = next((rows for remedy, rows in setup.groups.slices if remedy.reparametrises), None)
    if rows is None:
        return own
    vectors = power_vectors_of(setup.power_vectors[rows], setup.shape)[6 * layer : 6 * layer + 6]
    matrices = block_matrices({name: own[name][rows] for name in MATRICES}, setup.shape)
    gains = own["sigma_gain"][rows]
    divided = [reparametrised(w, gains[:, at], u) for at, (w, u) in enumerate(zip(matrices, vectors, strict=True))]
    new = {"qkv": torch.cat(divided[:3], dim=-1), "out": divided[3], "up": divided[4], "down": divided[5]}
    return own | {name: replaced(own[name], rows, matrix) for name, matrix in new.items()}


def _product(x: Tensor, matrix: Tensor) -> Tensor:
    """x W, with a W of its own for every run."""
    return torch.bmm(x.flatten(1, 2), matrix).view(*x.shape[:3], -1)


def _layer_norm(x: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], eps=BLOCK_EPSILON)


def _entering(x: Tensor, gain: Tensor, matrix: Tensor, groups: Groups) -> Tensor:
    """The first product of a block, of LayerNorm with gain; in nGPT of the hidden state as it is."""
    x = by_rows(groups.of_sphere(_layer_norm, lambda x: x), x)
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
    mixed, logits, weights = causal_attention(by_rows(parts, qk, dim=1).to(v.dtype), v, mask, setup.cap)
    return mixed, Attention(logits=logits.detach(), weights=weights.detach(), qkv=own["qkv"].detach())


def causal_attention(
    qk: Float[Tensor, "2 runs batch heads positions d_head"],
    v: Float[Tensor, "runs batch heads positions d_head"],
    mask: Mask,
    cap: Cap | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """softmax(q kᵀ/√d_head + hidden) v from the mask's first query on; logits and weights of all queries."""
    q, k = qk
    logits = q @ k.mT / math.sqrt(q.shape[-1])
    if cap is not None:
        capped = cap.at * torch.tanh(logits[cap.rows] / cap.at)
        logits = replaced(logits, cap.rows, capped)
    logits = logits + mask.hidden
    weights = logits.float().softmax(-1)
    return weights[..., mask.first :, :].to(v.dtype) @ v, logits, weights


def by_part(made: Tensor, d_head: int) -> Tensor:
    """[runs, batch, positions, q k v side by side] as [3, runs, batch, heads, positions, d_head]."""
    return made.view(*made.shape[:3], 3, -1, d_head).permute(3, 0, 1, 4, 2, 5).contiguous()


def _heads(made: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    """[runs, batch, positions, columns] → q and k, [2, runs, batch, heads, positions, d_head], and v, likewise."""
    if shape.n_kv_heads == shape.n_heads:
        q, k, v = by_part(made, shape.d_head)
        return torch.stack([q, k]), v
    by_head = made.view(*made.shape[:3], -1, shape.d_head).transpose(2, 3)
    q, k, v = by_head.split_with_sizes([shape.n_heads, 1, 1], dim=2)
    return torch.stack([q, k.expand_as(q)]), v.expand_as(q)
