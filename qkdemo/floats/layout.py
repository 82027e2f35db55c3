"""Where one number sits in a format: its neighbours, its spacing, its bits and its exact decimal value.

* `rung(value, format)`: all of that, for the number that `format` stores in place of `value`.

Written with whole numbers and powers of two, so that nothing here rounds but the rounding that is shown. The
bit patterns of positive numbers are in the order of the numbers: a neighbour is the pattern plus or minus one.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

from qkdemo.floats.formats import AnyFormatWord, Format

Kind: TypeAlias = Literal["normal", "subnormal", "zero", "infinite", "nan"]


@dataclass(frozen=True)
class Rung:
    """A number's place in a format."""

    format: AnyFormatWord
    stored: float  # what the format makes of the value
    kind: Kind
    below: float  # the next number down, NaN beside a NaN
    above: float  # the next number up, ±∞ beyond the largest if the format has it, else NaN
    spacing: float  # from |stored| to the next number away from zero; ∞ and NaN have none: NaN
    sign: str  # bits, as texts of 0 and 1
    exponent: str
    mantissa: str
    power: int | None  # the number is ± 1.mantissa · 2^power, or 0.mantissa · 2^power if subnormal
    decimal: str  # the stored number written out exactly
    overflowed: bool  # the value lies beyond the largest number, whatever the cast made of it
    relative_error: float  # |stored − value| / |value|; NaN for value 0, ∞ or NaN


def rung(value: float, format: Format, *, saturate: bool = False) -> Rung:
    """`value`'s place in `format`; `saturate` is the rule of the cast, which acts for 8 bits only.

    >>> from qkdemo.floats.formats import FORMATS
    >>> place = rung(513.0, FORMATS["bfloat16"])
    >>> place.stored, place.below, place.above, place.spacing, place.exponent, place.mantissa
    (512.0, 510.0, 516.0, 4.0, '10001000', '0000000')
    """
    negative = math.copysign(1, value) < 0
    top = _pattern(format.largest, format)
    pattern = None if math.isnan(value) else top + 1 if math.isinf(value) else _pattern(abs(value), format)
    overflowed = pattern is not None and pattern > top
    if pattern is None or (overflowed and not format.has_infinity and not saturate):
        pattern = _nan_pattern(format)
    elif overflowed:
        pattern = top if saturate and format.is_narrow else top + 1
    signed = -1.0 if negative else 1.0
    kind = _kind(pattern, top, format)
    stored = signed * _number(pattern, top, format)
    inwards, outwards = _neighbours(pattern, top, format)
    below, above = (-outwards, -inwards) if negative else (inwards, outwards)
    m, e = format.mantissa_bits, format.exponent_bits
    field = pattern >> m
    usual = kind in ("normal", "subnormal")
    return Rung(
        format=format.word,
        stored=stored,
        kind=kind,
        below=below,
        above=above,
        spacing=_spacing(pattern, format) if usual or kind == "zero" else math.nan,
        sign="1" if negative else "0",
        exponent=f"{field:0{e}b}",
        mantissa=f"{pattern & ((1 << m) - 1):0{m}b}",
        power=max(field, 1) + 1 - (1 << (e - 1)) if usual else None,
        decimal=f"{Decimal(stored):f}" if math.isfinite(stored) else str(stored),
        overflowed=overflowed,
        relative_error=abs(stored - value) / abs(value) if value and math.isfinite(value) else math.nan,
    )


def _pattern(size: float, format: Format) -> int:
    """The bit pattern, without sign, of the number nearest to `size`; beyond the largest the count goes on."""
    if size == 0:
        return 0
    lowest = 2 - (1 << (format.exponent_bits - 1))  # power of the smallest normal number
    power = max(math.frexp(size)[1] - 1, lowest)
    steps = round(math.ldexp(size, format.mantissa_bits - power))  # a power of two more; round() takes ties to even
    return ((power - lowest) << format.mantissa_bits) + steps


def _number(pattern: int, top: int, format: Format) -> float:
    if pattern > top:
        return math.inf if pattern == top + 1 and format.has_infinity else math.nan
    field, mantissa = pattern >> format.mantissa_bits, pattern & ((1 << format.mantissa_bits) - 1)
    steps = mantissa + ((1 << format.mantissa_bits) if field else 0)
    return math.ldexp(steps, _step_power(pattern, format))


def _neighbours(pattern: int, top: int, format: Format) -> tuple[float, float]:
    """Towards zero, and away from it."""
    if math.isnan(_number(pattern, top, format)):
        return math.nan, math.nan
    outwards = _number(pattern + 1, top, format) if pattern <= top else math.inf
    return (_number(pattern - 1, top, format) if pattern else -outwards), outwards


def _spacing(pattern: int, format: Format) -> float:
    return math.ldexp(1.0, _step_power(pattern, format))


def _step_power(pattern: int, format: Format) -> int:
    field = max(pattern >> format.mantissa_bits, 1)
    return field + 1 - (1 << (format.exponent_bits - 1)) - format.mantissa_bits


def _nan_pattern(format: Format) -> int:
    """All bits of the exponent and, where the mantissa alone tells NaN from ∞, its first one; else all of them."""
    ones = (1 << (format.exponent_bits + format.mantissa_bits)) - 1
    return ones - ((1 << (format.mantissa_bits - 1)) - 1) if format.has_infinity else ones


def _kind(pattern: int, top: int, format: Format) -> Kind:
    if pattern > top:
        return "infinite" if pattern == top + 1 and format.has_infinity else "nan"
    if pattern == 0:
        return "zero"
    return "normal" if pattern >> format.mantissa_bits else "subnormal"
