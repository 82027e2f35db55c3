"""Columns of an exhibit's table: arrays as vectors and colour codes, numbers as texts.

* `vectors(array)`: one fixed-size list per row;
* `codes(weights)`: attention weights as the heat map's colour codes;
* `reading(x)`, `readings(values)`, `percent(x)`: numbers that may be undefined;
* `words()`: what the component says itself.
"""

import math
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.charts.panels import BRIGHTEST, MASKED, UNDEFINED
from qkdemo.messages import say
from qkdemo.notation import power, written

_COMPONENT_WORDS: Final = ("hint", "play", "pause", "png", "svg", "undefined", "arcs", "heat", "bars", "grid")


def vectors(array: NDArray[Any]) -> pa.Array:
    """One list per row of `array`, its other axes laid end to end."""
    flat = np.ascontiguousarray(array).reshape(len(array), -1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])


def codes(weights: NDArray[Any]) -> NDArray[np.uint8]:
    """Weights as the heat map's codes: the square root spreads small weights over more of the ramp.

    Negative is masked, NaN is undefined.
    """
    with np.errstate(invalid="ignore"):
        found = np.rint(BRIGHTEST * np.sqrt(np.clip(weights, 0, 1)))
    found = np.where(weights < 0, MASKED, found)
    return np.where(np.isnan(weights), UNDEFINED, found).astype(np.uint8)


def reading(x: float) -> str:
    """`x` for the eye; NaN is undefined."""
    return say("number.undefined") if math.isnan(x) else written(x)


def gap(x: float, noise: float, digits: int = 4) -> str:
    """The difference `x` in a cell; below `noise`, which is rounding, no more than that.

    >>> gap(7.2e-16, 1e-12), gap(9.3e-16, 1e-12), gap(0.0123, 1e-12)
    ('< 10⁻¹²', '< 10⁻¹²', '0.0123')
    """
    return f"< {power(noise)}" if x < noise else reading(x) if math.isnan(x) else written(x, digits)


def gap_in_words(x: float, noise: float, digits: int = 3) -> str:
    """The same in a sentence.

    >>> gap_in_words(7.2e-16, 1e-12), gap_in_words(0.0123, 1e-12)
    ('less than 10⁻¹²', '0.0123')
    """
    return say("number.less", x=power(noise)) if x < noise else gap(x, noise, digits)


def readings(values: NDArray[Any]) -> list[str]:
    """Every one of them; Python's own floats are compared and written faster than NumPy's."""
    return [reading(x) for x in values.tolist()]


def percent(x: float) -> str:
    """The share `x` in per cent; NaN is undefined."""
    return say("number.undefined") if math.isnan(x) else say("number.percent", x=written(100 * x, 3))


def words() -> dict[str, str]:
    """The component's own words: buttons, and hints for the keyboard."""
    return {name: say(f"exhibit.{name}") for name in _COMPONENT_WORDS}
