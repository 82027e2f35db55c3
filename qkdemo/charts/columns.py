"""Columns of an exhibit's table: arrays as vectors and colour codes, numbers as texts.

* `vectors(array)`: one fixed-size list per row;
* `single(array)`: as float32, which is what is sent;
* `codes(weights)`: attention weights as the heat map's colour codes;
* `coded(code, step)`: what such a code says, with no more digits than it holds; `step_of(codes, coarse)`: how far apart
  those are that were kept; `span(at, pooled)`: what a cell stands for;
* `reading(x)`, `readings(values)`, `percent(x)`: numbers that may be undefined;
* `words()`: what the component says itself.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.charts.panels import BRIGHTEST, MASKED, UNDEFINED, Pooled
from qkdemo.messages import say
from qkdemo.notation import power, written

_FEW: Final = 4  # below that code, half a step is more than a fourth of the weight: not one digit is held
_COARSE: Final = 0.01  # a weight from which on a code holds a second digit
_COMPONENT_WORDS: Final = ("hint", "play", "pause", "png", "svg", "undefined", "arcs", "heat", "bars", "grid")


def vectors(array: NDArray[Any]) -> pa.Array:
    """One list per row of `array`, its other axes laid end to end."""
    flat = np.ascontiguousarray(array).reshape(len(array), -1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])


def single(array: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """As float32; what that holds with fewer digits than others, below 1.2·10⁻³⁸, is 0. As it is, if that were ∞."""
    with np.errstate(over="ignore"):
        small = array.astype(np.float32)
    if (np.isinf(small) & np.isfinite(array)).any():
        return array
    return np.where(np.abs(small) < np.finfo(np.float32).tiny, np.float32(0), small)


def codes(weights: NDArray[Any]) -> NDArray[np.uint8]:
    """Weights as the heat map's codes: the square root spreads small weights over more of the ramp.

    Negative is masked, NaN is undefined.
    """
    with np.errstate(invalid="ignore"):
        found = np.rint(BRIGHTEST * np.sqrt(np.clip(weights, 0, 1)))
    found = np.where(weights < 0, MASKED, found)
    return np.where(np.isnan(weights), UNDEFINED, found).astype(np.uint8)


def coded(code: int, step: int = 1) -> str:
    """The weight of a code, with no more digits than it holds. `step`: from one code that was kept to the next.

    >>> [coded(code) for code in (0, 1, 4, 100, 250)]
    ['less than 4·10⁻⁶', 'less than 3.6·10⁻⁵', 'about 3·10⁻⁴', 'about 0.16', 'more than 0.996']
    >>> [coded(code, 5) for code in (0, 5, 20, 100, 250)]
    ['less than 1·10⁻⁴', 'less than 9·10⁻⁴', 'about 6·10⁻³', 'about 0.2', 'more than 0.98']
    """
    low, here, high = (((code + part * step) / BRIGHTEST) ** 2 for part in (-0.5, 0, 0.5))
    if code < _FEW * step:
        return say("number.less", x=written(high, 2))
    if code == BRIGHTEST:
        return say("number.more", x=written(low, 3))
    if step > 1:
        return say("number.about", x=written(here * (1 + 1e-9), 1))  # of halves the larger, as a browser rounds
    return say("number.about", x=written(here, 1 if here < _COARSE else 2))


def step_of(codes: Sequence[float], coarse: int) -> int:
    """From one code to the next: `coarse`, if all of them are multiples of it."""
    return coarse if all(code > BRIGHTEST or code % coarse == 0 for code in codes) else 1


def span(at: int, pooled: Pooled) -> str:
    """The numbers that a cell or a bar stands for.

    >>> [span(at, {"each": 8, "of": 20, "queries": "queries", "keys": "keys"}) for at in (0, 2)]
    ['0–7', '16–19']
    """
    first, last = at * pooled["each"], min((at + 1) * pooled["each"], pooled["of"]) - 1
    return str(first) if first == last else f"{first}–{last}"


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
