"""Number formats: what each can hold, and what rounding to it does to a tensor.

* `FORMATS`: word → `Format`, those a whole lab can be computed in; `ALL_FORMATS`: those and the two of 8 bits;
* `rounded(x, format)`: every entry of `x` as the format stores it, in a dtype wide enough to compute on;
* `exact`: the rounding that changes nothing;
* `noise(format)`: the difference that another order of the same sums makes in a format;
* `Stack(formats)`: the same rounding for several formats at once, one per entry of a tensor's first axis;
* `first_failure(fails, low, high)`: the smallest scale at which something goes wrong, by bisection.

`rounded` is torch's own cast. `Stack` is arithmetic on float64 that never casts: an independent second way,
which tests hold against torch, NumPy and ml_dtypes over every bit pattern. Both round to nearest, ties to even.

**The rule for what is too large.** Libraries differ for 8 bits: from 464 on, torch 2.13 stores 448 in
float8_e4m3fn, even for ∞, where ml_dtypes stores NaN. Here it is a choice, and the one that the OCP 8-bit
floating point specification (OFP8, 2023, table 4) names: a *saturating* cast stores ± the largest number, also
for ∞; a non-saturating one stores ±∞, or NaN where the format has no ∞. Only the 8-bit formats can saturate.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

FormatWord: TypeAlias = Literal["float64", "float32", "bfloat16", "float16"]
AnyFormatWord: TypeAlias = Literal["float64", "float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"]
Rounding: TypeAlias = Callable[[Tensor], Tensor]
CAST: Final[dict[AnyFormatWord | None, torch.dtype]] = {"float16": torch.float16, "bfloat16": torch.bfloat16}
BY_ITSELF: Final = ("float32", *CAST)  # what a processor rounds to
_MANY: Final = 10_000  # numbers, from which on torch takes a maximum in a quarter of NumPy's time
SMALL: Final = 8192  # numbers of a format, below which all formats are rounded in one go


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: one bit of sign, then exponent, then mantissa."""

    word: AnyFormatWord
    dtype: torch.dtype
    exponent_bits: int
    mantissa_bits: int  # as stored; the leading 1 is not
    has_infinity: bool = True

    @cached_property
    def largest(self) -> float:
        """The largest finite number: 65504 for float16, 3.39e38 for bfloat16, 448 for float8_e4m3fn."""
        return torch.finfo(self.dtype).max

    @cached_property
    def limit(self) -> float:
        """The smallest float64 too large for it: half a step above the largest number, where ties are lost.

        In float8_e4m3fn that tie, 464, still goes down to 448: the number above would be odd.
        """
        half_step = math.ldexp(0.5, math.frexp(self.largest)[1] - 1 - self.mantissa_bits)
        tie = self.largest + half_step
        return tie if self.has_infinity else math.nextafter(tie, math.inf)

    @property
    def smallest_normal(self) -> float:
        """The smallest number that still has all its mantissa bits."""
        return math.ldexp(1.0, 2 - (1 << (self.exponent_bits - 1)))

    @property
    def smallest(self) -> float:
        """The smallest number above zero, a subnormal one; half of it or less becomes 0."""
        return self.smallest_normal * 2.0**-self.mantissa_bits

    @property
    def is_narrow(self) -> bool:
        """Whether it has 8 bits: a format to keep keys in, which may saturate and take a scale of its own."""
        return self.dtype.itemsize == 1

    @property
    def working_dtype(self) -> torch.dtype:
        """The dtype in which values of this format are computed on: itself, or float32 for the narrower ones."""
        return self.dtype if self.dtype.itemsize >= 4 else torch.float32


FORMATS: Final[dict[FormatWord, Format]] = {
    "float64": Format("float64", torch.float64, 11, 52),
    "float32": Format("float32", torch.float32, 8, 23),
    "bfloat16": Format("bfloat16", torch.bfloat16, 8, 7),
    "float16": Format("float16", torch.float16, 5, 10),
}
ALL_FORMATS: Final[dict[AnyFormatWord, Format]] = {
    **{each.word: each for each in FORMATS.values()},
    "float8_e4m3fn": Format("float8_e4m3fn", torch.float8_e4m3fn, 4, 3, has_infinity=False),
    "float8_e5m2": Format("float8_e5m2", torch.float8_e5m2, 5, 2),
}


def noise(format: AnyFormatWord) -> float:
    """The relative difference below which two results in a format may be one function: its digits are the machine's.

    A processor, a library and a number of threads choose the order of a sum. 0 for 16 bits and fewer: they are rounded
    here from wider sums, which no order moves.
    """
    return {"float64": 1e-12, "float32": 1e-6}.get(format, 0.0)


def exact(x: Tensor) -> Tensor:
    """`x` itself: the rounding of infinite precision."""
    return x


def rounded(x: Float[Tensor, "*shape"], format: Format, *, saturate: bool = False) -> Float[Tensor, "*shape"]:
    """`x` as `format` stores it, given back in the format's working dtype.

    Rounds to nearest, ties to even (IEEE 754); beyond the largest number it becomes ±∞, as a cast does, or
    what the module's rule says for 8 bits. A float64 is rounded to float32 on the way, as torch does.

    >>> rounded(torch.tensor([513.0, 65520.0]), FORMATS["bfloat16"]).tolist()
    [512.0, 65536.0]
    >>> rounded(torch.tensor([513.0, 65520.0]), FORMATS["float16"]).tolist()
    [513.0, inf]
    >>> rounded(torch.tensor([464.0, 465.0]), ALL_FORMATS["float8_e4m3fn"]).tolist()
    [448.0, nan]
    """
    stored = x.to(format.dtype).to(format.working_dtype)
    if not format.is_narrow:
        return stored
    beyond = torch.full_like(stored, over(format, saturate=saturate)).copysign(x.to(stored))
    return torch.where(x.double().abs() >= format.limit, beyond, stored)  # 464 and its limit are one float32


class Stack:
    """Several formats side by side: rounds a float64 tensor whose first axis runs over them.

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
        self.limits = _column([each.limit for each in formats])
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
                self._together(given, stored, beyond)
            else:  # run by run, each of which a processor's cache holds
                for alone, (start, end) in zip(self._alone, self._runs, strict=True):
                    own = given if len(given) < len(self.formats) else given[start:end]
                    alone(own, stored[start:end], beyond[start:end])
        return torch.from_numpy(stored), torch.from_numpy(beyond)

    def constant(self, value: float | Tensor, dims: int = 4) -> Tensor:
        """`value` as each of the formats stores it, shaped to broadcast against a tensor of `dims` axes."""
        column = torch.as_tensor(value, dtype=torch.float64).expand(len(self.formats))
        return self(column)[0].view(-1, *[1] * (dims - 1))


def first_failure(fails: Callable[[float], bool], low: float, high: float, relative: float = 1e-6) -> float:
    """The smallest scale in [low, high] at which `fails` is true, to the relative precision given.

    `fails` must be monotone: once true it stays true. Returns `low` if it already fails there and ∞ if
    it does not fail at `high`. Bisects the logarithm, since scales are compared by their ratio.
    """
    if fails(low):
        return low
    if not fails(high):
        return math.inf
    while high > low * (1 + relative):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fails(middle) else (middle, high)
    return high


class Rounder:
    """What rounding to a format takes: numbers, or columns of them for several formats side by side.

    **How**: adding 2⁵² times the spacing at x pushes all bits below that spacing out of a float64. So does 2²³ times
    the spacing in a float32, which has room for that below bfloat16's exponents; a cast rounds to those.
    """

    def __init__(
        self, formats: Sequence[Format], *, saturate: bool, dtype: type[np.floating[Any]] = np.float64
    ) -> None:
        self._whole, self._exponent, self._sign = _BITS[dtype]
        self._numbers = np.array([_numbers(each, saturate, dtype) for each in formats], dtype).T
        self._columns: dict[int, list[Any]] = {}  # by the number of axes

    def __call__(
        self,
        x: NDArray[np.floating[Any]],
        stored: NDArray[np.floating[Any]],
        beyond: NDArray[np.bool_],
        lift: NDArray[np.floating[Any]] | None = None,
    ) -> bool:
        """Writes `x` as stored, and where it is too large, into the arrays given; whether it is anywhere.

        `lift`: an array to work in. All are contiguous.
        """
        lift = np.empty_like(stored) if lift is None else lift
        limit, over, smallest, lifted = self._shaped(x.ndim)
        np.abs(x, out=stored)
        np.greater_equal(stored, limit, out=beyond)
        np.bitwise_and(
            stored.view(self._whole), self._exponent, out=lift.view(self._whole)
        )  # the power of two below |x|
        if lift.size > _MANY and np.ndim(smallest) == 0:
            torch.from_numpy(lift).clamp_min_(float(smallest))
        else:
            np.maximum(lift, smallest, out=lift)
        lift *= lifted
        stored += lift
        stored -= lift
        lost = bool(beyond.any())
        if lost:
            np.copyto(stored, over, where=beyond)
        sign = np.bitwise_and(x.view(self._whole), self._sign, out=lift.view(self._whole))
        bits = stored.view(self._whole)
        bits |= sign
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


_BITS: Final[dict[type[np.floating[Any]], tuple[type[np.signedinteger[Any]], int, int]]] = {
    # as whole numbers, and of those the exponent and the sign
    np.float64: (np.int64, 0x7FF0_0000_0000_0000, -0x8000_0000_0000_0000),
    np.float32: (np.int32, 0x7F80_0000, -0x8000_0000),
}


@lru_cache(maxsize=64)
def _numbers(format: Format, saturate: bool, dtype: type[np.floating[Any]]) -> tuple[float, float, float, float]:  # noqa: FBT001
    """From where on it is too large, what becomes of it, its smallest normal number, and the lift at 1."""
    with np.errstate(over="ignore"):
        limit = np.array(format.limit).astype(dtype)
    if float(limit) < format.limit:
        limit = np.nextafter(limit, dtype(np.inf))
    room = np.finfo(dtype).nmant - format.mantissa_bits
    lifted = 0.0 if dtype is np.float32 and format.exponent_bits == 8 else 2.0**room
    return float(limit), over(format, saturate=saturate), format.smallest_normal, lifted


def over(format: Format, *, saturate: bool) -> float:
    """What a cast to `format` makes of a positive number that is too large."""
    if saturate and format.is_narrow:
        return format.largest
    return math.inf if format.has_infinity else math.nan


def _column(values: Sequence[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
