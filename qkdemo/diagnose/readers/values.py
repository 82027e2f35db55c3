"""One value of a training log, as a number or as text.

* `logged(value)`: what was logged and is not finite is told from what is no number; `is_nan(value)`; `real(value)`;
* `plain(value, mark)`: a number in a table with that mark between its cells, as Python reads it.
"""

import math
import re
from typing import Any, Final

_NAN: Final = re.compile(  # C writes -nan, and on Windows -nan(ind); Lightning's bar nan.0
    r"[+-]?nan(\(\w{0,20}\)|\.0{0,9})?", re.IGNORECASE
)
_TENSOR: Final = re.compile(r"tensor\(\s*([^\s,()\[\]]+)\s*(,.*)?\)", re.DOTALL)  # as PyTorch prints one number
_THOUSANDS: Final = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_COMMA: Final = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_NOT_FINITE: Final = re.compile(rf"{_NAN.pattern}|[+-]?inf(inity|\.0{{0,9}})?", re.IGNORECASE)


def logged(value: Any) -> float:
    """A value of a log: ∞ for what was logged and is not finite, NaN for what is no number."""
    value = _bare(value)
    if isinstance(value, float) and not math.isfinite(value):
        return math.inf
    if isinstance(value, str) and _NOT_FINITE.fullmatch(value.strip()):
        return math.inf
    return real(value)


def real(value: Any) -> float:
    """A number, also one written as text; NaN for what is none."""
    if isinstance(value, bool):
        return math.nan
    try:
        return float(_bare(value))
    except (TypeError, ValueError, OverflowError):
        return math.nan


def is_nan(value: Any) -> bool:
    """Whether a value is NaN, also one written as text."""
    value = _bare(value)
    return (isinstance(value, float) and math.isnan(value)) or (
        isinstance(value, str) and bool(_NAN.fullmatch(value.strip()))
    )


def _bare(value: Any) -> Any:
    """The number in what PyTorch prints of a tensor with one."""
    printed = _TENSOR.fullmatch(value.strip()) if isinstance(value, str) and "tensor(" in value else None
    return printed[1] if printed else value


def plain(value: Any, mark: str) -> Any:
    """A number without the commas between its thousands; beside semicolons a comma stands before decimals."""
    if not isinstance(value, str):
        return value
    if mark == ";" and _COMMA.fullmatch(value):
        return value.replace(",", ".")
    return value.replace(",", "") if mark == "," and _THOUSANDS.fullmatch(value.strip()) else value
