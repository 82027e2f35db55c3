"""How a number is written on a page, in a sentence and in a table: the same everywhere.

* `written(x)`: four significant digits, thin spaces in thousands, ∞ and NaN in words of their own;
* `below(x, limit)`: the same, but "below" a limit under which digits say nothing;
* `power(x)`: a power of ten;
* `counted(n)`: a whole number, a count or a dial, with every digit;
* `superscript(n)`: an exponent;
* `plain(x)`: the shortest text that reads back to the same number (links, flags, CSV).
"""

import math
from typing import Final

_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_THIN_SPACE: Final = "\u202f"


def written(x: float, digits: int = 4) -> str:
    """`x` for the eye, with `digits` significant digits.

    >>> [written(v) for v in (169.231, 3.3024, 0.0013616, 676924.28, 1e-12, 0.0)]
    ['169.2', '3.302', '1.362·10⁻³', '676\u202f900', '1·10⁻¹²', '0']
    >>> written(float("inf")), written(float("-inf")), written(float("nan"))
    ('∞', '−∞', 'NaN')
    """
    if 0.01 <= x < 999 and digits > 2:  # nearly every number on a page, and pages write thousands of them
        return f"{x:.{digits}g}"
    if x < 0:
        return "−" + written(-x, digits)
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
    return f"{n:,}".replace(",", _THIN_SPACE).replace("-", "−")


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


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
