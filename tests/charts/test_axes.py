"""Axes of numbers as large and as small as float64 holds."""

import math

import numpy as np
import pytest

from qkdemo.charts.axes import log_axis


@pytest.mark.parametrize("values", [[5e-324], [1e-323, 1.0], [1.7e308], [1.7e308, 5e-324], [0.0], [math.inf, math.nan]])
def test_a_logarithmic_axis_is_drawn_for_any_numbers(values: list[float]) -> None:
    axis = log_axis(np.array(values))
    low, high = axis["domain"]
    assert 0 < low < high < math.inf
    assert all(low <= tick <= high for tick, _ in axis["ticks"])
