"""Rotary positions: the two layouts, and the way from one to the other.

* `rotate(x, positions, layout, theta)`: pairs of channels, turned by position · frequency;
* `angles(positions, d_head, theta)`: by how much each pair is turned at each position;
* `partners(d_head, layout)`: which channels form a pair;
* `reordering(d_head, to)`: the permutation of channels that turns one layout into the other.

Channel pairs turn with frequency θ^(−2i/d), i = 0, 1, …: the first pair by one radian per position. An odd
last channel is left alone. Source: Su et al. 2021, "RoFormer", eq. 34; half-split layout as in GPT-NeoX.
"""

from typing import Final, Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

LayoutWord: TypeAlias = Literal["half_split", "interleaved"]
THETA: Final = 10000.0  # RoFormer


def rotate(
    x: Float[Tensor, "*batch positions d_head"],
    positions: Float[Tensor, " positions"],
    layout: LayoutWord = "half_split",
    theta: float = THETA,
) -> Float[Tensor, "*batch positions d_head"]:
    """Every channel pair (a, b) becomes (a cos φ − b sin φ, a sin φ + b cos φ), φ = position · frequency.

    Lengths are kept, and the product of two rotated vectors depends on their distance alone:

    >>> one = torch.ones(1, 4, dtype=torch.float64)
    >>> def score(i, j):
    ...     q, k = (rotate(one, torch.tensor([float(at)], dtype=torch.float64)) for at in (i, j))
    ...     return round((q * k).sum().item(), 9)
    >>> score(3, 1) == score(1003, 1001)
    True
    """
    pairs = x.shape[-1] // 2
    first, second = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)  # slices read four times as fast as indices
    if layout == "half_split":
        first, second = slice(pairs), slice(pairs, 2 * pairs)
    angle = angles(positions, x.shape[-1], theta)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., first], x[..., second]
    turned = x.clone()
    turned[..., first] = a * cos - b * sin
    turned[..., second] = a * sin + b * cos
    return turned


def angles(
    positions: Float[Tensor, " positions"], d_head: int, theta: float = THETA
) -> Float[Tensor, "positions pairs"]:
    """Position · θ^(−2i/d) for every pair i, in radians and float64.

    >>> angles(torch.tensor([0.0, 3.0]), 4, theta=100.0).tolist()
    [[0.0, 0.0], [3.0, 0.30000000000000004]]
    """
    count = d_head // 2
    frequency = theta ** (-torch.arange(count, dtype=torch.float64, device=positions.device) / count)
    return positions.double()[:, None] * frequency


def partners(d_head: int, layout: LayoutWord) -> tuple[Int[Tensor, " pairs"], Int[Tensor, " pairs"]]:
    """The first and the second channel of every pair.

    >>> [side.tolist() for side in partners(6, "half_split")], [side.tolist() for side in partners(6, "interleaved")]
    ([[0, 1, 2], [3, 4, 5]], [[0, 2, 4], [1, 3, 5]])
    """
    pairs = torch.arange(d_head // 2)
    if layout == "half_split":
        return pairs, pairs + d_head // 2
    return 2 * pairs, 2 * pairs + 1


def reordering(d_head: int, to: LayoutWord) -> Int[Tensor, " d_head"]:
    """Indices that carry the other layout over to this one: `x[..., reordering(d, to)]`.

    >>> reordering(6, "interleaved").tolist(), reordering(6, "half_split").tolist()
    ([0, 3, 1, 4, 2, 5], [0, 2, 4, 1, 3, 5])
    """
    other: LayoutWord = "half_split" if to == "interleaved" else "interleaved"
    here, there = torch.cat(partners(d_head, to)), torch.cat(partners(d_head, other))
    order = torch.arange(d_head)
    order[here] = there
    return order
