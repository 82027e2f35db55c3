"""The diagnosis of a long training log with many spikes, beside the same log without one."""

import time
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.diagnose.curves.causes import run
from qkdemo.diagnose.readers.columns import Log
from tests.benchmarks.printing import head, line

ROWS: Final = np.arange(20_000.0)
REPEATS: Final = 5


def spiked(every: int) -> NDArray[np.float64]:
    """A loss that falls, with some noise and a spike every so many rows."""
    noise = 0.03 * np.random.default_rng(0).standard_normal(len(ROWS))
    spikes = (ROWS % every == 0) & (ROWS > 0)
    return np.asarray(2.5 + 8 * np.exp(-ROWS / 2500) + noise + 4 * spikes)


def fewest_ms(loss: NDArray[np.float64]) -> float:
    """The fewest milliseconds that a diagnosis took."""
    log, took = Log(run="run", kind="csv", step=ROWS, columns={"loss": loss}), []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run(log)
        took.append(1e3 * (time.perf_counter() - start))
    return min(took)


def main() -> None:
    """A line for each number of spikes."""
    head(f"Diagnosis of {len(ROWS)} rows, baseline: the same without spikes")
    alone = fewest_ms(spiked(len(ROWS)))
    for every in (240, 24):
        line(f"a spike every {every} rows", fewest_ms(spiked(every)), alone)


if __name__ == "__main__":
    main()
