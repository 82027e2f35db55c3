"""Which word does a query listen to when every arrow grows?"""

from functools import partial
from typing import Final

from qkdemo.labs.arrows.lab import LONGEST, N_KEYS, PRESETS, Result, Settings, report, rows, run, scale_rows, word_of
from qkdemo.labs.arrows.plane import PLANE
from qkdemo.labs.arrows.program import snippet
from qkdemo.labs.arrows.view import arrows_exhibit
from qkdemo.labs.arrows.words import explain, percent
from qkdemo.labs.lab import Lab

__all__ = [
    "LAB",
    "LONGEST",
    "N_KEYS",
    "PRESETS",
    "Result",
    "Settings",
    "explain",
    "percent",
    "rows",
    "run",
    "scale_rows",
    "snippet",
    "word_of",
]

LAB: Final = Lab(
    name="arrows",
    icon=":material/near_me:",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    run=run,
    explain=explain,
    tables=lambda result: {
        "arrows.table.keys": partial(rows, result),
        "arrows.table.scales": partial(scale_rows, result),
    },
    programs=lambda result: {"page.arrows": partial(snippet, result.settings)},
    report=report,
    exhibit=arrows_exhibit,
    plane=PLANE,
)
