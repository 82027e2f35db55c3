"""What becomes of the entries of each stage: how many are lost, vanish or merge.

* `Tally`, `tally(inputs, scales, choices)`: the counts at some weight scales;
* `counts_of(stage, held, …)`: those of one stage that was computed elsewhere.

They are arrays over [formats, stages, scales], in the order of `STORED` and `STAGES`. Hidden keys are no entries:
what a mask makes of them is not counted, except as `n_leaked`.

Stages are followed and counted part by part, and what was found is remembered by the choices that a part reads: a
choice about softmax leaves the products alone, and both sides share what is stored.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.norms import NORMS
from qkdemo.floats.formats import noise
from qkdemo.labs.formats.stages.exact import exact_part
from qkdemo.labs.formats.stages.kinds import OVER_KEYS, PARTS, STAGES, STORED, Choices, Inputs, Part, StageWord, read_by
from qkdemo.labs.formats.stages.rounded import Held, held_part

Counts: TypeAlias = dict[str, NDArray[Any]]  # of one stage, [formats, scales] each

_POSITIVE: Final = ("exp", "sum", "weight")  # exactly above zero, also where float64 itself gives up
_TELLS: Final = np.finfo(np.float64).tiny  # below it float64 loses digits, and a ratio to it may be infinite
_CACHED: Final = 1 << 17  # numbers beyond which formats are followed one after the other
_STEPS: Final = PARTS[:1], PARTS[1:2], PARTS[2:3], PARTS[3:]  # the last two parts read the same choices


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts per [format, stage, scale]; no entries where the norm has no such stage."""

    n: NDArray[np.int64]  # entries; of visible keys only
    n_inf: NDArray[np.int64]
    n_nan: NDArray[np.int64]
    n_overflow: NDArray[np.int64]  # beyond the largest number of what holds them *before* the cast; ∞ counts
    n_lost: NDArray[np.int64]  # ±∞ or NaN, or too large before a saturating cast
    n_exceeding: NDArray[np.int64]  # of the exact values: beyond that number, whatever happened on the way
    n_zero: NDArray[np.int64]  # zero although the exact value is not
    n_merged: NDArray[np.int64]  # finite, not zero, equal to the next larger or smaller of the row; exactly they differ
    n_leaked: NDArray[np.int64]  # hidden keys that got a weight above zero
    max_rel_error: NDArray[np.float64]  # over entries that are finite and vanished neither here nor exactly; NaN: none


def tally(inputs: Inputs, scales: Tensor, choices: Choices) -> Tally:
    """The counts at each of `scales`."""
    shape = (len(STORED), len(STAGES), len(scales))
    counts: dict[str, NDArray[np.float64]] = {
        field.name: np.full(shape, np.nan if field.name == "max_rel_error" else 0.0) for field in fields(Tally)
    }
    read = read_by(PARTS[-1], choices, causal=inputs.visible is not None)
    for stage, found in _counted(inputs, tuple(scales.tolist()), len(_STEPS) - 1, read).items():
        for name, of_name in found.items():
            counts[name][:, STAGES.index(stage)] = of_name
    error = counts.pop("max_rel_error")
    return Tally(max_rel_error=error, **{name: x.astype(np.int64) for name, x in counts.items()})


def counts_of(stage: StageWord, held: Held, inputs: Inputs, scales: Tensor, choices: Choices) -> Counts:
    """The counts of one stage that something else than the stages' own arithmetic has computed, [formats, scales]."""
    step = next(step for step, parts in enumerate(_STEPS) if any(stage in part for part in parts))
    read = read_by(_STEPS[step][-1], choices, causal=inputs.visible is not None)
    exact = _exact(inputs, tuple(scales.tolist()), step, read)
    return _of_stage(held, exact.truth(stage, inputs.visible), exact.order.get(stage))


@dataclass(frozen=True, eq=False)
class _Order:
    """Where the entries of each row stand by exact size, and which of them differ from the next one."""

    places: Tensor
    differ: NDArray[np.bool_]

    @classmethod
    def of(cls, x: Tensor) -> "_Order":
        """That of `x`; −∞ marks a hidden key, which is nobody's neighbour.

        What another order of the same sums could move is no difference: saturated entries give equal logits.
        """
        ordered, places = x.sort(-1)
        left = ordered[..., :-1]
        least = x.abs().nan_to_num_(0, 0, 0).amax(-1, keepdim=True) * noise("float64")
        return cls(places, ((ordered[..., 1:] - left > least) & ~left.isneginf()).numpy())


@dataclass(frozen=True, eq=False)
class _Exact:
    """Stages up to one step's last, exactly, and the order of their entries."""

    values: dict[StageWord, Tensor]
    order: dict[StageWord, _Order]

    def truth(self, stage: StageWord, visible: Tensor | None) -> "_Truth":
        """What is asked of one stage's entries."""
        seen = visible.numpy() if visible is not None and stage in OVER_KEYS else None
        return _Truth.of(self.values[stage].numpy(), seen, positive=stage in _POSITIVE)


@lru_cache(maxsize=64)
def _counted(inputs: Inputs, scales: tuple[float, ...], step: int, choices: Choices) -> dict[StageWord, Counts]:
    """The counts of the stages up to that step's last."""
    known = _counted(inputs, scales, *_before(inputs, step, choices)) if step else {}
    exact = _exact(inputs, scales, step, choices)
    truths = {
        stage: exact.truth(stage, inputs.visible) for part in _STEPS[step] for stage in part if stage in exact.values
    }
    found, same = dict[StageWord, list[Counts]](), dict[StageWord, StageWord]()
    last = step == len(_STEPS) - 1  # nothing reads its entries again
    for held in (_followed_anew if last else _followed)(inputs, scales, step, choices):
        firsts = {id(of_stage): stage for stage, of_stage in reversed(held.items())}
        same = {stage: firsts[id(held[stage])] for stage in truths}  # some are the one before them, untouched
        for stage, truth in truths.items():
            if same[stage] == stage:
                counts = _of_stage(held[stage], truth, exact.order.get(stage))
                if stage == "weight" and inputs.visible is not None:
                    leaks = (held[stage].values > 0) & ~inputs.visible
                    counts["n_leaked"] = leaks.sum((-2, -1)).numpy()
                found.setdefault(stage, []).append(counts)
    whole = known | {stage: _joined(each) for stage, each in found.items()}
    return whole | {stage: whole[first] for stage, first in same.items()}


def _joined(counts: Sequence[Counts]) -> Counts:
    """Those of some formats and the next ones."""
    return {name: np.concatenate([each[name] for each in counts]) for name in counts[0]}


def _followed_anew(
    inputs: Inputs, scales: tuple[float, ...], step: int, choices: Choices
) -> Iterator[dict[StageWord, Held]]:
    """The stages up to that step's last: of all formats at once, or of one after the other if they are large."""
    at = torch.tensor(scales, dtype=torch.float64)
    large = len(STORED) * len(at) * inputs.q.numel() >= _CACHED
    groups = [(word,) for word in STORED] if large else [STORED]
    known = _followed(inputs, scales, *_before(inputs, step, choices)) if step else [{}] * len(groups)
    for words, before in zip(groups, known, strict=True):
        held = dict(before)
        for part in _STEPS[step]:
            held |= held_part(part, held, inputs, at.expand(len(words), -1), choices, words)
        yield held


@lru_cache(maxsize=12)  # of a few megabytes each
def _followed(
    inputs: Inputs, scales: tuple[float, ...], step: int, choices: Choices
) -> Sequence[dict[StageWord, Held]]:
    return list(_followed_anew(inputs, scales, step, choices))


@lru_cache(maxsize=12)
def _exact(inputs: Inputs, scales: tuple[float, ...], step: int, choices: Choices) -> _Exact:
    at = torch.tensor(scales, dtype=torch.float64)
    known = _exact(inputs, scales, *_before(inputs, step, choices)) if step else _Exact({}, {})
    values, order = dict(known.values), dict(known.order)
    for part in _STEPS[step]:
        values |= exact_part(part, values, inputs, at, choices)
        order |= _order(part, inputs, values, order, turns=NORMS[choices.variant].turns)
    return _Exact(values, order)


def _before(inputs: Inputs, step: int, choices: Choices) -> tuple[int, Choices]:
    """The step before that one, and what it reads of the choices."""
    return step - 1, read_by(_STEPS[step - 1][-1], choices, causal=inputs.visible is not None)


def _order(
    part: Part, inputs: Inputs, exact: dict[StageWord, Tensor], known: dict[StageWord, _Order], *, turns: bool
) -> dict[StageWord, _Order]:
    """The order in every stage of the part that has one."""
    match PARTS.index(part):
        case 0:
            return {"q_stored": _Order.of(inputs.q[None]), "k_stored": _Order.of(inputs.k[None])}
        case 1 if turns:  # large entries become equal, also in float64
            return {"q_entering": _Order.of(exact["q_entering"]), "k_entering": _Order.of(exact["k_entering"])}
        case 1:  # no norm changes the order within a vector
            return {"q_entering": known["q_stored"], "k_entering": known["k_stored"]}
        case 2:  # all stages over keys are in the order of their logits
            return dict.fromkeys(OVER_KEYS, _Order.of(exact["masked"]))
        case 3:
            return {}
        case _:
            return {"weighted_values": _Order.of(exact["weighted_values"])}


@dataclass(frozen=True, eq=False)
class _Truth:
    """A stage's exact entries, [scales, a, b], and what is asked of them for every format."""

    values: NDArray[np.float64]
    size: NDArray[np.float64]
    largest: float
    above_zero: NDArray[np.bool_] | None  # None: all of them
    known: NDArray[np.bool_]  # finite, seen, and no smaller than float64 tells exactly
    seen: NDArray[np.bool_] | None  # None: all of them
    n: int  # seen at one scale

    @classmethod
    def of(cls, values: NDArray[np.float64], seen: NDArray[np.bool_] | None, *, positive: bool) -> "_Truth":
        """What is known of `values`; `positive`: exactly none of them is zero."""
        size = np.abs(values)
        above_zero = None if positive or bool((values != 0).all()) else values != 0
        known = np.isfinite(values) & (size >= _TELLS)
        if seen is not None:
            known &= seen
        n = values[0].size if seen is None else int(seen.sum())
        return cls(values, size, float(np.fmax.reduce(size, axis=None)), above_zero, known, seen, n)

    def count(self, which: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many seen entries, [formats, scales]."""
        if not which.any():
            return np.zeros(which.shape[:2], dtype=np.int64)
        which = which if self.seen is None else which & self.seen
        return _number(which)


def _of_stage(stage: Held, truth: _Truth, order: _Order | None) -> Counts:
    """All that is counted of one stage's entries."""
    values, beyond, limits = stage.values, stage.beyond.numpy(), stage.by.limits.numpy()[:, None, None, None]
    held, none = values.numpy(), np.zeros(values.shape[:2], dtype=np.int64)
    finite, zero = np.isfinite(held), held == 0
    whole = bool(finite.all())
    infinite = None if whole else np.isinf(held)
    if truth.above_zero is not None:
        zero &= truth.above_zero
    kept = truth.known if whole and not zero.any() else truth.known & finite & ~zero
    overflow = truth.count(beyond)
    return {
        "n": none + truth.n,
        "n_inf": none if infinite is None else truth.count(infinite),
        "n_nan": none if infinite is None else truth.count(~(finite | infinite)),
        "n_overflow": overflow,
        "n_lost": overflow if whole else truth.count(beyond | ~finite),
        "n_exceeding": truth.count(truth.size >= limits) if truth.largest >= limits.min() else none,
        "n_zero": truth.count(zero),
        "n_merged": none if order is None else _merged(values, order),
        "max_rel_error": _largest_error(held, truth.values, kept),
    }


def _merged(values: Tensor, order: _Order) -> NDArray[np.int64]:
    """How many entries became equal to their neighbour in size; what vanished is not counted again."""
    sorted_values = values.gather(-1, order.places.expand_as(values)).numpy()
    left, right = sorted_values[..., :-1], sorted_values[..., 1:]
    same = left == right  # NaN equals nothing
    same &= order.differ
    same &= left != 0
    if not same.any():
        return np.zeros(same.shape[:2], dtype=np.int64)
    same &= ~np.isinf(left)
    begins = same.copy()  # as many entries as pairs, and one for each run of pairs
    begins[..., 1:] &= ~same[..., :-1]
    return _number(same) + _number(begins)


def _number(which: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many, [formats, scales]."""
    return np.asarray(np.count_nonzero(which.reshape(*which.shape[:2], -1), axis=-1))


def _largest_error(
    held: NDArray[np.float64], truth: NDArray[np.float64], kept: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The largest |value − exact| / |exact| of what is kept: finite, and not vanished; NaN if that is nothing."""
    with np.errstate(all="ignore"):
        error = held - truth
        error /= truth
    np.abs(error, out=error)
    if not kept.all():
        np.copyto(error, -1, where=~kept)
    largest: NDArray[np.float64] = error.max((-2, -1))
    return np.where(largest < 0, np.nan, largest)
