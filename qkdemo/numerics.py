"""Number formats: what each can hold, and what rounding to it does to a tensor.

* `FORMATS`: word → `Format` (its torch dtype, largest number and step at one);
* `rounded(x, format)`: every entry of `x` as the format stores it, in a dtype wide enough to compute on;
* `exact`: the rounding that changes nothing;
* `first_failure(fails, low, high)`: the smallest scale at which something goes wrong, by bisection.

Arithmetic in a narrow format is emulated as the kernels do it: operate in float32, round once to the format.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

FormatWord: TypeAlias = Literal["float64", "float32", "bfloat16", "float16"]
Rounding: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Format:
    """A floating-point format."""

    word: FormatWord
    dtype: torch.dtype

    @property
    def largest(self) -> float:
        """The largest finite number: 65504 for float16, 3.39e38 for bfloat16."""
        return torch.finfo(self.dtype).max

    @property
    def working_dtype(self) -> torch.dtype:
        """The dtype in which values of this format are computed on: itself, or float32 for the 16-bit ones."""
        return self.dtype if self.dtype.itemsize >= 4 else torch.float32


FORMATS: Final[dict[FormatWord, Format]] = {
    "float64": Format("float64", torch.float64),
    "float32": Format("float32", torch.float32),
    "bfloat16": Format("bfloat16", torch.bfloat16),
    "float16": Format("float16", torch.float16),
}


def exact(x: Tensor) -> Tensor:
    """`x` itself: the rounding of infinite precision."""
    return x


def rounded(x: Float[Tensor, "*shape"], format: Format) -> Float[Tensor, "*shape"]:
    """`x` as `format` stores it, given back in the format's working dtype.

    Rounds to nearest, ties to even (IEEE 754); beyond the largest number it becomes ±∞, as a cast does.

    >>> rounded(torch.tensor([513.0, 65520.0]), FORMATS["bfloat16"]).tolist()
    [512.0, 65536.0]
    >>> rounded(torch.tensor([513.0, 65520.0]), FORMATS["float16"]).tolist()
    [513.0, inf]
    """
    return x.to(format.dtype).to(format.working_dtype)


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
