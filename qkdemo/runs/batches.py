"""Training any number of runs to their end: those that can share a batch train together.

* `train_all(runs, progress)`: every run's telemetry, in the order of `runs`;
* `together(runs)`: which runs share a batch; `price_of(runs)`: what they take, in words;
* `one_thread()`, `keep_freed_memory()`: how torch trains them fastest.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from qkdemo.runs.budget import at_once, price, state_bytes, step_bytes, step_seconds
from qkdemo.training.settings import SHARED, Settings
from qkdemo.training.telemetry import CURVES, Telemetry, joined
from qkdemo.training.trainer import Trainer

Progress: TypeAlias = Callable[[int, int], None]  # run-steps taken, of how many

LARGEST_BATCH: Final = 16  # runs; more do not train faster on a CPU, whose caches they leave
_STRIDE: Final = 20  # steps between two reports
_GLIBC: Final = {-1: 1 << 30, -3: 1 << 25, -8: 2}  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, bytes; M_ARENA_MAX


def train_all(runs: Sequence[Settings], progress: Progress = lambda done, total: None) -> list[Telemetry]:
    """Trains every run to its last step. Attention maps are left out, since many runs would fill the memory."""
    keep_freed_memory()
    with one_thread():
        return _trained(runs, progress)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keeps torch to one thread: for models this small more are slower, and 20 times slower on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def keep_freed_memory() -> None:
    """Asks glibc to keep what a step frees, for the next step needs as much: a tenth of a large batch's time, or more.

    All threads share two heaps, so that what is kept is kept twice at most. It holds for the rest of the process.
    Nothing happens where the C library is another.
    """
    with suppress(OSError, TypeError, AttributeError):
        for parameter, value in _GLIBC.items():
            ctypes.CDLL(None).mallopt(parameter, value)


def _trained(runs: Sequence[Settings], progress: Progress) -> list[Telemetry]:
    total, done = sum(run.steps for run in runs), 0
    telemetry: list[Telemetry | None] = [None] * len(runs)
    progress(0, total)
    for batch in together(runs):
        trainer = Trainer([runs[at] for at in batch], maps=False)
        steps, parts = runs[batch[0]].steps, []
        while trainer.step < steps:
            parts.append(trainer.advance(min(_STRIDE, steps - trainer.step)))
            done += len(parts[-1]) * len(batch)
            progress(done, total)
        whole = joined(parts)
        for column, at in enumerate(batch):
            telemetry[at] = whole.of_runs([column])
    return [entry for entry in telemetry if entry is not None]


def price_of(runs: Sequence[Settings]) -> str:
    """What training them takes: seconds on one core of the machine of `budget`, and memory, at most about."""
    batches = [[runs[at] for at in batch] for batch in together(runs)]
    sizes = (len(batch) * (state_bytes(batch[0]) + step_bytes(batch[0])) for batch in batches)
    return price(sum(batch[0].steps * step_seconds(batch) for batch in batches), max(sizes))


def together(runs: Sequence[Settings]) -> list[list[int]]:
    """Indices of `runs` in batches: equal shapes and equal lengths, at most 16 at once, and as memory allows."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for at, run in enumerate(runs):
        alike.setdefault((run.steps, *(getattr(run, name) for name in sorted(SHARED))), []).append(at)
    sizes = [min(LARGEST_BATCH, at_once(runs[batch[0]])) for batch in alike.values()]
    return [
        batch[start : start + size]
        for batch, size in zip(alike.values(), sizes, strict=True)
        for start in range(0, len(batch), size)
    ]


def columns(runs: Sequence[Settings], telemetry: Sequence[Telemetry]) -> dict[str, NDArray[Any]]:
    """One row per run and step: the run's number, variant and seed, the step, and what was read off it."""
    lengths = [len(read) for read in telemetry]
    return {
        "run": np.repeat(np.arange(len(runs)), lengths),
        "variant": np.repeat([run.variant for run in runs], lengths),
        "seed": np.repeat([run.seed for run in runs], lengths),
        "step": np.concatenate([np.arange(read.first_step, read.first_step + len(read)) for read in telemetry]),
        **{name: np.concatenate([getattr(read, name)[:, 0] for read in telemetry]) for name in CURVES},
    }
