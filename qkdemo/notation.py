"""How a number is written on a page, in a sentence and in a table: the same everywhere.

* `written(x)`: four significant digits, thin spaces in thousands, ∞ and NaN in words of their own;
* `below(x, limit)`: the same, but "below" a limit under which digits say nothing;
* `digits_apart(x, others)`: how many digits tell a number from others;
* `at_most(x)`, `at_least(x)`: what stands behind "at most", "up to", "at least": rounded away from what it bounds;
* `power(x)`: a power of ten;
* `counted(n)`: a whole number, a count or a dial, with every digit;
* `spelled(text)`: digits that are given, as they are, in the signs of here;
* `superscript(n)`: an exponent;
* `plain(x)`: the shortest text that reads back to the same number (links, flags, CSV);
* `read(text)`: the number that a text holds, as it was written here; `signs()`: what the browser writes numbers with.

In another language than English the decimal sign and the groups of digits are those of that language (`locale.cldr`).
"""

import math
import re
from collections.abc import Callable, Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Final

from qkdemo.locale import ENGLISH, language
from qkdemo.locale.cldr import in_english, localised, marks_of

_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_NUMBERS: Final = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_KNOWN_DIGITS: Final = 12  # of a computed number; those behind them are another machine's rounding
_THIN_SPACE: Final = "\u202f"
_NUMBER: Final = re.compile(r"[−-]?\d[\d\u202f]*(?:\.\d+)?(?:·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?|[−-]?∞|NaN")


def written(x: float, digits: int = 4) -> str:
    """`x` for the eye, with `digits` significant digits.

    >>> [written(v) for v in (169.231, 3.3024, 0.0013616, 676924.28, 1e-12, 0.0)]
    ['169.2', '3.302', '1.362·10⁻³', '676\u202f900', '1·10⁻¹²', '0']
    >>> written(float("inf")), written(float("-inf")), written(float("nan"))
    ('∞', '−∞', 'NaN')
    """
    if language.get() != ENGLISH:
        return localised(_in_english(x, digits), language.get())
    if 0.01 <= x < 999 and digits == 4:  # nearly every number on a page, and pages write thousands of them
        return f"{x:.4g}"
    return _in_english(x, digits)


def _in_english(x: float, digits: int) -> str:
    if 0.01 <= x < 999 and digits > 2:
        return f"{x:.{digits}g}"
    if x < 0:
        return "−" + _in_english(-x, digits)
    if not math.isfinite(x):
        return "NaN" if math.isnan(x) else "∞"
    if x == 0:
        return "0"
    rounded = float(f"{x:.{digits}g}")
    if 0.01 <= rounded < 1e7:
        return f"{rounded:,.12g}".replace(",", _THIN_SPACE)
    mantissa, exponent = f"{x:.{digits - 1}e}".split("e")
    return f"{_trimmed(mantissa)}·10{superscript(int(exponent))}"


def below(x: float, limit: float) -> str:
    """`x` as it is written; under `limit`, where it is rounding alone, that limit: its digits are the machine's.

    >>> below(3e-17, 1e-12), below(0.5, 1e-12)
    ('1·10⁻¹²', '0.5')
    """
    return written(max(x, limit))


def digits_apart(
    x: float, others: Iterable[float], *, least: int = 4, most: int = 17, text: Callable[[float, int], str] = written
) -> int:
    """The fewest digits, from `least` on, with which `x` reads otherwise than each of the others; `most` if none do.

    `text`: how they are written.

    >>> digits_apart(10.000001, [10.0]), digits_apart(10.5, [10.0]), digits_apart(1.06, [1.0], least=2)
    (8, 4, 2)
    >>> digits_apart(99.996, [100.0], text=at_most)
    5
    """
    others = tuple(others)
    return next((n for n in range(least, most) if text(x, n) not in {text(other, n) for other in others}), most)


def at_most(x: float, digits: int = 4) -> str:
    """`x` rounded up, so that what is said to be at most that is.

    >>> at_most(4.446e-5, 1), at_most(0.25), at_most(math.sqrt(128)), at_most(0.1 + 0.2, 2)
    ('5·10⁻⁵', '0.25', '11.32', '0.3')
    """
    return _rounded(x, digits, ROUND_CEILING)


def at_least(x: float, digits: int = 4) -> str:
    """`x` rounded down, so that what is said to be at least that is.

    >>> at_least(0.9796, 2), at_least(2.0)
    ('0.97', '2')
    """
    return _rounded(x, digits, ROUND_FLOOR)


def _rounded(x: float, digits: int, rounding: str) -> str:
    known = Context(prec=_KNOWN_DIGITS).create_decimal(x)
    return written(float(Context(prec=digits, rounding=rounding).plus(known)), digits)


def power(x: float) -> str:
    """The power of ten that `x` is, without a mantissa.

    >>> power(1e-12), power(1e6)
    ('10⁻¹²', '10⁶')
    """
    return f"10{superscript(round(math.log10(x)))}"


def counted(n: int) -> str:
    """`n` with every digit: what is counted or turned by whole steps is not rounded.

    >>> counted(1048576), counted(-32768), counted(9999)
    ('1\u202f048\u202f576', '−32\u202f768', '9\u202f999')
    """
    if 0 <= n < 1000:
        return f"{n:,}"
    return spelled(f"{n:,}".replace(",", _THIN_SPACE))


def spelled(text: str) -> str:
    """A number whose digits Python has written, with the signs that numbers have here.

    >>> spelled("-0.10009765625")
    '−0.10009765625'
    """
    text = text.replace("-", "−")
    return text if language.get() == ENGLISH else localised(text, language.get())


def superscript(n: int) -> str:
    """`n` raised.

    >>> superscript(-12)
    '⁻¹²'
    """
    return str(n).translate(_SUPERSCRIPTS)


def plain(x: float) -> str:
    """The shortest text that reads back as exactly `x`, whole numbers without a point.

    >>> plain(8.0), plain(0.315), plain(1e-12)
    ('8', '0.315', '1e-12')
    """
    if isinstance(x, int):
        return str(int(x))  # a truth value as 1 or 0
    return str(int(x)) if x.is_integer() and abs(x) < 1e16 else repr(x)  # from 1e16 on, repr has no point either


def read(text: str) -> float:
    """The first number that `text` holds, as it is written here. Raises ValueError if there is none.

    >>> read("1.742·10⁻⁵"), read("65\u202f504 nats"), read("−∞")
    (1.742e-05, 65504.0, -inf)
    """
    match = _NUMBER.search(in_english(text, language.get()))
    if match is None:
        raise ValueError(f"there is no number in {text!r}")
    digits = match[0].split("·")[0].replace(_THIN_SPACE, "").replace("−", "-").replace("∞", "inf")
    return float(f"{digits}e{match[1].translate(_NUMBERS)}" if match[1] else digits)


def signs() -> dict[str, str]:
    """What the browser writes numbers with, as its scripts name it; nothing in English, whose signs they know."""
    if language.get() == ENGLISH:
        return {}
    marks = marks_of(language.get())
    return {"decimal": marks.decimal, "group": marks.group, "further": str(marks.further)}


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
