"""Which key does a query choose, in whichever direction it points?"""

from functools import partial
from typing import Final

from qkdemo.labs.lab import Lab
from qkdemo.labs.sphere.lab import DECIDED, PRESETS, Result, Settings, direction_rows, report, rows, run
from qkdemo.labs.sphere.plane import PLANE
from qkdemo.labs.sphere.program import snippet
from qkdemo.labs.sphere.words import explain, whole_percent

__all__ = [
    "DECIDED",
    "LAB",
    "PRESETS",
    "Result",
    "Settings",
    "direction_rows",
    "explain",
    "report",
    "rows",
    "run",
    "snippet",
    "whole_percent",
]

LAB: Final = Lab(
    name="sphere",
    icon=":material/public:",
    menu="contract",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    run=run,
    explain=explain,
    tables=lambda result: {
        "sphere.table.keys": partial(rows, result),
        "sphere.table.directions": partial(direction_rows, result),
    },
    programs=lambda result: {"page.sphere": partial(snippet, result.settings)},
    report=report,
    plane=PLANE,
)
