"""Recorded numbers, which are float32, as decimals for a table: `shortest(values)`."""

import numpy as np
from numpy.typing import NDArray


def shortest(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """For each number the shortest decimal that is the same float32; as float64 it is written as that decimal.

    >>> float(np.float32(0.1)), float(shortest(np.array(0.1, np.float32)))
    (0.10000000149011612, 0.1)
    """
    return np.asarray(values, np.float32).astype("U32").astype(np.float64)
