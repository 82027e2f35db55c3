"""What a map shows of the formats lab: entries of the chosen stage, in the chosen format, over any two dials."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch

from qkdemo.labs.formats.lab import Settings, choices_of, inputs_of, recipe_of, variants_of
from qkdemo.labs.formats.stages.error_counts import Tally, tally
from qkdemo.labs.formats.stages.kinds import STAGES, STORED
from qkdemo.labs.lab import Columns, Plane, along
from qkdemo.messages import say

_ROLES: Final = ("plain", "norm")


def _over_scales(settings: Settings, scales: Sequence[float]) -> dict[str, Columns]:
    inputs, at = inputs_of(recipe_of(settings), settings.causal), torch.tensor(scales, dtype=torch.float64)
    counted = [tally(inputs, at, choices_of(settings, variant)) for variant in variants_of(settings)]
    return {role: _columns(settings, found) for role, found in zip(_ROLES, counted, strict=True)}


def _columns(settings: Settings, counted: Tally) -> Columns:
    """Shares of the entries; NaN where this side has no such stage."""
    of_stage = STORED.index(settings.storage), STAGES.index(settings.stage)
    n = counted.n[of_stage].astype(np.float64)
    with np.errstate(invalid="ignore"):
        shares = {name: getattr(counted, f"n_{name}")[of_stage] / n for name in ("lost", "zero", "merged")}
    return {
        "entries_lost": shares["lost"],
        "entries_zero": shares["zero"],
        "entries_merged": shares["merged"],
        "relative_error": counted.max_rel_error[of_stage],
    }


PLANE: Final = Plane(
    x="scale",
    y="gain",
    measures={
        "entries_lost": "share",
        "entries_zero": "share",
        "entries_merged": "share",
        "relative_error": "log",
    },
    sides=lambda settings: {
        role: say(f"variant.{word}.name") for role, word in zip(_ROLES, variants_of(settings), strict=True)
    },
    read=along("scale", _over_scales),
    swept="scale",
    marks={
        "first_lost": lambda side: side["entries_lost"] > 0,
        "all_lost": lambda side: side["entries_lost"] >= 1,
    },
)
