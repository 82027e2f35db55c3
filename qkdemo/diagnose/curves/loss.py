"""What happens to a loss: spikes that recover, divergences that do not, and what is not finite, told apart.

* `loss_events(loss)`: the events; `worst(events)`: the one that matters most;
* `noise_of(values)`, `smoothed(values)`: the spread of a curve around its trend, and the trend;
* `lost_for_good(values)`: the row from which on none is finite.
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
_RECENT: Final = 3  # of them, after a fast fall
_NEAR: Final = 30  # rows, or a tenth of a log, that say what the noise before a row is
_CLEARLY: Final = 1.25  # times the noise: so far that of a few rows varies
_OF_MEDIAN: Final = 0.4  # of the noise: by so much a median of eleven varies
_AVERAGED: Final = 5.0  # of the noise over √rows: three times what the difference of two medians varies by
_SHORTEST_DIVERGENCE: Final = 3  # rows; of a long log a tenth
_DECIDED_SHARE: Final = 10


@dataclass(frozen=True)
class Event:
    """What happened to the loss; `start` and `stop` are rows, `stop` the first that is usual again, or the last row.

    A rise is one that the log ends in, too early to say whether it is a spike or a divergence. Between `begun` and
    `start` the loss may have been rising already.
    """

    kind: EventKind
    start: int
    stop: int
    begun: int  # the row after the last one that is as low as before, but for noise
    slow: bool = False  # without a jump: `start` is the first row in which a smoothed loss is clearly above its lowest
    part: bool = False  # a divergence that falls again in part
    noise: float = 0.0  # of the loss before it

    def order(self, row: int) -> Literal["attention", "rising", "together"]:
        """Whether attention, if it was bad in this row, was so first; or as the loss may have risen; or as it moved."""
        return "attention" if row < self.begun else "rising" if row < self.start else "together"


def loss_events(loss: Numbers) -> tuple[Event, ...]:
    """Spikes, a divergence, and the first value that is not finite: ∞; NaN is a step without a value."""
    rows = np.flatnonzero(~np.isnan(loss))
    values = loss[rows]
    gone = np.flatnonzero(np.isinf(values))
    finite = values[: gone[0]] if gone.size else values
    events = _jumps(finite)
    if gone.size:
        events.append(Event("non_finite", int(gone[0]), len(values) - 1, int(gone[0])))
    else:
        events = _in_part(sorted([*events, *_beside(events, finite)], key=_start), finite)
    return tuple(_at(rows, sorted(events, key=_start)))


def _start(event: Event) -> int:
    return event.start


def _beside(jumps: Sequence[Event], values: Numbers) -> list[Event]:
    """Rises without a jump beside those with one; those before a jump that stays do not come back, either."""
    rest, end = np.ones(len(values), bool), len(values)
    for event in jumps:
        rest[event.start : event.stop] = False
        end = end if event.kind == "spike" else event.start
    if end < 2 * _BEFORE:
        return []
    kept = np.flatnonzero(rest[:end])
    slow = _at(kept, _slow(values[kept]))
    if end < len(values):
        slow = [event if event.kind == "spike" else _to_end(event, len(values)) for event in slow]
    return slow


def _to_end(event: Event, rows: int) -> Event:
    return replace(event, kind="divergence" if _lasts(rows - event.start, rows) else "rise", stop=rows - 1)


def _at(rows: NDArray[np.intp], events: Sequence[Event]) -> list[Event]:
    """Events of some rows, as events of all."""
    places = [(int(rows[event.start]), int(rows[event.stop]), int(rows[event.begun])) for event in events]
    return [
        replace(event, start=start, stop=stop, begun=begun)
        for event, (start, stop, begun) in zip(events, places, strict=True)
    ]


def worst(events: Sequence[Event]) -> Event | None:
    """The event that matters most, the first of its kind; None without one."""
    order = ("non_finite", "divergence", "rise", "spike")
    return min(events, key=lambda event: (order.index(event.kind), event.start), default=None)


def lost_for_good(values: Numbers) -> int:
    """The row from which on no logged value is finite; the number of rows, if the last one is finite.

    >>> lost_for_good(np.array([np.inf, 1.0, np.nan, np.inf, np.inf])), lost_for_good(np.array([np.inf, 1.0]))
    (3, 2)
    """
    since = int(np.append(np.flatnonzero(np.isfinite(values)), -1).max()) + 1
    return next(iter((since + np.flatnonzero(np.isinf(values[since:]))).tolist()), len(values))


def noise_of(values: Numbers) -> float:
    """The spread of a curve around its trend: from the smaller half of its differences, which no event widens."""
    if len(values) < 2:
        return 0.0
    return float(np.quantile(np.abs(np.diff(values)), 0.25) / 0.3186 / math.sqrt(2))  # of a normal distribution


def _noise_before(values: Numbers) -> Numbers:
    """Row by row: the noise of the whole curve, or of the rows just before where that is clearly larger.

    Many a loss varies the less the lower it is.
    """
    whole, rows = noise_of(values), max(_NEAR, len(values) // _DECIDED_SHARE)
    if len(values) < rows:
        return np.full(len(values), whole)
    apart = rows // 3
    steps = np.lib.stride_tricks.sliding_window_view(np.diff(values), rows - 1)[::apart]
    bent = np.abs(steps - np.median(steps, axis=-1, keepdims=True))  # a fast fall is no noise
    near = np.median(bent, axis=-1) / 0.6745 / math.sqrt(2)
    near[near < _CLEARLY * whole] = whole
    return np.asarray(near[np.clip((np.arange(len(values)) - rows) // apart, 0, None)])


def _jumps(values: Numbers) -> list[Event]:
    events: list[Event] = []
    noises, usual, at = _noise_before(values), list[float](), 0
    while at < len(values):
        noise = float(noises[at])
        before, least = _level(values, usual[-_BEFORE:] or values[:1], noise)
        if values[at] > before + least:
            back = np.flatnonzero(values[at:] <= before + least / 2)
        else:  # after a fast fall that is no low level: what is soon back counts, too
            lately, less = _level(values, usual[-_RECENT:] or values[:1], noise)
            fell = values[at] > lately + less < before / 2
            back = np.flatnonzero(values[at : at + _BEFORE] <= lately + less / 2) if fell else np.empty(0, np.intp)
            if not back.size:
                usual.append(float(values[at]))
                at += 1
                continue
        last = events[-1].stop if events else 0
        calm = np.flatnonzero(values[last:at] <= before + TIMES_NOISE * noise)
        begun = last + int(calm[-1]) + 1 if calm.size else last
        if not back.size:
            return [*events, Event(_open_end(values, at, events), at, len(values) - 1, begun, noise=noise)]
        stop = at + int(back[0])
        events.append(Event("spike", at, stop, begun, noise=noise))
        at = stop
    return events


def _level(values: Numbers, usual: Sequence[float] | Numbers, noise: float) -> tuple[float, float]:
    """What was usual, and by how much a value is above it that counts."""
    before = float(statistics.median(usual))
    return before, max(TIMES_NOISE * noise, _SHARE * abs(before), _OF_FIRST * abs(float(values[0])))


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
    smooth, events, at = smoothed(values), list[Event](), 0
    lowest = np.minimum.accumulate(smooth)
    noises = _noise_before(values)[np.maximum.accumulate(np.where(smooth == lowest, np.arange(len(values)), 0))]
    counts = np.maximum(_SHARE * np.abs(lowest), _OF_FIRST * abs(values[0]))
    least = np.maximum(counts, _TIMES_LASTING * noises)
    while (above := np.flatnonzero(smooth[at:] > (lowest + least)[at:])).size:
        at += int(above[0])
        usual, enough, noise = float(lowest[at]), float(least[at]), float(noises[at])
        begun = int(np.flatnonzero(smooth[:at] <= usual + _OF_MEDIAN * noise)[-1]) + 1
        back = np.flatnonzero(smooth[at:] <= usual + enough / 2)
        stop = at + int(back[0]) if back.size else len(values) - 1
        returns = back.size or np.median(values[-3:]) <= usual + counts[at]  # a smoothed end is late to show it
        lasts = _lasts(stop - at, len(values))
        if lasts or float(smooth[at : stop + 1].max()) > usual + TIMES_NOISE * noise:
            kind: EventKind = "spike" if returns else "divergence" if lasts else "rise"
            events.append(Event(kind, at, stop, begun, slow=True, noise=noise))
        at = stop if back.size else len(values)
    return events


def _in_part(events: Sequence[Event], values: Numbers) -> list[Event]:
    """The same; if all are spikes, the first after which the loss stays clearly above its lowest is a divergence.

    That is asked of medians of many rows: of a loss with much noise a single value tells less.
    """
    rows = len(values) // _DECIDED_SHARE
    if rows < _BEFORE or any(event.kind != "spike" for event in events):
        return list(events)
    apart = rows // 5
    medians = np.median(np.lib.stride_tricks.sliding_window_view(values, rows)[::apart], axis=-1)
    before, after = np.minimum.accumulate(medians), np.minimum.accumulate(medians[::-1])[::-1]
    least = np.maximum(_SHARE * np.abs(before), _OF_FIRST * abs(values[0]))
    above = before + np.maximum(least, _AVERAGED * noise_of(values) / math.sqrt(rows))
    for at, event in enumerate(events):
        last, first = (event.start - rows) // apart, -(-event.stop // apart)  # of medians before it and after
        broad = event.stop - event.start >= _BEFORE and last >= 0
        if broad and first < len(medians) and after[first] > above[last]:
            stays = replace(event, kind="divergence", stop=len(values) - 1, part=True)
            return [*events[:at], stays, *events[at + 1 :]]
    return list(events)
