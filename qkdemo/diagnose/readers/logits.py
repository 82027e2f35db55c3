"""Arrays of attention logits as somebody saves them: with a mask in them, and in whatever format.

* `sequences(word, x)`: [batch, heads, queries, keys] in float64; `seen(logits)`: which of them no mask hides;
* `narrowest(x, numbers)`: the narrowest number format that holds them.
"""

import math
from typing import Final

import torch
from torch import Tensor

from qkdemo.diagnose.readers.inputs import InputError, listed
from qkdemo.diagnose.watching.heads import HIDES

WORKING: Final = torch.float32  # in which sums are formed
_NARROW: Final = (torch.bfloat16, torch.float16)  # the coarser first
_LEAST_HIDDEN: Final = 0.8 * HIDES  # of a mask that hides, with the logits that it is added to


def sequences(word: str, x: Tensor) -> Tensor:
    """[batch, heads, queries, keys], in float64. Raises InputError."""
    if not 2 <= x.dim() <= 4:
        if word in "qk":
            raise InputError("bad_axes", name=word, shape=listed(x.shape))
        raise InputError("bad_logits", which=word, shape=listed(x.shape))
    if x.numel() == 0:
        raise InputError("empty", name=word, shape=listed(x.shape))
    x = x.float() if x.is_floating_point() and x.element_size() == 1 else x
    return x.double()[(None,) * (4 - x.dim())]


def seen(logits: Tensor) -> Tensor:
    """True where a number is a logit, and not −∞ or what a mask was added to.

    Such numbers are HIDES or less, and between them and the logits lies a gap, wider than all logits are apart: logits
    that reach as far down without a gap are logits.
    """
    low = logits[(logits <= _LEAST_HIDDEN) & logits.isfinite()].sort(descending=True).values
    others = logits[(logits > _LEAST_HIDDEN) & logits.isfinite()]
    if not low.numel() or low[-1] > HIDES:
        return (logits > -math.inf) | logits.isnan()
    if not others.numel():
        return (logits > HIDES) | logits.isnan()
    above = torch.cat([others.min()[None], low[:-1]])
    apart = (above - low >= others.max() - above).nonzero()
    return (logits > (low[apart[0, 0]] if len(apart) else -math.inf)) | logits.isnan()


def narrowest(x: Tensor, numbers: Tensor) -> torch.dtype:
    """The narrowest format that holds every one of the numbers, as where bfloat16 was saved as float32."""
    if x.is_floating_point() and x.element_size() == 1:
        return x.dtype
    held = numbers[numbers.isfinite()]
    return next((kind for kind in _NARROW if bool((held.to(kind).double() == held).all())), WORKING)
