"""A loss that never fell: whether single values lie far above it, or attention stands in its way.

* `of_stuck(columns, step)`: the cause, also if it ended well above its first value; None for a loss that fell;
* `there(values)`: a column without the rows that hold no value.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from qkdemo.diagnose.curves.growth import LARGE
from qkdemo.diagnose.curves.loss import Numbers, noise_of, smoothed
from qkdemo.diagnose.curves.other_columns import LOST_LOGITS, Cause

ONE_HOT: Final = 0.1  # entropy fraction: of 32 keys one has 0.95 of the weight, and little gradient passes
_LEAST_TAIL: Final = 3  # values, at least, of which a median or a mean tells where a loss ends
_NEVER: Final = 0.9  # of the loss after the first steps: a run that never came below it has learnt nothing
_FELL: Final = 0.5  # of the first loss: what came below it did learn
_STILL: Final = 0.03  # of that loss: a fall of less is none
_LEAST_STUCK: Final = 20  # rows, before that is said
_MOST: Final = 0.5  # of a run
BEYOND: Final = 1.25  # times the first loss: what no guess reaches
_RESTLESS: Final = 2.0  # times as far above its course as below
_COURSE: Final = 8  # of so many values, the median of one part is the course of a loss
_TAIL: Final = 0.05  # of the values, on either side


def of_stuck(columns: Mapping[str, Numbers], step: Numbers) -> Cause | None:
    """A loss that never fell: a rate of 0; high single values; attention, if it was one-hot for most of the run."""
    loss = columns.get("loss", np.empty(0))
    loss = loss[np.isfinite(loss)]
    if len(loss) < _LEAST_STUCK:
        return None
    tenth = len(loss) // 10
    smooth = smoothed(loss[tenth:])  # the first steps fall from a random start to chance in any run
    first, last = float(np.median(loss[tenth : 2 * tenth])), float(np.median(loss[-tenth:]))
    start = {"from_start": float(loss[0] < first)}
    first = min(first, float(loss[0]))  # back from a rise to where it began is no fall
    if smooth.min() < max(_NEVER * first, _FELL * loss[0]) or last < first - max(_STILL * abs(first), noise_of(loss)):
        return None
    if "lr" in columns and not there(columns["lr"]).any():
        return Cause("stuck_at_rest", 0.9, start)
    if loss[0] > 0 and last > BEYOND * loss[0]:
        return Cause("never_below", 0.9, {"first": float(loss[0]), "last": last})
    times = _skew(loss[len(loss) // 3 :])
    if times > _RESTLESS:
        return Cause("stuck_rate", 0.9, start | {"times": times})
    return _why_stuck(columns, step, start)


def _why_stuck(columns: Mapping[str, Numbers], step: Numbers, start: Mapping[str, float]) -> Cause:
    """What attention was like meanwhile; `start` goes along."""
    logits = np.abs(columns.get("max_logit", np.empty(0)))
    sizes = there(logits[columns.get(LOST_LOGITS, np.zeros(len(logits))) == 0])
    shares = there(columns.get("entropy", np.empty(0)))
    seen = {"entropy": 100 * float(np.median(shares))} if shares.size else {}
    large = float((sizes >= LARGE).mean()) if sizes.size else 0.0
    if large > _MOST:
        numbers = {"logit": float(np.median(sizes)), "share": 100 * large} | _first_large(columns["loss"], logits, step)
        return Cause("stuck_attention", 0.9, {**start, **seen, **numbers})
    if seen and seen["entropy"] <= 100 * ONE_HOT:
        return Cause("stuck_one_hot", 0.9, {**start, **seen})
    if (_last_third(sizes) >= LARGE).any() or (_last_third(shares) <= ONE_HOT).any():
        return Cause("stuck_late", 0.6, start)
    return Cause("stuck_calm", 0.9, start) if sizes.size or shares.size else Cause("stuck", 0.6, start)


def _first_large(loss: Numbers, logits: Numbers, step: Numbers) -> dict[str, float]:
    """When logits were large first, and whether the loss was about as low as at its end by then."""
    first = int(np.flatnonzero(logits >= LARGE)[0])
    loss, before = loss[np.isfinite(loss)], loss[:first][np.isfinite(loss[:first])]
    tenth = len(loss) // 10
    stood = len(before) >= 2 * tenth
    if stood:  # as `of_stuck` asks of the end
        level, end = float(np.median(before[-tenth:])), float(np.median(loss[-tenth:]))
        stood = level <= end + max(_STILL * abs(end), noise_of(loss))
    from_first = first == np.flatnonzero(~np.isnan(logits))[0]
    return {"once": float(step[first]), "from_first": float(from_first), "stood": float(stood and not from_first)}


def _last_third(values: Numbers) -> Numbers:
    return values[2 * len(values) // 3 :]


def _skew(values: Numbers) -> float:
    """How much further the highest values lie above the course of a loss than the lowest below it.

    The course is a running median: what a loss that bends slowly moves is no tail.
    """
    half = max(_LEAST_TAIL, len(values) // _COURSE // 2)
    if len(values) <= 4 * half:
        return 0.0
    around = np.lib.stride_tricks.sliding_window_view(values, 2 * half + 1)
    away = np.sort(values[half:-half] - np.median(around, axis=-1))
    tail = max(_LEAST_TAIL, int(_TAIL * len(away)))
    below = -float(away[:tail].mean())
    return float(away[-tail:].mean()) / below if below > 0 else 0.0  # one that never goes below it is no restless one


def there(values: Numbers) -> Numbers:
    """The values but NaN, which stands where a row holds none."""
    return values[~np.isnan(values)]
