"""One side of a comparison: one variant while the weights grow.

* `arm_keys(n_keys, key)`: which of many keys are drawn as arrows;
* `sweep(state, scales)`: the side over many weight scales at once, cached for all visitors. One scale between those
  that are computed for dragging, and what is looked at closely, is computed apart, so that another scale, head, query
  or key sweeps nothing again.

Softmax works on the logits as stored, in float32 or wider, as fused kernels do.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.measures import attend
from qkdemo.attention.norms import Norm, numerator
from qkdemo.attention.variants import Scores, VariantWord, scores
from qkdemo.floats.formats import noise
from qkdemo.labs.drift.first_losses import BEFORE, Losses, Positions, Stage, bracket, first_loss
from qkdemo.labs.drift.state import State, blocks, once, runs, scores_at, stops, visible_keys, whatever_is_shown

SHOWN_CELLS: Final = 32  # a side of the drawn attention matrix; larger ones are pooled to it
SHOWN_BARS: Final = 64
SHOWN_ARMS: Final = 16
_KEYS: Final = 1 << 20  # numbers of keys worked on at once where one query is looked at

_LOST: Final[dict[Stage, str]] = {"raw": "raw_lost", "logits": "logit_lost"}


@dataclass(frozen=True, eq=False)
class Side:
    """One variant over the sweep. Arrays have one entry per scale in front; NaN where nothing is defined."""

    variant: VariantWord
    n_keys: int
    bound: float  # proven for |logit|; ∞ if none is
    factor: float  # what multiplies q·k
    max_abs_logit: NDArray[np.float64]
    top_weight: NDArray[np.float64]
    entropy: NDArray[np.float64]  # nats
    most_entropy: NDArray[np.float64]  # nats, if each of these queries looked at all its keys alike
    entropy_fraction: NDArray[np.float64]  # of ln(visible keys)
    softmax_slope: NDArray[np.float64]
    raw_lost: NDArray[np.float64]  # share of visible q·k that became ±∞ or NaN
    logit_lost: NDArray[np.float64]
    undefined_rows: NDArray[np.int64]
    zeroed_rows: NDArray[np.int64]  # rows of q or k that the norm or the format silently turned into zeros
    weights: NDArray[np.float32]  # [scales, ≤32, ≤32] of the shown head; a cell is the largest it stands for
    row: NDArray[np.float32]  # [scales, ≤64] the shown query's weights, pooled likewise
    q_norm: NDArray[np.float64]  # of the shown query, as it enters the product
    k_norm: NDArray[np.float64]
    cosine: NDArray[np.float64]  # between shown query and key
    logit: NDArray[np.float64]  # of that pair
    arms: NDArray[np.float64]  # [scales, ≤16] ‖k‖ of the keys in `arm_keys`
    angles: NDArray[np.float64]  # [scales, ≤16] between the shown query and those keys, radians, before rounding
    first_raw_loss: float  # weight scale at which a raw product first overflows; ∞ if it never does
    first_logit_loss: float
    lost_before: bool  # whether it did so already at the smallest scale that is asked, which `first_raw_loss` is then


def sweep(state: State, scales: tuple[float, ...]) -> Side:
    """The side at every one of `scales`, which ascend."""
    return once(_side, state, scales)


def arm_keys(n_keys: int, key: int) -> list[int]:
    """The keys that are drawn as arrows: the first ones, and the shown one in the place of the last of them.

    >>> arm_keys(4, 2), arm_keys(64, 40)[-2:]
    ([0, 1, 2, 3], [14, 40])
    """
    first = list(range(min(n_keys, SHOWN_ARMS)))
    return first if key < len(first) else [*first[:-1], key]


@lru_cache(maxsize=128)
def _side(state: State, scales: tuple[float, ...]) -> Side:
    whole, on_the_way = whatever_is_shown(state), stops(state.recipe)
    between = [scale for scale in scales if scale not in on_the_way]
    swept = on_the_way if len(scales) == len(on_the_way) + 1 and len(between) == 1 else scales
    arrays, firsts = once(_measured, whole, swept), once(_firsts, whole, swept)
    if swept != scales:
        at, one = scales.index(between[0]), once(_measured, whole, tuple(between))
        arrays = {name: np.insert(array, at, one[name][0], axis=0) for name, array in arrays.items()}
        firsts = _bracketed(firsts, whole, scales, arrays)
    heads = state.recipe.n_heads if state.formed_by.over_all_heads else 1
    length = _KEYS // (heads * state.recipe.n_keys * state.recipe.d_head)
    arrays = arrays | _joined([_closer(state, some) for some in runs(scales, length)])
    arrays |= {"weights": arrays["weights"][:, state.shown[0]].copy(), "angles": _angles(state, scales)}
    for array in arrays.values():
        array.flags.writeable = False  # all visitors read the same ones
    return Side(
        variant=state.variant,
        n_keys=state.recipe.n_keys,
        bound=state.formed_by.bound(state.parameters, state.recipe.d_head, state.recipe.n_heads),
        factor=float(state.formed_by.factor(state.parameters, state.recipe.d_head)),
        first_raw_loss=firsts[0],
        first_logit_loss=firsts[1],
        lost_before=firsts[0] <= scales[0] * BEFORE,
        **arrays,
    )


@lru_cache(maxsize=64)  # of up to two megabytes each
def _measured(state: State, scales: tuple[float, ...]) -> dict[str, Any]:
    """The arrays of `Side` that hold whatever is shown, and the weights of all heads in the place of one."""
    visible = visible_keys(state)
    return _joined([_part(state, block, visible) for block in blocks(scales, state.recipe)])


@lru_cache(maxsize=128)
def _firsts(state: State, scales: tuple[float, ...]) -> tuple[float, float]:
    """The weight scales from which on raw products, and logits, are lost."""
    losses, arrays = _losses(state), once(_measured, state, scales)
    raw, logits = (first_loss(stage, losses, scales, arrays[name]) for stage, name in _LOST.items())
    return raw, logits


def _bracketed(
    firsts: tuple[float, float], state: State, scales: tuple[float, ...], arrays: dict[str, Any]
) -> tuple[float, float]:
    """`firsts`, or others where a scale that was put in between shows that entries come back."""
    losses = _losses(state)
    raw, logits = (
        first if first == low == math.inf or low < first <= high else first_loss(stage, losses, scales, arrays[name])
        for first, (stage, name) in zip(firsts, _LOST.items(), strict=True)
        for low, high in [bracket(scales, arrays[name])]
    )
    return raw, logits


def _losses(state: State) -> Losses:
    def score(scale: float, some: Positions | None) -> Scores:
        return scores_at(state, torch.tensor([scale], dtype=torch.float64), only=some)

    return Losses(score, visible_keys(state), state.recipe.n_keys)


def _joined(parts: Sequence[dict[str, NDArray[Any]]]) -> dict[str, Any]:
    """Arrays of some of the scales and of the next ones."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _part(state: State, scales: Tensor, visible: Tensor | None) -> dict[str, NDArray[Any]]:
    """What there is at some of the scales, whatever is shown: arrays of `Side`, and the weights of all heads."""
    made = scores_at(state, scales)
    weights, measures = attend(made.logits, visible)
    norm = state.formed_by.norm
    zeroed = [
        ((x.abs().amax(-1) == 0) & _differs(drawn, norm).to(x.device)).sum((-2, -1))
        for x, drawn in zip((made.q, made.k), state.base, strict=True)
    ]
    return _arrays(
        {
            **{field.name: getattr(measures, field.name) for field in fields(measures) if field.name != "empty_rows"},
            "most_entropy": _most_entropy(weights, visible),
            "raw_lost": _share_lost(made.raw, visible),
            "logit_lost": _share_lost(made.logits, visible),
            "zeroed_rows": zeroed[0] + zeroed[1],
            "weights": _pooled(_told_apart(weights, visible), SHOWN_CELLS, SHOWN_CELLS).float(),
        }
    )


def _closer(state: State, scales: Tensor) -> dict[str, NDArray[Any]]:
    """The shown query beside all keys, and beside the shown one: arrays of `Side` for some of the scales."""
    visible, (_, query, key) = visible_keys(state), state.shown
    heads, at = _read_for(state)
    made = scores_at(state, scales, only=(torch.tensor([query]), torch.arange(state.recipe.n_keys)), heads=heads)
    seen = None if visible is None else visible[query : query + 1]
    row = _told_apart(attend(made.logits[:, at : at + 1], seen)[0], seen)
    q, k = made.q[:, at, 0], made.k[:, at]  # [scales, d_head], [scales, keys, d_head]
    q_norm, k_norm = _norm(q), _norm(k[:, key])
    return _arrays(
        {
            "row": _pooled(row, 1, SHOWN_BARS)[:, 0, 0].float(),
            "q_norm": q_norm,
            "k_norm": k_norm,
            "cosine": (q / q_norm[:, None] * (k[:, key] / k_norm[:, None])).sum(-1),
            "logit": made.logits[:, at, 0, key],
            "arms": _norm(k[:, arm_keys(state.recipe.n_keys, key)]),
        }
    )


def _read_for(state: State) -> tuple[slice, int]:
    """The heads that the shown one's norm reads, and the place of the shown one among them."""
    head = state.shown[0]
    return (slice(None), head) if state.formed_by.over_all_heads else (slice(head, head + 1), 0)


def _told_apart(weights: Tensor, visible: Tensor | None) -> Tensor:
    """Those weights, with -1 where a key is hidden, which is not the same as unattended."""
    return weights if visible is None else weights.masked_fill_(~visible, -1)


def _arrays(tensors: dict[str, Tensor]) -> dict[str, NDArray[Any]]:
    """The same as arrays of their own: a view would keep all logits."""
    return {name: tensor.cpu().numpy().copy() for name, tensor in tensors.items()}


def _differs(x: Tensor, norm: Norm) -> Tensor:
    """Whether a vector is more than zeros before the norm divides; a constant one, less its mean, is rounding alone."""
    left = numerator(x, norm).abs().amax(-1)
    return left > (noise("float64") * x.abs().amax(-1) if norm.centred else 0)


def _share_lost(x: Tensor, visible: Tensor | None) -> Tensor:
    """The share of visible entries that are ±∞ or NaN."""
    if x.sum().isfinite():  # then every entry is: one pass over them instead of six
        return torch.zeros(x.shape[:-3], dtype=torch.float64, device=x.device)
    lost = (x - x) != 0  # NaN is unlike anything
    if visible is not None:
        lost &= visible
    pairs = x.shape[-2] * x.shape[-1] if visible is None else visible.sum()
    return lost.sum((-3, -2, -1)).double() / (pairs * x.shape[-3])


def _most_entropy(weights: Tensor, visible: Tensor | None) -> Tensor:
    """ln(visible keys), mean over the rows that have weights; NaN if none has."""
    defined = ~weights[..., 0].isnan()
    n_keys = weights.shape[-1]
    most = torch.full((n_keys,), n_keys, device=weights.device) if visible is None else visible.sum(-1)
    return (defined * most.to(weights.dtype).log()).sum((-2, -1)) / defined.sum((-2, -1))


def _angles(state: State, scales: tuple[float, ...]) -> NDArray[np.float64]:
    """[scales, ≤16]; a norm that divides by a size leaves directions as they are at scale 1."""
    heads, place = _read_for(state)
    _, query, key = state.shown
    arms = arm_keys(state.recipe.n_keys, key)
    at = torch.tensor(scales if state.formed_by.norm.turns else (1.0,), dtype=torch.float64)[:, None, None, None]
    q, k = state.base
    if not state.formed_by.norm.turns:
        q, k = (x / _largest(x) for x in (q, k))
    made = scores(at * q[heads, query : query + 1], at * k[heads][:, arms], state.formed_by, state.parameters)
    q, k = made.q[:, place, 0, :, None], made.k[:, place]
    cosines = (k @ q).squeeze(-1) / (_norm(k) * _norm(q.mT))
    return np.broadcast_to(cosines.clamp(-1, 1).arccos().numpy(), (len(scales), cosines.shape[1]))


def _norm(x: Tensor) -> Tensor:
    x = x.double() if x.device.type != "mps" else x
    largest = _largest(x)
    norm: Tensor = torch.linalg.vector_norm(x / largest, dim=-1) * largest[..., 0]
    return norm


def _largest(x: Tensor) -> Tensor:
    """The size of each vector's largest entry, 1 where that is 0 or no number: over it, squares stay in range."""
    largest = x.abs().amax(-1, keepdim=True)
    return torch.where((largest > 0) & largest.isfinite(), largest, 1.0)


def _pooled(weights: Tensor, rows: int, columns: int) -> Tensor:
    """At most `rows` × `columns` cells, each the largest weight it stands for; NaN wins."""
    for axis, most in ((-2, rows), (-1, columns)):
        width = math.ceil(weights.shape[axis] / most)
        if short := -weights.shape[axis] % width:
            weights = torch.nn.functional.pad(weights, (0, short) if axis == -1 else (0, 0, 0, short), value=-torch.inf)
        if width > 1:
            weights = weights.unfold(axis, width, width).amax(-1)
    return weights
