"""Rounding to several number formats at once, side by side.

* `Stack(formats)`: rounds a tensor whose first axis runs over formats;
* `Rounder`: the arithmetic behind it, on arrays that are there already.

It is arithmetic that never casts, an independent second way beside `rounded`, which tests hold against torch, NumPy and
ml_dtypes over every bit pattern. Both round to nearest, ties to even.
"""

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.floats.formats import Format, over

WideWord: TypeAlias = Literal["float64", "float32"]  # what a Rounder computes in

SMALL: Final = 8192  # numbers of a format, below which all formats are rounded in one go
_MANY: Final = 10_000  # numbers, from which on torch's maximum and NumPy's any() are worth their calls


class Stack:
    """Several formats side by side: rounds a float64 tensor whose first axis runs over them.

    >>> from qkdemo.floats.formats import FORMATS
    >>> values, beyond = Stack([FORMATS["float16"], FORMATS["bfloat16"]])(torch.tensor([[70001.0], [70001.0]]).double())
    >>> values.tolist(), beyond.tolist()
    ([[inf], [70144.0]], [[True], [False]])
    """

    def __init__(self, formats: Sequence[Format], *, saturate: bool = False) -> None:
        """`saturate`: what the 8-bit ones among `formats` do with what is too large.

        Raises ValueError for float64, in which all is computed and which therefore cannot be rounded to.
        """
        if any(each.word == "float64" for each in formats):
            raise ValueError("A Stack computes in float64 and needs narrower formats; for float64 use exact.")
        self.formats = tuple(formats)
        self.shared = formats[0].word if len(set(formats)) == 1 else None  # by all of them
        self.limits = torch.tensor([each.limit for each in formats], dtype=torch.float64)
        ends = [at for at in range(1, len(formats)) if formats[at] != formats[at - 1]]
        self._runs = list(zip([0, *ends], [*ends, len(formats)], strict=True))  # of equal formats
        self._alone = [Rounder(formats[start : start + 1], saturate=saturate) for start, _ in self._runs]
        self._together = Rounder(formats, saturate=saturate)
        self.saturate = saturate

    @cached_property
    def apart(self) -> "list[tuple[slice, Stack]]":
        """Runs of equal formats, as stacks of their own."""
        runs = [slice(start, end) for start, end in self._runs]
        return [(run, Stack(self.formats[run], saturate=self.saturate)) for run in runs]

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:  # shapes unchecked: it is called for every addition
        """`x`, [formats, …], as stored, and where its nearest number would lie beyond the largest one.

        The second is what went wrong *before* the cast, so that saturation cannot hide it; ∞ counts.
        A first axis of length 1 is the same for all formats.
        """
        given = x.numpy()
        if self.shared == "float32":
            with np.errstate(over="ignore"):
                stored = given.astype(np.float32).astype(np.float64)
            beyond = np.isinf(stored)
            if len(given) < len(self.formats):
                stored, beyond = (np.repeat(each, len(self.formats), axis=0) for each in (stored, beyond))
            return torch.from_numpy(stored), torch.from_numpy(beyond)
        shape = (len(self.formats), *given.shape[1:])
        stored, beyond = np.empty(shape), np.empty(shape, dtype=bool)
        with np.errstate(all="ignore"):
            if stored.size < SMALL * len(self._runs):
                self._together(Bits.of(given), Bits.of(stored), Bits.of(np.empty(shape)), beyond)
            else:  # run by run, each of which a processor's cache holds
                for alone, (start, end) in zip(self._alone, self._runs, strict=True):
                    own = given if len(given) < len(self.formats) else given[start:end]
                    part = stored[start:end]
                    alone(Bits.of(own), Bits.of(part), Bits.of(np.empty_like(part)), beyond[start:end])
        return torch.from_numpy(stored), torch.from_numpy(beyond)

    def constant(self, value: float | Tensor, dims: int = 4) -> Tensor:
        """`value` as each of the formats stores it, shaped to broadcast against a tensor of `dims` axes."""
        column = torch.as_tensor(value, dtype=torch.float64).expand(len(self.formats))
        return self(column)[0].view(-1, *[1] * (dims - 1))


class Rounder:
    """What rounding to a format takes: numbers, or columns of them for several formats side by side.

    **How**: adding 2⁵² times the spacing at x pushes all bits below that spacing out of a float64. So does 2²³ times
    the spacing in a float32, which has room for that below bfloat16's exponents; a cast rounds to those.
    """

    def __init__(self, formats: Sequence[Format], *, saturate: bool, dtype: WideWord = "float64") -> None:
        self._numbers = np.array([_numbers(each, saturate, dtype) for each in formats], dtype).T
        self._columns: dict[int, list[Any]] = {}  # by the number of axes

    def __call__(self, x: "Bits", stored: "Bits", lift: "Bits", beyond: NDArray[np.bool_]) -> bool:
        """Writes `x` as stored, and where it is too large, into the arrays given; whether it is anywhere.

        `lift` is there to work in.
        """
        limit, over, smallest, lifted = self._shaped(x.numbers.ndim)
        exponent, sign = _MASKS[x.whole.itemsize]
        numbers, lifts = stored.numbers, lift.numbers
        np.abs(x.numbers, out=numbers)
        np.greater_equal(numbers, limit, out=beyond)
        np.bitwise_and(stored.whole, exponent, out=lift.whole)  # the power of two below |x|
        if lifts.size > _MANY and np.ndim(smallest) == 0:
            torch.from_numpy(lifts).clamp_min_(float(smallest))
        else:
            np.maximum(lifts, smallest, out=lifts)
        np.multiply(lifts, lifted, out=lifts)
        np.add(numbers, lifts, out=numbers)
        np.subtract(numbers, lifts, out=numbers)
        lost = bool(beyond.any() if beyond.size > _MANY else np.count_nonzero(beyond))  # any() is slow to begin
        if lost:
            np.copyto(numbers, over, where=beyond)
        np.bitwise_and(x.whole, sign, out=lift.whole)
        np.bitwise_or(stored.whole, lift.whole, out=stored.whole)
        return lost

    def spread(self, shape: tuple[int, ...]) -> "Rounder":
        """Itself, ready for arrays of that shape: a number for each entry, which many calls are quicker with."""
        columns = self._shaped(len(shape))
        self._columns[len(shape)] = [np.broadcast_to(n, shape).copy() if np.ndim(n) else n for n in columns]
        return self

    def _shaped(self, dims: int) -> list[Any]:
        if dims not in self._columns:
            numbers = self._numbers
            alone = len(numbers[0]) == 1
            self._columns[dims] = [n[0] if alone else np.reshape(n, (-1, *[1] * (dims - 1))) for n in numbers]
        return self._columns[dims]


class Bits(NamedTuple):
    """An array of numbers, and the same bytes as whole numbers."""

    numbers: NDArray[np.floating[Any]]
    whole: NDArray[np.signedinteger[Any]]

    @classmethod
    def of(cls, numbers: NDArray[np.floating[Any]]) -> "Bits":
        """Both, of one array."""
        return cls(numbers, numbers.view(np.int64 if numbers.itemsize == 8 else np.int32))


_MASKS: Final = {  # exponent, sign
    8: (np.array(0x7FF0_0000_0000_0000), np.array(-0x8000_0000_0000_0000)),
    4: (np.array(0x7F80_0000, np.int32), np.array(-0x8000_0000, np.int32)),
}


@lru_cache(maxsize=64)
def _numbers(format: Format, saturate: bool, dtype: WideWord) -> tuple[float, float, float, float]:  # noqa: FBT001
    """From where on it is too large, what becomes of it, its smallest normal number, and the lift at 1."""
    with np.errstate(over="ignore"):
        limit = np.array(format.limit).astype(dtype)
    if float(limit) < format.limit:
        limit = np.nextafter(limit, np.array(math.inf, dtype))
    room = np.finfo(dtype).nmant - format.mantissa_bits
    lifted = 0.0 if dtype == "float32" and format.exponent_bits == 8 else 2.0**room
    return float(limit), over(format, saturate=saturate), format.smallest_normal, lifted
