"""q and k that somebody brings, with what their attention was computed with."""

from dataclasses import dataclass

import torch
from torch import Tensor

from qkdemo.diagnose.watching.heads import Call


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
