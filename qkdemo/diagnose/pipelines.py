"""Which known pipeline gives somebody's logits, from the q and k that they were computed from.

* `compared(mine, reference, …)`: what is `Known` of both, and within which `Rounding`;
* `identified(logits, block, …)`: the first one that does; `named(pipeline, block)`: with the scale that it nearly has;
* `epsilon_of(logits, …)`: the ε with which a pipeline gives them.
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
from qkdemo.diagnose.apart import Rounding, relative
from qkdemo.labs.placement.comparisons import differing
from qkdemo.labs.placement.diagnosis import CLEARLY, Verdict, diagnose
from qkdemo.labs.placement.scales import NEAR, TOLERANCE, cause_of, other_scale

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
_OF_EPSILON: Final = ("constant", "near_one", "unknown")  # causes beside which another ε may do it
_END: Final = 1 - 1e-12  # of a cap, where the slope is nearly 0
_HALVINGS: Final = 40  # of the range in which an ε is looked for


@dataclass(frozen=True)
class Known:
    """What is known of a port and its reference; nothing, unless told."""

    reference: Pipeline | None = None
    factor: float = 1.0  # of the reference's scale over the one that it names
    untold: frozenset[str] = frozenset()  # choices of the reference that its logits do not tell: another fits, too
    mine: Pipeline | None = None
    mine_factor: float = 1.0  # as `factor`, of the port's scale
    epsilon: float | None = None  # with which the reference's pipeline gives the port's logits, if one does
    reference_epsilon: float | None = None  # with which that pipeline gives the reference's, with a usual scale
    verdict: Verdict | None = None
    within: Rounding | None = None  # in which the verdict holds; None for one that tells no cause
    least: Rounding | None = None  # the least in which the reference is known

    @property
    def ratio(self) -> float:
        """Of the port's logits over the reference's, if the verdict has one that is constant; else NaN."""
        verdict, cap = self.verdict, self.reference.cap if self.reference else ""
        return verdict.ratio if verdict and verdict.cause != "same" and cap == "none" else math.nan


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
    tried = ((each.of(found[0]), found) for each in tries if (found := fit(reference, rounding=each)))
    least, found = next(tried, (None, None))
    if least is None or found is None:
        return Known()
    of_both = [each.of(found[0]) for each in of_both]
    told, factor = named(*found)
    usual = found[0].but(scale=told.scale if told.scale != "learned" else "inverse_root")
    of_reference = None if usual == found[0] else epsilon_of(reference, usual, block, visible, least.limit)
    untold = _untold(reference, told, block, visible, least.limit)
    known = Known()
    for each in (each for each in of_both if each.limit >= least.limit):
        verdict, other = _by_scale(diagnose(*found, mine, each.limit).steady(each.limit), told, block, each.limit)
        own, epsilon = factor, None
        if verdict.cause in _OF_EPSILON:
            supposed = found[0] if of_reference is None else usual
            epsilon = epsilon_of(mine, supposed, found[1], visible, each.limit)
            other = told if verdict.cause == "unknown" and epsilon is not None else other
        if other is None and (again := fit(mine, rounding=each)):
            other, own = named(*again)
        said = verdict.cause not in _UNTOLD or other is not None
        one, restated = _in_the_words_of(other, told, reference, block, visible, least.limit)
        if other:
            other, anew = _in_the_words_of(one, other, mine, block, visible, each.limit)
            own = own if math.isnan(anew) else anew
        scale = factor if math.isnan(restated) else restated
        if verdict.cause == "unit_vectors":  # the norm alone does it, with the reference's own scale
            one, scale, other, own = told, factor, told.but(norm="l2"), factor
        known = Known(one, scale, untold, other, own, epsilon, of_reference, verdict, each if said else None, least)
        if said:
            break
    return known


def _untold(logits: Tensor, found: Pipeline, block: Block, visible: Tensor, exact: float) -> frozenset[str]:
    """The choices of a pipeline for which another word gives these logits, too, up to a constant."""
    of_norms = {"norm": tuple(_SAME_BUT_SCALE)} if found.scale == "learned" else {}
    others = {
        choice: [found.but(**{choice: word}) for word in words if word != getattr(found, choice)]
        for choice, words in (_OTHERWISE | of_norms).items()
        if found.norm != "none" or choice in ("layout", "rotated")
    }
    same = {"cap"} if len(_caps(_raw(found, block, visible), logits, block.softcap, exact)) > 1 else set[str]()
    same |= {"norm"} if found.norm == "l2" and found.scale not in _USUAL else set()  # RMSNorm with an ε near 0
    return frozenset(same).union(
        choice
        for choice, made in others.items()
        if any(
            _constant(_raw(each, block, visible), logits, found.cap, block.softcap, exact) is not None for each in made
        )
    )


def _in_the_words_of(
    other: Pipeline | None, found: Pipeline, logits: Tensor, block: Block, visible: Tensor, exact: float
) -> tuple[Pipeline, float]:
    """With the other's words wherever they give the same logits, and the factor of its scale (see `named`).

    Both do not differ in what may be the same: in an order that no logit tells, or the place of a norm that one lacks.
    RMSNorm and L2 differ by a constant, which the scale takes: one of its own, or where both are more alike then.
    """
    if other is None:
        return found, math.nan
    raw = _raw(found, block, visible)
    if other.cap in _caps(raw, logits, block.softcap, exact):
        found = found.but(cap=other.cap)
    capped = found.cap, block.softcap
    if (constant := _constant(raw, logits, *capped, exact)) is None:
        return found, math.nan
    for choice, words in (_OTHERWISE | ({} if found.gain != "none" else _OF_A_GAIN)).items():
        tried = found.but(**{choice: getattr(other, choice)})
        same = getattr(other, choice) in words and tried != found
        if same and _missed(constant * _raw(tried, block, visible), logits, *capped) < exact:
            found = tried
    if other.norm == found.norm or not {found.norm, other.norm} <= _SAME_BUT_SCALE:
        return found, math.nan
    tried = found.but(norm=other.norm)
    if (again := _constant(_raw(tried, block, visible), logits, *capped, exact)) is None:
        return found, math.nan
    anew = named(*_scaled(tried, block, again, exact))
    alike = other.scale != "learned" and len(differing(anew[0], other)) < len(differing(found, other))
    return anew if found.scale == "learned" or alike else (found, math.nan)


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
    logits: Tensor, block: Block, visible: Tensor, rounding: Rounding, *, brought: frozenset[str]
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
        exact = rounding.of(supposed).limit
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
    caps: tuple[CapWord, ...] = ("none", "softcap")
    for cap in caps:
        if (constant := _constant(raw, logits, cap, softcap, exact)) is not None:
            made = constant * raw
            fits[cap] = constant, relative(softcap * torch.tanh(made / softcap) if cap == "softcap" else made, logits)
    least = min((missed for _, missed in fits.values()), default=0.0)
    return {cap: constant for cap, (constant, missed) in fits.items() if CLEARLY * missed <= least}


def _raw(supposed: Pipeline, block: Block, visible: Tensor) -> Tensor:
    return trace(supposed.but(scale="one"), block).raw.masked_fill(~visible, 0)


def _constant(raw: Tensor, logits: Tensor, cap: CapWord, softcap: float, exact: float) -> float | None:
    """What q · k is multiplied by to give logits before their cap, but for rounding; None if nothing does."""
    made, target = _straight(raw, logits, cap, softcap)
    constant = float((made * target).sum() / made.square().sum().clamp_min(1e-300))
    return constant if _missed(constant * raw, logits, cap, softcap) < exact else None


def _missed(made: Tensor, logits: Tensor, cap: CapWord, softcap: float) -> float:
    """How far q · k, with its scale, is from logits before their cap; ∞ if they cannot have passed it."""
    possible = cap == "none" or float(logits.abs().max()) <= softcap
    return relative(*_straight(made, logits, cap, softcap)) if possible else math.inf


def _straight(made: Tensor, logits: Tensor, cap: CapWord, softcap: float) -> tuple[Tensor, Tensor]:
    """q · k and what it should be, each times the slope of the cap: at its ends logits tell nothing."""
    if cap == "none":
        return made, logits
    share = (logits / softcap).clamp(-_END, _END)
    slope = 1 - share.square()
    return slope * made, slope * softcap * torch.atanh(share)


def named(pipeline: Pipeline, block: Block) -> tuple[Pipeline, float]:
    """With the known scale that a learned one is but for a factor near 1, and that factor; else that over 1/√d."""
    if pipeline.scale != "learned":
        return pipeline, 1.0
    factors = {word: float(torch.as_tensor(block.learned_scale / SCALES[word](block))) for word in _SCALED}
    for word, factor in factors.items():
        if math.isclose(factor, 1, rel_tol=NEAR):
            return pipeline.but(scale=word), factor
    return pipeline, factors["inverse_root"]


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


def epsilon_of(logits: Tensor, pipeline: Pipeline, block: Block, visible: Tensor, exact: float) -> float | None:
    """The ε of the norm with which a pipeline gives these logits, but for rounding; None if there is none.

    The larger ε is, the smaller is every logit, and at 0 each has its largest size: the one is found by halving.
    """
    if pipeline.norm not in ("rms", "layernorm") or not logits.any():
        return None

    def made(epsilon: float) -> Tensor:
        return trace(pipeline.but(epsilon=epsilon), block).logits.masked_fill(~visible, 0)

    squares = [float((block.x @ weight.T).square().mean()) for weight in (block.w_q, block.w_k)]
    low, high, size = -12.0, 3.0, float(logits.square().sum())  # powers of ten, in mean squares
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        larger = float((made(10**middle * max(squares)) * logits).sum()) > size
        low, high = (middle, high) if larger else (low, middle)
    tried = (10**low * max(squares), 0.0)
    return next((each for each in tried if relative(made(each), logits) < exact), None)
