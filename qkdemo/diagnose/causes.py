"""What became of a training run, and whether attention did it, from its log alone.

* `run(log)`: events of the loss, growth of the largest logit, and causes, the likeliest first;
* `loss_events(loss)`: spikes that recover, divergences that do not, and what is not finite, told apart;
* `growth(step, logit)`: by how much the largest logit grows, with an interval, and when it will reach a limit.

Attention is blamed only if its logits were large, or its entropy gone, before the loss moved. Where a log holds
neither, nobody can tell, and that is the answer.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.diagnose.logs import Log, roles

EventKind: TypeAlias = Literal["spike", "divergence", "non_finite"]
Numbers: TypeAlias = NDArray[np.float64]

LARGE: Final = 100.0  # |logit| from which a softmax over any context can be one-hot, and trouble is reported (anchors)
CALM: Final = 50.0  # |logit| up to which logits are no cause
COLLAPSED: Final = 0.05  # entropy fraction
_FLOAT16: Final = 65504.0
_TIMES_NOISE: Final = 4.0
_SHARE: Final = 0.1  # of the loss before: smaller changes are no event
_OF_FIRST: Final = 0.03  # of the loss at the start: nor are these, once a loss is nearly 0
_NEVER: Final = 0.9  # of the loss after the first steps: a run that never came below it has learnt nothing
_STILL: Final = 0.03  # of that loss: a fall of less is none
_LEAST_STUCK: Final = 50  # rows, before that is said
_EARLY: Final = 0.2  # of a run, within which logits that are large were large from the start
_SMALL: Final = 0.5  # of the first loss: a spike that stays below it and passes is a matter of course
_BEFORE: Final = 10  # values that say what was usual
_LEAD: Final = 20  # rows within which a spike of updates is taken for the reason
_SPIKE: Final = 3.0  # times what was usual, for an update's norm
_MOST_POINTS: Final = 300
_Z: Final = 1.96


@dataclass(frozen=True)
class Event:
    """What happened to the loss; `start` and `stop` are rows, `stop` the first that is usual again, or the last row."""

    kind: EventKind
    start: int
    stop: int


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

    @property
    def grows(self) -> bool:
        """Whether the interval leaves out standing still."""
        return self.low > 0


@dataclass(frozen=True)
class Cause:
    """One explanation: a key of say("cause.…"), its numbers, and how well the log supports it, 0 to 1."""

    key: str
    weight: float
    numbers: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Result:
    """What a log says. `healthy`: no event, and no growth that leads to one."""

    log: Log
    roles: Mapping[str, str]
    events: tuple[Event, ...]
    growth: Growth | None
    causes: tuple[Cause, ...]

    @property
    def worst(self) -> Event | None:
        """The event that matters most; None without one."""
        return _worst(self.events)

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to mend."""
        return not self.causes or self.causes[0].key == "healthy"


def run(log: Log, given: Mapping[str, str] | None = None) -> Result:
    """Everything that is said of one run. `given` corrects which column is what."""
    known = {**roles(log), **(given or {})}
    columns = {role: log.columns[name] for role, name in known.items() if name in log.columns}
    loss = columns.get("loss")
    events = () if loss is None else loss_events(loss)
    grown = None
    if "max_logit" in columns:
        grown = growth(log.step, columns["max_logit"], columns.get("q_norm"), columns.get("k_norm"))
    causes = tuple(sorted(_causes(columns, events, grown, log.step), key=lambda cause: -cause.weight))
    return Result(log=log, roles=known, events=events, growth=grown, causes=causes)


# ---- the loss


def loss_events(loss: Numbers) -> tuple[Event, ...]:
    """Spikes, a divergence, and the first value that is not finite: ∞; NaN is a step without a value."""
    rows = np.flatnonzero(~np.isnan(loss))
    values = loss[rows]
    gone = np.flatnonzero(np.isinf(values))
    finite = values[: gone[0]] if gone.size else values
    events = _jumps(finite)
    if not any(event.kind == "divergence" for event in events) and not gone.size:
        events += _slow(finite)
    if gone.size:
        events.append(Event("non_finite", int(gone[0]), len(values) - 1))
    return tuple(Event(event.kind, int(rows[event.start]), int(rows[event.stop])) for event in events)


def noise_of(values: Numbers) -> float:
    """The spread of a curve around its trend: from the smaller half of its differences, which no event widens."""
    if len(values) < 2:
        return 0.0
    return float(np.quantile(np.abs(np.diff(values)), 0.25) / 0.3186 / math.sqrt(2))  # of a normal distribution


def _jumps(values: Numbers) -> list[Event]:
    events: list[Event] = []
    noise, usual, at = noise_of(values), list[float](), 0
    while at < len(values):
        before = float(np.median(usual[-_BEFORE:])) if usual else values[at]
        least = max(_TIMES_NOISE * noise, _SHARE * abs(before), _OF_FIRST * abs(values[0]))
        if values[at] <= before + least:
            usual.append(float(values[at]))
            at += 1
            continue
        back = np.flatnonzero(values[at:] <= before + least / 2)
        if not back.size:
            return [*events, Event("divergence", at, len(values) - 1)]
        stop = at + int(back[0])
        events.append(Event("spike", at, stop))
        at = stop
    return events


def _smoothed(values: Numbers) -> Numbers:
    """The median of a few values around each."""
    half = _BEFORE // 2
    return np.array([np.median(values[max(0, at - half) : at + half + 1]) for at in range(len(values))])


def _slow(values: Numbers) -> list[Event]:
    """A rise without a jump: the end lies well above the best that was."""
    if len(values) < 2 * _BEFORE:
        return []
    smooth = _smoothed(values)
    best = int(smooth.argmin())
    least = max(_TIMES_NOISE * noise_of(values), _SHARE * abs(smooth[best]), _OF_FIRST * abs(values[0]))
    return [Event("divergence", best, len(values) - 1)] if smooth[-1] > smooth[best] + least else []


# ---- the logits


def growth(
    step: Numbers, logit: Numbers, q_norm: Numbers | None = None, k_norm: Numbers | None = None
) -> Growth | None:
    """How the largest |logit| grows over the later two thirds; None if fewer than six of its values are finite."""
    kept = np.isfinite(logit) & (np.abs(logit) > 0)
    if kept.sum() < 6:
        return None
    x, y = _later(step[kept], np.log(np.abs(logit[kept])))
    rate, low, high = slope(x, y)
    last = float(np.exp(np.median(y[-3:])))
    return Growth(
        rate=rate,
        low=low,
        high=high,
        last=last,
        large_at=_reached(step[kept], np.abs(logit[kept]), LARGE, (rate, low)),
        limit_at=_reached(step[kept], np.abs(logit[kept]), _FLOAT16, (rate, low)),
        by=_grown_by(step, logit, q_norm, k_norm),
    )


def slope(x: Numbers, y: Numbers) -> tuple[float, float, float]:
    """The median of all slopes between two points, and its 95 % interval. (Sen 1968, with Kendall's variance.)"""
    if len(x) > _MOST_POINTS:
        chosen = np.linspace(0, len(x) - 1, _MOST_POINTS).round().astype(int)
        x, y = x[chosen], y[chosen]
    first, second = np.triu_indices(len(x), 1)
    slopes = np.sort((y[second] - y[first]) / (x[second] - x[first]))
    n = len(x)
    half = _Z * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = max(0, int((len(slopes) - half) / 2))
    high = min(len(slopes) - 1, math.ceil((len(slopes) + half) / 2))
    return float(np.median(slopes)), float(slopes[low]), float(slopes[high])


def _later(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    start = len(x) // 3
    return (x[start:], y[start:]) if len(x) - start >= 6 else (x, y)


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
    kept = np.isfinite(logit) & np.isfinite(q_norm) & np.isfinite(k_norm) & (np.abs(logit) > 0)
    if kept.sum() < 6:
        return "unknown"
    x = step[kept]
    whole = slope(*_later(x, np.log(np.abs(logit[kept]))))
    lengths = slope(*_later(x, np.log(q_norm[kept] * k_norm[kept])))
    if whole[1] <= 0:
        return "unknown"
    share = lengths[0] / whole[0]
    return "norms" if share > 0.7 else "alignment" if share < 0.3 else "both"


# ---- causes


def _causes(
    columns: Mapping[str, Numbers], events: tuple[Event, ...], grown: Growth | None, step: Numbers
) -> list[Cause]:
    stuck = _of_stuck(columns)
    if stuck is not None:
        return [*_of_gradient(columns, step), stuck]
    worst = _worst(events)
    if worst is not None and worst.kind == "spike" and _passes(columns["loss"], events):
        small = Cause("small_spikes", 0.3, {"count": len(events)})
        return [*_of_gradient(columns, step), *_warnings(grown, step), small]
    if worst is None:
        return [
            *_of_gradient(columns, step),
            *_warnings(grown, step),
            Cause("healthy" if "loss" in columns else "no_loss", 0.1, {}),
        ]
    found = [*_of_gradient(columns, step), *_of_updates(columns, worst, step)]
    moment = {"step": float(step[worst.start])}
    if not {"max_logit", "entropy"} & columns.keys():
        return [*found, Cause("cannot_tell", 0.5, moment)]
    attention = _of_attention(columns, worst, step)
    if attention is not None:
        return [*found, attention]
    return [
        *found,
        Cause("one_batch" if worst.kind == "spike" else "not_attention", 0.6, moment | _largest(columns, worst)),
    ]


def _worst(events: tuple[Event, ...]) -> Event | None:
    order = ("non_finite", "divergence", "spike")
    return min(events, key=lambda event: (order.index(event.kind), event.start), default=None)


def _of_stuck(columns: Mapping[str, Numbers]) -> Cause | None:
    """A loss that never fell: attention, if its logits were large from the start, else the rate or what is learnt."""
    loss = columns.get("loss", np.empty(0))
    loss = loss[np.isfinite(loss)]
    if len(loss) < _LEAST_STUCK:
        return None
    tenth = len(loss) // 10
    smooth = _smoothed(loss[tenth:])  # the first steps fall from a random start to chance in any run
    first, last = float(np.median(loss[tenth : 2 * tenth])), float(np.median(loss[-tenth:]))
    if smooth.min() < _NEVER * first or last < first - max(_STILL * abs(first), noise_of(loss)):
        return None
    if "max_logit" not in columns:
        return Cause("stuck", 0.6, {})
    sizes = np.abs(columns["max_logit"])
    early = sizes[: max(3, int(_EARLY * len(sizes)))]
    early = early[~np.isnan(early)]
    large = early.size and np.median(early) >= LARGE
    numbers = {"logit": float(np.median(early))} if early.size else {}
    return Cause("stuck_attention" if large else "stuck_rate", 0.9, numbers)


def _passes(loss: Numbers, events: tuple[Event, ...]) -> bool:
    """Whether every spike, but in the first steps, stays well below the loss of the start: batches differ."""
    most = _SMALL * float(np.median(loss[np.isfinite(loss)][:3]))
    later = [event for event in events if event.start > len(loss) // 20]
    return all(np.nanmax(loss[event.start : event.stop]) < most for event in later)


def _of_attention(columns: Mapping[str, Numbers], event: Event, step: Numbers) -> Cause | None:
    """Attention, if its logits were large or its entropy gone before the loss moved."""
    bad: dict[str, Callable[[Numbers], Any]] = {
        "max_logit": lambda sizes: sizes >= LARGE,
        "entropy": lambda sizes: sizes <= COLLAPSED,
    }
    for name in (name for name in bad if name in columns):
        early = np.flatnonzero(bad[name](np.abs(columns[name][: event.start + 1])))
        if early.size:
            numbers = {"step": float(step[event.start]), "since": float(step[early[0]])} | _largest(columns, event)
            return Cause(f"attention_{name}", 0.9 if early[0] < event.start else 0.7, numbers)
    return None


def _largest(columns: Mapping[str, Numbers], event: Event) -> dict[str, float]:
    if "max_logit" not in columns:
        return {}
    sizes = np.abs(columns["max_logit"][: event.start + 1])
    sizes = sizes[np.isfinite(sizes)]
    return {"logit": float(sizes.max())} if sizes.size else {}


def _of_updates(columns: Mapping[str, Numbers], event: Event, step: Numbers) -> list[Cause]:
    """Updates that jumped within the rows before the loss did."""
    if "update_norm" not in columns:
        return []
    sizes = columns["update_norm"]
    for at in range(max(_BEFORE, event.start - _LEAD), event.start):
        before = sizes[max(0, at - _LEAD) : at]
        before = before[np.isfinite(before)]
        if before.size >= _BEFORE and sizes[at] > _SPIKE * np.median(before):
            numbers = {
                "step": float(step[event.start]),
                "at": float(step[at]),
                "times": float(sizes[at] / np.median(before)),
            }
            return [Cause("updates", 0.8, numbers)]
    return []


def _of_gradient(columns: Mapping[str, Numbers], step: Numbers) -> list[Cause]:
    """A gradient that is not finite beside a loss that is: the backward pass overflowed, not the logits."""
    if "grad_norm" not in columns or "loss" not in columns:
        return []
    both = np.flatnonzero(np.isinf(columns["grad_norm"]) & np.isfinite(columns["loss"]))
    return [Cause("gradient_overflow", 0.95, {"step": float(step[both[0]])})] if both.size else []


def _warnings(grown: Growth | None, step: Numbers) -> list[Cause]:
    """No event yet, but logits on their way."""
    if grown is None:
        return []
    if grown.last >= LARGE:
        return [Cause("large_logits", 0.7, {"logit": grown.last})]
    soon = step[-1] + 0.5 * (step[-1] - step[0])  # within half as many steps again
    if grown.grows and grown.large_at is not None and grown.large_at <= soon and grown.last > CALM / 5:
        return [Cause("growing_logits", 0.6, {"logit": grown.last, "large_at": grown.large_at})]
    return []
