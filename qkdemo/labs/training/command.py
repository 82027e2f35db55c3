"""`python -m qkdemo train`: runs to their end, and what became of them.

* `COMMAND`: its dials, named states, default state, and what is swept by default;
* `report_all(runs, progress)`: the table and the counts.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from numpy.typing import NDArray

from qkdemo.labs.lab import Command
from qkdemo.labs.training.lab import RUN_PRESETS
from qkdemo.runs.batches import Progress, columns, train_all
from qkdemo.training.outcome import outcome_of, summary
from qkdemo.training.settings import Settings, canonical


def report_all(runs: Sequence[Settings], progress: Progress) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What is printed, and every step of every run as columns."""
    telemetry = train_all(runs, progress)
    outcomes = [outcome_of(run, read) for run, read in zip(runs, telemetry, strict=True)]
    told = differing(runs)
    rows = [
        {"variant": run.variant, "seed": run.seed, **{name: getattr(run, name) for name in told}, **asdict(outcome)}
        for run, outcome in zip(runs, outcomes, strict=True)
    ]
    words = dict.fromkeys(run.variant for run in runs)
    of_word = {word: [o for run, o in zip(runs, outcomes, strict=True) if run.variant == word] for word in words}
    return {"runs": rows, "summary": {word: summary(found) for word, found in of_word.items()}}, columns(
        runs, telemetry
    )


def differing(runs: Sequence[Settings]) -> list[str]:
    """The dials, variant and seed apart, in which some runs differ from others."""
    told = [canonical(run).as_dict() for run in runs]
    names = [name for name in told[0] if name not in ("variant", "seed")]
    return [name for name in names if any(run[name] != told[0][name] for run in told)]


COMMAND: Final = Command(
    word="train",
    page="training",
    settings=Settings,
    presets=RUN_PRESETS,
    base=Settings(),
    swept={"variant": "none,rms"},
    train=report_all,
)
