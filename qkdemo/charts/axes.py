"""Axes of an exhibit, as its view names them.

* `log_axis(values)`, `share_axis()`, `linear_axis(low, high)`: a vertical axis with its ticks;
* `decades(low, high)`: ticks at powers of ten.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.charts.panels import Axis, Tick
from qkdemo.notation import superscript, written

_STEPS: Final = (1, 2, 5, 10)
_DECADES: Final = (-307, 308)  # that float64 holds to its last digit


def log_axis(values: NDArray[np.float64]) -> Axis:
    """A logarithmic axis over whole decades around the positive, finite ones of `values`."""
    values = values[np.isfinite(values) & (values > 0)]
    low, high = (math.floor(np.log10(values.min())), math.ceil(np.log10(values.max()))) if values.size else (-1, 1)
    low, high = max(low, _DECADES[0]), min(high, _DECADES[1])
    low, high = (low, max(high, low + 1)) if low < _DECADES[1] else (high - 1, high)
    return {"log": True, "domain": (10.0**low, 10.0**high), "ticks": decades(10.0**low, 10.0**high, at_most=5)}


def share_axis() -> Axis:
    """From 0 to 1."""
    return {"log": False, "domain": (0, 1), "ticks": [(0, "0"), (0.5, written(0.5)), (1, "1")]}


def linear_axis(low: float, high: float, at_most: int = 5) -> Axis:
    """A linear axis with ticks at round numbers, and a little room at both ends."""
    span = high - low or max(abs(low), 1.0)
    room = 0.06 * span
    unit = 10.0 ** math.floor(math.log10(span / at_most))
    step = next(unit * s for s in _STEPS if unit * s * at_most >= span)
    ticks = [round(n * step, 12) for n in range(math.ceil((low - room) / step), math.floor((high + room) / step) + 1)]
    return {"log": False, "domain": (low - room, high + room), "ticks": [(x, written(x)) for x in ticks]}


def decades(low: float, high: float, sign: str = "", at_most: int = 7) -> list[Tick]:
    """Ticks at powers of ten."""
    powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    step = max(1, math.ceil(len(powers) / at_most))
    kept = [power for power in powers if power % step == 0]
    return [(10.0**power, sign + _power(power)) for power in kept]


def _power(power: int) -> str:
    return written(10.0**power) if -3 < power < 4 else f"10{superscript(power)}"
