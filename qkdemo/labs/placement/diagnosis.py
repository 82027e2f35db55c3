"""The diagnosis the other way round: from the pattern of an error to the choice that was read wrongly.

* `diagnose(reference, block, observed)`: the likeliest cause, and how exactly it accounts for the logits.

A softcap is undone. First come the ratios: a constant one is a scale, one that factors into sizes of q and k is a norm
that is missing or taken over another width. What no ratio explains is fitted: logits are linear in the products of
gains, so a supposed order, layout or norm either fits them to rounding, with some gains, or does not; and where the
reference's own order fits, the gains that fit say whose they are. The fit knows the projected q and k and the
positions, as whoever ports a checkpoint does. What no gains fit, as where there is a bias, is held against the
reference with one choice changed.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from qkdemo.attention.blocks import Block
from qkdemo.attention.norms import SIZED
from qkdemo.attention.pipeline import CAPS, GAINS, KEY_GAINS, READINGS, Pipeline, Trace, trace
from qkdemo.attention.rotary import RotatedWord, other_layout, reordering
from qkdemo.labs.placement.fitting import channels, fitted, missed, pairs, relative, undone
from qkdemo.labs.placement.scales import FACTORS, TOLERANCE, cause_of

EXACT: Final = 1e-6  # relative misfit below which a cause accounts for the logits; float64 leaves 1e-12
CLEARLY: Final = 0.67  # of a misfit: as little is left by what fits clearly better
_FEWEST: Final = 3  # logits that tell one factor from another
_MISREAD: Final = {"gamma": "gamma_as_one_plus", "one_plus": "one_plus_as_gamma"}


@dataclass(frozen=True)
class Verdict:
    """A cause, by its word, and the pattern it was read from."""

    cause: str
    misfit: float  # relative: 0 if the cause explains every logit; NaN if none was found
    ratio: float  # observed over expected, before a softcap, if it is the same everywhere; else NaN
    first: float  # relative error of the first query's logits
    last: float  # and of the last one's
    epsilon: float | None = None  # with which the norm does the same, where that is asked
    uneven: float = 0.0  # relative: what that ratio leaves, if it holds but for ε of another norm

    def steady(self, exact: float) -> "Verdict":
        """Without a ratio that ε makes another one from pair to pair: where vectors are short, it is that of none.

        A ratio is said to the fourth digit; near 1, the format's rounding is all that may be off.
        """
        holds = self.uneven < (exact if self.cause == "near_one" else max(exact, TOLERANCE))
        return self if holds else replace(self, cause="unknown", ratio=math.nan)


def diagnose(
    reference: Pipeline, block: Block, observed: Float[Tensor, "heads queries keys"], exact: float = EXACT
) -> Verdict:
    """Why `observed` is not what `reference` computes on `block`, from the pairs that a query sees.

    `exact`: the relative misfit that rounding may leave, more for logits of a narrow number format.

    Words: same, cap; scale_one, scale_twice, scale_root, scale_other, unit_vectors, near_one, constant; norm_skipped,
    full_width, input; layernorm, rms, rotary_first, norm_first, layout, direction, rotated_all, rotated_half,
    rotated_quarter, tiled, no_norm, over_all_heads, of_input; q_gain_on_k, gamma_as_one_plus, one_plus_as_gamma,
    gain_not_permuted, gain; too_few, unknown.
    """
    reference = _plainly(reference)
    expected = trace(reference, block)
    logits, observed = expected.seen(expected.logits), expected.seen(observed)
    errors = [relative(observed[:, at], logits[:, at]) for at in (0, -1)]
    same = relative(observed, logits)
    if not observed.isfinite().all() or (same >= exact and _lacks_bias(reference, block, expected, observed, exact)):
        return Verdict("unknown", math.nan, math.nan, *errors)
    if same < exact:
        return Verdict("same", same, 1.0, errors[0], errors[1])
    before = expected if reference.cap == "none" else trace(reference.but(cap="none"), block)
    cause, misfit, ratio, uneven = _from_ratio(reference, before, observed, exact)
    if not cause:
        cause, misfit = _from_fit(reference, before, observed, exact)
    if cause == "unknown":
        cause, misfit = _from_one_change(reference, block, observed, exact)
    return Verdict(cause, misfit, ratio, errors[0], errors[1], uneven=uneven)


def _lacks_bias(reference: Pipeline, block: Block, expected: Trace, observed: Tensor, exact: float) -> bool:
    """Whether the bias alone was left out: the gains that then fit are the expected ones."""
    bare = reference.but(bias="none")
    return bare != reference and relative(observed, expected.seen(trace(bare, block).logits)) < exact


def _plainly(reference: Pipeline) -> Pipeline:
    """The same function, divided on each side; what was carried over, its gain included, is in the other layout."""
    place = "per_head" if reference.place == "in_product" else reference.place
    if reference.conversion != "weights_and_gain":
        return reference.but(place=place)
    return reference.but(place=place, layout=other_layout(reference.layout), conversion="none")


def _from_ratio(reference: Pipeline, before: Trace, observed: Tensor, exact: float) -> tuple[str, float, float, float]:
    """The first cause whose factor explains the logits before a softcap, up to one constant; an empty word if none.

    With its misfit, that constant if it is a ratio of logits, and what this ratio alone would leave.
    """
    block, logits = before.block, before.seen(before.logits)
    capped = CAPS["softcap"](CAPS[reference.cap](logits, block.softcap), block.softcap)
    misfit = min(relative(observed, other) for other in ((capped,) if reference.cap == "none" else (capped, logits)))
    own = CAPS[reference.cap](logits, block.softcap)
    steady = relative(observed, (observed * own).sum() / own.square().sum() * own)
    if misfit < exact and steady >= CLEARLY * misfit:  # small logits: a cap is nearly a factor
        return "cap", misfit, math.nan, 0.0
    target, slope = undone(reference, block, observed, exact)
    for word, factor in FACTORS if slope.count_nonzero() >= _FEWEST else ():
        supposed = before.seen(before.logits * factor(reference, block, before))
        weighed = slope * supposed
        constant = ((weighed * slope * target).sum() / weighed.square().sum()).item()
        misfit = missed(reference, block, observed, constant * supposed, exact)
        if misfit < exact:
            if word and len(pairs(block)) == 1:  # its size over all heads is constant: that norm does what none does
                return "too_few", math.nan, math.nan, 0.0
            if word:
                return word, misfit, math.nan, 0.0
            uneven = missed(reference, block, observed, constant * logits, exact)
            return cause_of(constant, reference, block.d_head, 2 * exact), misfit, constant, uneven
    return "", math.nan, math.nan, 0.0


def _from_fit(reference: Pipeline, before: Trace, observed: Tensor, exact: float) -> tuple[str, float]:
    """The first supposition under which some gains fit the logits of one head to rounding, and all others agree."""
    block, off = before.block, _off(reference, before, observed, exact)
    if off[_head(block)] is False:  # nothing is learnt from a head that is as expected
        return "unknown", math.nan
    verdict = "too_few"
    for word, changes in _suppositions(reference, block).items():
        supposed = reference.but(**changes)
        found = fitted(supposed, block, observed, _head(block), exact)
        if found is None:
            if word == "gain":  # what fits then may do so because the reference’s own order would
                return "too_few", math.nan
            continue
        verdict, (gains, misfit) = "unknown", found
        if misfit < exact and _agree(supposed, before, observed, off, exact):
            return (_whose(reference, block, gains, exact) if word == "gain" else word), misfit
    return verdict, math.nan


def _off(reference: Pipeline, before: Trace, observed: Tensor, exact: float) -> list[bool | None]:
    """Whether each head is off; None where rounding or the ends of a softcap may hide it."""
    found: list[bool | None] = []
    for mine, own in zip(observed, before.seen(before.logits), strict=True):
        is_off = relative(mine, CAPS[reference.cap](own, before.block.softcap)) >= 2 * exact
        found.append(is_off or (False if missed(reference, before.block, mine, own, exact) < exact else None))
    return found


def _agree(supposed: Pipeline, before: Trace, observed: Tensor, off: list[bool | None], exact: float) -> bool:
    """Whether those heads are off that are so under `supposed`, all, if that is the reference itself with other gains;
    and some gains fit every other head, too."""
    block, bare = before.block, supposed.but(cap="none")
    meant = [math.inf] * block.n_heads
    if bare != before.pipeline:
        sides = (before.seen(made.logits) for made in (trace(bare, block), before))
        meant = [relative(*pair) for pair in zip(*sides, strict=True)]
    if any(at >= 2 * exact if told is False else told and at < exact for told, at in zip(off, meant, strict=True)):
        return False
    others = (head for head in range(block.n_heads) if head != _head(block))
    fits = (fitted(supposed, block, observed, head, exact) for head in others)
    return all(fit is None or fit[1] < exact for fit in fits)


def _from_one_change(reference: Pipeline, block: Block, observed: Tensor, exact: float) -> tuple[str, float]:
    """The first choice that, changed alone, gives these logits with the reference’s own gains and biases."""
    for word, changes in (*_suppositions(reference, block).items(), *_readings(reference)):
        made = trace(reference.but(**changes, cap="none"), block)
        if (misfit := missed(reference, block, observed, made.seen(made.logits), exact)) < exact:
            return word, misfit
    return "unknown", math.nan


def _head(block: Block) -> int:
    """The second head, if there is one: the first reads the same keys however heads are grouped."""
    return min(1, block.n_heads - 1)


def _suppositions(reference: Pipeline, block: Block) -> dict[str, dict[str, Any]]:
    """What may be otherwise than in the reference, the gains apart. The reference's own order comes first."""
    rotary = {"norm_rotary": ("rotary_first", "rotary_norm"), "rotary_norm": ("norm_first", "norm_rotary")}
    supposed: dict[str, dict[str, Any]] = {"gain": {}}
    if reference.norm in SIZED:
        other = "rms" if reference.norm == "layernorm" else "layernorm"
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
    if reference.norm != "none" and reference.place != "weights":
        supposed["no_norm"] = {"norm": "none"}
        supposed |= {"over_all_heads": {"place": "full_width"}} if reference.place == "per_head" else {}
        supposed |= {"of_input": {"place": "input"}} if reference.place != "input" else {}
    return supposed


def _readings(reference: Pipeline) -> Iterator[tuple[str, dict[str, Any]]]:
    """How the gains may be read otherwise. A gain per head and channel would say the same of the biases."""
    yield _MISREAD[reference.stored], {"stored": "one_plus" if reference.stored == "gamma" else "gamma"}
    if reference.conversion == "none":
        yield "gain_not_permuted", {"layout": other_layout(reference.layout), "conversion": "weights"}
    yield from (("q_gain_on_k" if word == "of_q" else "gain", {"key_gain": word}) for word in KEY_GAINS)
    of_biases = set() if reference.bias == "none" else {"head_channel"}
    yield from (("gain", {"gain": word}) for word in GAINS if not of_biases & {word, reference.gain})


def _whose(reference: Pipeline, block: Block, fitted: Tensor, exact: float) -> str:
    """Whose gains the fitted products are, up to one constant; of its own ones nothing but that factor is wrong."""
    of_q, of_k = channels(reference, block)
    same, across = torch.ones_like(fitted), torch.where(of_q == of_k, 1.0, -1.0).to(fitted)  # partners' change sign
    for word, (gain_q, gain_k) in _candidates(reference, block).items():
        products = gain_q[of_q] * gain_k[of_k] * (across if word == "direction" else same)
        constant = ((products * fitted).sum() / products.square().sum()).item()
        if relative(fitted, constant * products) < math.sqrt(exact):
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
    q, k = read(block.gain_q, own, "q"), read(shared, own, "k")
    return {
        "gain": (q, k),
        "direction": (q, k),
        "q_gain_on_k": (q, read(stored_of_q, own)),
        _MISREAD[reference.stored]: (read(block.gain_q, other, "q"), read(shared, other, "k")),
        "gain_not_permuted": (q[back], k[back]),
    }
