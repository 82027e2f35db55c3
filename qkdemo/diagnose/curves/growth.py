"""By how much the largest logit grows, with an interval, when it reaches a limit, and whether lengths account for it.

* `growth(step, logit, q_norm, k_norm)`; `slope(x, y)`: the median slope with its 95 % interval (Theil and Sen).
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from qkdemo.diagnose.curves.loss import Numbers

LARGE: Final = 100.0  # |logit| from which a softmax over any context can be one-hot, and trouble is reported (anchors)
_FLOAT16: Final = 65504.0
_LEAST: Final = 6  # values of which a slope is told
_MOST_POINTS: Final = 300
_Z: Final = 1.96


@dataclass(frozen=True)
class Growth:
    """Of the largest |logit|. `rate` is the growth of its logarithm per step, with a 95 % interval (Theil and Sen)."""

    rate: float
    low: float
    high: float
    last: float
    large_at: float | None  # step at which it passes LARGE, or did; None if it does not grow
    limit_at: float | None  # and 65504
    by: str  # norms, alignment, both or unknown
    slows: bool = False  # whether in the last tenth of its values it surely grows at less than half that rate

    @property
    def grows(self) -> bool:
        """Whether the interval leaves out standing still."""
        return self.low > 0


def growth(
    step: Numbers, logit: Numbers, q_norm: Numbers | None = None, k_norm: Numbers | None = None
) -> Growth | None:
    """How the largest |logit| grows over the later two thirds; None if fewer than six of its values are finite."""
    kept = np.isfinite(logit) & (np.abs(logit) > 0)
    if kept.sum() < _LEAST:
        return None
    x, y = _later(step[kept], np.log(np.abs(logit[kept])))
    rate, low, high = slope(x, y)
    end = max(_LEAST, kept.sum() // 10)
    return Growth(
        rate=rate,
        low=low,
        high=high,
        last=float(np.median(np.abs(logit[kept][-3:]))),
        large_at=_reached(step[kept], np.abs(logit[kept]), LARGE, (rate, low)),
        limit_at=_reached(step[kept], np.abs(logit[kept]), _FLOAT16, (rate, low)),
        by=_grown_by(step, logit, q_norm, k_norm),
        slows=slope(x[-end:], y[-end:])[2] < rate / 2,
    )


def slope(x: Numbers, y: Numbers) -> tuple[float, float, float]:
    """The median of all slopes between two points, and its 95 % interval. (Sen 1968, with Kendall's variance.)

    The variance counts neighbouring rows that vary together as fewer: `_fewer_rows`.
    """
    if len(x) > _MOST_POINTS:
        chosen = np.linspace(0, len(x) - 1, _MOST_POINTS).round().astype(int)
        x, y = x[chosen], y[chosen]
    first, second = np.triu_indices(len(x), 1)
    slopes = np.sort((y[second] - y[first]) / (x[second] - x[first]))
    n = len(x)
    half = _Z * math.sqrt(n * (n - 1) * (2 * n + 5) / 18 * _fewer_rows(y - np.median(slopes) * x))
    low = max(0, int((len(slopes) - half) / 2))
    high = min(len(slopes) - 1, math.ceil((len(slopes) + half) / 2))
    return float(np.median(slopes)), float(slopes[low]), float(slopes[high])


def _fewer_rows(rest: Numbers) -> float:
    """By how much Kendall's variance grows where `rest`, what the slope leaves over, is alike in neighbouring rows.

    n/n* = 1 + 2/(n(n − 1)(n − 2)) Σ (n − i)(n − i − 1)(n − i − 2) ρ_i, with ρ_i the autocorrelation of the ranks at lag
    i, up to the first lag at which it could be chance. (Hamed and Rao 1998, J. Hydrology 204, 182.)
    """
    n, ordered = len(rest), np.sort(rest)
    ranks = (np.searchsorted(ordered, rest) + np.searchsorted(ordered, rest, "right") - n) / 2
    lags = np.arange(1, n - 2)
    alike = np.array([ranks[:-lag] @ ranks[lag:] for lag in lags]) / max(float(ranks @ ranks), 1.0)
    chance = np.append(alike < _Z / math.sqrt(n), True).argmax()
    weights = (n - lags) * (n - lags - 1) * (n - lags - 2)
    return 1 + 2 * float((weights * alike)[:chance].sum()) / (n * (n - 1) * (n - 2))


def _later(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    start = len(x) // 3
    return (x[start:], y[start:]) if len(x) - start >= _LEAST else (x, y)


def _reached(step: Numbers, size: Numbers, limit: float, rates: tuple[float, float]) -> float | None:
    above = np.flatnonzero(size >= limit)
    if above.size:
        return float(step[above[0]])
    rate, low = rates
    return float(step[-1] + math.log(limit / float(np.median(size[-3:]))) / rate) if low > 0 else None


def _grown_by(step: Numbers, logit: Numbers, q_norm: Numbers | None, k_norm: Numbers | None) -> str:
    """Whether lengths explain the growth: the logit's is that of ‖q‖‖k‖ plus that of the cosine."""
    if q_norm is None or k_norm is None:
        return "unknown"
    lengths_there = np.isfinite(q_norm) & np.isfinite(k_norm) & (q_norm > 0) & (k_norm > 0)
    kept = np.isfinite(logit) & lengths_there & (np.abs(logit) > 0)
    if kept.sum() < _LEAST:
        return "unknown"
    x = step[kept]
    whole = slope(*_later(x, np.log(np.abs(logit[kept]))))
    lengths = slope(*_later(x, np.log(q_norm[kept]) + np.log(k_norm[kept])))
    if whole[1] <= 0:
        return "unknown"
    share = lengths[0] / whole[0]
    return "norms" if share > 0.7 else "alignment" if share < 0.3 else "both"
