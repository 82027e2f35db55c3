"""What a norm that is missing, or taken elsewhere, multiplies each logit by, from the sizes of q and k.

* `FACTORS`: the cause, or an empty word for a constant alone, and its factor for every logit, in the order to be tried.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import torch
from torch import Tensor

from qkdemo.attention.blocks import Block
from qkdemo.attention.norms import NORMS, divisor
from qkdemo.attention.pipeline import GROUPINGS, Pipeline, Trace

Factor: TypeAlias = Callable[[Pipeline, Block, Trace], Tensor]  # [heads, queries, keys], or what broadcasts to it
_SAME_BUT_ROOT: Final = {"rms": "l2", "l2": "rms"}  # norms whose sizes are √d apart, and epsilon


def _sizes(reference: Pipeline, block: Block, q: Tensor, k: Tensor) -> Tensor:
    norm = NORMS[reference.norm]
    of_q, of_k = (divisor(x, norm, reference.rule, reference.epsilon) for x in (q, k))
    return of_q * GROUPINGS[reference.grouping](of_k, block.n_heads // block.n_kv_heads).mT


def _whole(x: Tensor) -> Tensor:
    """Every head's positions as the whole width, for the size of all heads together."""
    return x.movedim(-3, -2).flatten(-2).expand(x.shape[0], -1, -1)


def _times_sizes(reference: Pipeline, block: Block, expected: Trace) -> Tensor:
    return _sizes(reference, block, expected.q_projected, expected.k_projected)


def _times_sizes_over_whole(reference: Pipeline, block: Block, expected: Trace) -> Tensor:
    whole = (_whole(x) for x in (expected.q_projected, expected.k_projected))
    return _times_sizes(reference, block, expected) / _sizes(reference, block, *whole)


def _times_sizes_over_inputs(reference: Pipeline, block: Block, expected: Trace) -> Tensor:
    inputs = divisor(block.x, NORMS[reference.norm], reference.rule, reference.epsilon)
    return _times_sizes(reference, block, expected) / (inputs * inputs.mT)


def _other_epsilon(reference: Pipeline, block: Block, expected: Trace) -> Tensor:
    """Near 1: what L2 in the place of RMSNorm leaves of epsilon, or the other way round, beside a constant."""
    if reference.norm not in _SAME_BUT_ROOT:
        return torch.ones_like(expected.logits)
    other = reference.but(norm=_SAME_BUT_ROOT[reference.norm], rule=None, epsilon=None)
    d = block.d_head if reference.norm == "rms" else 1 / block.d_head
    return d * _times_sizes(reference, block, expected) / _times_sizes(other, block, expected)


FACTORS: Final[tuple[tuple[str, Factor], ...]] = (
    ("", lambda reference, block, expected: torch.ones_like(expected.logits)),
    ("", _other_epsilon),
    ("norm_skipped", _times_sizes),
    ("full_width", _times_sizes_over_whole),
    ("input", _times_sizes_over_inputs),
)
