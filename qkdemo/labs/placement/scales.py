"""What makes logits that are a power of √d times the expected ones: another scale, or a norm that leaves other lengths.

* `cause_of(ratio, reference, d_head, tolerance)`: the cause that a diagnosis names;
* `other_scale(…)`: the scale that does it in the place of the reference's own;
* `norm_too(…)`: the norm that does it: RMSNorm leaves vectors √d times as long as L2 does;
* `norm_instead(…)`: whether one does what another scale does, of two pipelines with scales of their own;
* `gains_too(…)`: whether γ read as 1 + γ does it;
* `FACTORS`: what a norm that is missing, or taken elsewhere, multiplies each logit by, from the sizes of q and k: the
  cause, or an empty word for a constant alone, and its factor, in the order to be tried.

The reference says what there was to change: where it has no 1/√d, none can be missing.
"""

import math
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import torch
from torch import Tensor

from qkdemo.attention.blocks import Block
from qkdemo.attention.norms import NORMS, NormWord, divisor
from qkdemo.attention.pipeline import GROUPINGS, SCALES, Pipeline, ScaleWord, Trace
from qkdemo.attention.places import PlaceWord

Factor: TypeAlias = Callable[[Pipeline, Block, Trace], Tensor]  # [heads, queries, keys], or what broadcasts to it
_SAME_BUT_ROOT: Final = {"rms": "l2", "l2": "rms"}  # norms whose sizes are √d apart, and epsilon
_OF_SCALES: Final[dict[ScaleWord, int]] = {"inverse_root": -1, "one": 0, "root": 1, "inverse": -2}  # powers of √d
_FROM_INVERSE_ROOT: Final = {1: "scale_one", -1: "scale_twice", 2: "scale_root"}
TOLERANCE: Final = 1e-4  # relative, of a ratio that was found to be a power
NEAR: Final = 2.0**-8  # of 1, a ratio that a scale rounded to bfloat16 may leave, and another epsilon, too


def cause_of(ratio: float, reference: Pipeline, d_head: int, tolerance: float) -> str:
    """The cause of logits that are `ratio` times those of the reference.

    >>> [cause_of(8.0, Pipeline(scale=scale), 64, 1e-6) for scale in ("inverse_root", "one", "learned")]
    ['scale_one', 'scale_other', 'constant']
    >>> cause_of(0.99999, Pipeline(), 64, 1e-6)
    'near_one'
    """
    if math.isclose(ratio, 1, rel_tol=NEAR):
        return "near_one"
    if other_scale(ratio, reference, d_head, tolerance) is not None:
        power = _power(ratio, d_head, tolerance)
        return _FROM_INVERSE_ROOT[power] if reference.scale == "inverse_root" else "scale_other"
    return "unit_vectors" if norm_too(ratio, reference, d_head, tolerance) == "l2" else "constant"


def other_scale(ratio: float, reference: Pipeline, d_head: int, tolerance: float = TOLERANCE) -> ScaleWord | None:
    """The scale that does it; None if no usual one does."""
    power = _power(ratio, d_head, tolerance)
    if not power or reference.scale not in _OF_SCALES:
        return None
    wanted = _OF_SCALES[reference.scale] + power
    return next((scale for scale, of_scale in _OF_SCALES.items() if of_scale == wanted), None)


def norm_too(
    ratio: float, reference: Pipeline, d_head: int, tolerance: float = TOLERANCE
) -> Literal["l2", "rms"] | None:
    """The norm that does it with the same scale; None if there was no such norm to change.

    A bias is added after the norm, and keeps its size.
    """
    power, sides = _power(ratio, d_head, tolerance), sum(side in reference.on for side in "qk")
    if reference.place not in ("per_head", "in_product") or reference.bias != "none" or abs(power) != sides:
        return None
    return {("rms", True): "l2", ("l2", False): "rms"}.get((reference.norm, power < 0))  # type: ignore[return-value]


def norm_instead(
    reference: tuple[Pipeline, float],
    mine: tuple[Pipeline, float],
    block: Block,
    norms: set[NormWord],
    tolerance: float,
) -> bool:
    """Whether another norm with the reference's scale does what the scale of `mine` does.

    Each side comes with the factor of its scale, of a learned one over 1/√d. `norms`: what the reference's may be.
    """
    own, other = (
        factor * float(torch.as_tensor(SCALES["inverse_root" if made.scale == "learned" else made.scale](block)))
        for made, factor in (reference, mine)
    )
    supposed = (reference[0].but(norm=norm) for norm in norms)
    return any(norm_too(other / own, each, block.d_head, tolerance) is not None for each in supposed)


def gains_too(ratio: float, reference: Pipeline, block: Block) -> bool:
    """Whether γ read as 1 + γ does it: a factor of 2 for each side, where every gain is 1. A bias keeps its size."""
    read = reference.stored == "gamma" and reference.bias == "none"
    ones = all(bool((gain == 1).all()) for gain in (block.gain_q, block.gain_k))
    return read and ones and math.isclose(ratio, 2 ** len(reference.multiplied), rel_tol=TOLERANCE)


def _power(ratio: float, d_head: int, tolerance: float) -> int:
    """The power of √d that the ratio is; 0 if it is none."""
    if not 0 < ratio < math.inf or d_head < 2:
        return 0
    power = round(2 * math.log(ratio, d_head))
    return power if math.isclose(ratio, d_head ** (power / 2), rel_tol=tolerance) else 0


def _whole(x: Tensor) -> Tensor:
    """Every head's positions as the whole width, for the size of all heads together."""
    return x.movedim(-3, -2).flatten(-2).expand(x.shape[0], -1, -1)


# What a norm at each place measures, from the projected heads of q or k.
_MEASURED: Final[dict[PlaceWord, Callable[[Block, Tensor], Tensor]]] = {
    "per_head": lambda block, heads: heads,
    "in_product": lambda block, heads: heads,
    "full_width": lambda block, heads: _whole(heads),
    "input": lambda block, heads: block.x.expand(heads.shape[0], -1, -1),
}


def _sizes(reference: Pipeline, block: Block, expected: Trace) -> tuple[Tensor, int]:
    """What the norm divides q by times what it divides k by, on the sides where it acts; and the product of the
    widths that it measures there."""
    sizes, widths = [], 1
    for side, heads in (("q", expected.q_projected), ("k", expected.k_projected)):
        acts = side in reference.on and reference.place in _MEASURED
        x = _MEASURED[reference.place](block, heads) if acts else heads
        sizes.append(divisor(x, NORMS[reference.norm if acts else "none"], reference.rule, reference.epsilon))
        widths *= x.shape[-1] if acts else 1
    of_k = GROUPINGS[reference.grouping](sizes[1], block.n_heads // block.n_kv_heads)
    return sizes[0] * of_k.mT, widths


def _times_sizes(reference: Pipeline, block: Block, expected: Trace) -> Tensor:
    return _sizes(reference, block, expected)[0]


def _over_sizes_at(place: PlaceWord, *own: PlaceWord) -> Factor:
    """The norm’s own sizes over those at another place; 1 where the norm is not at one of its `own` places."""

    def factor(reference: Pipeline, block: Block, expected: Trace) -> Tensor:
        if reference.place not in own:
            return torch.ones_like(expected.logits)
        return _times_sizes(reference, block, expected) / _times_sizes(reference.but(place=place), block, expected)

    return factor


def _other_epsilon(reference: Pipeline, block: Block, expected: Trace) -> Tensor:
    """Near 1: what L2 in the place of RMSNorm leaves of epsilon, or the other way round, beside a constant."""
    if reference.norm not in _SAME_BUT_ROOT:
        return torch.ones_like(expected.logits)
    own, widths = _sizes(reference, block, expected)
    other, _ = _sizes(reference.but(norm=_SAME_BUT_ROOT[reference.norm], rule=None, epsilon=None), block, expected)
    return own / other * math.sqrt(widths if reference.norm == "rms" else 1 / widths)


FACTORS: Final[tuple[tuple[str, Factor], ...]] = (
    ("", lambda reference, block, expected: torch.ones_like(expected.logits)),
    ("", _other_epsilon),
    ("norm_skipped", _times_sizes),
    ("full_width", _over_sizes_at("full_width", "per_head", "in_product")),
    ("input", _over_sizes_at("input", "per_head", "in_product", "full_width")),
)
