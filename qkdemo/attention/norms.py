"""Every norm of q and k, and where its epsilon stands: the one place that knows the formulas.

* `NORMS`: word → `Norm`; the variants, the number formats, placement, the cache, training and every standalone
  program read this table, so that a new norm is one entry here, its word, and its sentences in `locale/`;
* `l2_normalise`, `rms_norm`, `layer_norm`, `full_width_rms_norm`, `dynamic_tanh`: as a kernel computes them, with a
  rounding `r` after each operation, so that the same lines say what a narrow number format makes of them;
* `normalise`, `numerator`, `divisor`: a norm taken apart, with its epsilon where one of `RULES` has it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from qkdemo.floats.formats import Rounding, exact

SizedWord: TypeAlias = Literal["l2", "rms", "layernorm"]  # divide by a size, and need an epsilon
NormaliserWord: TypeAlias = Literal[SizedWord, "dyt"]
NormWord: TypeAlias = Literal["none", NormaliserWord]
RuleWord: TypeAlias = Literal["inside", "outside", "floor", "floored_root", "absent"]
LearnedWord: TypeAlias = Literal["gain", "gamma", "alpha"]  # named like the dials: g, γ and α
Number: TypeAlias = float | Tensor  # a tensor sweeps: it must broadcast against [..., heads, positions, d_head]

L2_FLOOR: Final = 1e-12  # torch.nn.functional.normalize
RMS_EPSILON: Final = 1e-6  # Llama, Qwen 3, Gemma 3; flax LayerNorm
BLOCK_EPSILON: Final = 1e-5  # torch.nn.LayerNorm; of the hidden state, before a block
ALPHA: Final = 0.5  # Zhu et al. 2025: where α of dynamic tanh starts
SIZED: Final[tuple[SizedWord, ...]] = get_args(SizedWord)


@dataclass(frozen=True, kw_only=True)
class Norm:
    """A norm, up to its gain: x over a size, or a function of every entry alone."""

    word: NormWord
    apply: Callable[[Tensor, Number, Number, Rounding], Tensor]  # x, γ, α, rounding; as a kernel computes it
    most: Callable[[int], float]  # width → the largest ‖result‖² that there can be, at gain 1
    learns: tuple[LearnedWord, ...] = ()
    entrywise: Callable[[Tensor, Number], Tensor] | None = None  # x, α; no size is measured then
    centred: bool = False  # the mean goes first
    of_mean: bool = True  # the size is √(mean of squares), so that the result has length √width; else √sum, length 1
    turns: bool = False  # where the result points depends on the size of x
    rule: RuleWord = "absent"
    epsilon: float = 0.0
    code: str = ""  # a program's lines that turn x into the result
    size_code: str = ""  # what it divides x by, less its mean if the norm centres
    rounded_code: str = ""  # the same with a rounding r after each operation


def l2_normalise(x: Float[Tensor, "*shape"], r: Rounding = exact) -> Float[Tensor, "*shape"]:
    """`x` at unit length: x / max(‖x‖, 1e-12). A zero vector stays zero.

    Source: Henry et al. 2020, "Query-Key Normalization for Transformers", eq. 3; floor as in torch.
    """
    square = _rounded_squares(x, (-1,), r).clamp_min(L2_FLOOR**2)  # the root of 0 has no derivative
    return r(x / r(torch.sqrt(square)).clamp_min(L2_FLOOR))


def rms_norm(x: Float[Tensor, "*#shape"], gain: Number = 1.0, r: Rounding = exact) -> Float[Tensor, "*#shape"]:
    """γ · x / √(mean(x²) + 1e-6), so that ‖x‖ becomes √d_head: epsilon stands under the root.

    A vector whose entries are well below 1e-3 is therefore not fully normalised. In float16 the sum of
    squares overflows early; 1/√∞ is 0, and the norm returns zeros without a warning:

    >>> from qkdemo.floats.formats import FORMATS, rounded
    >>> rms_norm(torch.full((64,), 300.0), r=lambda x: rounded(x, FORMATS["float16"]))[0].item()
    0.0

    Source: Zhang & Sennrich 2019, "Root Mean Square Layer Normalization", eq. 4.
    """
    mean = r(_rounded_squares(x, (-1,), r) / x.shape[-1])
    return r(r(x * r(torch.rsqrt(r(mean + RMS_EPSILON)))) * gain)


def layer_norm(x: Float[Tensor, "*#shape"], gain: Number = 1.0, r: Rounding = exact) -> Float[Tensor, "*#shape"]:
    """γ · (x − mean) / √(var + 1e-6), without bias. A constant vector becomes zero.

    Source: Ba et al. 2016, "Layer Normalization"; on q and k: flax, `normalize_qk`. ViT-22B (Dehghani et al. 2023)
    calls its norm LayerNorm too, but says that all of them are without bias and centering: that is `rms_norm`.
    """
    centred = r(x - r(r(x.sum(-1, keepdim=True)) / x.shape[-1]))
    return rms_norm(centred, gain, r)


def full_width_rms_norm(
    x: Float[Tensor, "*#batch heads positions d_head"], gain: Number = 1.0, r: Rounding = exact
) -> Float[Tensor, "*#batch heads positions d_head"]:
    """RMSNorm over n_heads · d_head before the heads are split, as in OLMo 2: heads keep their relative size."""
    mean = r(_rounded_squares(x, (-3, -1), r) / (x.shape[-1] * x.shape[-3]))
    return r(r(x * r(torch.rsqrt(r(mean + RMS_EPSILON)))) * gain)


def dynamic_tanh(
    x: Float[Tensor, "*#shape"], gain: Number = 1.0, alpha: Number = ALPHA, r: Rounding = exact
) -> Float[Tensor, "*#shape"]:
    """γ · tanh(α x), entry by entry, without bias: no size is measured, and no epsilon is needed.

    Small entries pass as γ α x, so that vectors keep their sizes; large ones end at ±γ, so that ‖x‖ < √d_head · max|γ|
    whatever x is. Unlike a size, tanh turns a vector: at large scales only the signs of its entries are left.
    Infinity becomes ±γ, and 0 stays 0.

    >>> [round(y, 4) for y in dynamic_tanh(torch.tensor([0.001, -2.0, 1000.0]), gain=3.0).tolist()]
    [0.0015, -2.2848, 3.0]

    Source: Zhu et al. 2025, "Transformers without Normalization", arXiv 2503.10622, section 4; α starts at 0.5.
    """
    return r(r(torch.tanh(r(alpha * x))) * gain)


def _rounded_squares(x: Tensor, dims: tuple[int, ...], r: Rounding) -> Tensor:
    return r(r(x * x).sum(dims, keepdim=True))


def normalise(
    x: Float[Tensor, "*batch width"],
    norm: Norm,
    rule: RuleWord | None = None,
    epsilon: float | None = None,
    alpha: Number = ALPHA,
) -> Float[Tensor, "*batch width"]:
    """The norm of `x` along its last axis, exactly: `numerator` over `divisor`. The word none returns `x` itself.

    >>> normalise(torch.tensor([3.0, 4.0], dtype=torch.float64), NORMS["l2"]).tolist()
    [0.6, 0.8]
    """
    above = numerator(x, norm, alpha)
    return above if norm.entrywise is not None else above / _size(above, norm, rule, epsilon)


def numerator(x: Float[Tensor, "*batch width"], norm: Norm, alpha: Number = ALPHA) -> Float[Tensor, "*batch width"]:
    """What `divisor` divides: `x`, less its mean if the norm centres; all there is of a norm without a size."""
    if norm.entrywise is not None:
        return norm.entrywise(x, alpha)
    return x - x.mean(-1, keepdim=True) if norm.centred else x


def divisor(
    x: Float[Tensor, "*batch width"], norm: Norm, rule: RuleWord | None = None, epsilon: float | None = None
) -> Float[Tensor, "*batch 1"]:
    """What `normalise` divides by; 1 for a norm without a size."""
    if norm.entrywise is not None:
        return torch.ones_like(x[..., :1])
    return _size(numerator(x, norm), norm, rule, epsilon)


def reciprocal_root(
    squares: Tensor, width: int, norm: Norm, r: Rounding = exact, stored: Callable[[float], Number] = float
) -> Tensor:
    """1 / size from the sum of squares, as a kernel forms it, itself not yet rounded.

    `r` rounds what comes before, and `stored` is what the number format makes of epsilon.
    """
    if norm.rule == "inside":
        return 1 / r(r(squares / width if norm.of_mean else squares) + stored(norm.epsilon)).sqrt()
    root = r((squares / width if norm.of_mean else squares).sqrt())
    return 1 / torch.maximum(root, torch.as_tensor(stored(norm.epsilon), dtype=root.dtype))


def _size(x: Tensor, norm: Norm, rule: RuleWord | None, epsilon: float | None) -> Tensor:
    used = norm.epsilon if epsilon is None else epsilon
    return RULES[rule or norm.rule](x, x.shape[-1] if norm.of_mean else 1, used)


def _inside(x: Tensor, count: int, epsilon: float) -> Tensor:
    """√(Σx²/n + ε). At zero it is √ε, and its slope is 0."""
    return (_sum_of_squares(x) / count + epsilon).sqrt()


def _outside(x: Tensor, count: int, epsilon: float) -> Tensor:
    """‖x‖/√n + ε. torch gives the length of the zero vector the slope 0."""
    return _length(x) / math.sqrt(count) + epsilon


def _floor(x: Tensor, count: int, epsilon: float) -> Tensor:
    """max(‖x‖/√n, ε)."""
    return (_length(x) / math.sqrt(count)).clamp_min(epsilon)


def _floored_root(x: Tensor, count: int, epsilon: float) -> Tensor:
    """max(√(Σx²/n), ε): the same number, but the root's slope at zero is ∞, and ∞ · 0 is NaN."""
    return (_sum_of_squares(x) / count).sqrt().clamp_min(epsilon)


def _absent(x: Tensor, count: int, epsilon: float) -> Tensor:
    """‖x‖/√n. The zero vector is divided by zero."""
    return _length(x) / math.sqrt(count)


def _sum_of_squares(x: Tensor) -> Tensor:
    return (x * x).sum(-1, keepdim=True)


def _length(x: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return length


RULES: Final[dict[RuleWord, Callable[[Tensor, int, float], Tensor]]] = {
    "inside": _inside,
    "outside": _outside,
    "floor": _floor,
    "floored_root": _floored_root,
    "absent": _absent,
}

_MEAN: Final = "x = x - x.mean(-1, keepdim=True)\n"
_RMS: Final = "x = x * (x.square().mean(-1, keepdim=True) + {epsilon}).rsqrt()"
_RMS_SIZE: Final = "(x.square().mean(-1, keepdim=True) + {epsilon}).sqrt()"
_ROUNDED_MEAN: Final = "x = r(x - r(r(x.sum(-1, keepdim=True)) / x.shape[-1]))\n"
_ROUNDED_RMS: Final = """mean = r(r(r(x * x).sum(-1, keepdim=True)) / x.shape[-1])
x = r(x * r(r(mean + {epsilon}).rsqrt()))"""

NORMS: Final[dict[NormWord, Norm]] = {
    norm.word: norm
    for norm in (
        Norm(
            word="none",
            apply=lambda x, gain, alpha, r: x,
            entrywise=lambda x, alpha: x,
            most=lambda width: math.inf,
        ),
        # Henry et al. 2020: unit vectors, and one learned scale g in the place of 1/√d_head
        Norm(
            word="l2",
            apply=lambda x, gain, alpha, r: l2_normalise(x, r),
            most=lambda width: 1.0,
            learns=("gain",),
            of_mean=False,
            rule="floor",
            epsilon=L2_FLOOR,
            code="x = x / x.norm(dim=-1, keepdim=True).clamp_min({epsilon})",
            size_code="x.norm(dim=-1, keepdim=True).clamp_min({epsilon})",
            rounded_code="x = r(x / r(r(r(x * x).sum(-1, keepdim=True)).sqrt()).clamp_min({epsilon}))",
        ),
        # Zhang & Sennrich 2019; Qwen 3, Gemma 3 and many more: per head, with a gain; ViT-22B, under the name LayerNorm
        Norm(
            word="rms",
            apply=lambda x, gain, alpha, r: rms_norm(x, gain, r),
            most=float,
            learns=("gamma",),
            rule="inside",
            epsilon=RMS_EPSILON,
            code=_RMS,
            size_code=_RMS_SIZE,
            rounded_code=_ROUNDED_RMS,
        ),
        # Ba et al. 2016; on q and k in flax (`normalize_qk`) and Command R+
        Norm(
            word="layernorm",
            apply=lambda x, gain, alpha, r: layer_norm(x, gain, r),
            most=float,
            learns=("gamma",),
            centred=True,
            rule="inside",
            epsilon=RMS_EPSILON,
            code=_MEAN + _RMS,
            size_code=_RMS_SIZE,
            rounded_code=_ROUNDED_MEAN + _ROUNDED_RMS,
        ),
        # Zhu et al. 2025, here on q and k: each entry within ±γ
        Norm(
            word="dyt",
            apply=dynamic_tanh,
            entrywise=lambda x, alpha: dynamic_tanh(x, alpha=alpha),
            most=float,
            learns=("gamma", "alpha"),
            turns=True,
            code="x = torch.tanh({alpha} * x)",
            rounded_code="x = r(torch.tanh(r({alpha} * x)))",
        ),
    )
}


def norms_with(dial: LearnedWord) -> tuple[NormWord, ...]:
    """The norms that read this dial."""
    return tuple(word for word, norm in NORMS.items() if dial in norm.learns)


def program_lines(norm: Norm, alpha: str, *, epsilon: str = "", rounded: bool = False) -> str:
    """Lines of a program that turn x into its norm, without gain; `alpha` and `epsilon` as the program writes them."""
    code = norm.rounded_code if rounded else norm.code
    return code.format(epsilon=epsilon or f"{norm.epsilon:g}", alpha=alpha)


def program_parts(norm: Norm) -> str:
    """Lines of a program that return what a norm with a size divides, and the size."""
    return f"{_MEAN if norm.centred else ''}return x, {norm.size_code.format(epsilon=f'{norm.epsilon:g}')}"
