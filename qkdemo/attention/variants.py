"""Attention logits: one way of forming them per variant, and the bound that each way proves.

* `VARIANTS`: word → `Variant`, the table of everything this project calls a variant;
* `scores(q, k, variant, parameters)`: raw scores and logits of one variant; `Parameters`: what it learns or fixes.

What is normalised is q and k, per head, after projection, before their product. Softmax is left to `measures`.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from qkdemo.attention.norms import ALPHA, NORMS, LearnedWord, Norm, NormWord, Number, full_width_rms_norm
from qkdemo.floats.formats import Rounding, exact

VariantWord: TypeAlias = Literal[NormWord, "cosine", "softcap", "rms_softcap", "full_width"]
DialWord: TypeAlias = Literal[LearnedWord, "temperature", "softcap"]

LARGEST_LOGIT_SCALE: Final = 100.0  # Swin v2 clamps the learned log-scale at ln 100


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What the variants learn or fix. Each variant reads its own and ignores the others."""

    g: Number = 10.0  # learned scale, l2
    gamma_q: Number = 1.0  # gain of q, RMSNorm and LayerNorm; per channel if a tensor of d_head
    gamma_k: Number = 1.0
    alpha_q: Number = ALPHA  # dynamic tanh
    alpha_k: Number = ALPHA
    temperature: Number = 0.1  # τ, cosine
    softcap: Number = 50.0  # c
    scale: Number | None = None  # of q·k where none is learned or fixed by the variant; 1/√d_head unless given


# Which parameters a dial of that name sets.
SETS: Final[dict[DialWord, tuple[str, ...]]] = {
    "gain": ("g",),
    "gamma": ("gamma_q", "gamma_k"),
    "alpha": ("alpha_q", "alpha_k"),
    "temperature": ("temperature",),
    "softcap": ("softcap",),
}


@dataclass(frozen=True)
class Scores:
    """One head's way from q and k to logits, batched; a parameter that sweeps widens what comes after it (#)."""

    q: Float[Tensor, "*#batch heads queries d_head"]  # as they enter the product
    k: Float[Tensor, "*#batch heads keys d_head"]
    raw: Float[Tensor, "*#batch heads queries keys"]  # q·k
    logits: Float[Tensor, "*#batch heads queries keys"]  # scaled and, if the variant does, capped


@dataclass(frozen=True)
class Variant:
    """A way of forming attention logits: a norm of q and k, and what scales and caps their product."""

    word: VariantWord
    norm: Norm
    dials: tuple[DialWord, ...]  # the ones that it reads; the first buys sharpness back
    over_all_heads: bool = False  # RMSNorm before the heads are split

    @property
    def dial(self) -> DialWord | None:
        """The dial that buys sharpness back."""
        return self.dials[0] if self.dials else None

    @property
    def capped(self) -> bool:
        """Whether the scaled score s becomes c · tanh(s/c)."""
        return "softcap" in self.dials

    def normalise(self, x: Tensor, gain: Number = 1.0, alpha: Number = ALPHA, r: Rounding = exact) -> Tensor:
        """q or k as it enters the product."""
        return full_width_rms_norm(x, gain, r) if self.over_all_heads else self.norm.apply(x, gain, alpha, r)

    def factor(self, parameters: Parameters, d_head: int) -> Number:
        """What multiplies q·k: a learned scale g, 1/τ, or 1/√d_head unless another is given."""
        if "gain" in self.dials:
            return parameters.g
        if "temperature" in self.dials:
            scale = 1 / parameters.temperature
            return (
                scale.clamp_max(LARGEST_LOGIT_SCALE) if isinstance(scale, Tensor) else min(scale, LARGEST_LOGIT_SCALE)
            )
        return 1 / math.sqrt(d_head) if parameters.scale is None else parameters.scale

    def bound(self, parameters: Parameters, d_head: int, n_heads: int) -> float:
        """The largest |logit| that any q and k can reach; ∞ if none is proven.

        Cauchy–Schwarz: factor · ‖q̂‖ ‖k̂‖ · max|γq γk|, with the longest q̂ and k̂ that the norm lets through; one head may
        hold all of it where the norm is over all heads. So l2: g; at 1/√d RMSNorm, LayerNorm and dyt: √d · max|γq γk|.
        With gains, it holds without rotary positions, or with gains equal within each rotary pair. A cap makes it
        c · tanh(bound/c), in exact arithmetic never reached; in floating point tanh(x) is 1 from x ≈ 19 on.
        """
        most = self.norm.most(d_head * (n_heads if self.over_all_heads else 1))
        gains = _largest(parameters.gamma_q * parameters.gamma_k) if "gamma" in self.dials else 1.0
        bound = _largest(self.factor(parameters, d_head)) * most * gains
        cap = _largest(parameters.softcap)
        return cap * math.tanh(bound / cap) if self.capped else bound


def scores(
    q: Float[Tensor, "*batch heads queries d_head"],
    k: Float[Tensor, "*batch heads keys d_head"],
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
    q = store(variant.normalise(q, parameters.gamma_q, parameters.alpha_q, inside_norm))
    k = store(variant.normalise(k, parameters.gamma_k, parameters.alpha_k, inside_norm))
    raw = store(q @ k.mT)
    logits = store(raw * variant.factor(parameters, q.shape[-1]))
    if variant.capped:
        logits = store(parameters.softcap * torch.tanh(logits / parameters.softcap))
    return Scores(q=q, k=k, raw=raw, logits=logits)


def _largest(x: Number) -> float:
    return float(x.abs().max()) if isinstance(x, Tensor) else abs(x)


VARIANTS: Final[dict[VariantWord, Variant]] = {
    # A norm alone; without one, Vaswani et al. 2017, "Attention Is All You Need", eq. 1
    **{norm.word: Variant(norm.word, norm, norm.learns) for norm in NORMS.values()},
    # Liu et al. 2022, "Swin Transformer V2", eq. 2
    "cosine": Variant("cosine", NORMS["l2"], ("temperature",)),
    # Gemma 2 (2024), section 2: c·tanh(s/c) on the scaled score, before softmax
    "softcap": Variant("softcap", NORMS["none"], ("softcap",)),
    "rms_softcap": Variant("rms_softcap", NORMS["rms"], ("gamma", "softcap")),
    # OLMo 2 (2024)
    "full_width": Variant("full_width", NORMS["rms"], ("gamma",), over_all_heads=True),
}


def variants_with(dial: DialWord) -> tuple[VariantWord, ...]:
    """The variants that read this dial."""
    return tuple(word for word, variant in VARIANTS.items() if dial in variant.dials)
