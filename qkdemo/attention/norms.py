"""Normalisation taken apart: what it measures, where its epsilon stands, and what it subtracts first.

* `NORMS`: word → `Norm`: none, l2, rms, layernorm;
* `RULES`: word → where epsilon stands: inside the root, outside it, as a floor, or nowhere;
* `normalise(x, norm, rule, epsilon)`: x over its own size; `divisor(...)`: that size alone.

No gain, no bias, no rounding: those belong to whoever assembles a pipeline. Everything acts on the last axis.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

NormWord: TypeAlias = Literal["none", "l2", "rms", "layernorm"]
RuleWord: TypeAlias = Literal["inside", "outside", "floor", "floored_root", "absent"]


@dataclass(frozen=True)
class Norm:
    """A normalisation: whether the mean goes first, and whether the size is a root of the mean or of the sum."""

    word: NormWord
    centred: bool
    of_mean: bool  # √(mean of squares), so that the result has length √d; else √(sum of squares), length 1
    usual_rule: RuleWord
    usual_epsilon: float


NORMS: Final[dict[NormWord, Norm]] = {
    norm.word: norm
    for norm in (
        Norm("none", centred=False, of_mean=True, usual_rule="absent", usual_epsilon=0.0),
        # Henry et al. 2020; torch.nn.functional.normalize
        Norm("l2", centred=False, of_mean=False, usual_rule="floor", usual_epsilon=1e-12),
        # Zhang & Sennrich 2019; epsilon as in Llama, Qwen 3 and Gemma 3
        Norm("rms", centred=False, of_mean=True, usual_rule="inside", usual_epsilon=1e-6),
        # Ba et al. 2016; epsilon as in flax
        Norm("layernorm", centred=True, of_mean=True, usual_rule="inside", usual_epsilon=1e-6),
    )
}


def normalise(
    x: Float[Tensor, "*batch width"], norm: Norm, rule: RuleWord | None = None, epsilon: float | None = None
) -> Float[Tensor, "*batch width"]:
    """`x`, centred if the norm centres, over its `divisor`. The word none returns `x` itself.

    >>> normalise(torch.tensor([3.0, 4.0], dtype=torch.float64), NORMS["l2"]).tolist()
    [0.6, 0.8]
    """
    if norm.word == "none":
        return x
    x = centre(x, norm)
    return x / _size(x, norm, rule, epsilon)


def divisor(
    x: Float[Tensor, "*batch width"], norm: Norm, rule: RuleWord | None = None, epsilon: float | None = None
) -> Float[Tensor, "*batch 1"]:
    """What `normalise` divides by; 1 for the word none."""
    if norm.word == "none":
        return torch.ones_like(x[..., :1])
    return _size(centre(x, norm), norm, rule, epsilon)


def centre(x: Float[Tensor, "*batch width"], norm: Norm) -> Float[Tensor, "*batch width"]:
    """`x` less its mean if the norm centres, else `x`."""
    return x - x.mean(-1, keepdim=True) if norm.centred else x


def _size(x: Tensor, norm: Norm, rule: RuleWord | None, epsilon: float | None) -> Tensor:
    used = norm.usual_epsilon if epsilon is None else epsilon
    return RULES[rule or norm.usual_rule](x, x.shape[-1] if norm.of_mean else 1, used)


def _inside(x: Tensor, count: int, epsilon: float) -> Tensor:
    """√(Σx²/n + ε). At zero it is √ε, and its slope is 0."""
    return (_sum_of_squares(x) / count + epsilon).sqrt()


def _outside(x: Tensor, count: int, epsilon: float) -> Tensor:
    """‖x‖/√n + ε. torch gives the length of the zero vector the slope 0."""
    return _length(x) / math.sqrt(count) + epsilon


def _floor(x: Tensor, count: int, epsilon: float) -> Tensor:
    """max(‖x‖/√n, ε)."""
    return (_length(x) / math.sqrt(count)).clamp_min(epsilon)


def _floored_root(x: Tensor, count: int, epsilon: float) -> Tensor:
    """max(√(Σx²/n), ε): the same number, but the root's slope at zero is ∞, and ∞ · 0 is NaN."""
    return (_sum_of_squares(x) / count).sqrt().clamp_min(epsilon)


def _absent(x: Tensor, count: int, epsilon: float) -> Tensor:
    """‖x‖/√n. The zero vector is divided by zero."""
    return _length(x) / math.sqrt(count)


def _sum_of_squares(x: Tensor) -> Tensor:
    return (x * x).sum(-1, keepdim=True)


def _length(x: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return length


RULES: Final[dict[RuleWord, Callable[[Tensor, int, float], Tensor]]] = {
    "inside": _inside,
    "outside": _outside,
    "floor": _floor,
    "floored_root": _floored_root,
    "absent": _absent,
}
