"""Loss against learning rate: how wide the range of rates is in which a run succeeds.

* `Point`, `curve(losses)`: final losses of all seeds at each rate;
* `sensitivity(points)`: the one number that is made of a curve; `by_side(points)`: how much of it lies on which side.

Source: Wortsman et al. 2023, "Small-scale proxies for large-scale Transformer training instabilities", section 2.2.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Point:
    """All seeds of one variant at one learning rate."""

    learning_rate: float
    final_losses: tuple[float, ...]
    first_loss: float  # mean over seeds of the loss before the first update

    @property
    def mean(self) -> float:
        """Mean over seeds, each at most the loss it began with; NaN and ∞ count as that."""
        return float(np.mean([self.capped(loss) for loss in self.final_losses]))

    def capped(self, loss: float) -> float:
        """min(loss, first loss), the first loss where it is not finite; ∞ where neither is."""
        first = self.first_loss if math.isfinite(self.first_loss) else math.inf
        return min(loss, first) if math.isfinite(loss) else first


def curve(losses: Mapping[float, Sequence[tuple[float, float]]]) -> tuple[Point, ...]:
    """Points in order of the rate, from final and first losses of every seed at each rate."""
    return tuple(
        Point(rate, tuple(final for final, _ in losses[rate]), float(np.mean([first for _, first in losses[rate]])))
        for rate in sorted(losses)
    )


def sensitivity(points: Sequence[Point]) -> float:
    """Mean over ln(rate) of min(final loss, first loss), less the best of them: 0 for a flat curve, in nats.

    The mean is an integral over ln(rate), by trapezoids between the rates tried, over the width of their range: a rate
    counts by how far its neighbours stand from it, so that a denser grid near a wall does not count the wall twice.
    It still depends on the range: the same for whatever is compared.
    """
    return sum(by_side(points))


def by_side(points: Sequence[Point]) -> tuple[float, float]:
    """What rates below the best one, and rates above it, add to the sensitivity; their sum is the sensitivity."""
    if len(points) < 2:
        return 0.0, 0.0
    rates = np.log([point.learning_rate for point in points])
    above = np.array([point.mean for point in points])
    best = int(above.argmin())
    above = above - above[best]
    parts = (above[1:] + above[:-1]) / 2 * np.diff(rates) / (rates[-1] - rates[0])
    return float(parts[:best].sum()), float(parts[best:].sum())
