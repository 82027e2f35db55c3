"""Which public implementation does what?"""

from functools import partial
from typing import Final

from qkdemo.labs.lab import Lab
from qkdemo.labs.models.lab import PRESETS, SHOWN, Result, Settings, family_rows, report, rows, run, searched
from qkdemo.labs.models.program import snippet
from qkdemo.labs.models.words import beside, corrections, explain, finding

__all__ = [
    "LAB",
    "PRESETS",
    "SHOWN",
    "Result",
    "Settings",
    "beside",
    "corrections",
    "explain",
    "family_rows",
    "finding",
    "rows",
    "run",
    "searched",
    "snippet",
]

LAB: Final = Lab(
    name="models",
    icon=":material/table_view:",
    menu="contract",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    run=run,
    explain=explain,
    tables=lambda result: {
        "models.table": partial(rows, result),
        "models.by_family": partial(family_rows, result),
    },
    programs=lambda result: {"models.program": partial(snippet, result.settings)},
    report=report,
)
