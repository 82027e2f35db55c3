"""Two pipelines over one block, compared while the spread of the gains grows.

* `Difference`, `difference(left, right)`: how far two passes are apart;
* `differing(left, right)`: the choices in which two pipelines differ;
* `Sweep`, `sweep(...)`: the same at every spread of the gains, with what one head attends to;
* `spread_to(block, ...)`: a block with its gains drawn closer together or further apart.

Errors are relative: ‖right − left‖ / ‖left‖, Frobenius.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.blocks import Block, Recipe, draw_block
from qkdemo.numerics import Rounding, exact
from qkdemo.pipeline import CHOICES, Pipeline, Trace, trace


@dataclass(frozen=True)
class Difference:
    """How far two passes through a block are apart."""

    raw: float
    logits: float
    weight: float  # the most that one attention weight moves
    output: float


@dataclass(frozen=True, eq=False)
class Sweep:
    """Two pipelines at every spread of the gains."""

    spreads: NDArray[np.float64]
    differences: tuple[Difference, ...]
    weights: tuple[NDArray[np.float64], NDArray[np.float64]]  # left, right: [spreads, queries, keys] of one head
    raw: tuple[NDArray[np.float64], NDArray[np.float64]]  # [spreads, queries, keys] of that head
    logits: tuple[NDArray[np.float64], NDArray[np.float64]]


def difference(left: Trace, right: Trace) -> Difference:
    """The errors of the right pass, as the left one sees them."""
    return Difference(
        raw=relative(left.raw, right.raw),
        logits=relative(left.logits, right.logits),
        weight=(right.weights - left.weights).abs().max().item(),
        output=relative(left.output, right.output),
    )


def differing(left: Pipeline, right: Pipeline) -> list[str]:
    """The choices in which the two differ.

    >>> differing(Pipeline(), Pipeline(norm="l2", scale="one"))
    ['norm', 'scale']
    """
    return [name for name in CHOICES if getattr(left, name) != getattr(right, name)]


def relative(left: Float[Tensor, "*shape"], right: Float[Tensor, "*shape"]) -> float:
    """‖right − left‖ / ‖left‖."""
    return float((right - left).double().norm() / left.double().norm())


def sweep(
    pipelines: tuple[Pipeline, Pipeline], recipe: Recipe, spreads: Sequence[float], head: int, store: Rounding = exact
) -> Sweep:
    """Both pipelines on the block of `recipe`, its gains spread by each of `spreads`."""
    pairs = [
        (trace(pipelines[0], block, store=store), trace(pipelines[1], block, store=store))
        for block in (spread_to(recipe, spread) for spread in spreads)
    ]

    def stacked(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        first, second = (np.stack([getattr(pair[i], name)[head].double().numpy() for pair in pairs]) for i in (0, 1))
        return first, second

    return Sweep(
        spreads=np.array(spreads),
        differences=tuple(difference(*pair) for pair in pairs),
        weights=stacked("weights"),
        raw=stacked("raw"),
        logits=stacked("logits"),
    )


def spread_to(recipe: Recipe, spread: float) -> Block:
    """The block of `recipe`, but with gains (and biases) spread by `spread`; all else is the same draw."""
    block = _widest(dataclasses.replace(recipe, gain_spread=1.0))
    stored = 0.0 if recipe.offset_stored else 1.0
    assert block.bias_q is not None  # a drawn block has them
    assert block.bias_k is not None
    return dataclasses.replace(
        block,
        gain_q=stored + spread * (block.gain_q - stored),
        gain_k=stored + spread * (block.gain_k - stored),
        bias_q=spread * block.bias_q,
        bias_k=spread * block.bias_k,
    )


@lru_cache(maxsize=8)
def _widest(recipe: Recipe) -> Block:
    return draw_block(recipe)
