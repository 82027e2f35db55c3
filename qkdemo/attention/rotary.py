"""Rotary positions: the layouts, how much of a head is turned, and the way from one layout to another.

* `rotate(x, positions, layout, theta, rotated)`: pairs of channels, turned by position · frequency;
* `angles(positions, d_head, theta)`: by how much each pair is turned at each position;
* `partners(d_head, layout)`: which channels form a pair;
* `turned(d_head, rotated)`: how many channels are turned, from the first on;
* `reordering(d_head, to, rotated)`, `other_layout(layout)`: the permutation of channels that turns one layout into
  another, and which one that other is.

Channel pairs turn with frequency θ^(−2i/d), i = 0, 1, …: the first pair by one radian per position. An odd
last channel is left alone, and so is what lies behind the turned part; d is then the width of that part.
Source: Su et al. 2021, "RoFormer", eq. 34; half-split layout and partial rotation as in GPT-NeoX. The swapped
layout is half-split with the second half as the first of each pair: it turns the other way, as nanochat does.
"""

from typing import Final, Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

LayoutWord: TypeAlias = Literal["half_split", "interleaved", "half_split_swapped"]
RotatedWord: TypeAlias = Literal["all", "half", "quarter"]
THETA: Final = 10000.0  # RoFormer
_SHARES: Final[dict[RotatedWord, int]] = {"all": 1, "half": 2, "quarter": 4}


def rotate(
    x: Float[Tensor, "*batch positions d_head"],
    positions: Float[Tensor, " positions"],
    layout: LayoutWord = "half_split",
    theta: float = THETA,
    rotated: RotatedWord = "all",
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
    width = turned(x.shape[-1], rotated)
    first, second = _slices(width // 2, layout)
    angle = angles(positions, width, theta)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., first], x[..., second]
    result = x.clone()
    result[..., first] = a * cos - b * sin
    result[..., second] = a * sin + b * cos
    return result


def _slices(pairs: int, layout: LayoutWord) -> tuple[slice, slice]:
    """First and second channels of every pair; slices are read four times as fast as indices."""
    if layout == "interleaved":
        return slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    halves = slice(pairs), slice(pairs, 2 * pairs)
    return halves if layout == "half_split" else halves[::-1]


def turned(d_head: int, rotated: RotatedWord) -> int:
    """How many channels, from the first on, a rotation turns.

    >>> turned(16, "all"), turned(16, "half"), turned(16, "quarter")
    (16, 8, 4)
    """
    return d_head // _SHARES[rotated]


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

    >>> for layout in ("half_split", "interleaved", "half_split_swapped"):
    ...     print([side.tolist() for side in partners(6, layout)])
    [[0, 1, 2], [3, 4, 5]]
    [[0, 2, 4], [1, 3, 5]]
    [[3, 4, 5], [0, 1, 2]]
    """
    first, second = _slices(d_head // 2, layout)
    return torch.arange(d_head)[first], torch.arange(d_head)[second]


def reordering(d_head: int, to: LayoutWord, rotated: RotatedWord = "all") -> Int[Tensor, " d_head"]:
    """Indices that carry the other layout over to this one: `x[..., reordering(d, to)]`.

    The other layout of both half-split ones is the interleaved one, and its own other is plain half-split.

    >>> reordering(6, "interleaved").tolist(), reordering(6, "half_split").tolist()
    ([0, 3, 1, 4, 2, 5], [0, 2, 4, 1, 3, 5])
    """
    width = turned(d_head, rotated)
    here, there = torch.cat(partners(width, to)), torch.cat(partners(width, other_layout(to)))
    order = torch.arange(d_head)
    order[here] = there
    return order


def other_layout(layout: LayoutWord) -> LayoutWord:
    """The layout that `reordering` comes from."""
    return "half_split" if layout == "interleaved" else "interleaved"
