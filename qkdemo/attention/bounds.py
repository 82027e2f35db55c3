"""How far a bound on the logits keeps attention from collapsing: the least entropy, and the largest weight.

* `least_entropy(bound, n_keys)`: of a row of which nothing is known but |logit| ≤ bound;
* `high_keys(bound, n_keys)`: how many keys stand at +bound there, the others at −bound;
* `largest_weight(bound, n_keys)`: that one key can take there.

Both are reached. They are what a bound *guarantees*; what attention does lies above and below, see `measures`.
"""

import math

import numpy as np
from numpy.typing import NDArray


def least_entropy(bound: float, n_keys: int) -> float:
    """The least entropy, in nats, of softmax over `n_keys` logits within ±`bound`.

    **Formula**: min over m = 1 … T − 1 of ln(m + (T − m) u) + 2B (T − m) u / (m + (T − m) u), with u = e^(−2B): m keys
    stand at +B, the others at −B. For a large bound m = 1 is the least: ln(1 + r) + 2B r / (1 + r), r = (T − 1) u.
    **Why corners**: ∂H/∂s_j = p_j (⟨s⟩ − s_j), where ⟨s⟩ = Σ p s. That is positive below some s_j and negative above
    it, so that along each logit H is least at an end of the interval.
    **Numerics**: u below the smallest number of float64 gives 0.
    **Raises** ValueError for a negative bound, or without keys.
    **Source**: derived here. Zhai et al. 2023, "Stabilizing Transformer Training by Preventing Attention Entropy
    Collapse", prove its like for logits that the spectral norm of W_q W_kᵀ limits.

    >>> f"{least_entropy(8, 16):.3e}", f"{least_entropy(8, 131072):.4f}"
    ('2.870e-05', '0.2472')
    """
    return float(_corners(bound, n_keys).min())


def high_keys(bound: float, n_keys: int) -> int:
    """How many keys stand at +`bound` in the row of least entropy: one for a large bound, more for a small one.

    >>> high_keys(8, 16), high_keys(32**0.5, 32768)
    (1, 4)
    """
    return int(_corners(bound, n_keys).argmin()) + 1


def _corners(bound: float, n_keys: int) -> NDArray[np.float64]:
    """The entropy of a row with m = 1 … T − 1 keys at +`bound` and the others at −`bound`."""
    _check(bound, n_keys)
    high = np.arange(1, max(n_keys, 2), dtype=np.float64)
    ratio = (n_keys - high) * math.exp(-2 * bound) / high  # the weight of all low keys over that of all high ones
    return np.log(high) + np.log1p(ratio) + 2 * bound * ratio / (1 + ratio)


def largest_weight(bound: float, n_keys: int) -> float:
    """The largest weight that one of `n_keys` logits within ±`bound` can take: 1 / (1 + (T − 1) e^(−2B)).

    >>> f"{largest_weight(8, 16):.7f}"
    '0.9999983'
    """
    _check(bound, n_keys)
    return 1 / (1 + (n_keys - 1) * math.exp(-2 * bound))


def _check(bound: float, n_keys: int) -> None:
    if not bound >= 0:
        raise ValueError(f"bound must be at least 0, but is {bound}.")
    if n_keys < 1:
        raise ValueError(f"n_keys must be at least 1, but is {n_keys}.")
