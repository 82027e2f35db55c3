"""Does it matter whether q and k are normalised before or after rotary positions?"""

from qkdemo.labs.rope.lab import (
    AGREE,
    PRESETS,
    Order,
    Result,
    Settings,
    distance_rows,
    explain,
    findings,
    pairwise_product,
    report,
    rows,
    run,
    snippet,
)

__all__ = [
    "AGREE",
    "PRESETS",
    "Order",
    "Result",
    "Settings",
    "distance_rows",
    "explain",
    "findings",
    "pairwise_product",
    "report",
    "rows",
    "run",
    "snippet",
]
