"""`python -m qkdemo train`: runs to their end, and what became of them.

* `Settings`, `PRESETS`, `BASE`, `SWEPT`: the dials, named states, the default state, and what is swept by default;
* `report_all(runs, progress)`: the table and the counts; `columns(runs, telemetry)`: every step, for a file.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from numpy.typing import NDArray

from qkdemo.runs.batches import Progress, columns, train_all
from qkdemo.training.outcome import outcome_of, summary
from qkdemo.training.settings import Settings, canonical

__all__ = ["BASE", "PRESETS", "SWEPT", "Settings", "report_all"]

BASE: Final = Settings()
SWEPT: Final = {"variant": "none,rms"}
PRESETS: Final[dict[str, Settings]] = {
    "collapse": Settings(),
    "gentle": Settings(schedule="constant", learning_rate=0.01),
    "too_hot": Settings(schedule="constant", learning_rate=0.2),
    "sharp": Settings(schedule="constant", learning_rate=0.01, n_layers=1, n_heads=1, d_head=32),
    "heavy_start": Settings(schedule="constant", learning_rate=0.03, qk_start=3),
    "noisy_copy": Settings(task="noisy_copy", schedule="constant", learning_rate=0.05, steps=600),
    "addition": Settings(task="addition", schedule="constant", learning_rate=0.1, steps=600),
    "induction": Settings(task="induction", schedule="constant", learning_rate=0.03, steps=600, batch=16),
    "recall": Settings(task="recall", schedule="constant", learning_rate=0.05, steps=600),
    "text": Settings(task="text", schedule="constant", learning_rate=0.1, steps=600, batch=16),
}


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
