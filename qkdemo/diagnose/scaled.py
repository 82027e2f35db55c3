"""Tensors of 8 bits: what they mean is their numbers times a scale, which stands in a tensor beside them.

* `scaled(x, scale)`: a tensor in float64, by a scale of one number, of one per row or block, or, of q and k, per
  head, position or channel;
* `scale_name(tensor, names)`: the tensor beside it that holds the scale; `NARROW`: dtypes that need one;
* `names_float8(text)`: whether a text names a float format of 8 bits, whose bytes may be stored as one of `WHOLE`.
"""

import re
from collections.abc import Collection
from typing import Final

import torch
from torch import Tensor

NARROW: Final = frozenset(
    {torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.int8}
)
WHOLE: Final = (torch.int8, torch.uint8)
_FLOAT8: Final = re.compile(r"(?<![a-z0-9])(fp8|f8|float_?8)|e4m3|e5m2", re.IGNORECASE)
_BESIDE: Final = ("_scale_inv", "_scale")  # DeepSeek-V3 calls what multiplies the inverse; compressed-tensors the scale
_BLOCK: Final = 128  # of DeepSeek-V3, and of most that followed; the last block of an axis may be smaller


def scale_name(tensor: str, names: Collection[str]) -> str | None:
    """The name of its scale among `names`; None without one.

    >>> scale_name("k_proj.weight", ["k_proj.weight", "k_proj.weight_scale_inv"])
    'k_proj.weight_scale_inv'
    """
    return next((tensor + suffix for suffix in _BESIDE if tensor + suffix in names), None)


def names_float8(text: str) -> bool:
    """Whether a text names a float format of 8 bits.

    >>> names_float8("fp8.q"), names_float8("q_e4m3"), names_float8("buf8.q")
    (True, True, False)
    """
    return bool(_FLOAT8.search(text))


def scaled(x: Tensor, scale: Tensor) -> Tensor | None:
    """x times its scale, in float64; None if the scale's shape fits neither x, nor its rows, nor blocks of it.

    >>> scaled(torch.ones(2, 4), torch.tensor([[1.0, 2.0]])).tolist()
    [[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]
    >>> scaled(torch.ones(1, 2, 3, 1), torch.tensor([1.0, 2.0])).flatten().tolist()
    [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    """
    if scale.dtype is torch.uint8:  # E8M0 of the MX formats, stored as bytes by transformers 5.24: b is 2^(b − 127)
        if not x.is_floating_point():  # beside such a scale a byte of int8 holds two numbers of 4 bits
            return None
        scale = (scale.double() - 127).exp2().masked_fill(scale == 255, torch.nan)
    wide, factor = x.double(), scale.double()
    if factor.numel() == 1:
        return wide * factor.reshape(())
    if wide.dim() != 2:
        return _along_axes(wide, factor)
    if factor.shape == wide.shape[:1]:
        factor = factor[:, None]
    if factor.dim() != 2:
        return None
    for axis, (size, blocks) in enumerate(zip(wide.shape, factor.shape, strict=True)):
        block = _BLOCK if blocks == -(-size // _BLOCK) else size // blocks if blocks and size % blocks == 0 else 0
        if not block:
            return None
        factor = factor.repeat_interleave(block, axis).narrow(axis, 0, size)
    return wide * factor


def _along_axes(wide: Tensor, factor: Tensor) -> Tensor | None:
    """x times a scale that has 1 where it is shared, lacks the last axes, or has one axis, as long as only one of x."""
    sizes = [*wide.shape]
    if factor.dim() == 1 and sizes.count(len(factor)) == 1:
        factor = factor.reshape([size if size == len(factor) else 1 for size in sizes])
    elif 1 < factor.dim() < wide.dim() and [*factor.shape] == sizes[: factor.dim()]:
        factor = factor.reshape(*factor.shape, *[1] * (wide.dim() - factor.dim()))
    fits = factor.dim() == wide.dim() and all(own in (1, size) for own, size in zip(factor.shape, sizes, strict=True))
    return wide * factor if fits else None
