"""Over which range of learning rates does a model train, and how far does a remedy move its right wall?"""

from functools import partial
from typing import Final

from qkdemo.labs.lab import TrainedLab, trained_here
from qkdemo.labs.learning_rates.command import COMMAND
from qkdemo.labs.learning_rates.lab import PRESETS, Result, Settings, plans_of, point_rows, result_of, run_rows
from qkdemo.labs.learning_rates.view import picked, rates_exhibit
from qkdemo.labs.learning_rates.words import explain
from qkdemo.runs.program import sweep_program

__all__ = ["LAB", "PRESETS", "Result", "Settings"]

LAB: Final = TrainedLab(
    name="sensitivity",
    icon=":material/show_chart:",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    plans=plans_of,
    read=result_of,
    run=trained_here(plans_of, result_of),
    explain=explain,
    exhibit=lambda result: rates_exhibit(result, None),
    picked=picked,
    tables=lambda result: {
        "rates.table.points": partial(point_rows, result),
        "rates.table.runs": partial(run_rows, result),
    },
    programs=lambda result: {"training.program": lambda: sweep_program(plans_of(result.settings))},
    from_a_shell=COMMAND,
)
