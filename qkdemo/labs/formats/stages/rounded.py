"""Attention stage by stage, in five number formats side by side.

* `follow(inputs, scales, choices)`: every stage as the formats hold it, and what left their range on the way;
* `held_part`: the stages of one part, given those before it; `holder`: the formats that hold a stage.

**Layout.** A stage is a tensor [formats, scales, a, b], the formats in the order of `STORED`; a × b is queries ×
channels, queries × 1 or queries × keys. A norm that measures no size (none, dyt) has no stages inside it.

**Arithmetic.** Each operation is done in float64 and rounded once to the format that holds its result, but for sums of
products (`dot_products`); q, k and v arrive in float32. For 16 bits and fewer this is what a kernel does that computes
in float32 and stores. Constants (mask, √d, floor, epsilon) are stored in the format in which they are used.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from qkdemo.attention.norms import NORMS, reciprocal_root
from qkdemo.floats.accumulators import dot_products
from qkdemo.floats.formats import ALL_FORMATS, AnyFormatWord
from qkdemo.floats.stacks import Stack
from qkdemo.labs.formats.stages.kinds import (
    IN_NORM,
    PARTS,
    STAGE_OF,
    STAGES,
    STORED,
    Choices,
    Inputs,
    MaskWord,
    Part,
    RoleWord,
    StageWord,
    StoredWord,
    factors,
    power_on,
)


@dataclass(frozen=True, eq=False)
class Held:
    """One stage as the formats hold it."""

    values: Float[Tensor, "formats scales a b"]
    beyond: Bool[Tensor, "formats scales a b"]  # larger than the format's largest number before the cast; ∞ counts
    by: Stack  # the formats that hold it, side by side

    @property
    def lost(self) -> Tensor:
        """Where an entry is ±∞ or NaN, or was too large before a saturating cast."""
        return self.beyond | ~self.values.isfinite()


def follow(
    inputs: Inputs,
    scales: Float[Tensor, "formats scales"],
    choices: Choices,
    words: Sequence[StoredWord] = STORED,
    *,
    until: StageWord = STAGES[-1],
) -> dict[StageWord, Held]:
    """Every stage at each format's own weight scales, at least up to `until`; `words` are the storage formats."""
    stages: dict[StageWord, Held] = {}
    for part in PARTS:
        stages |= held_part(part, stages, inputs, scales, choices, words)
        if until in part:
            break
    return stages


def held_part(
    part: Part,
    before: Mapping[StageWord, Held],
    inputs: Inputs,
    scales: Float[Tensor, "formats scales"],
    choices: Choices,
    words: Sequence[StoredWord] = STORED,
) -> dict[StageWord, Held]:
    """The stages of one part, given those `before` it."""
    formats = _formats(choices, tuple(words))
    match PARTS.index(part):
        case 0:
            if scales.stride(0) == 0:  # the same for all formats
                scales = scales[:1]
            bases = {"q": inputs.q, "k": inputs.k}
            return {
                STAGE_OF[name, "stored"]: _to_8_bits(_float32(scales[:, :, None, None] * base), formats.wide, choices)
                for name, base in bases.items()
            }
        case 1:
            stages: dict[StageWord, Held] = {}
            for name in ("q", "k"):
                held = before[STAGE_OF[name, "stored"]]
                if choices.variant != "none":
                    inside, held = _normalise(held, formats, choices)
                    stages |= {STAGE_OF[name, part]: of_part for part, of_part in inside.items()}
                stages[STAGE_OF[name, "entering"]] = _placed(held, name, formats, choices)
            return stages
        case 2:
            q, k = before["q_entering"].values, before["k_entering"].values
            return _scores(q, k, inputs.visible, formats, choices)
        case 3:
            return _softmax(before["masked"].values, formats.softmax, choices)
        case _:
            return {"weighted_values": _weighted(before["weight"].values, inputs.v, formats, choices)}


def holder(stage: StageWord, choices: Choices) -> Stack:
    """The formats that hold one of the stages up to the scaled logit."""
    formats = _formats(choices, STORED)
    if stage in IN_NORM:
        return formats.norm
    if stage == "raw_product" and choices.placement == "in_accumulator":
        return formats.accumulator
    return formats.product if stage in ("raw_product", "scaled") else formats.wide


class _Formats:
    """Who holds what, for each of the storage formats."""

    def __init__(self, choices: Choices, stored: tuple[StoredWord, ...]) -> None:
        words: list[AnyFormatWord] = list(stored)
        if choices.fp8_cache:
            words = ["bfloat16" if ALL_FORMATS[word].is_narrow else word for word in stored]
        saturate = choices.fp8_cast == "saturate"

        def role(word: RoleWord) -> Stack:
            return _stack(tuple(words) if word == "stored" else (word,) * len(words), saturate)

        self.wide = role("stored")  # what projections, q, weights and the output are stored in
        self.kept = _stack(stored, saturate)  # what k and v enter their products in
        self.norm = role("stored" if choices.norm_in_format else "float32")
        self.accumulator = role(choices.accumulator)
        self.product = role(choices.product_format)
        self.softmax = role(choices.softmax_format)


@lru_cache(maxsize=64)
def _formats(choices: Choices, words: tuple[StoredWord, ...]) -> _Formats:
    return _Formats(choices, words)


@lru_cache(maxsize=256)
def _stack(words: tuple[AnyFormatWord, ...], saturate: bool) -> Stack:  # noqa: FBT001
    return Stack([ALL_FORMATS[word] for word in words], saturate=saturate)


def _normalise(stored: Held, formats: _Formats, choices: Choices) -> tuple[dict[str, Held], Held]:
    """Sum of squares and reciprocal root, if the norm has them, then the normalised vectors as stored again."""
    r, x, norm, inside = formats.norm, stored.values, NORMS[choices.variant], dict[str, Held]()
    if norm.entrywise is not None:
        unit, beyond = r(norm.entrywise(r(x * r.constant(choices.alpha))[0], 1.0))
    else:
        if norm.centred:
            x = r(x - r(r(x.sum(-1, keepdim=True))[0] / x.shape[-1])[0])[0]
        squares, too_large = r(x * x)
        total, sum_too_large = r(squares.sum(-1, keepdim=True))
        root, root_beyond = r(reciprocal_root(total, x.shape[-1], norm, lambda y: r(y)[0], r.constant))
        unit, beyond = r(x * root)
        inside["sum_of_squares"] = Held(total, sum_too_large | too_large.any(-1, keepdim=True), r)
        inside["reciprocal_root"] = Held(root, root_beyond, r)
    if "gamma" in norm.learns:
        unit, beyond = r(unit * r.constant(choices.gamma))
    again = _to_8_bits(unit, formats.wide, choices)
    return inside, Held(again.values, again.beyond | beyond, formats.wide)


def _placed(x: Held, name: str, formats: _Formats, choices: Choices) -> Held:
    """q or k as it enters the product: with its part of the scale, k in the format of the cache."""
    power = power_on(name, choices)
    if power:
        scaled = _to_8_bits(
            _rescaled(x.values, power, formats.wide, choices, x.values.shape[-1]), formats.wide, choices
        )
        x = Held(scaled.values, scaled.beyond | x.beyond, formats.wide)
    if name == "k" and choices.fp8_cache:
        return _to_8_bits(x.values, formats.kept, choices)
    return x


def _scores(q: Tensor, k: Tensor, visible: Tensor | None, formats: _Formats, choices: Choices) -> dict[StageWord, Held]:
    """From the product to the masked logits."""
    raw = Held(*dot_products(q, k, formats.accumulator), formats.accumulator)
    if choices.placement != "in_accumulator":
        values, beyond = formats.product(raw.values)
        raw = Held(values, beyond | raw.beyond, formats.product)
    scaled = raw
    if choices.placement in ("after", "in_accumulator"):
        values = _rescaled(raw.values, 1, raw.by, choices, q.shape[-1])
        scaled = Held(*formats.product(values), formats.product)
    return {"raw_product": raw, "scaled": scaled, "masked": _masked(scaled, visible, choices.mask)}


def _softmax(masked: Tensor, r: Stack, choices: Choices) -> dict[StageWord, Held]:
    """From the masked logits to the weights, every step rounded by `r`."""
    logits, beyond = r(masked)
    if choices.max_subtraction:
        logits, beyond = r(logits - logits.amax(-1, keepdim=True))
    terms, terms_beyond = r(logits.exp())
    total, total_beyond = terms[..., :1], terms_beyond[..., :1]
    for at in range(1, terms.shape[-1]):
        total, too_large = r(total + terms[..., at : at + 1])
        total_beyond = total_beyond | too_large  # what saturates on the way stays within range
    return {
        "max_subtracted": Held(logits, beyond, r),
        "exp": Held(terms, terms_beyond, r),
        "sum": Held(total, total_beyond, r),
        "weight": Held(*r(terms / total), r),
    }


def _weighted(weight: Tensor, v: Tensor, formats: _Formats, choices: Choices) -> Held:
    """Σ weight · v, the weights stored like q, the values like k."""
    kept = _to_8_bits(_float32(v)[None, None], formats.kept, choices).values
    mixed, overflowed = dot_products(formats.wide(weight)[0], kept.mT, formats.accumulator)
    values, beyond = formats.wide(mixed)
    return Held(values, beyond | overflowed, formats.wide)


def _masked(logits: Held, visible: Tensor | None, mask: MaskWord) -> Held:
    """Hidden logits with the mask's constant added, as additive masks do."""
    if visible is None:
        return logits
    r = logits.by
    if mask == "finfo.min":
        constant = r.constant(torch.tensor([-each.largest for each in r.formats]))
    else:
        constant = r.constant(float(mask))
    hidden, beyond = r(logits.values + constant)
    return Held(torch.where(visible, logits.values, hidden), torch.where(visible, logits.beyond, beyond), r)


def _to_8_bits(x: Tensor, stack: Stack, choices: Choices) -> Held:
    """Vectors as stored and read back: an 8-bit tensor is divided by its own scale first, and multiplied after.

    That scale is the largest |x| over the largest number; what is read back is a float32.
    """
    if choices.fp8_scale == "one" or not any(each.is_narrow for each in stack.formats):
        return Held(*stack(x), stack)
    largest = [each.largest if each.is_narrow else math.nan for each in stack.formats]
    scale = x.abs().amax((-2, -1), keepdim=True) / torch.tensor(largest, dtype=torch.float64).view(-1, 1, 1, 1)
    scale = torch.where(scale > 0, scale, 1.0)  # wider formats have none
    values, beyond = stack(x / scale)
    return Held(_float32(values.mul_(scale)), beyond, stack)


def _rescaled(x: Tensor, power: float, r: Stack, choices: Choices, d_head: int) -> Tensor:
    """`x` times the variant's factor to that power, the constant as `r` stores it; the result is not rounded."""
    multiplier, divisor = factors(choices, d_head)
    return x * r.constant(multiplier**power) if divisor == 1 else x / r.constant(divisor**power)


def _float32(x: Tensor) -> Tensor:
    return x.to(torch.float32).double()
