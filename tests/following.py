"""What the tests of the stages share: scales for `follow`, and what one format holds.

* `at(scale)`: one weight scale for all formats; `held_by(stages, stage, format)`: a stage's entries, as lists;
* `row(state, format, variant, stage)`: one row of the formats lab's table.
"""

from typing import Any, Final

import torch

from qkdemo.attention.norms import NormaliserWord, NormWord
from qkdemo.labs.formats import Settings, rows, run
from qkdemo.labs.formats.stages.kinds import STORED, StageWord, StoredWord
from qkdemo.labs.formats.stages.rounded import Held

NORMALISERS: Final[list[NormaliserWord]] = ["l2", "rms", "layernorm"]
SMALL: Final = {"n_keys": 6, "d_head": 8}


def at(scale: float) -> torch.Tensor:
    return torch.full((len(STORED), 1), scale, dtype=torch.float64)


def held_by(stages: dict[StageWord, Held], stage: StageWord, format: StoredWord) -> list[list[float]]:
    values: list[list[float]] = stages[stage].values[STORED.index(format), 0].tolist()
    return values


def row(state: Settings, format: StoredWord, variant: NormWord, stage: StageWord) -> dict[str, Any]:
    (found,) = [
        each
        for each in rows(run(state))
        if (each["format"], each["variant"], each["stage"]) == (format, variant, stage)
    ]
    return found
