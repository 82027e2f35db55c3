"""Numbers of cases that people met in public code, as tables of tests: what is computed, and what is right.

* `Case`; `params(tables)`: one test for each; `agrees(found, expected)`;
* `f64`, `stored`: numbers in float64, and as a format keeps them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pytest
import torch
from torch import Tensor

from qkdemo.floats.formats import FORMATS, FormatWord, rounded

Found: TypeAlias = float | Sequence[float] | Tensor
Case: TypeAlias = tuple[str, Callable[[], Found], float | Sequence[float]]


def f64(*numbers: Any) -> Tensor:
    """A vector, or a matrix of rows."""
    return torch.tensor(numbers, dtype=torch.float64)


def stored(numbers: Sequence[float], word: FormatWord) -> Tensor:
    """What a format keeps of them."""
    return rounded(f64(*numbers), FORMATS[word])


def params(tables: Mapping[str, Sequence[Case]]) -> list[Any]:
    """A test for each case, by its name."""
    return [
        pytest.param(found, expected, id=f"{name}: {what}")
        for name, table in tables.items()
        for what, found, expected in table
    ]


def agrees(found: Found, expected: float | Sequence[float]) -> None:
    """All digits of a report, which has seven at most; where it has 0, float64 may leave its rounding."""
    numbers, right = (torch.as_tensor(x).double().flatten() for x in (found, expected))
    numbers = torch.where((right == 0) & (numbers.abs() < 1e-15), 0.0, numbers)
    assert numbers.tolist() == pytest.approx(right.tolist(), rel=1e-6, abs=0, nan_ok=True)
