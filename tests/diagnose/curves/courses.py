"""Courses of a loss and of a logit that tests of logs share, and what is said of them."""

import math
from typing import Any

import numpy as np

from qkdemo.diagnose.curves.causes import run
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.readers.columns import Log

NONE, LOST = math.nan, math.inf
STEPS = np.arange(200.0)


def noise(seed: int, rows: int = 200) -> Any:
    return np.random.default_rng(seed).standard_normal(rows)


FALLING = 3 * np.exp(-STEPS / 60) + 0.3 + 0.01 * noise(0)
LOST_LATE = np.where(STEPS < 150, FALLING, 3.2)
GROWN = np.exp(STEPS / 20)  # 100 at step 92, 1800 at 150
FLAT = 2.8 + 0.02 * noise(1)
BOUNCING = 2.8 + 0.05 * np.random.default_rng(2).standard_exponential(200)


def log(**columns: Any) -> Log:
    arrays = {name: np.asarray(column, dtype=float) for name, column in columns.items()}
    return Log(run="run", kind="csv", step=np.arange(len(next(iter(arrays.values()))), dtype=float), columns=arrays)


def said(**columns: Any) -> dict[str, str]:
    """What is said of a run of these columns: the sentence of each finding with its advice."""
    report = of_logs([run(log(**columns))], "a")
    return {finding.key: f"{finding.sentence} {finding.advice}" for finding in report.findings}
