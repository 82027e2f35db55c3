"""The phase diagram of training, cell by cell, as far as it is trained.

* `train(file, executor, progress, diagram)`: trains what `file` does not hold yet, and writes every batch when it is
  done: killed half way and started again, it goes on; `here`: the executor of this process; another one may send the
  runs elsewhere;
* `read(file, diagram)`: what it holds; `RECORDED`: the record of the default one, which comes with the app;
* `ends_of_plan(plan, curves)`: the same from a run that a worker has trained;
* `cells(ends, diagram)`: counts of every cell; `SHARES`: what is counted; `rows(made, diagram)`: its table.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.dials import Value
from qkdemo.maps.phases.diagram import DEFAULT, Diagram
from qkdemo.runs.batches import LARGEST_BATCH, Progress, train_all
from qkdemo.runs.plan import Plan, outcomes
from qkdemo.training.outcome import Outcome, outcome_of
from qkdemo.training.settings import Settings, identity

RECORDED: Final = Path(__file__).parent / "phases.jsonl"
RECORDED_ON: Final = "2026-11-30"  # the day on which that record was trained
SHARES: Final = ("solved", "partly", "failed", "spiked", "non_finite")  # of the seeds of a cell
Executor: TypeAlias = Callable[[Sequence[Settings]], Sequence[Outcome]]


@dataclass(frozen=True)
class End:
    """What became of one run."""

    settings: Settings
    outcome: str  # solved, partly or failed
    end: str  # the same, or how it failed
    spiked: bool  # its loss rose and came back, at least once
    final_loss: float
    seconds: float = 0.0  # that it took, of its batch


@dataclass(frozen=True)
class Cell:
    """All seeds of one side at one value of both dials, as far as they are trained."""

    remedy: str
    x: Value
    y: Value
    counts: Mapping[str, int]  # outcome → seeds
    ends: Mapping[str, int]
    spiked: int

    @property
    def solved(self) -> int:
        """How many seeds solved the task."""
        return self.count("solved")

    def count(self, share: str) -> int:
        """How many seeds ended as one of `SHARES` says."""
        return {**self.ends, **self.counts, "spiked": self.spiked}.get(share, 0)

    @property
    def seeds(self) -> int:
        """How many there are."""
        return sum(self.counts.values())


def here(runs: Sequence[Settings]) -> Sequence[Outcome]:
    """Trains them in this process."""
    return [outcome_of(run, telemetry) for run, telemetry in zip(runs, train_all(runs), strict=True)]


def train(
    file: Path,
    executor: Executor = here,
    progress: Progress = lambda done, total: None,
    diagram: Diagram = DEFAULT,
) -> list[End]:
    """Trains what is missing in `file` and adds it there; returns everything."""
    known = {identity(end.settings) for end in read(file, diagram)}
    runs = diagram.runs
    missing = [run for run in runs if identity(run) not in known]
    progress(len(runs) - len(missing), len(runs))
    _mend(file)
    with file.open("a", encoding="utf-8") as out:
        for start in range(0, len(missing), LARGEST_BATCH):
            batch = missing[start : start + LARGEST_BATCH]
            began = time.process_time()
            found = executor(batch)
            seconds = (time.process_time() - began) / len(batch)
            for run, outcome in zip(batch, found, strict=True):
                out.write(_line(run, outcome, seconds) + "\n")
            out.flush()
            progress(len(runs) - len(missing) + start + len(batch), len(runs))
    return read(file, diagram)


def read(file: Path = RECORDED, diagram: Diagram = DEFAULT) -> list[End]:
    """The runs that `file` holds, of those that the diagram consists of; a line that was not finished is left out."""
    if not file.exists():
        return []
    wanted = {identity(run): run for run in diagram.runs}
    found: dict[str, End] = {}
    for told in _lines(file):
        run = wanted.get(told["run"])
        if run is not None:
            loss = float(told["final_loss"])  # inf and nan are words
            found[told["run"]] = End(run, told["outcome"], told["end"], told["spiked"], loss, told["seconds"])
    return list(found.values())


def ends_of_plan(plan: Plan, curves: NDArray[np.float32]) -> list[End]:
    """What became of every run of a plan that is trained to its end."""
    found = zip(plan.legs[0].runs, outcomes(plan, curves), strict=True)
    return [End(run, made.outcome, made.end, made.spikes > 0, made.final_loss) for run, made in found]


def cells(ends: Sequence[End], diagram: Diagram = DEFAULT) -> list[Cell]:
    """Every cell that some run is known of, side by side, row by row."""
    known = {identity(end.settings): end for end in ends}
    made = []
    for remedy, y, x in product(diagram.remedies, diagram.ys, diagram.xs):
        names = (identity(diagram.run(remedy, x, y, seed)) for seed in diagram.seeds)
        there = [known[name] for name in names if name in known]
        if there:
            counts, how = Counter(end.outcome for end in there), Counter(end.end for end in there)
            made.append(Cell(remedy, x, y, counts, how, sum(end.spiked for end in there)))
    return made


def rows(made: Sequence[Cell], diagram: Diagram = DEFAULT) -> list[dict[str, Any]]:
    """The table: one row per cell and side."""
    return [
        {
            "side": cell.remedy,
            diagram.x: cell.x,
            diagram.y: cell.y,
            **{share: cell.count(share) for share in (*SHARES[:3], "non_finite", "spiked")},
            "ends": ", ".join(f"{word} {count}" for word, count in sorted(cell.ends.items())),
        }
        for cell in made
    ]


def _line(run: Settings, outcome: Outcome, seconds: float) -> str:
    told = {"variant": run.variant, "learning_rate": run.learning_rate, "qk_start": run.qk_start, "seed": run.seed}
    found = {"outcome": outcome.outcome, "end": outcome.end, "final_loss": str(outcome.final_loss)}
    measured = {"spiked": outcome.spikes > 0, "seconds": round(seconds, 4)}
    return json.dumps({"run": identity(run)} | told | found | measured)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            told = json.loads(line)
        except ValueError:  # killed while it wrote
            continue
        if isinstance(told, dict) and {"run", "outcome", "end", "spiked", "final_loss", "seconds"} <= told.keys():
            yield told


def _mend(file: Path) -> None:
    """A last line that was not finished gets its end, so that the next one begins on its own."""
    if file.exists() and (text := file.read_text(encoding="utf-8")) and not text.endswith("\n"):
        file.write_text(text + "\n", encoding="utf-8")
