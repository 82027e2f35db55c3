"""Where exactly does a number format lose attention: which stage, which entry, at which weight scale?"""

from functools import partial
from typing import Final

from qkdemo.labs.formats.claims import claims
from qkdemo.labs.formats.lab import PRESETS, SHOWN, Result, Settings, Side, choices_of, ladder, recipe_of, run, sweep
from qkdemo.labs.formats.plane import PLANE
from qkdemo.labs.formats.program import snippet
from qkdemo.labs.formats.tables import first_failures, ladder_rows, native_rows, report, rows, sweep_rows
from qkdemo.labs.formats.view import formats_exhibit, picked
from qkdemo.labs.formats.words import explain
from qkdemo.labs.lab import Lab, Section
from qkdemo.messages import say

__all__ = [
    "LAB",
    "PRESETS",
    "SHOWN",
    "Result",
    "Settings",
    "Side",
    "choices_of",
    "explain",
    "first_failures",
    "ladder",
    "ladder_rows",
    "native_rows",
    "recipe_of",
    "report",
    "rows",
    "run",
    "snippet",
    "sweep",
    "sweep_rows",
]


def _sections(result: Result) -> list[Section]:
    """What the scale shows, and three common sayings with the numbers that decide them."""
    said = [say("formats.saying", said=claim.said, answer=claim.answer) for claim in claims()]
    return [
        Section(sentences=explain(result), listed=True),
        Section(title="formats.sayings", sentences=said),
    ]


LAB: Final = Lab(
    name="formats",
    icon=":material/memory:",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    run=run,
    explain=explain,
    exhibit=formats_exhibit,
    picked=picked,
    sections=_sections,
    tables=lambda result: {
        "formats.table.counts": partial(rows, result),
        "formats.table.first": partial(first_failures, result),
        "formats.table.scales": partial(sweep_rows, result.settings),
        "formats.table.ladder": partial(ladder_rows, result),
    },
    programs=lambda result: {
        f"variant.{side.variant}.name": partial(snippet, result.settings, side.variant) for side in result.sides
    },
    report=report,
    plane=PLANE,
)
