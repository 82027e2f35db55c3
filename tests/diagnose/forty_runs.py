"""Forty runs of the training lab whose end is known, and what is said of them: `python -m tests.diagnose.forty_runs`.

Twenty are healthy. Twenty are not, of five kinds, four seeds each: attention's logits grow until the loss is lost,
under a ramp and at a constant rate; attention is one-hot from the start; the rate is too high for a model whose q and
k are normalised, at once and under a ramp.
"""

import sys
from collections.abc import Iterator
from typing import Final

import numpy as np

from qkdemo.diagnose import causes
from qkdemo.diagnose.logs import Log
from qkdemo.runs.batches import train_all
from qkdemo.training.settings import Settings
from qkdemo.training.telemetry import CURVES, Telemetry

HEALTHY: Final = {
    "RMSNorm, ramp": Settings(batch=16),
    "plain, 0.01": Settings(variant="none", schedule="constant", learning_rate=0.01),
    "RMSNorm, 0.03": Settings(schedule="constant", learning_rate=0.03),
    "L2, cosine": Settings(variant="l2", schedule="cosine", learning_rate=0.02, steps=400, warmup=40),
}
ATTENTION: Final = ("attention_max_logit", "attention_entropy", "stuck_attention")
RATE: Final = ("not_attention", "stuck_rate")
ILL: Final = {
    "plain, ramp": (Settings(variant="none"), ATTENTION),
    "plain, 0.07": (Settings(variant="none", schedule="constant", learning_rate=0.07), ATTENTION),
    "one-hot from the start": (
        Settings(variant="none", schedule="constant", learning_rate=0.03, qk_start=8),
        ATTENTION,
    ),
    "RMSNorm, ramp to 2": (Settings(learning_rate=2.0), RATE),
    "RMSNorm, 0.6": (Settings(schedule="constant", learning_rate=0.6), RATE),
}


def log_of(telemetry: Telemetry) -> Log:
    """A run's own numbers as a log."""
    columns = {name: np.asarray(getattr(telemetry, name)[:, 0], np.float64) for name in CURVES}
    columns = {name: np.where(np.isfinite(column), column, np.inf) for name, column in columns.items()}
    return Log(run="run", kind="own", step=np.arange(1.0, len(telemetry) + 1), columns=columns)


def diagnosed(settings: Settings, seeds: int, first: int = 0) -> Iterator[causes.Result]:
    """The runs of some seeds, diagnosed."""
    for telemetry in train_all([settings.but(seed=first + seed) for seed in range(seeds)]):
        yield causes.run(log_of(telemetry))


if __name__ == "__main__":
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 0  # from 100 on nothing was tuned
    for name, settings in HEALTHY.items():
        keys = [result.causes[0].key for result in diagnosed(settings, 5, first)]
        print(f"{name:26} false alarms {sum(key not in ('healthy', 'small_spikes') for key in keys)} of 5  {keys}")
    for name, (settings, right) in ILL.items():
        keys = [result.causes[0].key for result in diagnosed(settings, 4, first)]
        print(f"{name:26} cause named {sum(key in right for key in keys)} of 4  {keys}")
