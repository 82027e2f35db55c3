"""Causes that other columns than the loss name: updates that jumped, a gradient or a logit that is not finite.

* `Cause`: one explanation; `of_updates`, `of_gradient`, `of_lost_logits`: those that a log shows, none if it does not;
* `leaves_out(names)`: whether these columns are those of a log that leaves out losses that are not finite.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from qkdemo.diagnose.curves.loss import Event, Numbers

BEFORE: Final = 10  # rows that say what was usual
_LEAD: Final = 20  # rows within which a spike of updates is taken for the reason
_SPIKE: Final = 3.0  # times what was usual, for an update's norm
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
            if np.isinf(sizes[at]):
                return [Cause("updates_lost", 0.8, numbers)]
            return [Cause("updates", 0.8, numbers | {"times": float(sizes[at] / usual)})]
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
    """A gradient that is not finite beside a loss that is: the backward pass overflowed, not the logits.

    Where losses are `left_out`, the loss may be lost as well.
    """
    if "grad_norm" not in columns or "loss" not in columns:
        return []
    both = np.flatnonzero(np.isinf(columns["grad_norm"]) & np.isfinite(columns["loss"]))
    key = "gradient_or_loss" if left_out else "gradient_overflow"
    return [Cause(key, 0.95, {"step": float(step[both[0]])})] if both.size else []


def of_lost_logits(columns: Mapping[str, Numbers], step: Numbers) -> list[Cause]:
    """A largest logit that is not finite, whatever the loss does."""
    lost = np.flatnonzero(np.isinf(columns.get("max_logit", np.empty(0))))
    return [Cause("logits_lost", 0.85, {"step": float(step[lost[0]])})] if lost.size else []
