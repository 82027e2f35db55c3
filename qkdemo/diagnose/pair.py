"""q and k that somebody brings, with what their attention was computed with.

* `Pair`: both, with four axes;
* `scale_of(arrays, q)`: what multiplies q·k, if an array is called so, and the names of others that may;
* `q_first(one, other)`: which of two arrays is q, by their names.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from qkdemo.diagnose.masks import Mask
from qkdemo.diagnose.readers.inputs import InputError, listed
from qkdemo.diagnose.watching.heads import Call

SOFTCAP: Final = re.compile(r"(.*[._/])?(attn_?|attention_?)?(logits?_?)?soft_?cap(ping)?|logits?_cap", re.IGNORECASE)
_SCALE: Final = re.compile(r"scale|scaling|(softmax|sm|attn|attention)_?scale", re.IGNORECASE)
_LIKE_SCALE: Final = re.compile(
    r"(.*[._/])?(attn|attention|logits?|softmax|sm|scores?|qk)[._/]?(scale|scaling|scalar|multiplier|temperature)"
    r"|scale|scaling|temperature",
    re.IGNORECASE,
)
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
    mask: Mask | None = None  # that `visible` was read from, of all sequences and heads; no number of it is added
    unscaled: tuple[str, ...] = ()  # q or k of 8 bits without a scale: how large logits are is not known then
    whole: tuple[str, ...] = ()  # of these, with the format, those that were read as whole numbers
    softcap: str = ""  # the name of one that lies beside, and is not applied; 0 stands for none
    scale_given: bool = True  # or 1/√d stands for one
    scales_unread: tuple[str, ...] = ()  # what is called like a scale of q·k beside the one that is used
    unread: tuple[str, ...] = ()  # masks and biases beside the one that is read

    @property
    def biased(self) -> bool:
        """Whether the mask holds numbers that hide nothing, and were not added to the logits."""
        return self.mask is not None and self.mask.added is not None and bool(self.mask.added.any())

    @property
    def call(self) -> Call:
        """As the measures take it."""
        return Call(q=self.q, k=self.k, scale=self.scale, visible=self.visible, causal=self.causal)


def scale_of(arrays: Mapping[str, Tensor], q: str) -> tuple[float | None, tuple[str, ...]]:
    """The number of an array called scale, alone or after what comes before q in its name, and names like it.

    Raises InputError if it holds several.
    """
    before = q[: max(map(q.rfind, "./")) + 1]
    read = next((name for name in arrays if _SCALE.fullmatch(name.removeprefix(before))), None)
    if read is not None and arrays[read].numel() != 1:
        raise InputError("scale_shape", shape=listed(arrays[read].shape))
    like = tuple(name for name in arrays if name != read and _LIKE_SCALE.fullmatch(name))
    return None if read is None else float(arrays[read].reshape(())), like


def q_first(one: str, other: str) -> tuple[str, str]:
    """Both names, that of q first if one tells; else as they stand: in .safetensors files often by the alphabet.

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
