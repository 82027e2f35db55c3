"""Two pipelines over one block, compared while the spread of the gains grows.

* `Difference`, `difference(left, right)`: how far two passes are apart; `differences(...)`: at every state of a block;
* `differing(left, right)`: the choices in which two pipelines differ;
* `Sweep`, `sweep(...)`: two pipelines at every spread of the gains, with what one head attends to;
* `over_spreads(pipeline, recipe, spreads)`: the scores of one pipeline at every spread, in float64.

Errors are relative: ‖right − left‖ / ‖left‖, Frobenius, over the pairs that a query sees.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.blocks import Block, BlockRecipe, spread_to
from qkdemo.attention.pipeline import CHOICES, Pipeline, PipelineScores, Trace, trace
from qkdemo.floats.formats import Rounding, exact

_LAST: Final = (-3, -2, -1)  # heads, queries and keys


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


def difference(left: PipelineScores, right: PipelineScores) -> Difference:
    """The errors of the right pass, as the left one sees them."""
    return differences(left, right)[0]


def differences(left: PipelineScores, right: PipelineScores) -> tuple[Difference, ...]:
    """The errors of the right passes, one for each state of the block."""
    columns = (
        relative(left.seen(left.raw), right.seen(right.raw), _LAST),
        relative(left.seen(left.logits), right.seen(right.logits), _LAST),
        most_moved(left, right),
        relative(left.output, right.output, (-2, -1)),
    )
    return tuple(Difference(*row) for row in zip(*(column.reshape(-1).tolist() for column in columns), strict=True))


def differing(left: Pipeline, right: Pipeline) -> list[str]:
    """The choices in which the two differ.

    >>> differing(Pipeline(), Pipeline(norm="l2", scale="one"))
    ['norm', 'scale']
    """
    return [name for name in CHOICES if getattr(left, name) != getattr(right, name)]


def relative(left: Float[Tensor, "*shape"], right: Float[Tensor, "*shape"], axes: tuple[int, ...]) -> Tensor:
    """‖right − left‖ / ‖left‖ over these axes; 0 where both are the same, be they 0."""
    apart = _length((right - left).double(), axes)
    return torch.where(apart == 0, 0.0, apart / _length(left.double(), axes))


def _length(x: Tensor, axes: tuple[int, ...], power: float = 2) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(x, power, dim=axes)
    return length


def most_moved(left: PipelineScores, right: PipelineScores) -> Tensor:
    """The most that one attention weight moves, in each state."""
    return _length(right.weights - left.weights, _LAST, math.inf)


@lru_cache(maxsize=8)
def sweep(
    pipelines: tuple[Pipeline, Pipeline],
    recipe: BlockRecipe,
    spreads: Sequence[float],
    head: int,
    store: Rounding = exact,
) -> Sweep:
    """Both pipelines on the block of `recipe`, its gains spread by each of `spreads`."""
    apart, shape = list[Difference](), (len(spreads), recipe.n_keys, recipe.n_keys)
    of_head = {name: (np.empty(shape), np.empty(shape)) for name in ("weights", "raw", "logits")}
    for at in range(len(spreads)):  # one by one, and into arrays that are there already: less memory is held at once
        run = slice(at, at + 1)
        sides = [dataclasses.replace(_swept(pipeline, recipe, spreads[run], store)) for pipeline in pipelines]
        apart += differences(*sides)
        for name, columns in of_head.items():
            for side, column in zip(sides, columns, strict=True):
                column[run] = getattr(side, name)[:, head]
    return Sweep(spreads=np.array(spreads), differences=tuple(apart), **of_head)


@lru_cache(maxsize=16)
def _swept(pipeline: Pipeline, recipe: BlockRecipe, spreads: Sequence[float], store: Rounding) -> PipelineScores:
    """One side's raw scores at some spreads; they stay while the other side is changed."""
    if store is exact:
        return over_spreads(pipeline, recipe, spreads)
    return _scores(trace(pipeline, spread_to(recipe, spreads), store=store))


def _scores(made: Trace) -> PipelineScores:
    """Without q and k, which are large."""
    return PipelineScores(pipeline=made.pipeline, block=made.block, store=made.store, raw=made.raw)


_THREE: Final = (0.0, 0.5, 1.0)


def over_spreads(pipeline: Pipeline, recipe: BlockRecipe, spreads: Sequence[float]) -> PipelineScores:
    """The scores of a pipeline in float64 at every spread of the gains, from three passes.

    Gain and bias are linear in the spread s, and so are q and k: every raw score is a polynomial of degree two in s,
    which three values of s determine (Lagrange).
    """
    linear = pipeline.but(scale="one", cap="none")  # raw scores know neither
    passes, s = _three(linear, recipe), torch.tensor(spreads, dtype=torch.float64)
    shares = torch.stack([2 * (s - 0.5) * (s - 1), 4 * s * (1 - s), 2 * s * (s - 0.5)], 1)
    return dataclasses.replace(passes, pipeline=pipeline, raw=torch.tensordot(shares, passes.raw, 1))


@lru_cache(maxsize=32)
def _three(pipeline: Pipeline, recipe: BlockRecipe) -> PipelineScores:
    raw = torch.empty(len(_THREE), recipe.n_heads, recipe.n_keys, recipe.n_keys, dtype=torch.float64)
    for of_one, spread in zip(raw, _THREE, strict=True):
        of_one.copy_(trace(pipeline, spread_to(recipe, spread)).raw)
    return PipelineScores(pipeline=pipeline, block=_of_three(recipe), store=exact, raw=raw)


@lru_cache(maxsize=4)
def _of_three(recipe: BlockRecipe) -> Block:
    return spread_to(recipe, _THREE)
