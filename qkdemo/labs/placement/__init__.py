"""What does each choice that hides in the words QK norm change, and by how much?"""

from qkdemo.labs.placement.lab import (
    PRESETS,
    Result,
    Settings,
    block_of,
    explain,
    findings,
    mistake_rows,
    mistakes,
    mistakes_over_spreads,
    over_spreads,
    pipeline_of,
    report,
    rows,
    run,
    snippet,
    spread_rows,
)

__all__ = [
    "PRESETS",
    "Result",
    "Settings",
    "block_of",
    "explain",
    "findings",
    "mistake_rows",
    "mistakes",
    "mistakes_over_spreads",
    "over_spreads",
    "pipeline_of",
    "report",
    "rows",
    "run",
    "snippet",
    "spread_rows",
]
