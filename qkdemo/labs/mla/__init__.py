"""Can keys be normalised that need not be formed?"""

from functools import partial
from typing import Final

from qkdemo.labs.lab import Lab, Section
from qkdemo.labs.mla.lab import PRESETS, Result, Settings, context_rows, cost, other_rows, report, rows, run, scale_rows
from qkdemo.labs.mla.plane import PLANE
from qkdemo.labs.mla.program import alternatives_snippet, snippet
from qkdemo.labs.mla.view import mla_exhibit, other_ways_exhibit, picked, picked_scale
from qkdemo.labs.mla.words import explain, explain_other_ways, size_text

__all__ = [
    "LAB",
    "PRESETS",
    "Result",
    "Settings",
    "alternatives_snippet",
    "context_rows",
    "cost",
    "explain",
    "explain_other_ways",
    "other_rows",
    "rows",
    "run",
    "scale_rows",
    "size_text",
    "snippet",
]


def _sections(result: Result) -> list[Section]:
    """What the context says, then what is done instead of QK norm."""
    return [
        Section(sentences=explain(result)[1:]),
        Section(
            name="others",
            exhibit=other_ways_exhibit(result),
            picked=picked_scale,
            sentences=explain_other_ways(result),
            listed=True,
        ),
    ]


LAB: Final = Lab(
    name="mla",
    icon=":material/compress:",
    menu="contract",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    run=run,
    explain=explain,
    exhibit=mla_exhibit,
    picked=picked,
    sections=_sections,
    tables=lambda result: {
        "mla.table.here": partial(rows, result),
        "mla.table.contexts": partial(context_rows, result),
        "mla.table.ways": partial(other_rows, result),
        "mla.table.scales": partial(scale_rows, result),
    },
    programs=lambda result: {
        "mla.program.title": partial(snippet, result.settings),
        "mla.program.ways": partial(alternatives_snippet, result.settings),
    },
    report=report,
    plane=PLANE,
)
