"""What does the norm do with a vector that is nearly, or exactly, zero?"""

from qkdemo.labs.epsilon.lab import (
    NORMALISED,
    PRESETS,
    RULE_WORDS,
    Result,
    Settings,
    explain,
    findings,
    format_rows,
    formats,
    report,
    rows,
    run,
    size_rows,
    snippet,
)

__all__ = [
    "NORMALISED",
    "PRESETS",
    "RULE_WORDS",
    "Result",
    "Settings",
    "explain",
    "findings",
    "format_rows",
    "formats",
    "report",
    "rows",
    "run",
    "size_rows",
    "snippet",
]
