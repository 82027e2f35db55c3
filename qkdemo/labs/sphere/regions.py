"""Which key is nearest, on the whole sphere: triangles that have one key each, cut exactly along the borders.

* `regions(keys)`: the triangles; `borders(keys)`: the lines between them.

Between two unit keys a border lies where both cosines are equal: on the plane through the origin at right angles to
their difference. So triangles are cut by planes, exactly; the learned scale moves none of them.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.labs.sphere.lab import LATITUDES, LONGITUDES, directions, unit

Point: TypeAlias = tuple[float, ...]
Keys: TypeAlias = tuple[Point, ...]  # unit keys
_DIGITS: Final = 6  # to which two points are one
_FINE: Final = 361  # points of a whole circle, a degree apart


@dataclass(frozen=True, eq=False)
class Regions:
    """Triangles over points on the sphere; where regions meet, each has points of its own."""

    points: NDArray[np.float64]  # [points, 3] of length 1
    owners: NDArray[np.int64]  # [points] the key that is nearest
    triangles: NDArray[np.int64]  # [triangles, 3] whose points have one owner


@lru_cache(maxsize=64)
def regions(keys: Keys) -> Regions:
    """The grid of directions as triangles; those in which more than one key is nearest somewhere are cut."""
    units = np.array(keys)
    grid, triangles = directions()[:, :-1].reshape(-1, 3), _triangles()
    cosines = grid @ units.T
    owners = cosines.argmax(-1)
    # A key is nearest somewhere in a triangle only if it beats every other one at some corner.
    lead = cosines[triangles][:, :, :, None] - cosines[triangles][:, :, None, :]  # [triangles, corners, key, other]
    may = (lead.max(1) >= 0).all(-1)
    whole = may.sum(-1) == 1
    points, found, cut = [grid], [owners], [triangles[whole]]
    count = len(grid)
    for at in np.flatnonzero(~whole):
        corners = [tuple(point) for point in grid[triangles[at]].tolist()]
        near = np.flatnonzero(may[at]).tolist()
        for key in near:
            piece = _piece(corners, keys[key], [keys[other] for other in near if other != key])
            if len(piece) > 2:
                points.append(np.array([unit(np.array(point)) for point in piece]))
                found.append(np.full(len(piece), key))
                cut.append(count + np.array([(0, step, step + 1) for step in range(1, len(piece) - 1)]))
                count += len(piece)
    return _joined(np.concatenate(points), np.concatenate(found), np.concatenate(cut))


def _joined(points: NDArray[np.float64], owners: NDArray[np.int64], triangles: NDArray[np.int64]) -> Regions:
    """The same with every point once for each owner, and without triangles that have no area."""
    _, first, place = np.unique(
        np.column_stack([owners, points.round(_DIGITS)]), axis=0, return_index=True, return_inverse=True
    )
    joined = place.ravel()[triangles]
    flat = (joined == np.roll(joined, 1, axis=1)).any(-1)
    return Regions(points[first], owners[first], joined[~flat])


@lru_cache(maxsize=64)
def borders(keys: Keys) -> list[NDArray[np.float64]]:
    """For every pair of keys the arcs of its circle, [points, 3], with NaN after each; elsewhere a third is nearer."""
    units, around = np.array(keys), np.linspace(0, 2 * np.pi, _FINE)
    circles = []
    for one, other in combinations(range(len(keys)), 2):
        across = unit(units[one] - units[other])
        first = unit(np.cross(across, np.eye(3)[np.abs(across).argmin()]))
        circle = np.outer(np.cos(around), first) + np.outer(np.sin(around), np.cross(across, first))
        cosines = circle @ units.T
        seen = np.append(cosines.max(-1) <= cosines[:, one] + 1e-9, [False])
        ends = np.where(seen[:, None], np.append(circle, circle[:1], axis=0), np.nan)
        circles.append(ends[seen | np.roll(seen, 1)])
    return circles


@lru_cache(maxsize=1)
def _triangles() -> NDArray[np.int64]:
    """[triangles, 3] two of every cell of the grid."""
    along, around = len(LATITUDES), len(LONGITUDES) - 1
    corners = np.arange(along * around).reshape(along, around)
    right = np.roll(corners, -1, axis=1)
    first = np.stack([corners[:-1], right[:-1], corners[1:]], -1)
    second = np.stack([right[:-1], right[1:], corners[1:]], -1)
    return np.concatenate([first.reshape(-1, 3), second.reshape(-1, 3)])


def _piece(corners: list[Point], key: Point, others: list[Point]) -> list[Point]:
    """What is left of a triangle where `key` is at least as near as every other one (Sutherland–Hodgman)."""
    left = corners
    for other in others:
        sides = [sum(x * (a - b) for x, a, b in zip(point, key, other, strict=True)) for point in left]
        kept: list[Point] = []
        for at, (point, side) in enumerate(zip(left, sides, strict=True)):
            before, was = left[at - 1], sides[at - 1]
            if (side >= 0) != (was >= 0):
                part = was / (was - side)
                kept.append(tuple(a + part * (b - a) for a, b in zip(before, point, strict=True)))
            if side >= 0:
                kept.append(point)
        left = kept
    return left
