"""The phase diagram of training: learning rate × size of W_q and W_k at the start, three seeds, both twins.

* `RUNS`: what is trained: a small model on the copy task, at a constant rate;
* `train(file, executor)`: trains what `file` does not hold yet, and writes every batch as it is done: killed half way
  and started again, it goes on; `here`: the executor of this process; another one may send the runs elsewhere;
* `read(file)`: what it holds; `RECORDED`: the record that comes with the app; `cells(ends)`: counts of every cell.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeAlias

from qkdemo.runs.batches import LARGEST_BATCH, Progress, train_all
from qkdemo.training.outcome import Outcome, outcome_of
from qkdemo.training.settings import RemedyWord, Settings, identity

RECORDED: Final = Path(__file__).parent / "phases.jsonl"
RECORDED_ON: Final = "2026-11-30"  # the day on which that record was trained
VARIANTS: Final[dict[str, RemedyWord]] = {"plain": "none", "norm": "rms"}  # role → remedy
RATES: Final = (0.002, 0.004, 0.008, 0.016, 0.032, 0.063, 0.125, 0.25, 0.5)
STARTS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
SEEDS: Final = (0, 1, 2)
BASE: Final = Settings(schedule="constant", warmup=20, steps=200, n_layers=1, n_heads=1, n_keys=16)
RUNS: Final = tuple(
    BASE.but(variant=variant, learning_rate=rate, qk_start=start, seed=seed)
    for variant, start, rate, seed in product(VARIANTS.values(), STARTS, RATES, SEEDS)
)
Executor: TypeAlias = Callable[[Sequence[Settings]], Sequence[Outcome]]


@dataclass(frozen=True)
class End:
    """What became of one run."""

    settings: Settings
    outcome: str  # solved, partly or failed
    end: str  # the same, or how it failed
    final_loss: float
    seconds: float  # that it took, of its batch


@dataclass(frozen=True)
class Cell:
    """All seeds of one side at one learning rate and one size at the start."""

    role: str
    learning_rate: float
    qk_start: float
    counts: Mapping[str, int]  # outcome → seeds
    ends: Mapping[str, int]

    @property
    def solved(self) -> int:
        """How many seeds solved the task."""
        return self.counts.get("solved", 0)

    @property
    def seeds(self) -> int:
        """How many there are."""
        return sum(self.counts.values())


def here(runs: Sequence[Settings]) -> Sequence[Outcome]:
    """Trains them in this process."""
    return [outcome_of(run, telemetry) for run, telemetry in zip(runs, train_all(runs), strict=True)]


def train(file: Path, executor: Executor = here, progress: Progress = lambda done, total: None) -> list[End]:
    """Trains what is missing in `file` and adds it there; returns everything."""
    known = {identity(end.settings) for end in read(file)}
    missing = [run for run in RUNS if identity(run) not in known]
    progress(len(RUNS) - len(missing), len(RUNS))
    _mend(file)
    with file.open("a", encoding="utf-8") as out:
        for start in range(0, len(missing), LARGEST_BATCH):
            batch = missing[start : start + LARGEST_BATCH]
            began = time.process_time()
            outcomes = executor(batch)
            seconds = (time.process_time() - began) / len(batch)
            for run, outcome in zip(batch, outcomes, strict=True):
                out.write(_line(run, outcome, seconds) + "\n")
            out.flush()
            progress(len(RUNS) - len(missing) + start + len(batch), len(RUNS))
    return read(file)


def read(file: Path = RECORDED) -> list[End]:
    """The runs that `file` holds, of those that the diagram consists of; a line that was not finished is left out."""
    if not file.exists():
        return []
    wanted = {identity(run): run for run in RUNS}
    found: dict[str, End] = {}
    for told in _lines(file):
        run = wanted.get(told["run"])
        if run is not None:
            loss = float(told["final_loss"])  # inf and nan are words
            found[told["run"]] = End(run, told["outcome"], told["end"], loss, told["seconds"])
    return list(found.values())


def cells(ends: Sequence[End]) -> list[Cell]:
    """Every cell that some run is known of, side by side, rate by rate."""
    made = []
    for role, variant in VARIANTS.items():
        for start, rate in product(STARTS, RATES):
            there = [
                end
                for end in ends
                if (end.settings.variant, end.settings.qk_start, end.settings.learning_rate) == (variant, start, rate)
            ]
            if there:
                counts, how = Counter(end.outcome for end in there), Counter(end.end for end in there)
                made.append(Cell(role, rate, start, counts, how))
    return made


def rows(made: Sequence[Cell]) -> list[dict[str, Any]]:
    """The table: one row per cell and side."""
    return [
        {
            "side": cell.role,
            "learning_rate": cell.learning_rate,
            "qk_start": cell.qk_start,
            **{word: cell.counts.get(word, 0) for word in ("solved", "partly", "failed")},
            "ends": ", ".join(f"{word} {count}" for word, count in sorted(cell.ends.items())),
        }
        for cell in made
    ]


def _line(run: Settings, outcome: Outcome, seconds: float) -> str:
    told = {"variant": run.variant, "learning_rate": run.learning_rate, "qk_start": run.qk_start, "seed": run.seed}
    found = {"outcome": outcome.outcome, "end": outcome.end, "final_loss": str(outcome.final_loss)}
    return json.dumps({"run": identity(run)} | told | found | {"seconds": round(seconds, 4)})


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            told = json.loads(line)
        except ValueError:  # killed while it wrote
            continue
        if isinstance(told, dict) and {"run", "outcome", "end", "final_loss", "seconds"} <= told.keys():
            yield told


def _mend(file: Path) -> None:
    """A last line that was not finished gets its end, so that the next one begins on its own."""
    if file.exists() and (text := file.read_text(encoding="utf-8")) and not text.endswith("\n"):
        file.write_text(text + "\n", encoding="utf-8")
