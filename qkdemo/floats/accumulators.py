"""Dot products as an accumulator of a number format sums them up.

* `dot_products(a, b, stack)`: q·k, for each format of a `Stack`.
"""

from typing import Final

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.floats.formats import BY_ITSELF, CAST
from qkdemo.floats.stacks import Bits, Rounder, Stack

_FEW: Final = 1024  # dot products, for which the calls would cost more than the sums
_AT_ONCE: Final = 16  # products of each sum that are formed in one call
_CACHED: Final = 100_000  # below that many, the sums of all formats stay in a processor's cache together


def dot_products(
    a: Float[Tensor, "formats scales rows width"], b: Float[Tensor, "formats #scales columns width"], stack: Stack
) -> tuple[Float[Tensor, "formats scales rows columns"], Bool[Tensor, "formats scales rows columns"]]:
    """a·b for all pairs of rows and columns, accumulated in the formats of `stack`; and where that overflowed.

    **Order**: from channel 0 upwards. **Rounding**: a product is formed in float32, which is exact for factors
    of 16 bits and fewer; so is its sum with the accumulator, which is then rounded to the accumulator's format.
    """
    if stack.shared == "float32" and len(a) * a.shape[1] * a.shape[2] * b.shape[2] < _FEW:
        with np.errstate(all="ignore"):
            products = a.numpy().astype(np.float32)[..., :, None, :] * b.numpy().astype(np.float32)[..., None, :, :]
            small = np.add.accumulate(products, axis=-1)[..., -1].astype(np.float64)  # a sum in order
        return torch.from_numpy(small), torch.from_numpy(np.isinf(small))
    a = a.to(torch.float32).permute(3, 0, 1, 2).unsqueeze(-1).contiguous()
    b = b.to(torch.float32).permute(3, 0, 1, 2).unsqueeze(-2).contiguous()
    if stack.shared is not None or len(stack.formats) * a.shape[2] * a.shape[3] * b.shape[4] < _CACHED:
        return _summed(a, b, stack)
    parts = []
    for where, each in stack.apart:  # most of which a processor rounds to by itself
        x, y = (factor if factor.shape[1] == 1 else factor[:, where] for factor in (a, b))
        sums, beyond = _summed(x, y, each)
        gone = sums.isnan().flatten(1).any(-1)
        if each.shared in BY_ITSELF and gone.any():  # what is NaN may have been ∞ on the way
            x, y = (factor if factor.shape[1] == 1 else factor[:, gone] for factor in (x, y))
            beyond[gone] = _summed(x, y, each, every_step=True)[1]
        parts.append((sums, beyond))
    return torch.cat([sums for sums, _ in parts]), torch.cat([beyond for _, beyond in parts])


def _summed(a: Tensor, b: Tensor, stack: Stack, *, every_step: bool = False) -> tuple[Tensor, Tensor]:
    """Products of `a` and `b` along their first axis, summed, and where that overflowed: `every_step` or at the end."""
    if stack.shared not in BY_ITSELF:
        total = _Sums(stack, np.broadcast_shapes(a.shape[1:], b.shape[1:]))
        with np.errstate(all="ignore"):
            for some in zip(torch.split(a, _AT_ONCE), torch.split(b, _AT_ONCE), strict=True):
                for product in torch.mul(*some).numpy():
                    total.add(product)
        return torch.from_numpy(total.values.astype(np.float64)), torch.from_numpy(total.beyond)
    product = a[0] * b[0]
    sums, beyond = torch.zeros_like(product), None
    for x, y in zip(a, b, strict=True):
        sums.add_(torch.mul(x, y, out=product))
        if stack.shared in CAST:
            sums = sums.to(CAST[stack.shared]).to(torch.float32)
        if every_step:
            beyond = sums.isinf() if beyond is None else beyond | sums.isinf()
    return sums.double(), sums.isinf() if beyond is None else beyond


class _Sums:
    """Running sums, [formats, …], each rounded to its format whenever something is added: `Stack`, on float32.

    A sum of two float32 is a float32 here, so that adding 2²³ times the spacing pushes out what lies below it. There is
    no room for that above bfloat16's digits; a cast rounds to those.
    """

    def __init__(self, stack: Stack, shape: tuple[int, ...]) -> None:
        self.beyond, self._large = np.zeros(shape, dtype=bool), np.empty(shape, dtype=bool)
        self._now, self._next, self._lift = (Bits.of(np.zeros(shape, np.float32)) for _ in range(3))
        formats = stack.formats if stack.shared is None else stack.formats[:1]
        self._round = Rounder(formats, saturate=stack.saturate, dtype="float32").spread(shape)
        cast = [where for where, each in stack.apart if each.shared == "bfloat16"]
        self._cast, self._cast_next = (
            [torch.from_numpy(bits.numbers[where]) for where in cast] for bits in (self._next, self._now)
        )

    @property
    def values(self) -> NDArray[np.float32]:
        """What they are by now."""
        return self._now.numbers

    def add(self, product: NDArray[np.float32]) -> None:
        """One product for each sum."""
        np.add(self._now.numbers, product, out=self._now.numbers)
        if self._round(self._now, self._next, self._lift, self._large):
            np.logical_or(self.beyond, self._large, out=self.beyond)
        for part in self._cast:
            part.copy_(part.to(torch.bfloat16))
        self._now, self._next = self._next, self._now
        self._cast, self._cast_next = self._cast_next, self._cast
