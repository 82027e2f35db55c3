"""What became of a training run, and whether attention did it, from its log alone.

* `run(log)`: events of the loss, growth of the largest logit, and causes, the likeliest first.

Three rules, in this order. A network whose attention is lost still guesses as well as at its start: a loss that rises
well above where it began has another cause. Attention is blamed only if its logits were large, or its entropy gone,
just before the loss moved; what was so earlier and had passed is said, and not blamed. In one row, or in a slow rise,
either may have come first. And a loss that never fell, and did not move, is restless if some of its values lie far
above its course: steps that are too long do that, and hard batches; if it rests, and logits were large for most of the
run, attention stands in the way. Where a log holds neither logits nor entropy, nobody can tell: that is the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.diagnose.curves.ending import JUST_BEFORE, just_before, of_missing
from qkdemo.diagnose.curves.growth import LARGE, Growth, growth
from qkdemo.diagnose.curves.loss import Event, Numbers, loss_events, smoothed, worst
from qkdemo.diagnose.curves.other_columns import (
    BEFORE,
    LOST_LOGITS,
    Cause,
    holds_rewards,
    leaves_out,
    of_gradient,
    of_lost_logits,
    of_updates,
    of_zeros,
    with_finite_logits,
)
from qkdemo.diagnose.curves.passing import of_passed, that_matter
from qkdemo.diagnose.curves.stuck import BEYOND, ONE_HOT, of_stuck, there
from qkdemo.diagnose.curves.thinning import thinned
from qkdemo.diagnose.readers.columns import OF_POLICY, Log, choices, roles

CALM: Final = 50.0  # |logit| up to which logits are no cause
COLLAPSED: Final = 0.05  # entropy fraction: one key has nearly everything
_LEAST_LOSSES: Final = 20  # before a loss is called well: a slow rise over fewer is not seen
_ROUNDING: Final = 1e-3  # by which a share may leave 0 to 1
_SEEN: Final = 0.7  # the weight of a cause that a log shows before the loss moved, or as it did
_ORDERS: Final = {"attention": 0.9, "rising": 0.8, "together": _SEEN}  # by when attention was bad
_WITHOUT_LOSS: Final = ("no_loss", "logits_alone")  # keys of causes


@dataclass(frozen=True, eq=False)
class Result:
    """What a log says. `healthy`: no event, and no growth that leads to one."""

    log: Log
    roles: Mapping[str, str]
    events: tuple[Event, ...]
    growth: Growth | None
    causes: tuple[Cause, ...]
    event: Event | None = None  # the one that is spoken of
    no_share: str = ""  # a column named for an entropy that holds no share, and was not read
    all_rows: int = 0  # of the log, before it was thinned
    named: frozenset[str] = frozenset()  # roles whose column the reader named

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to mend."""
        return not self.causes or self.causes[0].key in ("healthy", "logits_alone", "policy_loss")


def run(log: Log, given: Mapping[str, str] | None = None) -> Result:
    """Everything that is said of one run. `given` corrects which column is what."""
    known = {**roles(log), **(given or {})}
    with np.errstate(over="ignore", invalid="ignore"):  # numbers near the end of float64, of which all is said
        found = _result(thinned(log, known), given, of_missing(log, known))
    return replace(found, all_rows=len(log.step), named=frozenset(given or ()))


def _result(log: Log, given: Mapping[str, str] | None, missing: Sequence[Cause]) -> Result:
    known = {**roles(log), **(given or {})}
    columns = {role: log.columns[name] for role, name in known.items() if name in log.columns}
    columns = {role: column for role, column in columns.items() if not np.isnan(column).all()}
    if "lr" in columns and "lr" not in (given or {}):  # the largest of any group's
        columns["lr"] = np.fmax.reduce([np.abs(log.columns[name]) for name in choices(log)["lr"]])
    no_share = ""
    if "entropy" in columns and not _is_share(columns["entropy"]):
        no_share = known.pop("entropy")
        del columns["entropy"]
    left_out = leaves_out(log.columns) and not ("loss" in columns and np.isinf(columns["loss"]).any())
    found = list(missing)
    chosen = "loss" in columns and "loss" not in (given or {})
    policy = chosen and (holds_rewards(log.columns) or OF_POLICY.search(known["loss"]) is not None)
    if "loss" in columns and not policy and (zeros := of_zeros(columns["loss"], log.step, log.columns)):
        found.append(zeros)
        lost = (columns["loss"] == 0) & (log.step >= zeros.numbers["step"]) & (zeros.key == "loss_zeros")
        columns["loss"] = np.where(lost, np.inf, columns["loss"])
    found += of_gradient(columns, log.step, left_out=left_out)
    if policy:
        columns["loss"] = np.where(np.isinf(columns["loss"]), np.inf, np.nan)
        if np.isnan(columns["loss"]).all():
            del columns["loss"]
    elif left_out and {"loss", "grad_norm"} <= columns.keys():  # a single 0 that stands for such a loss, too
        columns["loss"] = np.where((columns["loss"] == 0) & np.isinf(columns["grad_norm"]), np.nan, columns["loss"])
    events = loss_events(columns["loss"]) if "loss" in columns else ()
    grown = None
    if "max_logit" in columns and not np.isinf(columns["max_logit"]).any():  # ∞ has no rate
        grown = growth(log.step, columns["max_logit"], columns.get("q_norm"), columns.get("k_norm"))
    found += of_lost_logits(columns, log.step)
    columns = with_finite_logits(columns)
    event = _spoken_of(columns, events, log.step)
    found += _causes(columns, events, event, grown, log.step)
    if policy:
        found = [Cause("policy_loss", 0.2, {}), *(cause for cause in found if cause.key not in _WITHOUT_LOSS)]
    causes = tuple(sorted(found, key=lambda cause: -cause.weight))
    return Result(log, known, events, grown, causes, event, no_share)


def _is_share(entropy: Numbers) -> bool:
    """Whether a column can be an entropy as a share of the most possible: all its numbers are from 0 to 1."""
    numbers = entropy[np.isfinite(entropy)]
    return bool(numbers.size and numbers.min() >= -_ROUNDING and numbers.max() <= 1 + _ROUNDING)


def _spoken_of(columns: Mapping[str, Numbers], events: tuple[Event, ...], step: Numbers) -> Event | None:
    """The worst event; of several that are as bad, the first of those that have the best supported cause.

    Of lasting rises that is the first whose cause is seen in the log, else the first.
    """
    event = worst(events)
    if event is None or event.kind == "non_finite":
        return event
    if event.kind != "spike":
        lasting = [event for event in events if event.kind != "spike"]
        seen = (rise for rise in lasting if _support(columns, rise, step) >= _SEEN)
        return next(seen, lasting[0])
    last = np.flatnonzero(~np.isnan(columns["loss"]))[-1]  # a spike that ends there may not have passed
    spikes = [spike for spike in that_matter(columns["loss"], events) if spike.stop < last]
    return max(spikes or [event], key=lambda spike: _support(columns, spike, step))


def _support(columns: Mapping[str, Numbers], event: Event, step: Numbers) -> float:
    return max(cause.weight for cause in _explained(columns, event, step))


def _explained(columns: Mapping[str, Numbers], event: Event, step: Numbers) -> list[Cause]:
    return [*of_updates(columns, event, step), _of_event(columns, event, step)]


def _causes(
    columns: Mapping[str, Numbers],
    events: tuple[Event, ...],
    event: Event | None,
    grown: Growth | None,
    step: Numbers,
) -> list[Cause]:
    if event is not None and event.kind == "divergence" and (beyond := _beyond(columns, event, step)):
        return [*of_updates(columns, event, step), beyond]
    passed = event is None or event.kind == "spike"
    if passed and (stuck := of_stuck(columns, step)) is not None:  # of a loss that moved, what moved it is asked first
        return [stuck]
    if event is None:
        return [*_warnings(columns, grown, step), _of_calm(columns)]
    if passed and not that_matter(columns["loss"], events):
        few = _few(columns["loss"])
        return [*_warnings(columns, grown, step), of_passed(columns["loss"], events, step), *few]
    return _explained(columns, event, step)


def _of_calm(columns: Mapping[str, Numbers]) -> Cause:
    """No event: of the loss, or of the logits if there is no loss."""
    if "loss" in columns:
        return next(iter(_few(columns["loss"])), Cause("healthy", 0.1, {}))
    sizes = there(np.abs(columns.get("max_logit", np.empty(0))))
    return Cause("logits_alone", 0.1, {"logit": float(sizes.max())}) if sizes.size else Cause("no_loss", 0.1, {})


def _few(loss: Numbers) -> list[Cause]:
    """Losses among which no slow rise is looked for."""
    losses = int(np.isfinite(loss).sum())
    return [Cause("few_losses", 0.1, {"count": losses})] if losses < _LEAST_LOSSES else []


def _of_event(columns: Mapping[str, Numbers], event: Event, step: Numbers) -> Cause:
    moment = {"step": float(step[event.start])}
    rows = {name: just_before(columns[name], event.start) for name in _BAD if name in columns}
    rows = {name: known for name, known in rows.items() if known.size}
    attention = _of_attention(columns, rows, event, step) if rows else None
    if attention is not None:
        return attention
    if columns.get(LOST_LOGITS, np.zeros(1))[: event.start + 1].any():
        return Cause("logits_gone", 0.5, moment)
    if not rows:
        return Cause("cannot_tell", 0.5, moment)
    if "max_logit" not in rows:
        return Cause("entropy_alone", 0.5, moment)
    sizes = np.abs(columns["max_logit"])
    passed = np.flatnonzero(sizes[: event.start + 1] >= LARGE)
    if passed.size and event.kind != "rise":
        numbers = {"last_large": float(step[passed[-1]]), "logit": float(sizes[rows["max_logit"]].max())}
        return Cause("logits_passed", 0.6, moment | numbers)
    calm = {"spike": "not_attention" if event.slow else "one_batch", "rise": "unsettled"}
    return Cause(calm.get(event.kind, "not_attention"), 0.6, moment | _largest(columns, event))


# ---- the loss


def _beyond(columns: Mapping[str, Numbers], event: Event, step: Numbers) -> Cause | None:
    """A loss that rises well above where it began, which a lost attention alone does not bring about."""
    loss = columns["loss"]
    before, after = (part[np.isfinite(part)] for part in (loss[: event.start], loss[event.start :]))
    first = float(np.median(before[:3]))
    last = float(smoothed(after).max())
    if first <= 0 or last < BEYOND * first:
        return None
    numbers = {"step": float(step[event.start]), "first": first, "last": last}
    return Cause("beyond_start", 0.9, numbers | _largest(columns, event))


# ---- attention


_BAD: Final[Mapping[str, Callable[[Numbers], Any]]] = {
    "max_logit": lambda sizes: sizes >= LARGE,
    "entropy": lambda sizes: sizes <= COLLAPSED,
}


def _of_attention(
    columns: Mapping[str, Numbers], rows: Mapping[str, NDArray[np.intp]], event: Event, step: Numbers
) -> Cause | None:
    """Attention, if its logits were large or its entropy gone just before the loss moved, or in that very row."""
    since = {name: _since(columns[name], rows[name], _BAD[name]) for name in rows}
    for place, weight in _ORDERS.items():
        for name, first in since.items():
            if first is not None and event.order(first) == place:
                numbers = {"step": float(step[event.start]), "since": float(step[first])}
                numbers |= _largest(columns, event, first)
                numbers["earliest"] = float(step[min(at for at in since.values() if at is not None)])
                numbers["from_first"] = float(first == np.flatnonzero(~np.isnan(columns[name]))[0])
                if place == "rising":
                    numbers["low"] = float(step[event.begun - 1])
                once = int(np.flatnonzero(_BAD[name](np.abs(columns[name])))[0])
                if once < first:
                    numbers["once"] = float(step[once])
                return Cause(f"{place}_{name}", weight, numbers)
    return None


def _since(values: Numbers, rows: NDArray[np.intp], bad: Callable[[Numbers], Any]) -> int | None:
    """The row since which values are bad, but for gaps of fewer than JUST_BEFORE; None if these rows are well."""
    if not bad(np.abs(values[rows])).any():
        return None
    known = np.flatnonzero(~np.isnan(values[: rows[-1] + 1]))
    at = np.flatnonzero(bad(np.abs(values[known])))  # places among what is known
    gaps = np.flatnonzero(np.diff(at) > JUST_BEFORE)
    return int(known[at[gaps[-1] + 1 if gaps.size else 0]])


def _largest(columns: Mapping[str, Numbers], event: Event, first: int = 0) -> dict[str, float]:
    """The largest logit from a row on until the loss moved; nothing if the log holds none."""
    sizes = there(np.abs(columns.get("max_logit", np.empty(0))[first : event.start + 1]))
    return {"logit": float(sizes.max())} if sizes.size else {}


def _warnings(columns: Mapping[str, Numbers], grown: Growth | None, step: Numbers) -> list[Cause]:
    """No event yet, but logits on their way, or attention that is one-hot already."""
    sizes = there(np.abs(columns.get("max_logit", np.empty(0))))
    if not sizes.size or LOST_LOGITS in columns:
        return []
    last = float(np.median(sizes[-3:])) if grown is None else grown.last
    at = step[np.isfinite(columns["max_logit"])]  # the steps of which there is a logit
    if last >= LARGE:
        entropy = there(columns.get("entropy", np.empty(0)))[-BEFORE:]
        if entropy.size and np.median(entropy) <= ONE_HOT:
            rows = np.flatnonzero(~np.isnan(columns["max_logit"]))[-JUST_BEFORE:]
            since = _since(columns["max_logit"], rows, _BAD["max_logit"]) or 0
            numbers = {"logit": last, "entropy": 100 * float(np.median(entropy)), "earliest": float(step[since])}
            return [Cause("nearly_one_hot", 0.8, numbers)]
        looked_at = "loss" in columns and not _few(columns["loss"])
        return [Cause("large_logits" if looked_at else "large_alone", 0.7, {"logit": last})]
    soon = at[-1] + 0.5 * (at[-1] - at[0])  # within half as many steps again
    if grown is None or not grown.grows or grown.slows or last <= CALM / 5:
        return []
    large_at = float(at[-1] + np.log(LARGE / last) / grown.rate)  # again, if it was there before
    if step[-1] < large_at <= soon:
        return [Cause("growing_logits", 0.6, {"logit": last, "large_at": large_at})]
    return []
