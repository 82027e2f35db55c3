"""Which word does a small language model listen to when its weights grow?"""

from functools import partial
from typing import Final

from qkdemo.labs.lab import Lab
from qkdemo.labs.words.lab import PRESETS, Result, Settings, next_rows, report, rows, run, scale_rows
from qkdemo.labs.words.network import RUNS
from qkdemo.labs.words.program import snippet
from qkdemo.labs.words.view import picked, words_exhibit
from qkdemo.labs.words.words import explain

__all__ = [
    "LAB",
    "PRESETS",
    "RUNS",
    "Result",
    "Settings",
    "explain",
    "next_rows",
    "rows",
    "run",
    "scale_rows",
    "snippet",
]

LAB: Final = Lab(
    name="words",
    icon=":material/format_quote:",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    run=run,
    explain=explain,
    exhibit=words_exhibit,
    picked=picked,
    tables=lambda result: {
        "words.table.row": partial(rows, result),
        "words.table.next": partial(next_rows, result),
        "words.table.scales": partial(scale_rows, result),
    },
    programs=lambda result: {"page.words": partial(snippet, result.settings)},
    report=report,
)
