"""What happens to a loss: spikes that recover, divergences that do not, and what is not finite, told apart.

* `loss_events(loss)`: the events; `worst(events)`: the one that matters most;
* `noise_of(values)`, `smoothed(values)`: the spread of a curve around its trend, and the trend.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

EventKind: TypeAlias = Literal["spike", "rise", "divergence", "non_finite"]
Numbers: TypeAlias = NDArray[np.float64]

TIMES_NOISE: Final = 4.0
_TIMES_LASTING: Final = 3.0  # of a smoothed loss, for a tenth of the log: a median of eleven varies by 0.4 of the noise
_SHARE: Final = 0.1  # of the loss before: smaller changes are no event
_OF_FIRST: Final = 0.03  # of the loss at the start: nor are these, once a loss is nearly 0
_BEFORE: Final = 10  # values that say what was usual
_SHORTEST_DIVERGENCE: Final = 3  # rows; of a long log a tenth
_DECIDED_SHARE: Final = 10


@dataclass(frozen=True)
class Event:
    """What happened to the loss; `start` and `stop` are rows, `stop` the first that is usual again, or the last row.

    A rise is one that the log ends in, too early to say whether it is a spike or a divergence.
    """

    kind: EventKind
    start: int
    stop: int
    slow: bool = False  # without a jump: `start` is the first row in which a smoothed loss is clearly above its lowest


def loss_events(loss: Numbers) -> tuple[Event, ...]:
    """Spikes, a divergence, and the first value that is not finite: ∞; NaN is a step without a value."""
    rows = np.flatnonzero(~np.isnan(loss))
    values = loss[rows]
    gone = np.flatnonzero(np.isinf(values))
    finite = values[: gone[0]] if gone.size else values
    events = _jumps(finite)
    if gone.size:
        events.append(Event("non_finite", int(gone[0]), len(values) - 1))
    elif len(finite) >= 2 * _BEFORE and all(event.kind == "spike" for event in events):
        rest = np.ones(len(finite), bool)
        for event in events:
            rest[event.start : event.stop] = False
        events += _at(np.flatnonzero(rest), _slow(finite[rest]))
    return tuple(_at(rows, sorted(events, key=lambda event: event.start)))


def _at(rows: NDArray[np.intp], events: Sequence[Event]) -> list[Event]:
    """Events of some rows, as events of all."""
    return [replace(event, start=int(rows[event.start]), stop=int(rows[event.stop])) for event in events]


def worst(events: Sequence[Event]) -> Event | None:
    """The event that matters most, the first of its kind; None without one."""
    order = ("non_finite", "divergence", "rise", "spike")
    return min(events, key=lambda event: (order.index(event.kind), event.start), default=None)


def noise_of(values: Numbers) -> float:
    """The spread of a curve around its trend: from the smaller half of its differences, which no event widens."""
    if len(values) < 2:
        return 0.0
    return float(np.quantile(np.abs(np.diff(values)), 0.25) / 0.3186 / math.sqrt(2))  # of a normal distribution


def _jumps(values: Numbers) -> list[Event]:
    events: list[Event] = []
    noise, usual, at = noise_of(values), list[float](), 0
    while at < len(values):
        before = statistics.median(usual[-_BEFORE:]) if usual else values[at]
        least = max(TIMES_NOISE * noise, _SHARE * abs(before), _OF_FIRST * abs(values[0]))
        if values[at] <= before + least:
            usual.append(float(values[at]))
            at += 1
            continue
        back = np.flatnonzero(values[at:] <= before + least / 2)
        if not back.size:
            return [*events, Event(_open_end(values, at, events), at, len(values) - 1)]
        stop = at + int(back[0])
        events.append(Event("spike", at, stop))
        at = stop
    return events


def _lasts(rows: int, of: int) -> bool:
    return rows >= max(_SHORTEST_DIVERGENCE, of // _DECIDED_SHARE)


def _open_end(values: Numbers, at: int, before: Sequence[Event]) -> EventKind:
    """What a rise is in which the loss ends: a spike, if it is short and no higher than one that recovered."""
    if _lasts(len(values) - at, len(values)):
        return "divergence"
    recovered = (float(values[event.start : event.stop].max()) for event in before)
    return "spike" if float(values[at:].max()) <= max(recovered, default=-math.inf) else "rise"


def smoothed(values: Numbers) -> Numbers:
    """The median of a few values around each."""
    half = _BEFORE // 2
    padded = np.pad(values, half, constant_values=np.nan)  # at both ends there are fewer around a value
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    return np.asarray(np.nanmedian(around, axis=-1))


def _slow(values: Numbers) -> list[Event]:
    """Rises without a jump: a smoothed loss is clearly above its lowest so far, until it comes back or the log ends."""
    smooth, noise, events, at = smoothed(values), noise_of(values), list[Event](), 0
    lowest = np.minimum.accumulate(smooth)
    counts = np.maximum(_SHARE * np.abs(lowest), _OF_FIRST * abs(values[0]))
    least = np.maximum(counts, _TIMES_LASTING * noise)
    while (above := np.flatnonzero(smooth[at:] > (lowest + least)[at:])).size:
        at += int(above[0])
        usual, enough = float(lowest[at]), float(least[at])
        back = np.flatnonzero(smooth[at:] <= usual + enough / 2)
        stop = at + int(back[0]) if back.size else len(values) - 1
        returns = back.size or np.median(values[-3:]) <= usual + counts[at]  # a smoothed end is late to show it
        lasts = _lasts(stop - at, len(values))
        if lasts or float(smooth[at : stop + 1].max()) > usual + TIMES_NOISE * noise:
            events.append(Event("spike" if returns else "divergence" if lasts else "rise", at, stop, slow=True))
        at = stop if back.size else len(values)
    return events
