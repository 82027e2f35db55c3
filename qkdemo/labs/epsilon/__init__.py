"""What does the norm do with a vector that is nearly, or exactly, zero?"""

from functools import partial
from typing import Final

from qkdemo.labs.epsilon.lab import PRESETS, RULE_WORDS, Result, Settings, format_rows, report, rows, run, size_rows
from qkdemo.labs.epsilon.plane import PLANE
from qkdemo.labs.epsilon.program import snippet
from qkdemo.labs.epsilon.view import epsilon_exhibit, picked
from qkdemo.labs.epsilon.words import NORMALISED, explain
from qkdemo.labs.lab import Lab

__all__ = [
    "LAB",
    "NORMALISED",
    "PRESETS",
    "RULE_WORDS",
    "Result",
    "Settings",
    "explain",
    "format_rows",
    "rows",
    "run",
    "size_rows",
    "snippet",
]

LAB: Final = Lab(
    name="epsilon",
    icon=":material/expand:",
    menu="contract",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    run=run,
    explain=explain,
    exhibit=lambda result: epsilon_exhibit(result.settings),
    picked=lambda settings, pick: picked(pick),
    tables=lambda result: {
        "epsilon.table.rules": partial(rows, result),
        "epsilon.table.sizes": partial(size_rows, result),
        "epsilon.table.formats": partial(format_rows, result.settings),
    },
    programs=lambda result: {f"choice.rule.{result.settings.rule}": partial(snippet, result.settings)},
    report=report,
    plane=PLANE,
)
