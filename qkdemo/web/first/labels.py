"""Where the words at the arrows' tips stand: what `web/arrows/labels.js` finds, for the first picture.

* `beside_tip(tip, half, words=..., arrows=...)`: the middle of a word, in a drawing whose middle is (0, 0);
* `Tip`, `Box`: where an arrow ends and its direction; a word's middle and half-sizes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

Pair = tuple[float, float]

_SIDES: Final = ((1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1))  # y grows downwards
_OUTSIDE, _ON_A_WORD, _ON_AN_ARROW = 100, 10, 3  # more than the cosine can make good


@dataclass(frozen=True)
class Tip:
    """Where an arrow from (0, 0) ends, and its direction, a vector of length one."""

    at: Pair
    to: Pair


@dataclass(frozen=True)
class Box:
    """A word's middle, and half its width and height."""

    at: Pair
    half: Pair


def beside_tip(tip: Tip, half: Pair, *, words: Sequence[Box], arrows: Sequence[Tip], size: Pair, away: float) -> Box:
    """The place beside `tip`, of eight, that covers least; of those alike, the one in the arrow's direction.

    `words` stand already; `size` is half the drawing's; `away` is between a tip and its word. All in one unit.
    """

    def placed(side: tuple[int, int]) -> Box:
        gap = away / 2 if side[0] and side[1] else away
        x, y = (at + way * (long + gap) for at, way, long in zip(tip.at, side, half, strict=True))
        return Box((x, y), half)

    def costs(side: tuple[int, int]) -> float:
        box = placed(side)
        cost = _OUTSIDE * any(abs(at) + long > most for at, long, most in zip(box.at, half, size, strict=True))
        cost += _ON_A_WORD * sum(_meet(box, word) for word in words)
        cost += _ON_AN_ARROW * sum(_crosses(arrow.at, box) for arrow in arrows)
        return cost - (side[0] * tip.to[0] + side[1] * tip.to[1]) / math.hypot(*side)

    best = placed(min(_SIDES, key=costs))
    x, y = (max(long - most, min(most - long, at)) for at, long, most in zip(best.at, half, size, strict=True))
    return Box((x, y), half)


def _meet(one: Box, other: Box) -> bool:
    return all(abs(one.at[axis] - other.at[axis]) < one.half[axis] + other.half[axis] for axis in (0, 1))


def _crosses(end: Pair, box: Box) -> bool:
    """Whether the line from (0, 0) to `end` enters the box: it is cut to the box's strip along x, then along y."""
    since, until = 0.0, 1.0
    for way, at, half in zip(end, box.at, box.half, strict=True):
        if way == 0:
            if abs(at) >= half:
                return False
            continue
        near, far = sorted(((at - half) / way, (at + half) / way))
        since, until = max(since, near), min(until, far)
    return since < until
