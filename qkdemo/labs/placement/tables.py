"""A placement result as tables: by query, over the spread of the gains, and for the command line."""

import math
from typing import Any, Final

from qkdemo.dials import Value
from qkdemo.facts.nearest import closest
from qkdemo.labs.placement.lab import (
    Result,
    Settings,
    mistakes_of,
    mistakes_over_spreads,
    over_spreads,
    pipeline_of,
    run,
)
from qkdemo.labs.placement.mistakes import ROUNDING

DIFFERENCES: Final = (  # columns of tables
    *("relative_raw_error", "relative_score_error", "largest_weight_difference", "relative_output_error"),
    *("raw", "logits", "weight", "output", "first_query", "last_query"),
    *("lowest", "median", "highest", "with_unit_gains", "with_uneven_inputs"),
)


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per query, and its share of the error."""
    settings = result.settings
    return [
        {"position": settings.offset + at, "relative_score_error": error.item()}
        for at, error in enumerate(result.by_query)
    ]


def spread_rows(settings: Settings) -> list[dict[str, Value | None]]:
    """The table over the spread of the gains: how far the two pipelines are apart."""
    swept = over_spreads(settings)
    return [
        {"gain_spread": spread, **vars(apart)}
        for spread, apart in zip(swept.spreads.tolist(), swept.differences, strict=True)
    ]


def mistake_rows(settings: Settings) -> list[dict[str, Value | None]]:
    """The table over the spread of the gains: relative error of the logits of every known mistake."""
    found = mistakes_over_spreads(settings)
    return [
        {"gain_spread": spread, **{name: column[at].item() for name, column in found.logits.items()}}
        for at, spread in enumerate(found.spreads)
    ]


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: one row for the two pipelines, or one for every known mistake."""
    if settings.compare == "all_mistakes":
        return {"rows": [vars(mistake) for mistake in mistakes_of(settings)]}
    result = run(settings)
    ratio = result.verdict.ratio if math.isfinite(result.verdict.ratio) else None  # most errors have none
    cause = result.verdict.cause
    rounded = cause == "same" and result.relative_score_error >= ROUNDING  # the function is one, the format is felt
    verdict = {"diagnosis": "same but for rounding" if rounded else cause, "ratio": ratio}
    ends = {"first_query": result.verdict.first, "last_query": result.verdict.last}
    nearest = {f"closest_to_{side}": closest(pipeline_of(settings, side))[0].model for side in ("left", "right")}
    return {"rows": [{name: getattr(result, name) for name in DIFFERENCES[:4]} | verdict | ends | nearest]}
