"""The diagnosis the other way round: from the pattern of an error to the choice that was read wrongly.

* `diagnose(reference, block, observed)`: the likeliest cause, and how exactly it accounts for the logits.

Nothing is replayed; a softcap is undone. First come the ratios: a constant one is a scale, one that factors into sizes
of q and k is a norm that is missing or taken over another width. What no ratio explains is fitted: logits are linear in
the products of gains, so a supposed order, layout or norm either fits them to rounding, with some gains, or does not;
and where the reference's own order fits, the gains that fit say whose they are. The fit knows the projected q and k and
the positions, as whoever ports a checkpoint does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from qkdemo.attention.blocks import Block
from qkdemo.attention.pipeline import CAPS, GAINS, KEY_GAINS, READINGS, Pipeline, Trace, trace
from qkdemo.attention.rotary import RotatedWord, angles, other_layout, partners, reordering, turned
from qkdemo.labs.placement.fitting import sampled, solved
from qkdemo.labs.placement.scales import FACTORS, cause_of

EXACT: Final = 1e-6  # relative misfit below which a cause accounts for the logits; float64 leaves 1e-12
_AT_ONCE: Final = 512  # pairs whose products are formed at once, for the memory that they take
_FLAT: Final = 1e-6  # slope of a softcap below which a logit hardly tells what it was before
_SPARE: Final = 1.25  # equations per unknown, or a fit says nothing


@dataclass(frozen=True)
class Verdict:
    """A cause, by its word, and the pattern it was read from."""

    cause: str
    misfit: float  # relative: 0 if the cause explains every logit; NaN if none was found
    ratio: float  # observed over expected, before a softcap, if it is the same everywhere; else NaN
    first: float  # relative error of the first query's logits
    last: float  # and of the last one's


def diagnose(
    reference: Pipeline, block: Block, observed: Float[Tensor, "heads queries keys"], exact: float = EXACT
) -> Verdict:
    """Why `observed` is not what `reference` computes on `block`, from the pairs that a query sees.

    `exact`: the relative misfit that rounding may leave, more for logits of a narrow number format.

    Words: same, cap; scale_one, scale_twice, scale_root, scale_other, unit_vectors, near_one, constant; norm_skipped,
    full_width, input; layernorm, rms, rotary_first, norm_first, layout, direction, rotated_all, rotated_half,
    rotated_quarter, tiled; q_gain_on_k, gamma_as_one_plus, one_plus_as_gamma, gain_not_permuted, gain; too_few,
    unknown.
    """
    reference = _plainly(reference)
    expected = trace(reference, block)
    logits, observed = expected.seen(expected.logits), expected.seen(observed)
    errors = [_relative(observed[:, at], logits[:, at]) for at in (0, -1)]
    same = _relative(observed, logits)
    if not observed.isfinite().all() or (same >= exact and _lacks_bias(reference, block, expected, observed, exact)):
        return Verdict("unknown", math.nan, math.nan, *errors)
    if same < exact:
        return Verdict("same", same, 1.0, errors[0], errors[1])
    cause, misfit, ratio = _from_ratio(reference, block, expected, observed, exact)
    if not cause:
        off = [_relative(*pair) for pair in zip(observed, logits, strict=True)]
        found = _from_fit(reference, block, observed, exact) if off[_head(block)] >= exact else ("unknown", math.nan)
        agree = _agree(found[0], reference, block, observed, off, exact)
        cause, misfit = found if agree or found[0] == "too_few" else ("unknown", math.nan)
    return Verdict(cause, misfit, ratio, errors[0], errors[1])


def _lacks_bias(reference: Pipeline, block: Block, expected: Trace, observed: Tensor, exact: float) -> bool:
    """Whether the bias alone was left out: the gains that then fit are the expected ones."""
    bare = reference.but(bias="none")
    return bare != reference and _relative(observed, expected.seen(trace(bare, block).logits)) < exact


def _plainly(reference: Pipeline) -> Pipeline:
    """The same function, divided on each side; what was carried over, its gain included, is in the other layout."""
    place = "per_head" if reference.place == "in_product" else reference.place
    if reference.conversion != "weights_and_gain":
        return reference.but(place=place)
    return reference.but(place=place, layout=other_layout(reference.layout), conversion="none")


def _relative(observed: Tensor, expected: Tensor) -> float:
    off, length = (observed - expected).norm().item(), expected.norm().item()
    return off / length if length else math.inf if off else 0.0  # of nothing, nothing is off


def _from_ratio(
    reference: Pipeline, block: Block, expected: Trace, observed: Tensor, exact: float
) -> tuple[str, float, float]:
    """The first cause whose factor explains the logits before a softcap, up to one constant; an empty word if none."""
    before = trace(reference.but(cap="none"), block).logits
    capped = CAPS["softcap"](expected.logits, block.softcap)
    for other in (capped,) if reference.cap == "none" else (capped, before):
        if (misfit := _relative(observed, expected.seen(other))) < exact:
            return "cap", misfit, math.nan
    target, slope = _undone(reference, block, observed)
    for word, factor in FACTORS:
        supposed = expected.seen(before * factor(reference, block, expected))
        weighed = slope * supposed
        constant = ((weighed * slope * target).sum() / weighed.square().sum()).item()
        misfit = _relative(observed, CAPS[reference.cap](constant * supposed, block.softcap))
        if misfit < exact:
            if word:
                return word, misfit, math.nan
            return cause_of(constant, reference, block.d_head, 2 * exact), misfit, constant
    return "", math.nan, math.nan


def _undone(reference: Pipeline, block: Block, observed: Tensor) -> tuple[Tensor, Tensor]:
    """Logits before the softcap, and the softcap's slope there: what is left of a small difference."""
    if reference.cap == "none":
        return observed, torch.ones_like(observed)
    share = (observed / block.softcap).clamp(-1 + 1e-15, 1 - 1e-15)
    return block.softcap * torch.atanh(share), 1 - share.square()


def _from_fit(reference: Pipeline, block: Block, observed: Tensor, exact: float) -> tuple[str, float]:
    """The first supposition under which some gains fit the logits of one head to rounding, if one does."""
    verdict = "too_few"
    for word, changes in _suppositions(reference, block).items():
        found = _fitted(reference.but(**changes), block, observed, _head(block), exact)
        if found is None:
            if word == "gain":  # what fits then may do so because the reference’s own order would
                break
            continue
        verdict, (gains, misfit) = "unknown", found
        if misfit < exact:
            return (_whose(reference, block, gains, exact) if word == "gain" else word), misfit
    return verdict, math.nan


def _fitted(supposed: Pipeline, block: Block, observed: Tensor, head: int, exact: float) -> tuple[Tensor, float] | None:
    """Products of gains that fit the logits of a head best, and how far they miss; None with too few pairs to say."""
    observed = observed[head].flatten()
    target, slope = _undone(supposed, block, observed)
    pairs, capped = _pairs(block), CAPS[supposed.cap]
    told = pairs[slope[pairs] > _FLAT]
    products = _Products(supposed.but(gain="none", bias="none"), block, head)
    if len(told) < _SPARE * products.count:
        return None
    rows = told[sampled(len(told), 2 * products.count)]
    sample, weight = products.of(rows), slope[rows]
    gains = solved(weight[:, None] * sample, weight * target[rows])
    misfit = _relative(capped(sample @ gains, block.softcap), observed[rows])
    if misfit > exact:  # what fits all would fit these
        return gains, misfit
    runs = range(0, len(pairs), _AT_ONCE)
    fitted = torch.cat([products.of(pairs[at : at + _AT_ONCE]) @ gains for at in runs])
    return gains, _relative(capped(fitted, block.softcap), observed[pairs])


def _pairs(block: Block) -> Int[Tensor, " pairs"]:
    """Rows of the pairs that are seen: query · keys + key."""
    if block.visible is None:
        return torch.arange(len(block.x) ** 2)
    return block.visible.flatten().nonzero()[:, 0]


def _head(block: Block) -> int:
    """The second head, if there is one: the first reads the same keys however heads are grouped."""
    return min(1, block.n_heads - 1)


def _agree(cause: str, reference: Pipeline, block: Block, observed: Tensor, off: list[float], exact: float) -> bool:
    """Whether every head is off as the cause that a fit of one names says; for one of gains, whether some fit each."""
    changes = _suppositions(reference, block).get(cause)
    if not changes:  # one of gains
        fits = (_fitted(reference, block, observed, head, exact) for head in range(block.n_heads))
        return min(off) >= exact and all(fit is None or fit[1] < exact for fit in fits)
    logits = [trace(pipeline, block) for pipeline in (reference.but(**changes), reference)]
    meant = [_relative(*pair) for pair in zip(*(one.seen(one.logits) for one in logits), strict=True)]
    return all(max(pair) < 2 * exact or min(pair) >= exact for pair in zip(off, meant, strict=True))


def _suppositions(reference: Pipeline, block: Block) -> dict[str, dict[str, Any]]:
    """What may be otherwise than in the reference, the gains apart. The reference's own order comes first."""
    rotary = {"norm_rotary": ("rotary_first", "rotary_norm"), "rotary_norm": ("norm_first", "norm_rotary")}
    supposed: dict[str, dict[str, Any]] = {"gain": {}}
    if reference.norm in ("rms", "layernorm"):
        other = "layernorm" if reference.norm == "rms" else "rms"
        supposed[other] = {"norm": other}
    if reference.order in rotary:
        word, order = rotary[reference.order]
        supposed[word] = {"order": order}
        supposed["layout"] = {"layout": other_layout(reference.layout)}
        if reference.layout != "interleaved":
            halves = ("half_split", "half_split_swapped")
            supposed["direction"] = {"layout": halves[reference.layout == halves[0]]}
        others = (share for share in get_args(RotatedWord) if share != reference.rotated)
        supposed |= {f"rotated_{share}": {"rotated": share} for share in others}
    if block.n_kv_heads not in (1, block.n_heads):
        supposed["tiled"] = {"grouping": "tile" if reference.grouping == "repeat" else "repeat"}
    return supposed


class _Products:
    """The logits of a head as sums over products of gains: what each product is multiplied by."""

    def __init__(self, supposed: Pipeline, block: Block, head: int) -> None:
        gain_is_turned = supposed.order == "norm_rotary"
        made = trace(supposed.but(order="none") if gain_is_turned else supposed, block)
        of_q, of_k = _channels(supposed, block)
        self.q, self.k = made.q[head][:, of_q], made.k[head][:, of_k]
        width = turned(block.d_head, supposed.rotated)
        angle = angles(block.positions, width, block.theta)
        self.alone = block.d_head - 2 * (width // 2)  # channels that are not rotated
        self.turn = (angle.cos(), angle.sin()) if gain_is_turned else None

    @property
    def count(self) -> int:
        """Products, which are the unknowns."""
        return self.q.shape[1]

    def of(self, rows: Int[Tensor, " rows"]) -> Float[Tensor, "rows products"]:
        """These rows: query · keys + key; a column per product, in the order of `_channels`."""
        query, key = rows // len(self.k), rows % len(self.k)
        products = self.q[query] * self.k[key]
        if self.turn is None:
            return products
        (cos, sin), alone = self.turn, torch.ones(len(rows), self.alone, dtype=products.dtype)
        along = cos[query] * cos[key] + sin[query] * sin[key]  # cos of the angle between the two positions
        across = sin[query] * cos[key] - cos[query] * sin[key]  # and its sine
        return products * torch.cat([along, along, across, -across, alone], 1)


def _channels(supposed: Pipeline, block: Block) -> tuple[Tensor, Tensor]:
    """Channel of q and channel of k of every product: a rotation before the norm leaves each its own partner."""
    every = torch.arange(block.d_head)
    if supposed.order != "norm_rotary":
        return every, every
    first, second = partners(turned(block.d_head, supposed.rotated), supposed.layout)
    alone = every[2 * len(first) :]  # not rotated
    return torch.cat([first, second, first, second, alone]), torch.cat([first, second, second, first, alone])


def _whose(reference: Pipeline, block: Block, fitted: Tensor, exact: float) -> str:
    """Whose gains the fitted products are, up to one constant; of its own ones nothing but that factor is wrong."""
    of_q, of_k = _channels(reference, block)
    same, across = torch.ones_like(fitted), torch.where(of_q == of_k, 1.0, -1.0).to(fitted)  # partners' change sign
    for word, (gain_q, gain_k) in _candidates(reference, block).items():
        products = gain_q[of_q] * gain_k[of_k] * (across if word == "direction" else same)
        constant = ((products * fitted).sum() / products.square().sum()).item()
        if _relative(fitted, constant * products) < math.sqrt(exact):
            return word
    return "gain"


def _candidates(reference: Pipeline, block: Block) -> dict[str, tuple[Tensor, Tensor]]:
    """Gains of that head's q and k under each way of misreading them."""
    head = _head(block)
    stored_k = block.gain_k.repeat_interleave(block.n_heads // block.n_kv_heads, 0)
    stored_of_q = block.gain_q[: block.n_kv_heads].repeat_interleave(block.n_heads // block.n_kv_heads, 0)

    def read(stored: Tensor, reading: Callable[[Tensor], Tensor], side: str = "") -> Tensor:
        word = reference.gain if not side or side in reference.multiplied else "none"
        gain = GAINS[word](reading(stored))
        return gain[min(head, len(gain) - 1)].expand(block.d_head)

    own = READINGS[reference.stored]
    other = READINGS["one_plus" if reference.stored == "gamma" else "gamma"]
    back = torch.argsort(reordering(block.d_head, other_layout(reference.layout), reference.rotated))
    shared = stored_of_q if KEY_GAINS[reference.key_gain]["k"] == "q" else stored_k
    misread = "gamma_as_one_plus" if reference.stored == "gamma" else "one_plus_as_gamma"
    q, k = read(block.gain_q, own, "q"), read(shared, own, "k")
    return {
        "gain": (q, k),
        "direction": (q, k),
        "q_gain_on_k": (q, read(stored_of_q, own)),
        misread: (read(block.gain_q, other, "q"), read(shared, other, "k")),
        "gain_not_permuted": (q[back], k[back]),
    }
