"""Steps at which a column has its values, whichever columns stand beside it.

* `off_beat(has, steps)`: the rows whose steps are none of these.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_LEAST: Final = 5  # values that tell how far apart they come
_MOST: Final = 2.0**53  # up to which float64 holds every whole number


def off_beat(has: NDArray[np.bool_], steps: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Of each row whether no value is due at its step: those of a column come at multiples of a number of steps.

    The first value and the last one need not. `steps`: of each row, NaN without one. Where values come at any step, or
    are few, a value may be due in every row.

    >>> off_beat(np.array([1, 0, 1, 1, 1, 1, 0, 0], bool), np.array([1.0, 5, 10, 20, 30, 40, 45, 50])).tolist()
    [False, True, False, False, False, False, True, False]
    """
    at = np.unique(steps[has & np.isfinite(steps)])
    if len(at) < _LEAST or np.any(at != np.floor(at)) or np.abs(at).max() >= _MOST:
        return np.zeros_like(has)
    period = np.gcd.reduce(np.diff(at[1:-1]).astype(np.int64))
    found: NDArray[np.bool_] = ~has & np.isfinite(steps) & ((steps - at[1]) % period != 0)
    return found
