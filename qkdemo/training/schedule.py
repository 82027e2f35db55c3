"""The learning rate of every step.

* `SCHEDULES`: word → function of (step, peak, warmup, steps);
* `learning_rate(step, settings)` stands with the settings' user, the trainer.

Steps are counted from 1, and the last step of a run is `steps`. A run that goes on keeps its last rate.
"""

import math
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

ScheduleWord: TypeAlias = Literal["ramp", "constant", "cosine"]
FINAL_SHARE: Final = 0.1  # of the peak, at the end of a cosine


def ramp(step: int, peak: float, warmup: int, steps: int) -> float:
    """peak · step/steps: a learning-rate range test (Smith 2017, "Cyclical Learning Rates", section 3.3)."""
    return peak * min(step / steps, 1.0)


def constant(step: int, peak: float, warmup: int, steps: int) -> float:
    """A straight rise over `warmup` steps, then `peak`."""
    return peak * min(step / warmup, 1.0) if warmup else peak


def cosine(step: int, peak: float, warmup: int, steps: int) -> float:
    """A straight rise over `warmup` steps, then half a cosine down to a tenth of the peak.

    Source: Loshchilov & Hutter 2017, "SGDR", eq. 5, with one period.
    """
    if step <= warmup:
        return peak * step / warmup
    done = min((step - warmup) / max(steps - warmup, 1), 1.0)
    return peak * (FINAL_SHARE + (1 - FINAL_SHARE) * (1 + math.cos(math.pi * done)) / 2)


SCHEDULES: Final[dict[ScheduleWord, Callable[[int, float, int, int], float]]] = {
    "ramp": ramp,
    "constant": constant,
    "cosine": cosine,
}
