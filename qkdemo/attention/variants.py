"""Attention logits: one way of forming them per variant, and the bound that each way proves.

* `VARIANTS`: word → `Variant`, the table of everything this project calls a variant;
* `scores(q, k, variant, parameters)`: raw scores and logits of one variant;
* `l2_normalise`, `rms_norm`, `layer_norm`, `full_width_rms_norm`: the normalisations;
* `causal_mask(n)`: which keys each query may see.

What is normalised is q and k, per head, after projection, before their product. Softmax is left to
`measures`. Every normalisation takes `r`, a rounding applied after each operation, so that the same
lines say what it computes and what a narrow number format makes of it; by default nothing is rounded.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from qkdemo.floats.formats import Rounding, exact

VariantWord: TypeAlias = Literal["none", "l2", "rms", "layernorm", "cosine", "softcap", "rms_softcap", "full_width"]
Number: TypeAlias = float | Tensor  # a tensor sweeps: it must broadcast against [..., heads, positions, d_head]

L2_FLOOR: Final = 1e-12  # torch.nn.functional.normalize
RMS_EPSILON: Final = 1e-6  # Llama, Qwen 3, Gemma 3; flax LayerNorm
LARGEST_LOGIT_SCALE: Final = 100.0  # Swin v2 clamps the learned log-scale at ln 100


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What the variants learn or fix. Each variant reads its own and ignores the others."""

    g: Number = 10.0  # learned scale, l2
    gamma_q: Number = 1.0  # gain of q, RMSNorm and LayerNorm; per channel if a tensor of d_head
    gamma_k: Number = 1.0
    temperature: Number = 0.1  # τ, cosine
    softcap: Number = 50.0  # c


@dataclass(frozen=True)
class Scores:
    """One head's way from q and k to logits, batched; a parameter that sweeps widens what comes after it (#)."""

    q: Float[Tensor, "*#batch heads positions d_head"]  # as they enter the product
    k: Float[Tensor, "*#batch heads positions d_head"]
    raw: Float[Tensor, "*#batch heads positions positions"]  # q·k
    logits: Float[Tensor, "*#batch heads positions positions"]  # scaled and, if the variant does, capped


@dataclass(frozen=True)
class Variant:
    """A way of forming attention logits.

    `bound(parameters, d_head, n_heads)` is the largest |logit| that any q and k can reach, ∞ if none is proven.
    """

    word: VariantWord
    normalise: Callable[[Tensor, Number, Rounding], Tensor]  # x, its gain, rounding
    factor: Callable[[Parameters, int], Number]  # parameters, d_head → what multiplies q·k
    bound: Callable[[Parameters, int, int], float]
    dial: Literal["gain", "gamma", "temperature", "softcap"] | None  # the dial that buys sharpness back
    capped: bool = False


def scores(
    q: Float[Tensor, "*batch heads positions d_head"],
    k: Float[Tensor, "*batch heads positions d_head"],
    variant: Variant,
    parameters: Parameters,
    *,
    store: Rounding = exact,
    inside_norm: Rounding = exact,
) -> Scores:
    """Raw scores and logits of `variant`; no mask is applied.

    `store` rounds what would be written to memory (q, k, q·k, the logits), `inside_norm` every operation
    of the normalisation. Non-finite values pass through: they are the lesson.
    """
    q = store(variant.normalise(q, parameters.gamma_q, inside_norm))
    k = store(variant.normalise(k, parameters.gamma_k, inside_norm))
    raw = store(q @ k.mT)
    logits = store(raw * variant.factor(parameters, q.shape[-1]))
    if variant.capped:
        logits = store(parameters.softcap * torch.tanh(logits / parameters.softcap))
    return Scores(q=q, k=k, raw=raw, logits=logits)


def causal_mask(n: int, device: torch.device | str = "cpu") -> Bool[Tensor, "n n"]:
    """True where a query (row) may see a key (column): itself and everything before."""
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def l2_normalise(x: Float[Tensor, "*shape"], r: Rounding = exact) -> Float[Tensor, "*shape"]:
    """`x` at unit length: x / max(‖x‖, 1e-12). A zero vector stays zero.

    Source: Henry et al. 2020, "Query-Key Normalization for Transformers", eq. 3; floor as in torch.
    """
    square = _sum_of_squares(x, (-1,), r).clamp_min(L2_FLOOR**2)  # the root of 0 has no derivative
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
    mean = r(_sum_of_squares(x, (-1,), r) / x.shape[-1])
    return r(r(x * r(torch.rsqrt(r(mean + RMS_EPSILON)))) * gain)


def layer_norm(x: Float[Tensor, "*#shape"], gain: Number = 1.0, r: Rounding = exact) -> Float[Tensor, "*#shape"]:
    """γ · (x − mean) / √(var + 1e-6), without bias. A constant vector becomes zero.

    Source: Ba et al. 2016, "Layer Normalization"; on q and k: Dehghani et al. 2023, ViT-22B, eq. 1.
    """
    centred = r(x - r(r(x.sum(-1, keepdim=True)) / x.shape[-1]))
    return rms_norm(centred, gain, r)


def full_width_rms_norm(
    x: Float[Tensor, "*#batch heads positions d_head"], gain: Number = 1.0, r: Rounding = exact
) -> Float[Tensor, "*#batch heads positions d_head"]:
    """RMSNorm over n_heads · d_head before the heads are split, as in OLMo 2: heads keep their relative size."""
    mean = r(_sum_of_squares(x, (-3, -1), r) / (x.shape[-1] * x.shape[-3]))
    return r(r(x * r(torch.rsqrt(r(mean + RMS_EPSILON)))) * gain)


def _sum_of_squares(x: Tensor, dims: tuple[int, ...], r: Rounding) -> Tensor:
    return r(r(x * x).sum(dims, keepdim=True))


def _inverse_root_width(_: Parameters, d_head: int) -> float:
    return 1 / math.sqrt(d_head)


def _logit_scale(parameters: Parameters) -> Number:
    """1/τ, clamped as Swin v2 does."""
    scale = 1 / parameters.temperature
    return scale.clamp_max(LARGEST_LOGIT_SCALE) if isinstance(scale, Tensor) else min(scale, LARGEST_LOGIT_SCALE)


def _largest(x: Number) -> float:
    return float(x.abs().max()) if isinstance(x, Tensor) else abs(x)


def _rms_bound(parameters: Parameters, d_head: int, _: int) -> float:
    """√d · max|γq γk|: Cauchy–Schwarz on two vectors of length √d. Holds without rotary positions, or
    with gains equal within each rotary pair."""
    return math.sqrt(d_head) * _largest(parameters.gamma_q * parameters.gamma_k)


def _softcap_bound(parameters: Parameters, d_head: int, n_heads: int) -> float:
    """c: never reached in exact arithmetic; in floating point tanh(x) is 1 from x ≈ 19 on."""
    return _largest(parameters.softcap)


def _rms_softcap_bound(parameters: Parameters, d_head: int, n_heads: int) -> float:
    cap = _softcap_bound(parameters, d_head, n_heads)
    return cap * math.tanh(_rms_bound(parameters, d_head, n_heads) / cap)


def _full_width_bound(parameters: Parameters, d_head: int, n_heads: int) -> float:
    """n_heads · √d · max|γq γk|: one head may hold the whole norm, √(n_heads · d), of q and of k."""
    return n_heads * _rms_bound(parameters, d_head, n_heads)


VARIANTS: Final[dict[VariantWord, Variant]] = {
    variant.word: variant
    for variant in (
        # Vaswani et al. 2017, "Attention Is All You Need", eq. 1
        Variant("none", lambda x, gain, r: x, _inverse_root_width, lambda p, d, h: math.inf, None),
        # Henry et al. 2020: unit vectors, one learned scale, no 1/√d
        Variant("l2", lambda x, gain, r: l2_normalise(x, r), lambda p, d: p.g, lambda p, d, h: _largest(p.g), "gain"),
        # Qwen 3, Gemma 3 and many more: RMSNorm per head
        Variant("rms", rms_norm, _inverse_root_width, _rms_bound, "gamma"),
        # Dehghani et al. 2023, ViT-22B
        Variant("layernorm", layer_norm, _inverse_root_width, _rms_bound, "gamma"),
        # Liu et al. 2022, "Swin Transformer V2", eq. 2
        Variant(
            "cosine",
            lambda x, gain, r: l2_normalise(x, r),
            lambda p, d: _logit_scale(p),
            lambda p, d, h: _largest(_logit_scale(p)),
            "temperature",
        ),
        # Gemma 2 (2024), section 2: c·tanh(s/c) on the scaled score, before softmax
        Variant("softcap", lambda x, gain, r: x, _inverse_root_width, _softcap_bound, "softcap", capped=True),
        Variant("rms_softcap", rms_norm, _inverse_root_width, _rms_softcap_bound, "gamma", capped=True),
        # OLMo 2 (2024)
        Variant("full_width", full_width_rms_norm, _inverse_root_width, _full_width_bound, "gamma"),
    )
}
