"""What does normalising q and k cost, on paper and on this machine?"""

from functools import partial
from typing import Final

from qkdemo.labs.cost.lab import PRESETS, Result, Settings, report, rows, run, sweep, sweep_rows
from qkdemo.labs.cost.plane import PLANE
from qkdemo.labs.cost.program import snippet
from qkdemo.labs.cost.timing import WAYS, Measured, Times, live_report, measure, time_rows
from qkdemo.labs.cost.view import cost_exhibit, picked, times_exhibit
from qkdemo.labs.cost.words import explain, explain_times, time_finding
from qkdemo.labs.lab import Lab, OnDemand, Section

__all__ = [
    "LAB",
    "PRESETS",
    "WAYS",
    "Measured",
    "Result",
    "Settings",
    "Times",
    "explain",
    "explain_times",
    "measure",
    "rows",
    "run",
    "snippet",
    "sweep",
    "sweep_rows",
    "time_finding",
    "time_rows",
]


def _times(measured: Measured) -> Section:
    """What the clock said."""
    return Section(name="times", exhibit=times_exhibit(measured), sentences=explain_times(measured)[1:])


LAB: Final = Lab(
    name="cost",
    icon=":material/timer:",
    menu="contract",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    run=run,
    explain=explain,
    exhibit=lambda result: cost_exhibit(result.settings),
    picked=lambda settings, pick: picked(pick),
    tables=lambda result: {
        "cost.table_parts": partial(rows, result),
        "cost.table_sweep": lambda: sweep_rows(sweep(result.settings)),
    },
    programs=lambda result: {"cost.program": partial(snippet, result.settings)},
    on_demand=OnDemand(
        name="cost.measure",
        run=lambda settings, after_round: measure(settings, after_round=after_round),
        rows=time_rows,
        section=_times,
    ),
    report=report,
    plane=PLANE,
    measured_report=live_report,
)
