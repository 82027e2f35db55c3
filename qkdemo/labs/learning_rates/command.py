"""`python -m qkdemo sensitivity`: final loss against learning rate, for several remedies and seeds.

* `COMMAND`: its dials, named states, default state, and what is swept by default;
* `report_all(runs, progress)`: the curves, a number for each, and every run.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.labs.lab import Command
from qkdemo.labs.learning_rates.sensitivity import curve, sensitivity
from qkdemo.runs.batches import Progress, columns, train_all
from qkdemo.training.outcome import Outcome, outcome_of, summary
from qkdemo.training.settings import Settings

BASE: Final = Settings(schedule="cosine", warmup=40, steps=400)


def report_all(runs: Sequence[Settings], progress: Progress) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What is printed, and every step of every run as columns."""
    telemetry = train_all(runs, progress)
    outcomes = [outcome_of(run, read) for run, read in zip(runs, telemetry, strict=True)]
    first = [float(read.loss[0, 0]) for read in telemetry]
    points, numbers = [], {}
    for word in dict.fromkeys(run.variant for run in runs):
        of_rate: dict[float, list[tuple[Outcome, float]]] = {}
        for run, outcome, loss in zip(runs, outcomes, first, strict=True):
            if run.variant == word:
                of_rate.setdefault(run.learning_rate, []).append((outcome, loss))
        drawn = curve({rate: [(o.final_loss, loss) for o, loss in found] for rate, found in of_rate.items()})
        for point in drawn:
            found = [outcome for outcome, _ in of_rate[point.learning_rate]]
            points.append(
                {
                    "variant": word,
                    "learning_rate": point.learning_rate,
                    "mean_final_loss": point.mean,
                    "lowest": min(point.capped(loss) for loss in point.final_losses),
                    "highest": max(point.capped(loss) for loss in point.final_losses),
                    "median_max_abs_logit": float(np.median([outcome.max_abs_logit for outcome in found])),
                    **summary(found),
                }
            )
        numbers[word] = {"lr_sensitivity": sensitivity(drawn)}
    return {"curve": points, "summary": numbers}, columns(runs, telemetry)


COMMAND: Final = Command(
    word="sensitivity",
    page="sensitivity",
    settings=Settings,
    presets={"cosine": BASE, "constant": Settings(schedule="constant", warmup=20)},
    base=BASE,
    swept={
        "variant": "none,rms",
        "learning_rate": "0.001,0.003,0.01,0.03,0.05,0.07,0.1,0.15,0.3",
        "seed": "0:3",
    },
    train=report_all,
)
