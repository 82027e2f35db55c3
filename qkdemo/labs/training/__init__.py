"""Which of two small transformers collapses while it trains, and is there a way back?"""

from functools import partial
from typing import Final

from qkdemo.labs.lab import TrainedLab, trained_here
from qkdemo.labs.training.command import COMMAND
from qkdemo.labs.training.lab import PRESETS, Result, Settings, plan_of, result_of
from qkdemo.labs.training.view import recorded_exhibit, table_rows
from qkdemo.labs.training.words import explain
from qkdemo.runs.plan import Plan
from qkdemo.runs.program import program_of

__all__ = ["LAB", "PRESETS", "Result", "Settings", "plan_of"]


def _plans(settings: Settings) -> tuple[Plan, ...]:
    return (plan_of(settings),)


LAB: Final = TrainedLab(
    name="training",
    icon=":material/model_training:",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    plans=_plans,
    read=result_of,
    run=trained_here(_plans, result_of),
    explain=lambda result: explain(result.plan, result.curves),
    exhibit=recorded_exhibit,
    tables=lambda result: {"training.table": partial(table_rows, result.plan, result.curves)},
    programs=lambda result: {"training.program": partial(program_of, result.plan)},
    from_a_shell=COMMAND,
)
