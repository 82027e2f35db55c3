"""Spikes of a loss that passed: which of them matter, and what is said where none does.

* `that_matter(loss, events)`: those that are no matter of course;
* `of_passed(loss, events, step)`: what is said of the others.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from qkdemo.diagnose.curves.loss import TIMES_NOISE, Event, Numbers
from qkdemo.diagnose.curves.other_columns import BEFORE, Cause

_HIGH: Final = 2.0  # times the first loss: a rise in the first steps that is no small spike, though it passes
_SMALL: Final = 0.5  # of the first loss: a spike that stays below it and passes is a matter of course
_BY_CHANCE: Final = 8.0  # times the noise: how far one of some thousand batches of one text may lie above the others
_MANY: Final = 100  # losses: of fewer none is so far up by chance


def that_matter(loss: Numbers, events: Sequence[Event]) -> list[Event]:
    """The spikes, but in the first steps, that do not stay well below the loss of the start: batches differ.

    Nor does one matter that a loss with such noise may have by chance.
    """
    start = loss[np.isfinite(loss)][:3]
    if min(start[0], np.median(start)) <= 0:  # of a loss below 0 no size is small or large
        return list(events)
    least = _SMALL * float(np.median(start))
    tall = [event for event in events if not _is_early(loss, event) and _peak(loss, event) >= least]
    return [event for event in tall if not _by_chance(loss, event)]


def of_passed(loss: Numbers, events: Sequence[Event], step: Numbers) -> Cause:
    """Small spikes; or, if the loss went far above its start, that it did so in the first steps, or by chance."""
    first = float(loss[np.isfinite(loss)][0])
    high = [event for event in events if _peak(loss, event) > _HIGH * first]
    begun = [event for event in high if _is_early(loss, event) and not _by_chance(loss, event)]
    if not begun:
        return Cause("noisy_spikes" if high else "small_spikes", 0.3, {"count": len(events)})
    event = max(begun, key=lambda event: _peak(loss, event))
    before = float(loss[: event.start][np.isfinite(loss[: event.start])][-1])
    numbers = {"step": float(step[event.start]), "back": float(step[event.stop])}
    return Cause("high_start", 0.4, numbers | {"first": before, "most": _peak(loss, event)})


def _is_early(loss: Numbers, event: Event) -> bool:
    return event.start <= len(loss) // 20


def _peak(loss: Numbers, event: Event) -> float:
    return float(np.nanmax(loss[event.start : event.stop + 1]))


def _by_chance(loss: Numbers, event: Event) -> bool:
    """Whether a rise is of a single row of many, and not far for the noise there."""
    if np.isfinite(loss).sum() < _MANY:
        return False
    before, rise = loss[: event.start], loss[event.start : event.stop]
    usual = float(np.median(before[~np.isnan(before)][-BEFORE:]))
    high = rise[rise > usual + TIMES_NOISE * event.noise]
    return len(high) == 1 and bool(high[0] <= usual + _BY_CHANCE * event.noise)
