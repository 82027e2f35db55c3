"""What does each choice that hides in the words QK norm change, and by how much?"""

from functools import partial
from typing import Final

from qkdemo.labs.lab import Lab, OnDemand, Section
from qkdemo.labs.placement.lab import PRESETS, Result, Settings, block_of, mistakes_of, pipeline_of, run
from qkdemo.labs.placement.mistakes import MISTAKES, ROUNDING, explain_mistakes
from qkdemo.labs.placement.plane import PLANE
from qkdemo.labs.placement.program import snippet
from qkdemo.labs.placement.tables import DIFFERENCES, mistake_rows, report, rows, spread_rows
from qkdemo.labs.placement.view import picked, placement_exhibit
from qkdemo.labs.placement.words import explain

__all__ = [
    "LAB",
    "PRESETS",
    "Result",
    "Settings",
    "block_of",
    "explain",
    "mistake_rows",
    "mistakes_of",
    "pipeline_of",
    "rows",
    "run",
    "snippet",
    "spread_rows",
]

LAB: Final = Lab(
    name="placement",
    icon=":material/compare_arrows:",
    menu="contract",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    run=run,
    explain=explain,
    exhibit=placement_exhibit,
    picked=picked,
    sections=lambda result: [Section(sentences=explain(result)[1:], listed=True)],
    tables=lambda result: {
        "placement.table.spread": partial(spread_rows, result.settings),
        "placement.table.mistakes": partial(mistake_rows, result.settings),
        "placement.table.position": partial(rows, result),
    },
    programs=lambda result: {"page.placement": partial(snippet, result.settings)},
    on_demand=OnDemand(
        name="placement.draws",
        run=lambda settings, after_round: mistakes_of(settings),
        rows=lambda found: [vars(mistake) for mistake in found],
        section=lambda found: Section(sentences=explain_mistakes(found)),
    ),
    report=report,
    noise=dict.fromkeys((*DIFFERENCES, *MISTAKES), ROUNDING),
    plane=PLANE,
)
