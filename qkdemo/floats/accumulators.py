"""Dot products as an accumulator of a number format sums them up.

* `dot_products(a, b, stack)`: q·k, for each format of a `Stack`.
"""

from functools import lru_cache
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.floats.formats import BY_ITSELF, CAST, Format, Stack, over

_FEW: Final = 1024  # dot products, for which the calls would cost more than the sums
_CACHED: Final = 100_000  # below that many, the sums of all formats stay in a processor's cache together
_EXPONENT: Final = 0x7F80_0000  # of a float32's bit pattern
_SIGN: Final = -0x8000_0000


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
    product = a[0] * b[0]
    if stack.shared not in BY_ITSELF:
        total = _Sums(stack, tuple(product.shape))
        with np.errstate(all="ignore"):
            for x, y in zip(a, b, strict=True):
                total.add(torch.mul(x, y, out=product).numpy())
        return torch.from_numpy(total.values.astype(np.float64)), torch.from_numpy(total.beyond)
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
        self.values, self.beyond = np.zeros(shape, np.float32), np.zeros(shape, dtype=bool)
        self._size, self._lift, self._large = np.empty_like(self.values), np.empty_like(self.values), self.beyond.copy()
        known: NDArray[Any] = np.array([_numbers(each, stack.saturate) for each in stack.formats], np.float32)
        if stack.shared is None:
            column = known.T.reshape(len(known[0]), -1, *[1] * (len(shape) - 1))
            self._limit, self._over, smallest, self._lifted = (np.broadcast_to(x, shape).copy() for x in column)
        else:
            self._limit, self._over, smallest, self._lifted = known[0]
        self._smallest = smallest.view(np.int32)
        self._cast = [where for where, each in stack.apart if each.shared == "bfloat16"]

    def add(self, product: NDArray[np.float32]) -> None:
        """One product for each sum."""
        values, size, lift, large = self.values, self._size, self._lift, self._large
        values += product
        np.abs(values, out=size)
        np.greater_equal(size, self._limit, out=large)
        bits = lift.view(np.int32)
        np.bitwise_and(values.view(np.int32), _EXPONENT, out=bits)  # the power of two below |x|
        np.maximum(bits, self._smallest, out=bits)
        lift *= self._lifted
        size += lift
        size -= lift
        if large.any():
            np.copyto(size, self._over, where=large)
            np.logical_or(self.beyond, large, out=self.beyond)
        for where in self._cast:
            part = torch.from_numpy(size)[where]
            part.copy_(part.to(torch.bfloat16))
        sign = values.view(np.int32)
        sign &= _SIGN
        bits = size.view(np.int32)
        bits |= sign
        self.values, self._size = size, values


@lru_cache(maxsize=64)
def _numbers(format: Format, saturate: bool) -> list[float]:  # noqa: FBT001
    """The smallest float32 that is too large, what becomes of it, the smallest normal number, and 2²³ spacings at 1."""
    with np.errstate(over="ignore"):
        limit = np.array(format.limit).astype(np.float32)
    if limit.astype(np.float64) < format.limit:
        limit = np.nextafter(limit, np.float32(np.inf))
    lifted = 0.0 if format.word in ("float32", "bfloat16") else 2.0 ** (23 - format.mantissa_bits)
    return [float(limit), over(format, saturate=saturate), format.smallest_normal, lifted]
