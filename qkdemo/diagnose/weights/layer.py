"""One attention layer of a checkpoint: what is measured of it.

* `Layer`: its sizes, its gains, and the bounds that they leave; `spectral_norms(q, k)`: per head.

The logit of a head is xᵀ W_qᵀ W_k x' · scale. The largest it can be for |x| = |x'| = 1 is the spectral norm of
W_qᵀ W_k, found from a matrix of d_head × d_head: nothing of the model's width squared is formed. With an RMSNorm of q
and k the weights' size does not matter; then the gains bound the logit.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from qkdemo.diagnose.weights import gains
from qkdemo.diagnose.weights.scale import USUAL, Scale


@dataclass(frozen=True, eq=False)
class Layer:
    """One attention layer. `spectral` is [heads], in units of the logit before the scale, for inputs of length 1."""

    name: str
    heads: int
    kv_heads: int
    d_head: int
    spectral: Tensor
    gain_q: Tensor | None  # as stored
    gain_k: Tensor | None
    reading: str  # of the gains: gamma, one_plus_gamma, unclear; empty without gains
    dtype: str  # of W_q
    guessed: bool = False  # no heads that fit were read: their number is a guess from shapes
    unscaled: bool = False  # W_q or W_k has 8 bits, and no scale beside it: `spectral` is in units that nobody knows
    by_class: bool = False  # `reading` is that of its architecture, and not a guess from the gains
    at_start: bool = False  # W_q is 0 throughout, and W_k is not
    scaling: Scale = USUAL  # what multiplies q · k

    @property
    def scale(self) -> float:
        """What is taken to multiply q · k."""
        return self.scaling.of(self.d_head)

    @property
    def finite(self) -> bool:
        """Whether its weights and its gains are, and what is formed of them."""
        stored = [gain for gain in (self.gain_q, self.gain_k) if gain is not None]
        bounds = [self.bound(reading) or 0.0 for reading in ("gamma", "one_plus_gamma")]
        return all(bool(x.isfinite().all()) for x in (self.spectral, *stored)) and all(map(math.isfinite, bounds))

    @property
    def place(self) -> str:
        """Where the norm acts, by the sizes of its gains: per_head, full_width, or empty if they tell neither.

        Of heads that are a guess they tell none: a gain for every row may be one for a single head, or for all.
        """
        return "" if self.guessed else gains.place_of(self.gain_q, self.gain_k, self.heads, self.kv_heads, self.d_head)

    def bound(self, reading: str) -> float | None:
        """The largest |logit| that the gains leave in one reading of them; None if their sizes tell no place."""
        if self.gain_q is None or self.gain_k is None or not self.place:
            return None
        q, k = (1 + x if reading == "one_plus_gamma" else x for x in (self.gain_q, self.gain_k))
        return self.scale * gains.bound(q, k, self.heads, self.kv_heads, self.d_head, self.place)


def spectral_norms(q: Tensor, k: Tensor) -> Tensor:
    """[heads] largest singular value of W_qᵀ W_k per head; ∞ where an entry is not finite, or its product is not.

    q: [heads, d_head, width], k: [kv_heads, d_head, width].

    With Wᵀ = Q R, Q's columns orthonormal, W_qᵀ W_k = Q_q (R_q R_kᵀ) Q_kᵀ, and the middle has all singular values.
    """
    k = k.repeat_interleave(q.shape[0] // k.shape[0], 0)
    middle_q, middle_k = (torch.linalg.qr(x.mT).R for x in (q, k))
    middle = middle_q @ middle_k.mT
    lost = ~torch.cat([x.flatten(1) for x in (q, k, middle)], 1).isfinite().all(1)  # QR may drop a NaN
    norms: Tensor = torch.linalg.matrix_norm(middle.masked_fill(lost[:, None, None], 0), 2)
    return norms.masked_fill(lost, torch.inf)
