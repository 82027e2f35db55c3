"""q and k that somebody brings, with what their attention was computed with.

* `Pair`: both, with four axes; `q_first(one, other)`: which of two arrays is q, by their names.
"""

import re
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from qkdemo.diagnose.watching.heads import Call

_LIKE_Q: Final = re.compile(r"(?<![a-z])(x?q(?![a-z])|query|queries)", re.IGNORECASE)
_LIKE_K: Final = re.compile(r"(?<![a-z])(x?k(?![a-z])|key)", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Pair:
    """q and k with four axes, and what acts on their product."""

    q: Tensor  # [batch, heads, positions, d_head]
    k: Tensor  # [batch, kv_heads, positions, d_head]
    scale: float
    visible: Tensor | None = None
    gamma_q: Tensor | None = None  # [d_head]
    gamma_k: Tensor | None = None
    causal: bool = False
    axes: str = "heads"  # as they were read: heads, positions; supposed (as positions), ambiguous (as heads): both fit
    stored: torch.dtype = torch.float64  # the wider of both, as they were brought
    flat: bool = False  # whether q was brought with fewer than four axes
    mask_axes: str = ""  # what a mask's first axis was read as, queries or heads, where it could be sequences, too
    biased: bool = False  # whether the mask holds numbers that hide nothing, and were not added to the logits
    unscaled: tuple[str, ...] = ()  # q or k of 8 bits without a scale: how large logits are is not known then

    @property
    def call(self) -> Call:
        """As the measures take it."""
        return Call(q=self.q, k=self.k, scale=self.scale, visible=self.visible, causal=self.causal)


def q_first(one: str, other: str) -> tuple[str, str]:
    """Both names, that of q first if one tells; else as they stand. A .safetensors file holds names by the alphabet.

    Names that differ in one letter, k and q, tell too.

    >>> q_first("k_proj", "q_proj"), q_first("x", "query_layer"), q_first("x", "y")
    (('q_proj', 'k_proj'), ('query_layer', 'x'), ('x', 'y'))
    >>> q_first("ks", "qs"), q_first("keyvec", "queryvec")
    (('qs', 'ks'), ('queryvec', 'keyvec'))
    """
    differ = {pair for pair in zip(one.lower(), other.lower(), strict=False) if len(set(pair)) > 1}
    if len(one) == len(other) and differ == {("k", "q")}:
        return other, one
    tells_k, tells_q = (
        bool(like.search(name)) and not unlike.search(name)
        for like, unlike, name in ((_LIKE_K, _LIKE_Q, one), (_LIKE_Q, _LIKE_K, other))
    )
    return (other, one) if tells_k or tells_q else (one, other)
