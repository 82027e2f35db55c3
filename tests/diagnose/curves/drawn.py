"""Logs drawn from a seed, at every edge that a log can have: `drawn(rng)`; and as an oracle reads them: `Told`.

One in four columns is at an edge: constant, 0, below 0, not finite in places, with values in few rows, at its worst in
the first row or in the last.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.diagnose.readers.columns import Log
from tests.oracles import Said

Rng: TypeAlias = np.random.Generator
Numbers: TypeAlias = NDArray[np.float64]


def drawn(rng: Rng) -> Log:
    """A log of 6 to 300 rows."""
    rows = int(rng.choice([6, 7, 9, 12, 20, 21, 40, 60, 120, 300]))
    step = rng.choice([0, 1, 999_990]) + np.arange(rows) * rng.choice([1.0, 1.0, 10.0, 137.0, 0.25])
    columns: dict[str, Numbers] = {}
    for name, draw, share in _COLUMNS:
        if rng.random() < share:
            columns[str(rng.choice(_NAMES.get(name, (name,))))] = _in_places(rng, draw(rng, rows))
    if rows == 40 and "max_logit" in columns:  # a name that may be of other logits
        columns["logits/max"] = columns.pop("max_logit")
    if rows == 60:  # more than one that may be the loss, or the gradient's norm
        columns |= {f"other/{name}": columns[name][::-1] for name in ("loss", "grad_norm") if name in columns}
        columns |= {"lr/group_2": np.where(step > step[9], 1e-4, 0)} if "lr" in columns else {}
    if not columns:
        columns["loss"] = np.full(rows, 2.0)
    kept = {name: column for name, column in columns.items() if not np.isnan(column).all()}
    return Log("run", "csv", step, kept or {"loss": np.full(rows, 2.0)}, sampled=bool(rng.random() < 0.1))


def _in_places(rng: Rng, column: Numbers) -> Numbers:
    """The same, now and then with rows that hold nothing, or are not finite."""
    column = column.copy()
    edge = rng.random()
    if edge < 0.08:
        column[rng.random(len(column)) < rng.choice([0.1, 0.5, 0.97])] = np.nan
    elif edge < 0.12:
        column[: int(rng.integers(0, len(column)))] = np.nan
    elif edge < 0.16:
        column[int(rng.integers(0, len(column))) :] = np.nan
    if rng.random() < 0.12:
        at = int(rng.choice([0, len(column) - 1, rng.integers(0, len(column))]))
        column[at : at + int(rng.choice([1, 3, len(column)]))] = np.inf
    return column


def _loss(rng: Rng, rows: int) -> Numbers:
    t = np.arange(rows) / rows
    base = {
        "falling": 3 * np.exp(-t * rng.choice([1, 4, 12])) + 0.3,
        "flat": np.full(rows, 2.8),
        "rising": 1 + t * rng.choice([0.05, 1, 5]),
        "later": 3 * np.exp(-4 * t) + np.maximum(0, t - 0.6) * rng.choice([0.5, 4, 20]),
    }[str(rng.choice(["falling", "falling", "flat", "rising", "later"]))]
    noise = rng.choice([0, 0.001, 0.02, 0.2])
    base = base + noise * (
        rng.standard_exponential(rows) if rng.random() < 0.3 else np.asarray(rng.standard_normal(rows))
    )
    for _ in range(int(rng.choice([0, 0, 1, 1, 2, 5]))):
        at = int(rng.choice([0, 1, 2, rows - 1, rows - 2, rng.integers(0, rows)]))
        base[at : at + int(rng.choice([1, 1, 2, 5, rows]))] += rng.choice([0.2, 1, 3, 30])
    return np.asarray(base * rng.choice([1, 1, 1, 1, 1e-3, 1e4, 0, -1]) - rng.choice([0, 0, 0, 0, 0, 3]))


def _logit(rng: Rng, rows: int) -> Numbers:
    t = np.arange(rows) / rows
    start, end = (float(rng.choice([1e-3, 1, 8, 30, 60, 99, 100, 101, 900, 1e200])) for _ in range(2))
    kinds: Sequence[Callable[[], Numbers]] = (
        lambda: np.exp(np.log(start) + t * (np.log(end) - np.log(start))),
        lambda: np.full(rows, start),
        lambda: np.where(t < rng.random(), start, end),
        lambda: start * np.exp(0.1 * rng.standard_normal(rows)),
        lambda: np.zeros(rows),
    )
    found = kinds[int(rng.choice(5, p=[0.4, 0.15, 0.2, 0.2, 0.05]))]()
    return found * (rng.choice([-1.0, 1.0], rows) if rng.random() < 0.2 else 1)


def _entropy(rng: Rng, rows: int) -> Numbers:
    t = np.arange(rows) / rows
    start, end = rng.choice([0, 0.02, 0.05, 0.08, 0.1, 0.5, 0.9, 1], 2)
    found = np.where(t < rng.random(), start, end) if rng.random() < 0.5 else start + t * (end - start)
    return np.asarray(found * rng.choice([1, 1, 1, 1, 3.5, -1]))


def _length(rng: Rng, rows: int) -> Numbers:
    t = np.arange(rows) / rows
    return np.exp(t * rng.choice([-2, 0, 0.5, 2, 5])) * rng.choice([0, 1, 1, 1, 1, 1e200])


def _size(rng: Rng, rows: int) -> Numbers:
    found = rng.choice([0, 1, 1, 5]) * np.exp(0.1 * rng.standard_normal(rows))
    for _ in range(int(rng.choice([0, 1, 1, 3]))):
        found[int(rng.integers(0, rows))] = rng.choice([0, 2.9, 3.1, 50, np.inf])
    return found


_COLUMNS: Final[Sequence[tuple[str, Callable[[Rng, int], Numbers], float]]] = (
    ("loss", _loss, 0.9),
    ("max_logit", _logit, 0.7),
    ("entropy", _entropy, 0.4),
    ("q_norm", _length, 0.4),
    ("k_norm", _length, 0.4),
    ("grad_norm", _size, 0.3),
    ("update_norm", _size, 0.4),
    ("lr", lambda rng, rows: np.full(rows, rng.choice([0, 1e-4])), 0.2),
)
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {"entropy": ("entropy", "entropy_fraction")}


class Told:
    """A log as an oracle reads it."""

    def __init__(self, log: Log) -> None:
        self.log, self.step = log, log.step
        self.loss = self._column("loss")
        self.logit_name = next((name for name in log.columns if "logit" in name), "")
        sizes = np.abs(self._column(self.logit_name))
        self.lost_logit, self.logit = np.isinf(sizes), np.where(np.isinf(sizes), np.nan, sizes)
        self.updates, self.gradient = self._column("update_norm"), self._column("grad_norm")
        self.lengths = self._column("q_norm"), self._column("k_norm")
        self.entropy_name = next((name for name in log.columns if "entropy" in name), "")
        entropy = self._column(self.entropy_name)
        numbers = entropy[np.isfinite(entropy)]
        self.shares = bool(numbers.size and numbers.min() >= 0 and numbers.max() <= 1)
        self.entropy = entropy if self.shares else np.full(len(log.step), np.nan)

    def _column(self, name: str) -> Numbers:
        return self.log.columns.get(name, np.full(len(self.log.step), np.nan))

    def row(self, said: Said, name: str = "step") -> int:
        """The row of a step that is said."""
        (rows,) = np.flatnonzero(np.isclose(self.step, said.number(name), rtol=0, atol=1e-6)).reshape(-1, 1).T
        return int(rows[0])

    @property
    def losses(self) -> Numbers:
        """Those that are finite."""
        return self.loss[np.isfinite(self.loss)]


def there(values: Numbers) -> Numbers:
    return values[~np.isnan(values)]


def noise(values: Numbers) -> float:
    return float(np.median(np.abs(np.diff(values)))) if len(values) > 1 else 0.0


def rolling(values: Numbers, half: int = 2) -> Numbers:
    return np.array([np.median(values[max(0, at - half) : at + half + 1]) for at in range(len(values))])
