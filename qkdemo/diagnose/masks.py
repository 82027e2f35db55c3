"""What hides keys from queries, or is added to their logits, among arrays that somebody brings with q and k.

* `mask_of(arrays, q, k)`: the `Mask`, or a bias if there is none, and the names of those that are not read; `MASK`
  fits the names of both.

A bias is added to logits, as ALiBi's; where it holds large negative numbers it hides keys, too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from qkdemo.diagnose.readers.inputs import InputError, listed
from qkdemo.diagnose.watching.heads import HIDES

MASK: Final = re.compile(
    r"(.*[._/])?((attn_?|attention_?)?mask|(attn|attention|position|alibi)_?bias|alibi)$", re.IGNORECASE
)


@dataclass(frozen=True, eq=False)
class Mask:
    """A mask or a bias, broadcast to [batch, heads, queries, keys]."""

    name: str
    visible: Tensor | None  # True where it shows a key; None for a bias that hides none
    added: Tensor | None  # True where it adds a number other than 0 to a logit; None for a mask of truth values
    axes: str  # what its first axis was read as, queries or heads, where it could be sequences, too

    @property
    def is_bias(self) -> bool:
        """Whether its name is that of a bias."""
        return not _named_mask(self.name)


def mask_of(arrays: Mapping[str, Tensor], q: Tensor, k: Tensor) -> tuple[Mask | None, tuple[str, ...]]:
    """The mask among arrays, or a bias if there is none, and the names of those that are not read.

    A mask of padding is not: programs differ on whether True hides a key there or shows it. Raises InputError.
    """
    names = sorted(filter(MASK.fullmatch, arrays), key=lambda name: not _named_mask(name))
    read = next((name for name in names if "padding" not in name.lower()), None)
    unread = tuple(name for name in names if name != read)
    if read is None:
        return None, unread
    x = arrays[read]
    truth = _of_truth(x) if _named_mask(read) else x.dtype == torch.bool
    shown = x != 0 if truth else x > HIDES
    hides_none = not _named_mask(read) and bool(shown.all())
    visible = _wide(read, shown, q, k)
    added = None if truth else _wide(read, shown & (x != 0), q, k)
    return Mask(read, None if hides_none else visible, added, _other_axis(x, q)), unread


def _named_mask(name: str) -> bool:
    return name.lower().endswith("mask")


def _of_truth(mask: Tensor) -> bool:
    """Whether a mask holds truth values, also as 0 and 1, and is not one that is added to logits."""
    whole = not mask.is_floating_point() and bool((mask >= 0).all())
    return whole or bool(((mask == 0) | (mask == 1)).all() and (mask == 1).any())


def _other_axis(mask: Tensor, q: Tensor) -> str:
    """What the first axis of a mask of fewer axes could be, and was not read as, since both are as long."""
    batch, heads, queries, _ = q.shape
    read = {2: queries, 3: heads}.get(mask.dim())
    alike = batch > 1 and mask.dim() in (2, 3) and mask.shape[0] == batch == read
    return {2: "queries", 3: "heads"}[mask.dim()] if alike else ""


def _wide(name: str, mask: Tensor, q: Tensor, k: Tensor) -> Tensor:
    """For every query, what a mask says of its keys."""
    wanted = (*q.shape[:3], k.shape[2])
    if mask.shape == (q.shape[0], k.shape[2]) and mask.shape[0] not in (1, q.shape[2]):  # as a tokenizer has it
        mask = mask[:, None, None]
    try:
        return mask.expand(wanted)
    except RuntimeError:
        raise InputError("bad_mask", name=name, shape=listed(mask.shape), wanted=listed(wanted)) from None
