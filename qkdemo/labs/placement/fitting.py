"""Gains that fit logits: these are linear in the products of a gain of q and one of k.

* `fitted(supposed, block, observed, head, exact)`: the products that fit the logits of a head best; `channels(…)`: of
  which channels each is; `pairs(block)`: the rows of the logits that are seen;
* `undone(…)`: logits before a softcap; `relative(observed, expected)`: how far off they are; `missed(…)`: the same of
  logits before and after a softcap.

At its ends a softcap hides what a logit was: only a logit where its slope is above `exact` tells of a fit or of a head.
"""

import math
from functools import lru_cache
from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from qkdemo.attention.blocks import Block
from qkdemo.attention.pipeline import CAPS, Pipeline, trace
from qkdemo.attention.rotary import angles, partners, turned

_AT_ONCE: Final = 512  # pairs whose products are formed at once, for the memory that they take
_SPARE: Final = 1.25  # equations per unknown, or a fit says nothing


def fitted(supposed: Pipeline, block: Block, observed: Tensor, head: int, exact: float) -> tuple[Tensor, float] | None:
    """Products of gains that fit the logits of a head best, and how far they miss; None with too few pairs to say."""
    observed = observed[head].flatten()
    target, slope = undone(supposed, block, observed, exact)
    seen = pairs(block)
    told = seen[slope[seen] > 0]
    products = _Products(supposed.but(gain="none", bias="none"), block, head)
    if len(told) < _SPARE * products.count:
        return None
    rows = told[_sampled(len(told), 2 * products.count)]
    sample, weight = products.of(rows), slope[rows]
    gains = _solved(weight[:, None] * sample, weight * target[rows])
    misfit = missed(supposed, block, observed[rows], sample @ gains, exact)
    if misfit > exact:  # what fits all would fit these
        return gains, misfit
    runs = range(0, len(seen), _AT_ONCE)
    logits = torch.cat([products.of(seen[at : at + _AT_ONCE]) @ gains for at in runs])
    return gains, missed(supposed, block, observed[seen], logits, exact)


def pairs(block: Block) -> Int[Tensor, " pairs"]:
    """Rows of the pairs that are seen: query · keys + key."""
    if block.visible is None:
        return torch.arange(len(block.x) ** 2)
    return block.visible.flatten().nonzero()[:, 0]


def undone(reference: Pipeline, block: Block, observed: Tensor, exact: float) -> tuple[Tensor, Tensor]:
    """Logits before the softcap, and the softcap's slope there: what is left of a small difference; 0 where that is
    too little to tell."""
    if reference.cap == "none":
        return observed, torch.ones_like(observed)
    share = (observed / block.softcap).clamp(-1 + 1e-15, 1 - 1e-15)
    slope = 1 - share.square()
    return block.softcap * torch.atanh(share), torch.where(slope > exact, slope, 0.0)


def missed(reference: Pipeline, block: Block, observed: Tensor, logits: Tensor, exact: float) -> float:
    """How far logits before the softcap are off the observed ones: after it or, weighed by its slope, before it. ∞ if
    none of these tells."""
    after = relative(observed, CAPS[reference.cap](logits, block.softcap))
    target, slope = undone(reference, block, observed, exact)
    if not slope.any():
        return math.inf
    # What rounding moves is more of a logit before the cap: there the misfit may be exact to the power of ¾.
    before: float = exact**0.25 * relative(slope * target, slope * logits)
    return max(after, before)


def relative(observed: Tensor, expected: Tensor) -> float:
    """‖observed − expected‖ / ‖expected‖."""
    off, length = (observed - expected).norm().item(), expected.norm().item()
    return off / length if length else math.inf if off else 0.0  # of nothing, nothing is off


class _Products:
    """The logits of a head as sums over products of gains: what each product is multiplied by."""

    def __init__(self, supposed: Pipeline, block: Block, head: int) -> None:
        gain_is_turned = supposed.order == "norm_rotary"
        made = trace(supposed.but(order="none") if gain_is_turned else supposed, block)
        of_q, of_k = channels(supposed, block)
        self.q, self.k = made.q[head][:, of_q], made.k[head][:, of_k]
        width = turned(block.d_head, supposed.rotated)
        angle = angles(block.positions, width, block.theta)
        self.alone = block.d_head - 2 * (width // 2)  # channels that are not rotated
        self.turn = (angle.cos(), angle.sin()) if gain_is_turned else None

    @property
    def count(self) -> int:
        """Products, which are the unknowns."""
        return self.q.shape[1]

    def of(self, rows: Int[Tensor, " rows"]) -> Float[Tensor, "rows products"]:
        """These rows: query · keys + key; a column per product, in the order of `channels`."""
        query, key = rows // len(self.k), rows % len(self.k)
        products = self.q[query] * self.k[key]
        if self.turn is None:
            return products
        (cos, sin), alone = self.turn, torch.ones(len(rows), self.alone, dtype=products.dtype)
        along = cos[query] * cos[key] + sin[query] * sin[key]  # cos of the angle between the two positions
        across = sin[query] * cos[key] - cos[query] * sin[key]  # and its sine
        return products * torch.cat([along, along, across, -across, alone], 1)


def channels(supposed: Pipeline, block: Block) -> tuple[Tensor, Tensor]:
    """Channel of q and channel of k of every product: a rotation before the norm leaves each its own partner."""
    every = torch.arange(block.d_head)
    if supposed.order != "norm_rotary":
        return every, every
    first, second = partners(turned(block.d_head, supposed.rotated), supposed.layout)
    alone = every[2 * len(first) :]  # not rotated
    return torch.cat([first, second, first, second, alone]), torch.cat([first, second, second, first, alone])


@lru_cache(maxsize=32)
def _sampled(count: int, wanted: int) -> Tensor:
    """Some rows, drawn: a regular step may meet one diagonal alone, where no angle is seen."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(0))[:wanted]


def _solved(columns: Tensor, target: Tensor) -> Tensor:
    """Least squares: by the normal equations of unit columns, which is ten times as fast, where they are sound."""
    sizes = columns.norm(dim=0).clamp_min(1e-300)
    unit = columns / sizes
    root, failed = torch.linalg.cholesky_ex(unit.mT @ unit)
    if failed or root.diagonal().min() < 1e-4:  # nearly dependent columns
        solution: Tensor = torch.linalg.lstsq(columns, target[:, None], driver="gelsd").solution
    else:
        solution = torch.cholesky_solve((unit.mT @ target)[:, None], root) / sizes[:, None]
    return solution[:, 0]
