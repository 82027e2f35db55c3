"""Number formats: what each can hold, and what rounding to it does to a tensor.

* `FORMATS`: word → `Format`, those a whole lab can be computed in; `ALL_FORMATS`: those and the two of 8 bits;
* `rounded(x, format)`: every entry of `x` as the format stores it, in a dtype wide enough to compute on;
* `exact`: the rounding that changes nothing;
* `noise(format)`: the difference that another order of the same sums makes in a format;
* `beside_rounding(format)`: how far apart two stored numbers must be for one to be the larger;
* `first_failure(fails, low, high)`: the smallest scale at which something goes wrong, by bisection;
* `dtype_name(kind)`: what torch calls a dtype, without its own name.

`rounded` is torch's own cast, to nearest, ties to even. `stacks` has a second way, for several formats at once.

**The rule for what is too large.** Libraries differ for 8 bits: from 464 on, torch 2.13 stores 448 in
float8_e4m3fn, even for ∞, where ml_dtypes stores NaN. Here it is a choice, and the one that the OCP 8-bit
floating point specification (OFP8, 2023, table 4) names: a *saturating* cast stores ± the largest number, also
for ∞; a non-saturating one stores ±∞, or NaN where the format has no ∞. Only the 8-bit formats can saturate.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

FormatWord: TypeAlias = Literal["float64", "float32", "bfloat16", "float16"]
AnyFormatWord: TypeAlias = Literal["float64", "float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"]
Rounding: TypeAlias = Callable[[Tensor], Tensor]
CAST: Final[dict[AnyFormatWord | None, torch.dtype]] = {"float16": torch.float16, "bfloat16": torch.bfloat16}
BY_ITSELF: Final = ("float32", *CAST)  # what a processor rounds to


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


def beside_rounding(format: AnyFormatWord) -> float:
    """How far apart, relatively, two numbers stored in a format are if more than rounding parts them: two steps."""
    return 2.0 ** (1 - ALL_FORMATS[format].mantissa_bits)


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


def over(format: Format, *, saturate: bool) -> float:
    """What a cast to `format` makes of a positive number that is too large."""
    if saturate and format.is_narrow:
        return format.largest
    return math.inf if format.has_infinity else math.nan


def dtype_name(kind: torch.dtype) -> str:
    """What torch calls a dtype, without its own name.

    >>> dtype_name(torch.bfloat16)
    'bfloat16'
    """
    return str(kind).removeprefix("torch.")
