"""Which word does a query listen to when every arrow grows?"""

from qkdemo.labs.arrows.lab import (
    LONGEST,
    N_KEYS,
    PRESETS,
    Result,
    Settings,
    explain,
    percent,
    report,
    rows,
    run,
    scale_rows,
    snippet,
    word_of,
)

__all__ = [
    "LONGEST",
    "N_KEYS",
    "PRESETS",
    "Result",
    "Settings",
    "explain",
    "percent",
    "report",
    "rows",
    "run",
    "scale_rows",
    "snippet",
    "word_of",
]
