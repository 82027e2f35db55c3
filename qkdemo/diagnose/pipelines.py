"""Which known pipeline gives somebody's logits, from the q and k that they were computed from.

* `compared(mine, reference, …)`: what is `Known` of both, and within which `Rounding`;
* `identified(logits, block, …)`: the first one that does; `named(pipeline, block)`: with the scale that it nearly has;
* `relative(one, other)`: how far two arrays are apart; `worst_row(…)`: in which `Row` they are furthest.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from qkdemo.attention.blocks import Block
from qkdemo.attention.pipeline import SCALES, CapWord, GainWord, Pipeline, ScaleWord, trace
from qkdemo.labs.placement.diagnosis import CLEARLY, Verdict, diagnose
from qkdemo.labs.placement.scales import NEAR, TOLERANCE, cause_of, other_scale

_LEAST: Final = 1e-100  # sizes whose squares, and those of what is a little smaller, are numbers of float64
_SCALED: Final[tuple[ScaleWord, ...]] = ("inverse_root", "one", "root", "inverse")
_USUAL: Final = ("inverse_root", "one")
_OTHERWISE: Final[dict[str, tuple[str, ...]]] = {  # what logits may not tell, as the order where no gain is uneven
    "order": ("norm_rotary", "rotary_norm"),
    "place": ("per_head", "full_width"),
    "layout": ("half_split", "interleaved", "half_split_swapped"),
    "rotated": ("all", "half", "quarter"),
}
_OF_A_GAIN: Final[dict[str, tuple[str, ...]]] = {"stored": ("gamma", "one_plus")}  # nothing, where there is no gain
_SAME_BUT_SCALE: Final = {"rms", "l2"}  # norms that differ by a constant, and ε
_UNTOLD: Final = ("unknown", "too_few")


@dataclass(frozen=True)
class Rounding:
    """The relative difference that may be left where every step is rounded to a format."""

    kind: torch.dtype
    limit: float


@dataclass(frozen=True)
class Known:
    """What is known of a port and its reference; nothing, unless told."""

    reference: Pipeline | None = None
    factor: float = 1.0  # of the reference's scale over the one that it names
    untold: frozenset[str] = frozenset()  # choices of the reference that its logits do not tell: another fits, too
    mine: Pipeline | None = None
    verdict: Verdict | None = None
    within: Rounding | None = None  # in which the verdict holds; None for one that tells no cause
    least: Rounding | None = None  # the least in which the reference is known

    @property
    def ratio(self) -> float:
        """Of the port's logits over the reference's, if the verdict has one that is constant; else NaN."""
        verdict, cap = self.verdict, self.reference.cap if self.reference else ""
        return verdict.ratio if verdict and verdict.cause != "same" and cap == "none" else math.nan


@dataclass(frozen=True)
class Row:
    """Of one query in one head: by how much both differ, of its logits' size, or of the head's if that is larger."""

    head: int
    query: int
    error: float


def compared(
    mine: Tensor,
    reference: Tensor,
    visible: Tensor,
    block: Block,
    roundings: Sequence[Rounding],
    brought: frozenset[str],
) -> Known:
    """What is known of both logits. `roundings`: what may have been left; the first that tells it.

    The first is of the reference alone, whose format may be finer; then of both. No limit is less than one before it.
    `brought`: "gains" and "softcap", where these are known.
    """
    fit = partial(identified, block=block, visible=visible, brought=brought)
    alone, *of_both = roundings
    tries = [alone] * (alone.limit < of_both[0].limit) + of_both
    tried = ((each, found) for each in tries if (found := fit(reference, exact=each.limit)))
    least, found = next(tried, (None, None))
    if least is None or found is None:
        return Known()
    told, factor = named(*found)
    untold = _untold(reference, told, block, visible, least.limit)
    known = Known()
    for each in (each for each in of_both if each.limit >= least.limit):
        verdict, other = _by_scale(diagnose(*found, mine, each.limit), told, block, each.limit)
        again = fit(mine, exact=each.limit) if other is None else None
        other = named(*again)[0] if again else other
        said = verdict.cause not in _UNTOLD or other is not None
        one, restated = _in_the_words_of(other, told, reference, block, visible, least.limit)
        other = other and _in_the_words_of(one, other, mine, block, visible, each.limit)[0]
        scale = factor if math.isnan(restated) else restated
        known = Known(one, scale, untold, other, verdict, each if said else None, least)
        if said:
            break
    return known


def _untold(logits: Tensor, found: Pipeline | None, block: Block, visible: Tensor, exact: float) -> frozenset[str]:
    """The choices of a pipeline for which another word gives these logits, too, up to a constant."""
    if found is None or (target := _before_cap(found, logits, block)) is None:
        return frozenset()
    of_norms = {"norm": tuple(_SAME_BUT_SCALE)} if found.scale == "learned" else {}
    others = {
        choice: [found.but(**{choice: word}) for word in words if word != getattr(found, choice)]
        for choice, words in (_OTHERWISE | of_norms).items()
        if found.norm != "none" or choice in ("layout", "rotated")
    }
    caps = {"cap"} if len(_caps(_raw(found, block, visible), logits, block.softcap, exact)) > 1 else set[str]()
    return frozenset(caps).union(
        choice
        for choice, made in others.items()
        if any(_constant(_raw(each, block, visible), target, exact) is not None for each in made)
    )


def _in_the_words_of(
    other: Pipeline | None, found: Pipeline, logits: Tensor, block: Block, visible: Tensor, exact: float
) -> tuple[Pipeline, float]:
    """With the other's words wherever they give the same logits, and the factor of its scale (see `named`).

    Both do not differ in what may be the same: in an order that no logit tells, or the place of a norm that one lacks.
    RMSNorm and L2 with a scale of their own differ by a constant, which the scale takes.
    """
    if other is None:
        return found, math.nan
    raw = _raw(found, block, visible)
    if other.cap in _caps(raw, logits, block.softcap, exact):
        found = found.but(cap=other.cap)
    target = _before_cap(found, logits, block)
    if target is None or (constant := _constant(raw, target, exact)) is None:
        return found, math.nan
    for choice, words in (_OTHERWISE | ({} if found.gain != "none" else _OF_A_GAIN)).items():
        tried = found.but(**{choice: getattr(other, choice)})
        same = getattr(other, choice) in words and tried != found
        if same and relative(constant * _raw(tried, block, visible), target) < exact:
            found = tried
    if found.scale != "learned" or other.norm == found.norm or not {found.norm, other.norm} <= _SAME_BUT_SCALE:
        return found, math.nan
    tried = found.but(norm=other.norm)
    again = _constant(_raw(tried, block, visible), target, exact)
    return (found, math.nan) if again is None else named(*_scaled(tried, block, again, exact))


def _by_scale(verdict: Verdict, reference: Pipeline, block: Block, exact: float) -> tuple[Verdict, Pipeline | None]:
    """The cause of a constant ratio beside a scale that is named now; and the port, where the scale alone makes it."""
    if math.isnan(verdict.ratio):
        return verdict, None
    beside = reference, block.d_head, max(TOLERANCE, 2 * exact)
    if verdict.cause == "constant":
        verdict = replace(verdict, cause=cause_of(verdict.ratio, *beside))
    scale = other_scale(verdict.ratio, *beside) if verdict.cause.startswith("scale") else None
    scale = reference.scale if verdict.cause in ("same", "near_one") else scale
    return verdict, reference.but(scale=scale) if scale else None


def identified(
    logits: Tensor, block: Block, visible: Tensor, exact: float, *, brought: frozenset[str]
) -> tuple[Pipeline, Block] | None:
    """The first known pipeline that gives these logits, and the block with the scale it learned, if it did.

    Logits of 0 tell none: with a scale of 0 every pipeline gives them.

    RMSNorm with 1/d is L2 with 1, but for epsilon: a pipeline with a usual scale comes before others. A softcap that
    was not brought is supposed only where the logits need one.
    """
    if not logits.any():
        return None
    unusual = None
    for supposed in _known(block, gains="gains" in brought):
        caps = list(_caps(_raw(supposed, block, visible), logits, block.softcap, exact).items())
        for cap, constant in caps if "softcap" in brought else caps[:1]:
            found = _scaled(supposed.but(cap=cap), block, constant, exact)
            if named(*found)[0].scale in _USUAL:
                return found
            unusual = unusual or found
    return unusual


def _caps(raw: Tensor, logits: Tensor, softcap: float, exact: float) -> dict[CapWord, float]:
    """By cap, what q · k is multiplied by to give logits, but for rounding; without a cap that fits clearly worse."""
    fits: dict[CapWord, tuple[float, float]] = {}
    targets: tuple[tuple[CapWord, Tensor | None], ...] = (("none", logits), ("softcap", _uncapped(logits, softcap)))
    for cap, target in targets:
        if target is not None and (constant := _constant(raw, target, exact)) is not None:
            made = constant * raw
            fits[cap] = constant, relative(softcap * torch.tanh(made / softcap) if cap == "softcap" else made, logits)
    least = min((missed for _, missed in fits.values()), default=0.0)
    return {cap: constant for cap, (constant, missed) in fits.items() if CLEARLY * missed <= least}


def _raw(supposed: Pipeline, block: Block, visible: Tensor) -> Tensor:
    return trace(supposed.but(scale="one"), block).raw.masked_fill(~visible, 0)


def _constant(raw: Tensor, target: Tensor, exact: float) -> float | None:
    """What q · k is multiplied by to give logits, but for rounding; None if nothing does."""
    constant = float((raw * target).sum() / raw.square().sum().clamp_min(1e-300))
    return constant if relative(constant * raw, target) < exact else None


def named(pipeline: Pipeline, block: Block) -> tuple[Pipeline, float]:
    """With the known scale that a learned one is but for a factor near 1, and that factor; else that over 1/√d."""
    if pipeline.scale != "learned":
        return pipeline, 1.0
    factors = {word: float(torch.as_tensor(block.learned_scale / SCALES[word](block))) for word in _SCALED}
    for word, factor in factors.items():
        if math.isclose(factor, 1, rel_tol=NEAR):
            return pipeline.but(scale=word), factor
    return pipeline, factors["inverse_root"]


def _uncapped(logits: Tensor, cap: float) -> Tensor | None:
    """The logits before a softcap, if they can have passed one."""
    return cap * torch.atanh(logits / cap) if float(logits.abs().max()) < cap * (1 - 1e-9) else None


def _before_cap(pipeline: Pipeline, logits: Tensor, block: Block) -> Tensor | None:
    """The logits before the pipeline's cap, if it has one; None if they cannot have passed it."""
    return _uncapped(logits, block.softcap) if pipeline.cap == "softcap" else logits


def _scaled(pipeline: Pipeline, block: Block, constant: float, exact: float) -> tuple[Pipeline, Block]:
    for word in _SCALED:
        if math.isclose(constant, float(torch.as_tensor(SCALES[word](block))), rel_tol=exact):
            return pipeline.but(scale=word), block
    return pipeline.but(scale="learned"), replace(block, learned_scale=constant)


def _known(block: Block, *, gains: bool) -> Iterator[Pipeline]:
    """Every pipeline that is tried, the commonest first."""
    gain: GainWord = "channel" if bool((block.gain_q == block.gain_q[:1]).all()) else "head_channel"
    stored = ("gamma", "one_plus") if gains else ("gamma",)
    grouping = ("repeat", "tile") if block.n_kv_heads not in (1, block.n_heads) else ("repeat",)
    turns = list(itertools.product(("half_split", "interleaved", "half_split_swapped"), ("all", "half", "quarter")))
    orders = [("norm_rotary", *turn) for turn in turns] + [("none", "half_split", "all")]
    orders += [("rotary_norm", *turn) for turn in turns]
    for norm, place, group, read in itertools.product(
        ("rms", "l2", "layernorm", "none"), ("per_head", "full_width"), grouping, stored
    ):
        if norm == "none" and (place == "full_width" or read == "one_plus"):
            continue
        for order, layout, rotated in orders:
            if norm == "none" and order == "rotary_norm":
                continue
            words: dict[str, Any] = {"norm": norm, "place": place, "grouping": group, "stored": read, "order": order}
            words |= {"layout": layout, "rotated": rotated}
            for multiplied in ([gain] if gains else []) + (["none"] if norm == "none" or not gains else []):
                yield Pipeline(gain=multiplied, **words)


def in_range(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Both by the same power of two, so that no square leaves float64."""
    size = max(float(x.abs().nan_to_num(0, 0, 0).max()) for x in (one, other))
    if size == 0 or _LEAST < size < 1 / _LEAST:
        return one, other
    factor = 2.0 ** -math.frexp(size)[1]
    return one * factor, other * factor


def relative(one: Tensor, other: Tensor) -> float:
    """The length of their difference over that of the second."""
    one, other = in_range(one, other)
    length = float(other.norm())
    difference = float((one - other).norm())
    return difference / length if length else math.inf if difference else 0.0


def worst_row(mine: Tensor, reference: Tensor, visible: Tensor) -> Row:
    """A row of small logits is measured by the head's: its errors are of the size of the products that cancel there."""
    counts = visible.sum(-1).clamp_min(1)
    sizes = (reference.square().sum(-1) / counts).sqrt()  # [heads, queries]
    of_head = (reference.square().sum((1, 2), keepdim=False) / visible.sum().clamp_min(1)).sqrt()
    differences = ((mine - reference).square().sum(-1) / counts).sqrt()
    errors = torch.where(differences == 0, 0.0, differences / torch.maximum(sizes, of_head[:, None]))
    head, query = divmod(int(errors.nan_to_num(math.inf).argmax()), errors.shape[1])
    return Row(head, query, float(errors[head, query]))
