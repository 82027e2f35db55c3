"""What becomes of the entries of each stage: how many are lost, vanish or merge, and from which weight scale on.

* `Tally`, `tally(inputs, scales, choices)`: the counts at some weight scales;
* `Shares`, `shares(inputs, scales, choices)`: what they are of the whole, over a sweep of the weight scale;
* `first_losses(inputs, choices)`: the weight scale from which on a stage loses entries, bisected;
* `first_exceeding(inputs, choices)`: the one from which the exact values would be too large, whatever came before.

All are arrays over [formats, stages], in the order of `STORED` and `STAGES`. Hidden keys are no entries: what a
mask makes of them is not counted, except as `n_leaked`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.numerics import ALL_FORMATS
from qkdemo.stages import OVER_KEYS, STAGES, STORED, Choices, Held, Inputs, StageWord, exactly, follow

LOWEST: Final = 0.01  # weight scales between which first losses are sought
HIGHEST: Final = 1e38
_STRIDES: Final = 10  # of the first search between them
_PRECISION: Final = 1e-6  # relative, of a first loss
_POINTS: Final = 3  # weight scales tried at once within a bracket: each round makes it four times as narrow
_POSITIVE: Final = ("exp", "sum", "weight")  # exactly above zero, also where float64 itself gives up
_GROUPS: Final[tuple[tuple[StageWord, ...], ...]] = (  # of stages with the same shape, counted together
    OVER_KEYS,
    ("q_stored", "k_stored", "q_entering", "k_entering", "weighted_values"),
    ("q_sum_of_squares", "k_sum_of_squares", "q_reciprocal_root", "k_reciprocal_root", "sum"),
)
_DEGREE: Final[dict[StageWord, int]] = {  # how an exact value grows with the weight scale before any norm
    **dict.fromkeys(("q_stored", "k_stored"), 1),
    **dict.fromkeys(("q_sum_of_squares", "k_sum_of_squares", "raw_product", "scaled"), 2),
}


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts per [format, stage, scale]; no entries where plain attention has no such stage."""

    n: NDArray[np.int64]  # entries; of visible keys only
    n_inf: NDArray[np.int64]
    n_nan: NDArray[np.int64]
    n_overflow: NDArray[np.int64]  # beyond the largest number of what holds them *before* the cast; ∞ counts
    n_lost: NDArray[np.int64]  # ±∞ or NaN, or too large before a saturating cast
    n_exceeding: NDArray[np.int64]  # of the exact values: beyond that number, whatever happened on the way
    n_zero: NDArray[np.int64]  # zero although the exact value is not
    n_merged: NDArray[np.int64]  # finite, not zero, equal to the next larger or smaller of the row; exactly they differ
    n_leaked: NDArray[np.int64]  # hidden keys that got a weight above zero
    max_rel_error: NDArray[np.float64]  # over entries that are finite and did not vanish; NaN if none is left


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of the entries per [format, stage, scale]; NaN where plain attention has no such stage."""

    scales: NDArray[np.float64]
    lost: NDArray[np.float64]  # ±∞ or NaN, or too large before a saturating cast
    vanished: NDArray[np.float64]  # as `n_zero` counts
    merged: NDArray[np.float64]  # as `n_merged` counts; for stages over keys alone, where neighbours compete


def tally(inputs: Inputs, scales: Tensor, choices: Choices, held: Mapping[StageWord, Held] | None = None) -> Tally:
    """The counts at each of `scales`; `held` spares following the stages again."""
    held = held or follow(inputs, scales.expand(len(STORED), -1), choices)
    counts = {field.name: _blank(scales, np.nan if field.name == "max_rel_error" else 0) for field in fields(Tally)}
    for view in _views(inputs, scales, choices, held):
        found = {
            "n_inf": view.count(view.values.isinf()),
            "n_nan": view.count(view.values.isnan()),
            "n_overflow": view.count(view.beyond),
            "n_lost": view.count(view.lost),
            "n_exceeding": view.count(view.exceeding),
            "n_zero": view.count(view.zero),
            "n_merged": view.merged(),
            "max_rel_error": view.largest_error(),
        }
        for name, value in found.items():
            counts[name][:, view.places] = value
        counts["n"][:, view.places] = view.n
    if inputs.visible is not None:
        leaks = (held["weight"].values > 0) & ~inputs.visible
        counts["n_leaked"][:, STAGES.index("weight")] = leaks.sum((-2, -1)).numpy()
    error = counts.pop("max_rel_error")
    return Tally(max_rel_error=error, **{name: x.astype(np.int64) for name, x in counts.items()})


def shares(inputs: Inputs, scales: Tensor, choices: Choices) -> Shares:
    """The shares at each of `scales`."""
    held = follow(inputs, scales.expand(len(STORED), -1), choices)
    found = {field.name: _blank(scales, np.nan) for field in fields(Shares) if field.name != "scales"}
    for view in _views(inputs, scales, choices, held):
        found["lost"][:, view.places] = view.count(view.lost) / view.n
        found["vanished"][:, view.places] = view.count(view.zero) / view.n
        if view.over_keys:
            found["merged"][:, view.places] = view.merged() / view.n
    return Shares(scales=scales.numpy(), **found)


def first_losses(inputs: Inputs, choices: Choices) -> NDArray[np.float64]:
    """The weight scale from which on a stage loses entries at every larger one, per [format, stage].

    Sought from `LOWEST` (returned if it fails there already) to `HIGHEST` (∞ if it does not fail there), then in
    ever smaller steps to a relative precision of 1e-6, all stages and formats at once. NaN where plain
    attention has no such stage.
    """
    exceeding = first_exceeding(inputs, choices)
    digits = [ALL_FORMATS[word].mantissa_bits for word in STORED]
    edges = np.stack([_first_edges(*of_format) for of_format in zip(exceeding, digits, strict=True)])
    lost = _loses(inputs, edges, choices)
    safe = _last_safe(lost)  # [formats, stages]
    never, always = safe == edges.shape[1] - 1, safe < 0
    low = np.take_along_axis(edges, np.maximum(safe, 0), 1)
    high = np.take_along_axis(edges, np.minimum(safe + 1, edges.shape[1] - 1), 1)
    high = np.where(never | always, low, high)
    while (high > low * (1 + _PRECISION)).any():
        low, high = _narrowed(inputs, choices, low, high)
    found = np.select([always, never], [LOWEST, np.inf], high)
    return np.where(_exist(choices), found, np.nan)


def first_exceeding(inputs: Inputs, choices: Choices) -> NDArray[np.float64]:
    """The weight scale from which the exact values of a stage exceed the format that holds it, per [format, stage].

    Known in closed form where the exact value grows as a power of the weight scale: q, k and their sums of
    squares, and without a norm the raw product and the scaled logit. ∞ elsewhere.
    """
    one = torch.ones(1, dtype=torch.float64)
    truth, held = exactly(inputs, one, choices), follow(inputs, one.expand(len(STORED), -1), choices)
    found = np.full((len(STORED), len(STAGES)), np.inf)
    for stage, degree in _DEGREE.items():
        if stage in truth and (choices.variant == "none" or stage not in OVER_KEYS):
            seen = truth[stage] if inputs.visible is None or stage not in OVER_KEYS else truth[stage][:, inputs.visible]
            ratio = held[stage].by.limits / seen.abs().max()
            found[:, STAGES.index(stage)] = ratio.numpy() ** (1 / degree)
    return found


def _first_edges(exceeding: NDArray[np.float64], mantissa_bits: int) -> NDArray[np.float64]:
    """Where one format is looked at first: evenly, and on both sides of where the exact values become too large.

    Stored q and k are lost there, what is computed from them within some roundings of it.
    """
    coarse = np.geomspace(LOWEST, HIGHEST, _STRIDES + 1)
    near = {stage: exceeding[STAGES.index(stage)] for stage in _DEGREE}
    width = {stage: _PRECISION / 3 if stage.endswith("stored") else 2.0**-mantissa_bits for stage in near}
    beside = [near[stage] * (1 + sign * width[stage]) for stage in near for sign in (-1, 1)]
    return np.sort(np.clip(np.concatenate([coarse, beside]), LOWEST, HIGHEST))


def _narrowed(
    inputs: Inputs, choices: Choices, low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Narrower brackets, [formats, stages]. Stages of a format that share a bracket share its trial."""
    wide = high > low * (1 + _PRECISION)
    brackets = [sorted(set(zip(low[at][row], high[at][row], strict=True))) for at, row in enumerate(wide)]
    most = max(len(of_format) for of_format in brackets)
    steps = np.arange(_POINTS + 2) / (_POINTS + 1)
    edges = np.ones((len(brackets), most, _POINTS + 2))  # [formats, brackets, ends and points between]
    for at, of_format in enumerate(brackets):
        for place, (start, end) in enumerate(of_format):
            edges[at, place] = start * (end / start) ** steps
            edges[at, place, [0, -1]] = start, end
    lost = _loses(inputs, edges[:, :, 1:-1].reshape(len(brackets), -1), choices)
    lost = lost.reshape(*lost.shape[:2], most, _POINTS)
    low, high = low.copy(), high.copy()
    for at, stage in np.argwhere(wide):
        place = brackets[at].index((low[at, stage], high[at, stage]))
        safe = 1 + _last_safe(lost[at, stage, place])
        low[at, stage], high[at, stage] = edges[at, place, safe], edges[at, place, safe + 1]
    return low, high


def _loses(inputs: Inputs, scales: NDArray[np.float64], choices: Choices) -> NDArray[np.bool_]:
    """Whether each stage loses an entry at each format's own scales: [formats, stages, scales].

    Values do not grow with the weight scale: a weighted one is lost where a weight of its row is.
    """
    held = follow(inputs, torch.from_numpy(scales), choices, until="weight")
    loses = np.zeros((len(STORED), len(STAGES), scales.shape[1]), dtype=bool)
    for stage, of_stage in held.items():
        lost = of_stage.lost
        if stage in OVER_KEYS and inputs.visible is not None:
            lost = lost & inputs.visible
        loses[:, STAGES.index(stage)] = lost.flatten(2).any(-1).numpy()
    loses[:, STAGES.index("weighted_values")] = loses[:, STAGES.index("weight")]
    return loses


def _last_safe(lost: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The index of the last scale without a loss, −1 if there is none."""
    last: NDArray[np.int64] = np.where(lost, -1, np.arange(lost.shape[-1])).max(-1)
    return last


def _exist(choices: Choices) -> NDArray[np.bool_]:
    """Which stages there are."""
    return np.array([choices.variant != "none" or not stage.endswith(("squares", "root")) for stage in STAGES])


def _blank(scales: Tensor, fill: float) -> NDArray[np.float64]:
    return np.full((len(STORED), len(STAGES), len(scales)), fill)


def _views(inputs: Inputs, scales: Tensor, choices: Choices, held: Mapping[StageWord, Held]) -> Iterator["_View"]:
    """Stages of the same shape together, beside the exact ones."""
    truth = exactly(inputs, scales, choices)
    for group in _GROUPS:
        stages = [stage for stage in group if stage in held]
        yield _View(stages, held, truth, inputs.visible if group is OVER_KEYS else None)


class _View:
    """Some stages of one shape, [stages, formats, scales, a, b], beside the exact ones: which entry had which fate."""

    def __init__(
        self,
        stages: Sequence[StageWord],
        held: Mapping[StageWord, Held],
        truth: Mapping[StageWord, Tensor],
        visible: Tensor | None,
    ) -> None:
        self.places = [STAGES.index(stage) for stage in stages]
        self.values = torch.stack([held[stage].values for stage in stages])
        self.beyond = torch.stack([held[stage].beyond for stage in stages])
        self.lost = self.beyond | ~self.values.isfinite()
        self.truth = torch.stack([truth[stage] for stage in stages]).unsqueeze(1)
        limits = torch.stack([held[stage].by.limits for stage in stages])[..., None, None, None]
        self.exceeding = self.truth.abs() >= limits
        positive = torch.tensor([stage in _POSITIVE for stage in stages])[:, None, None, None, None]
        self.zero = (self.values == 0) & ((self.truth != 0) | positive)
        self.visible, self.over_keys = visible, set(stages) <= set(OVER_KEYS)
        self.n = int(np.prod(self.values.shape[-2:])) if visible is None else int(visible.sum())
        # all stages over keys are in the order of their logits; −∞ marks a hidden one, which is nobody's neighbour
        self._order = truth["masked"] if self.over_keys else self.truth.squeeze(1)

    def count(self, which: Tensor) -> NDArray[np.float64]:
        """How many entries, [formats, stages, scales]."""
        seen = which if self.visible is None else which & self.visible
        return _formats_first(seen.sum((-2, -1)))

    def merged(self) -> NDArray[np.float64]:
        """How many entries became equal to their neighbour in size; what vanished is not counted again."""
        ordered, places = self._order.sort(-1)
        differ = (ordered[..., 1:] != ordered[..., :-1]) & ordered[..., :-1].isfinite()
        places = places if self._order.dim() == 3 else places.unsqueeze(1)
        differ = differ if self._order.dim() == 3 else differ.unsqueeze(1)
        values = self.values.gather(-1, places.expand(self.values.shape))
        left, right = values[..., :-1], values[..., 1:]
        same = (left == right) & differ & (left != 0) & left.isfinite()
        merged = torch.zeros_like(self.zero)
        merged[..., 1:] = same
        merged[..., :-1] |= same
        return _formats_first(merged.sum((-2, -1)))

    def largest_error(self) -> NDArray[np.float64]:
        """The largest |value − exact| / |exact| of what is finite and did not vanish; NaN if nothing is left."""
        kept = self.values.isfinite() & self.truth.isfinite() & ~self.zero & (self.truth != 0)
        if self.visible is not None:
            kept &= self.visible
        error = ((self.values - self.truth).abs() / self.truth.abs()).masked_fill(~kept, -1)
        largest = error.amax((-2, -1))
        return _formats_first(largest.masked_fill(largest < 0, torch.nan))


def _formats_first(x: Tensor) -> NDArray[np.float64]:
    return x.transpose(0, 1).double().numpy()
