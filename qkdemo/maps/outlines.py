"""Lines between cells where something changes in kind.

* `outline(holds)`: the edges between cells where it is so and cells where it is not; nothing is interpolated, so that a
  line lies where the numbers lie;
* `label_at(edges, target)`: where on them a word stands.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Edge: TypeAlias = tuple[int, int, int, int]  # x and y of its beginning, then of its end, counted in cell borders


def outline(holds: NDArray[np.bool_]) -> list[Edge]:
    """Edges of a grid [y, x], joined where they lie on one line.

    >>> outline(np.array([[False, True], [False, True]]))
    [(1, 0, 1, 2)]
    """
    across = holds[:, 1:] != holds[:, :-1]  # [y, x − 1]: a vertical edge right of a cell
    upon = holds[1:] != holds[:-1]
    vertical = [(x + 1, low, x + 1, high) for x in range(across.shape[1]) for low, high in _runs(across[:, x])]
    level = [(low, y + 1, high, y + 1) for y in range(upon.shape[0]) for low, high in _runs(upon[y])]
    return vertical + level


def label_at(edges: Sequence[Edge], target: tuple[float, float], shape: tuple[int, int]) -> tuple[float, float]:
    """The point of the edges nearest to `target` (shares of width and height), in cell borders; `shape`: (x, y)."""
    wanted = np.array(target) * shape
    points = []
    for x1, y1, x2, y2 in edges:
        points.append((float(np.clip(wanted[0], x1, x2)), float(np.clip(wanted[1], y1, y2))))
    return min(points, key=lambda point: float(np.hypot(*((np.array(point) - wanted) / shape))))


def _runs(marked: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where it is true: beginnings and ends, the end not included."""
    steps = np.flatnonzero(np.diff(np.concatenate([[0], marked.astype(np.int8), [0]])))
    return [(int(low), int(high)) for low, high in zip(steps[::2], steps[1::2], strict=True)]
