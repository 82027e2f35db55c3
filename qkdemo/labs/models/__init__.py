"""Which public implementation does what?"""

from qkdemo.labs.models.lab import (
    PRESETS,
    SHOWN,
    FamilyWord,
    Result,
    Settings,
    beside,
    corrections,
    explain,
    families,
    family_rows,
    finding,
    report,
    rows,
    run,
    searched,
    snippet,
)

__all__ = [
    "PRESETS",
    "SHOWN",
    "FamilyWord",
    "Result",
    "Settings",
    "beside",
    "corrections",
    "explain",
    "families",
    "family_rows",
    "finding",
    "report",
    "rows",
    "run",
    "searched",
    "snippet",
]
