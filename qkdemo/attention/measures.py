"""What is read off attention logits: the numbers that warn, and the weights they come from.

* `attend(logits, visible)`: attention weights and `Measures`, from one pass over the logits.

All logarithms are natural: entropy is in nats. Keys that a query may not see take no part in anything.
A row is *undefined* when its softmax is: its largest logit is ±∞ or one of them is NaN. Undefined rows and
rows that see no key are counted and left out of every mean, so that one of them cannot hide the others.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import threshold


@dataclass(frozen=True)
class Measures:
    """Read off the logits of all heads of one attention layer; one entry per batch element."""

    max_abs_logit: Float[Tensor, "*batch"]  # over visible keys; ∞ if one overflowed
    top_weight: Float[Tensor, "*batch"]  # the largest in rows that see two keys or more; in all if none does
    entropy: Float[Tensor, "*batch"]  # nats, mean over rows
    entropy_fraction: Float[Tensor, "*batch"]  # of ln(visible keys), mean over rows that see two keys or more
    softmax_slope: Float[Tensor, "*batch"]  # mean of p(1 − p) over visible keys
    undefined_rows: Int[Tensor, "*batch"]
    empty_rows: Int[Tensor, "*batch"]  # rows that see no key


def attend(
    logits: Float[Tensor, "*batch heads queries keys"], visible: Bool[Tensor, "queries keys"] | None = None
) -> tuple[Float[Tensor, "*batch heads queries keys"], Measures]:
    """Attention weights and their measures.

    **Weights**: softmax over visible keys; 0 for a hidden key; NaN in an undefined row; 0 in a row without keys.
    **Numerics**: the row's largest term is exactly 1 and is kept apart from the rest, so that entropy
    and slope keep their relative precision when one weight is within rounding of 1. 0 · ln 0 is 0.
    A weight below the smallest normal number of its dtype is 0.

    >>> weights, m = attend(torch.tensor([[[100.0, 0.0, 0.0]]], dtype=torch.float64))
    >>> f"{m.softmax_slope.item() * 3:.3e}", f"{m.entropy.item():.3e}"  # 2·2·e⁻¹⁰⁰ and 2·101·e⁻¹⁰⁰
    ('1.488e-43', '7.515e-42')
    """
    given, n_keys = logits, logits.shape[-1]
    if visible is None:
        seen = torch.full(logits.shape[-2:-1], n_keys, device=logits.device)
    else:
        seen = visible.sum(-1)
        logits = torch.where(visible, logits, -torch.inf)

    top, where = logits.max(-1, keepdim=True)
    empty = (seen == 0).expand(top.shape[:-1])
    defined = top.squeeze(-1).isfinite() & ~empty
    below = torch.sub(logits, top, out=None if visible is None else logits)  # ≤ 0; NaN where undefined
    faintest = math.log(torch.finfo(below.dtype).tiny)  # beyond it exp works in denormals, many times slower
    terms = threshold(below, faintest, -torch.inf).exp_().scatter_(-1, where, 0)
    rest = terms.sum(-1, keepdim=True)  # the softmax's denominator, less the largest term, which is 1
    top_weight = (1 / (1 + rest)).masked_fill_(~top.isfinite(), torch.nan)  # a lone ∞ too: ∞ − ∞ is undefined
    weights = terms.mul_(top_weight)
    entropy = torch.log1p(rest).squeeze(-1) - torch.mul(weights, below.clamp_min_(-1e5), out=below).sum(-1)
    slope = (top_weight.square() * rest).squeeze(-1) + torch.sub(1, weights, out=below).mul_(weights).sum(-1)
    weights.scatter_(-1, where, top_weight)
    if bool(empty.any()):
        weights.masked_fill_(empty.unsqueeze(-1), 0)

    pairs = (defined * seen).sum((-2, -1))
    decidable = defined & (seen > 1)  # where one key is seen, its weight is 1 whatever the logit
    telling = torch.where(decidable.any(-1, keepdim=True).any(-2, keepdim=True), decidable, defined)
    fraction = entropy / seen.clamp_min(2).to(entropy.dtype).log()  # of a whole number, log is float32
    return weights, Measures(
        max_abs_logit=_max_abs(given, visible, top),
        top_weight=_nan_if_none(top_weight.squeeze(-1).masked_fill(~telling, -1).amax((-2, -1)), pairs),
        entropy=_sum_where(entropy, defined) / defined.sum((-2, -1)),
        entropy_fraction=_sum_where(fraction, decidable) / decidable.sum((-2, -1)),
        softmax_slope=_sum_where(slope, defined) / pairs,
        undefined_rows=(~defined & ~empty).sum((-2, -1)),
        empty_rows=empty.sum((-2, -1)),
    )


def _sum_where(x: Tensor, kept: Tensor) -> Tensor:
    return x.masked_fill(~kept, 0).sum((-2, -1))


def _nan_if_none(x: Tensor, count: Tensor) -> Tensor:
    return x.masked_fill(count == 0, torch.nan)


def _max_abs(logits: Tensor, visible: Tensor | None, top: Tensor) -> Tensor:
    """Largest |logit| over visible keys, NaN entries left out; NaN if nothing is left. `top`: each row's largest."""
    seen = logits if visible is None else torch.where(visible, logits, torch.inf)
    largest = torch.maximum(top.amax((-3, -2, -1)), -seen.amin((-3, -2, -1)))
    if largest.isnan().any():
        size = logits.abs()
        ignored = size.isnan() if visible is None else size.isnan() | ~visible
        largest = size.masked_fill_(ignored, -torch.inf).amax((-3, -2, -1))
    return largest.masked_fill(largest == -torch.inf, torch.nan)
