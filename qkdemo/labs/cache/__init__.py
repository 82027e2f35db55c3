"""What may a KV cache hold, so that decoding stays the function that a fresh pass computes?"""

from qkdemo.labs.cache.lab import (
    PRESETS,
    SAME_FUNCTION,
    Result,
    Settings,
    every,
    explain,
    findings,
    label_rows,
    report,
    rows,
    run,
    snippet,
)

__all__ = [
    "PRESETS",
    "SAME_FUNCTION",
    "Result",
    "Settings",
    "every",
    "explain",
    "findings",
    "label_rows",
    "report",
    "rows",
    "run",
    "snippet",
]
