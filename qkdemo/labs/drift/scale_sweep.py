"""One side of a comparison: one variant while the weights grow.

* `State`: everything that a side depends on, and nothing else, so that equal sides are computed once;
* `sweep(state, scales)`: the side over many weight scales at once, cached for all visitors;
* `scores_at(state, ...)`, `visible_keys(state)`: what a lab needs to look closer.

q and k are drawn in float64, multiplied by the scale, and stored once in the number format; what follows
is stored in it too. Softmax works on the logits as stored, in float32 or wider, as fused kernels do.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.inputs import Inputs, Recipe, causal_mask, draw
from qkdemo.attention.measures import attend
from qkdemo.attention.norms import Norm, numerator
from qkdemo.attention.variants import VARIANTS, Parameters, Scores, Variant, VariantWord, scores
from qkdemo.floats.devices import DeviceWord, device_for
from qkdemo.floats.formats import FORMATS, FormatWord, exact, first_failure, noise, rounded

SHOWN_CELLS: Final = 32  # a side of the drawn attention matrix; larger ones are pooled to it
SHOWN_BARS: Final = 64
SHOWN_ARMS: Final = 16
_BLOCK: Final = 1 << 17  # logits worked on at once: 1 MiB, which stays in cache
_BEFORE: Final = 1e-3  # of the smallest scale of a sweep: how far down a loss is followed
_NEAR: Final = 4e-6  # relative: a few times what a bisection leaves open

Stage: TypeAlias = Literal["raw", "logits"]
Positions: TypeAlias = tuple[Int[Tensor, " queries"], Int[Tensor, " keys"]]


@dataclass(frozen=True, kw_only=True)
class State:
    """What one side depends on, the weight scale apart. `parameters` must hold plain numbers."""

    variant: VariantWord
    parameters: Parameters
    recipe: Recipe
    format: FormatWord
    norm_in_format: bool
    causal: bool
    shown: tuple[int, int, int]  # head, query and key that are looked at closely
    device: DeviceWord
    own: Inputs | None = None  # in place of what the recipe draws

    @property
    def base(self) -> tuple[Tensor, Tensor]:
        """q and k at weight scale 1."""
        return draw(self.recipe) if self.own is None else (self.own.q, self.own.k)

    @property
    def formed_by(self) -> Variant:
        """The variant itself."""
        return VARIANTS[self.variant]

    @property
    def runs_on(self) -> DeviceWord:
        """The device, or cpu where the device lacks the number format."""
        return device_for(self.device, FORMATS[self.format].dtype)


@dataclass(frozen=True, eq=False)
class Side:
    """One variant over the sweep. Arrays have one entry per scale in front; NaN where nothing is defined."""

    variant: VariantWord
    n_keys: int
    bound: float  # proven for |logit|; ∞ if none is
    factor: float  # what multiplies q·k
    most_entropy: float  # nats, if every query looked at all its keys alike
    max_abs_logit: NDArray[np.float64]
    top_weight: NDArray[np.float64]
    entropy: NDArray[np.float64]  # nats
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
    arms: NDArray[np.float32]  # [scales, ≤16] ‖k‖ of the first keys
    angles: NDArray[np.float64]  # [scales, ≤16] between the shown query and those keys, radians, before rounding
    first_raw_loss: float  # weight scale at which a raw product first overflows; ∞ if it never does
    first_logit_loss: float
    lost_before: bool  # whether it did so already at the smallest scale that is asked, which `first_raw_loss` is then


def sweep(state: State, scales: tuple[float, ...]) -> Side:
    """The side at every one of `scales`, which ascend."""
    if state.own is None:
        return _kept_sweep(state, scales)
    return state.own.once((state, scales), lambda: _sweep(state, scales))


def _sweep(state: State, scales: tuple[float, ...]) -> Side:
    visible = visible_keys(state)
    parts = [_part(state, block, visible) for block in blocks(scales, state.recipe)]
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    for array in arrays.values():
        array.flags.writeable = False  # all visitors read the same ones
    losses = _Losses(state, visible)
    first = _first_loss("raw", losses, scales, arrays["raw_lost"])
    return Side(
        variant=state.variant,
        n_keys=state.recipe.n_keys,
        bound=state.formed_by.bound(state.parameters, state.recipe.d_head, state.recipe.n_heads),
        factor=float(state.formed_by.factor(state.parameters, state.recipe.d_head)),
        most_entropy=_most_entropy(visible, state.recipe.n_keys),
        angles=_angles(state, scales),
        first_raw_loss=first,
        first_logit_loss=_first_loss("logits", losses, scales, arrays["logit_lost"]),
        lost_before=first <= scales[0] * _BEFORE,
        **arrays,
    )


_kept_sweep: Final = lru_cache(maxsize=128)(_sweep)


def visible_keys(state: State) -> Tensor | None:
    """The mask of keys that each query sees; None if it sees them all."""
    return causal_mask(state.recipe.n_keys, state.runs_on) if state.causal else None


def scores_at(
    state: State, scales: Tensor, parameters: Parameters | None = None, only: Positions | None = None
) -> Scores:
    """Scores at every weight scale, [scales, heads, …]; `parameters` may hold tensors that sweep instead.

    `only`: the queries and keys that are looked at; by default all.
    """
    store = partial(rounded, format=FORMATS[state.format])
    drawn = state.base
    if only is not None:
        drawn = drawn[0][:, only[0]], drawn[1][:, only[1]]
    q, k = (store(scales[:, None, None, None] * x).to(state.runs_on) for x in drawn)
    inside = store if state.norm_in_format else exact
    return scores(q, k, state.formed_by, parameters or state.parameters, store=store, inside_norm=inside)


def blocks(values: Sequence[float], recipe: Recipe) -> Sequence[Tensor]:
    """`values` in runs so short that the logits of a run stay in cache; within one, all are worked on at once."""
    length = max(1, _BLOCK // (recipe.n_heads * recipe.n_keys**2))
    at = range(0, len(values), length)
    return [torch.tensor(values[start : start + length], dtype=torch.float64) for start in at]


def _part(state: State, scales: Tensor, visible: Tensor | None) -> dict[str, NDArray[Any]]:
    """The arrays of `Side` for some of the scales."""
    made = scores_at(state, scales)
    weights, measures = attend(made.logits, visible)
    head, query, key = state.shown
    q, k = made.q[:, head, query], made.k[:, head]  # [scales, d_head], [scales, keys, d_head]
    q_norm, k_norms = _norm(q), _norm(k)
    norm = state.formed_by.norm
    zeroed = [
        ((x.abs().amax(-1) == 0) & _differs(drawn, norm).to(x.device)).sum((-2, -1))
        for x, drawn in zip((made.q, made.k), state.base, strict=True)
    ]
    of_head = weights[:, head]
    if visible is not None:
        of_head = of_head.masked_fill(~visible, -1)  # a hidden key is told apart from an unattended one
    arrays = {
        **{field.name: getattr(measures, field.name) for field in fields(measures) if field.name != "empty_rows"},
        "raw_lost": _share_lost(made.raw, visible),
        "logit_lost": _share_lost(made.logits, visible),
        "zeroed_rows": zeroed[0] + zeroed[1],
        "weights": _pooled(of_head, SHOWN_CELLS, SHOWN_CELLS).float(),
        "row": _pooled(of_head[:, query : query + 1], 1, SHOWN_BARS)[:, 0].float(),
        "q_norm": q_norm,
        "k_norm": k_norms[:, key],
        "cosine": (q * k[:, key]).sum(-1) / (q_norm * k_norms[:, key]),
        "logit": made.logits[:, head, query, key],
        "arms": k_norms[:, :SHOWN_ARMS].float(),
    }
    return {name: array.cpu().numpy().copy() for name, array in arrays.items()}  # a view would keep all logits


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


def _first_loss(stage: Stage, losses: "_Losses", scales: Sequence[float], lost: NDArray[np.float64]) -> float:
    """The weight scale at which the first entry of a stage is lost, bisected between two scales of the sweep.

    What is lost at a scale is lost beyond it too. So below a scale at which entries are lost, their queries and keys
    alone are asked, which are soon a handful; and all of them once, just below what was found. For in a norm among
    subnormal numbers an entry may come back: then all are asked again wherever none of that handful is lost.
    """
    where = np.flatnonzero(lost)
    if not where.size:
        return math.inf
    after = int(where[0])
    before, beyond = scales[after - 1] if after else scales[0] * _BEFORE, scales[after]
    some = losses.everywhere

    def fails(scale: float, *, again: bool = False) -> bool:
        nonlocal some
        if scale == beyond or (after and scale == before):  # the sweep says
            return scale == beyond
        gone = losses.at(stage, scale, some)
        if again and not gone.any():
            gone = losses.at(stage, scale, losses.everywhere)
            some = losses.everywhere if gone.any() else some
        if not gone.any():
            return False
        some = some[0][gone.any(1)], some[1][gone.any(0)]
        return True

    found = first_failure(fails, before, beyond)
    below = found * (1 - _NEAR)
    fails_anywhere = partial(fails, again=True)
    return first_failure(fails_anywhere, before, beyond) if below > before and fails_anywhere(below) else found


class _Losses:
    """Where entries are lost at a weight scale. Both stages are told together: they often lose the same."""

    def __init__(self, state: State, visible: Tensor | None) -> None:
        self._state, self._visible = state, visible
        self._kept: dict[tuple[float, bytes, bytes], dict[Stage, Tensor]] = {}
        every = torch.arange(state.recipe.n_keys)
        self.everywhere = every, every

    def at(self, stage: Stage, scale: float, some: Positions) -> Bool[Tensor, "queries keys"]:
        """Whether a head has lost an entry of this stage, by query and key."""
        queries, keys = some
        asked = scale, queries.numpy().tobytes(), keys.numpy().tobytes()
        if asked not in self._kept:
            only = None if some is self.everywhere else some
            made = scores_at(self._state, torch.tensor([scale], dtype=torch.float64), only=only)
            lost: dict[Stage, Tensor] = {"raw": _any_lost(made.raw[0]), "logits": _any_lost(made.logits[0])}
            seen = True if self._visible is None else self._visible[queries][:, keys]
            self._kept[asked] = {stage: (each & seen).cpu() for stage, each in lost.items()}
        return self._kept[asked][stage]


def _any_lost(x: Float[Tensor, "heads queries keys"]) -> Bool[Tensor, "queries keys"]:
    if x.sum().isfinite():  # then every entry is
        return torch.zeros(x.shape[1:], dtype=torch.bool, device=x.device)
    return ~(x.amin(0).isfinite() & x.amax(0).isfinite())  # the least and the largest of NaN are NaN


def _most_entropy(visible: Tensor | None, n_keys: int) -> float:
    return math.log(n_keys) if visible is None else float(visible.sum(-1).double().log().mean())


def _angles(state: State, scales: tuple[float, ...]) -> NDArray[np.float64]:
    """[scales, ≤16]; a norm that divides by a size leaves directions as they are at scale 1."""
    head, query, _ = state.shown
    at = torch.tensor(scales if state.formed_by.norm.turns else (1.0,), dtype=torch.float64)[:, None, None, None]
    first, heads = (0, slice(None)) if state.formed_by.over_all_heads else (head, slice(head, head + 1))
    q, k = state.base
    made = scores(at * q[heads, query : query + 1], at * k[heads, :SHOWN_ARMS], state.formed_by, state.parameters)
    q, k = made.q[:, head - first, 0, :, None], made.k[:, head - first]
    cosines = (k @ q).squeeze(-1) / (_norm(k) * _norm(q.mT))
    return np.broadcast_to(cosines.clamp(-1, 1).arccos().numpy(), (len(scales), cosines.shape[1]))


def _norm(x: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(x.double() if x.device.type != "mps" else x, dim=-1)
    return norm


def _pooled(weights: Tensor, rows: int, columns: int) -> Tensor:
    """At most `rows` × `columns` cells, each the largest weight it stands for; NaN wins."""
    kernel = [max(1, math.ceil(have / most)) for have, most in zip(weights.shape[-2:], (rows, columns), strict=True)]
    if kernel == [1, 1]:
        return weights
    pooled: Tensor = torch.nn.functional.max_pool2d(weights, kernel, ceil_mode=True)
    return pooled
