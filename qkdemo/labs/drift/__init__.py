"""What happens to attention when the weights that make q and k grow?"""

from collections.abc import Callable
from functools import partial
from typing import Final

from qkdemo.labs.drift.lab import (
    DRAWN,
    PRESETS,
    Result,
    Settings,
    on,
    report,
    rows,
    run,
    sharpness,
    sharpness_rows,
    state_of,
    sweep_scales,
)
from qkdemo.labs.drift.plane import PLANE
from qkdemo.labs.drift.program import snippet
from qkdemo.labs.drift.sharpness_view import sharpness_exhibit
from qkdemo.labs.drift.view import drift_exhibit, picked
from qkdemo.labs.drift.words import DECIDED, OPEN, UNMOVED, bound_in_words, explain, findings
from qkdemo.labs.lab import Lab, Rows, Section
from qkdemo.messages import say

__all__ = [
    "DECIDED",
    "LAB",
    "OPEN",
    "PRESETS",
    "UNMOVED",
    "Result",
    "Settings",
    "bound_in_words",
    "explain",
    "findings",
    "report",
    "rows",
    "run",
    "sharpness",
    "sharpness_rows",
    "snippet",
    "state_of",
    "sweep_scales",
]


def _tables(result: Result) -> dict[str, Callable[[], Rows]]:
    swept = sharpness(result.settings)
    tables: dict[str, Callable[[], Rows]] = {"drift.table.scale": partial(rows, result)}
    return tables if swept is None else tables | {"drift.table.dial": partial(sharpness_rows, swept)}


def _sharpness(result: Result) -> Section:
    """What the variant's own dial buys back, if it has one."""
    swept = sharpness(result.settings)
    if swept is None:
        return Section(sentences=[say("sharpness.none")])
    return Section(
        name="sharpness",
        exhibit=sharpness_exhibit(swept, result),
        picked=lambda pick: {swept.dial: pick["dial"]} if "dial" in pick else {},
    )


LAB: Final = Lab(
    name="drift",
    icon=":material/trending_up:",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    run=run,
    explain=explain,
    exhibit=drift_exhibit,
    picked=picked,
    tabs=lambda result: {"sharpness.tab": partial(_sharpness, result)},
    tables=_tables,
    programs=lambda result: {
        f"variant.{side.variant}.name": partial(snippet, result.settings, side.variant)
        for side in reversed(result.sides)
    },
    report=report,
    plane=PLANE,
    on=on,
    drawn=DRAWN,
)
