"""Does it matter whether q and k are normalised before or after rotary positions?"""

from functools import partial
from typing import Final

from qkdemo.labs.lab import Lab, Section
from qkdemo.labs.rope.lab import PRESETS, Result, Settings, distance_rows, pairwise_product, report, rows, run
from qkdemo.labs.rope.plane import PLANE
from qkdemo.labs.rope.program import snippet
from qkdemo.labs.rope.view import distance_exhibit, picked, rope_exhibit
from qkdemo.labs.rope.words import explain, findings

__all__ = [
    "LAB",
    "PRESETS",
    "Result",
    "Settings",
    "distance_rows",
    "explain",
    "findings",
    "pairwise_product",
    "rows",
    "run",
    "snippet",
]


def _distances(result: Result) -> Section:
    """Both orders against the distance."""
    return Section(name="distances", exhibit=distance_exhibit(result), picked=partial(picked, dial="distance"))


LAB: Final = Lab(
    name="rope",
    icon=":material/rotate_right:",
    menu="contract",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    run=run,
    explain=explain,
    exhibit=rope_exhibit,
    picked=lambda settings, pick: picked(pick, "position"),
    sections=lambda result: [Section(sentences=explain(result))],
    tabs=lambda result: {"rope.distances": partial(_distances, result)},
    tables=lambda result: {
        "rope.table.position": partial(rows, result),
        "rope.table.distance": partial(distance_rows, result),
    },
    programs=lambda result: {"page.rope": partial(snippet, result.settings)},
    report=report,
    plane=PLANE,
)
