"""Causes that other columns than the loss name: updates that jumped, a gradient or a logit that is not finite.

* `Cause`: one explanation; `of_updates`, `of_gradient`, `of_lost_logits`: those that a log shows, none if it does not;
* `of_zeros`: a loss that ends in zeros, lost or not; `holds_rewards(names)`: whether it is of reinforcement learning;
* `with_finite_logits(columns)`: without logits that are not finite; `LOST_LOGITS` then says where they were;
* `leaves_out(names)`: whether these columns are those of a log that leaves out losses that are not finite.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.diagnose.curves.loss import Event, Numbers, lost_for_good
from qkdemo.diagnose.readers.columns import EVALUATED

Rows: TypeAlias = NDArray[np.intp]

LOST_LOGITS: Final = "lost_logits"
BEFORE: Final = 10  # rows that say what was usual
_LEAD: Final = 20  # rows within which a spike of updates is taken for the reason
_SPIKE: Final = 3.0  # times what was usual, for an update's norm
_OF_UPDATES: Final = {True: 0.8, False: 0.55}  # weight of updates before the loss moved, and while it may have risen
_LEAST_ZEROS: Final = 5  # losses
_NEARLY: Final = 0.01  # a loss that was below may have fallen to 0
_DIGITS: Final = 5  # so many of the last digit that is logged may have, too
_PASSED: Final = 10  # rows in which a gradient is finite again
_RARELY: Final = 100  # rows in which a scaler tries a scale too large once; a new one in its first few
_FIRST: Final = 20  # of these
_REWARD: Final = re.compile(
    r"(^|[/.])((mean_|rlhf_|episode_|non_score_)*rewards?(_std|_mean|/mean|/std)?|ep_rew_mean|episod(e|ic)_return(_mean)?)$",
    re.IGNORECASE,
)
_MARGIN: Final = re.compile(r"(^|[/._])margins?$", re.IGNORECASE)
_PREFERRED: Final = re.compile(rf"{_MARGIN.pattern}|(^|[/._])(rewards|logps)[/._](chosen|rejected)$", re.IGNORECASE)
_LEAST_MARGIN: Final = 1.0  # with less no mean of a hinge, 1 − margin, is 0, and none of −log σ(margin) is below 0.3
_OF_TRAINER: Final = frozenset({"loss", "grad_norm", "learning_rate", "epoch"})  # as Hugging Face's Trainer calls them


@dataclass(frozen=True)
class Cause:
    """One explanation: a key of say("cause.…"), its numbers, and how well the log supports it, 0 to 1."""

    key: str
    weight: float
    numbers: Mapping[str, float]


def of_updates(columns: Mapping[str, Numbers], event: Event, step: Numbers) -> list[Cause]:
    """Updates that jumped within the rows before the loss did."""
    if "update_norm" not in columns:
        return []
    sizes = columns["update_norm"]
    for at in range(max(BEFORE, event.start - _LEAD), event.start):
        before = sizes[max(0, at - _LEAD) : at]
        before = before[np.isfinite(before)]
        usual = float(np.median(before)) if before.size >= BEFORE else 0.0
        if usual > 0 and sizes[at] > _SPIKE * usual:
            numbers = {"step": float(step[event.start]), "at": float(step[at])}
            before_it = at < event.begun
            numbers |= {} if before_it else {"low": float(step[event.begun - 1])}
            if np.isinf(sizes[at]):
                return [Cause("updates_lost", _OF_UPDATES[before_it], numbers)]
            return [Cause("updates", _OF_UPDATES[before_it], numbers | {"times": float(sizes[at] / usual)})]
    return []


def leaves_out(names: Iterable[str]) -> bool:
    """Whether these columns are those of Hugging Face's Trainer, which logs no loss that is not finite.

    In its place it adds the mean of the others, and logs 0 where there are none (`logging_nan_inf_filter`; trainer.py
    of transformers 5.24).

    >>> leaves_out(["train/loss", "train/grad_norm", "train/learning_rate", "train/epoch"]), leaves_out(["loss"])
    (True, False)
    """
    return {name.rpartition("/")[2] for name in names} >= _OF_TRAINER


def of_gradient(columns: Mapping[str, Numbers], step: Numbers, *, left_out: bool = False) -> list[Cause]:
    """A gradient that is not finite beside a logged loss that is: if that is all of it, no logit overflowed.

    Where losses are `left_out`, the loss may be lost as well. Rows from which on the loss is lost for good are its own.
    If no gradient is lost in a row that holds a loss, the next loss counts, or the last one behind it.
    """
    if "grad_norm" not in columns or "loss" not in columns:
        return []
    sizes, until = columns["grad_norm"], lost_for_good(columns["loss"])
    lost, loss = np.flatnonzero(np.isinf(sizes)), columns["loss"][:until]
    both = lost[np.isfinite(columns["loss"][lost])]
    alone = {} if both.size else {"alone": 1.0}
    both = both if both.size else lost[np.isfinite(_next(columns["loss"])[lost])]
    if not both.size:
        return []
    zeros = left_out and bool((columns["loss"][both] == 0).any())  # a loss that was lost, too
    if _passed(sizes[:until], loss) and not zeros:
        then = {"until": float(step[until])} if until < len(step) else {}
        return [Cause("gradient_passed", 0.05, {"step": float(step[lost[lost < until][-1]])} | then)]
    key = "gradient_or_loss" if left_out else "gradient_overflow"
    return [Cause(key, 0.95, _of_lost_rows(step, lost, both, lost_for_good(sizes)) | alone)]


def _next(loss: Numbers) -> Numbers:
    """Of each row the loss that is logged there or next; behind the last one that."""
    there = np.flatnonzero(~np.isnan(loss))
    if not there.size:
        return loss
    after: Numbers = loss[there[np.minimum(np.searchsorted(there, np.arange(len(loss))), len(there) - 1)]]
    return after


def _of_lost_rows(step: Numbers, lost: Rows, both: Rows, since: int) -> dict[str, float]:
    """The step at which a gradient is lost for good, and what was before; or the first of several, and the last."""
    lasting, before = both[both >= since], lost[lost < since]
    if not lasting.size:
        return {"step": float(step[both[0]]), "last": float(step[both[-1]]), "count": len(both)}
    numbers = {"step": float(step[lasting[0]]), "lasts": float(lost[-1] > lasting[0])}
    return numbers | ({"once": float(step[before[0]]), "count": len(before)} if before.size else {})


def _passed(sizes: Numbers, loss: Numbers) -> bool:
    """Whether a gradient is lost rarely, or in its first rows alone, and then finite: as a loss scaler leaves it."""
    lost = np.isinf(sizes[~np.isnan(sizes)])
    rare = lost[_FIRST:].sum() * _RARELY <= len(lost)
    return bool(rare and not lost[-_PASSED:].any() and not np.isinf(loss).any())


def of_zeros(loss: Numbers, step: Numbers, logged: Mapping[str, Numbers]) -> Cause | None:
    """A loss that is 0 at once and stays so: Hugging Face's Trainer logs that where every loss is lost.

    That of preferred answers comes to 0 by itself as their margin grows.
    """
    rows = np.flatnonzero(~np.isnan(loss))
    others = np.flatnonzero(loss[rows] != 0)
    first = int(others[-1]) + 1 if others.size else 0
    before = loss[rows[:first]][-_LEAST_ZEROS:]
    nearly = max(_NEARLY, _DIGITS * _last_digit(loss[np.isfinite(loss)]))
    if len(rows) - first < _LEAST_ZEROS or np.isinf(before).any() or (first and np.median(before) < nearly):
        return None
    key, weight = ("margin_zeros", 0.3) if _margin_may_do_that(logged, rows[first]) else ("loss_zeros", 0.95)
    return Cause(key, weight, {"step": float(step[rows[first]])})


def _margin_may_do_that(logged: Mapping[str, Numbers], since: np.intp) -> bool:
    """Whether a log is of preferred answers, and no margin in it is too small for a loss of 0 from a row on."""
    margins = [column[since:] for name, column in logged.items() if _MARGIN.search(name) and not EVALUATED.search(name)]
    grown = all((np.isnan(x) | (np.isfinite(x) & (x >= _LEAST_MARGIN))).all() for x in margins)
    return grown and any(map(_PREFERRED.search, logged))


def _last_digit(values: Numbers) -> float:
    """What one of the last decimal means that all values are rounded to: 0.1 or 0.01; 0 for more decimals.

    >>> _last_digit(np.array([0.12, 0.03, 0.0])), _last_digit(np.array([2.0, 0.0])), _last_digit(np.array([0.125]))
    (0.01, 0.1, 0.0)
    """
    return next((digit for digit in (0.1, 0.01) if np.allclose(values / digit, np.round(values / digit))), 0.0)


def holds_rewards(names: Iterable[str]) -> bool:
    """Whether a log with these columns is of reinforcement learning, whose loss says little of what is learnt.

    Beside a margin of preferred answers it is that of a reward model, which learns from labels.

    >>> holds_rewards(["loss", "reward", "kl"]), holds_rewards(["loss", "rewards/chosen"])  # GRPO, DPO
    (True, False)
    >>> holds_rewards(["loss", "mean_reward", "margin"])
    False
    """
    names = list(names)
    return any(map(_REWARD.search, names)) and not any(map(_MARGIN.search, names))


def of_lost_logits(columns: Mapping[str, Numbers], step: Numbers) -> list[Cause]:
    """A largest logit that is not finite, whatever the loss does; after a loss that is lost it is no cause."""
    lost = np.flatnonzero(np.isinf(columns.get("max_logit", np.empty(0))))
    if not lost.size:
        return []
    after = np.isinf(columns.get("loss", np.empty(0))[: lost[0]]).any()
    return [Cause("logits_lost", 0.3 if after else 0.85, {"step": float(step[lost[0]])})]


def with_finite_logits(columns: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """A logit that is not finite is no large one, since of lost weights none is finite: the last finite one stands."""
    found = dict(columns)
    if "max_logit" in found and (lost := np.isinf(found["max_logit"])).any():
        last = np.maximum.accumulate(np.where(np.isfinite(found["max_logit"]), np.arange(len(lost)), -1))
        finite = np.where(lost, np.where(last < 0, np.nan, found["max_logit"][last]), found["max_logit"])
        found |= {"max_logit": finite, LOST_LOGITS: lost.astype(float)}
    return found
