"""From which weight scale on entries of q·k, or of the logits, are lost: bisected between two scales of a sweep.

* `first_loss(stage, losses, scales, lost)`: that scale; `bracket(scales, lost)`: between which of the scales it lies;
* `Losses`: which queries and keys lose entries at a scale.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.variants import Scores
from qkdemo.floats.formats import first_failure

Stage: TypeAlias = Literal["raw", "logits"]
Positions: TypeAlias = tuple[Int[Tensor, " queries"], Int[Tensor, " keys"]]

BEFORE: Final = 1e-3  # of the smallest scale of a sweep: how far down a loss is followed
_NEAR: Final = 4e-6  # relative: a few times what a bisection leaves open


def first_loss(stage: Stage, losses: "Losses", scales: Sequence[float], lost: NDArray[np.float64]) -> float:
    """The weight scale at which the first entry of a stage is lost, bisected between two scales of the sweep.

    What is lost at a scale is lost beyond it too. So below a scale at which entries are lost, their queries and keys
    alone are asked, which are soon a handful; and all of them once, just below what was found. For in a norm among
    subnormal numbers an entry may come back: then all are asked again wherever none of that handful is lost.
    """
    before, beyond = bracket(scales, lost)
    if beyond == math.inf:
        return math.inf
    some = losses.everywhere

    def fails(scale: float, *, again: bool = False) -> bool:
        nonlocal some
        if scale == beyond or scale == before >= scales[0]:  # the sweep says
            return scale == beyond
        gone = losses.at(stage, scale, some)
        if again and not gone.any():
            gone = losses.at(stage, scale, losses.everywhere)
            some = losses.everywhere if gone.any() else some
        if not gone.any():
            return False
        some = some[0][gone.any(1)], some[1][gone.any(0)]
        return True

    found = first_failure(fails, before, beyond)
    below = found * (1 - _NEAR)
    fails_anywhere = partial(fails, again=True)
    return first_failure(fails_anywhere, before, beyond) if below > before and fails_anywhere(below) else found


def bracket(scales: Sequence[float], lost: NDArray[np.float64]) -> tuple[float, float]:
    """The last scale without a loss before the first one with it, and that one; ∞ and ∞ if none has one."""
    where = np.flatnonzero(lost)
    if not where.size:
        return math.inf, math.inf
    after = int(where[0])
    return scales[after - 1] if after else scales[0] * BEFORE, scales[after]


class Losses:
    """Where entries are lost at a weight scale. Both stages are told together: they often lose the same."""

    def __init__(self, score: Callable[[float, Positions | None], Scores], visible: Tensor | None, n_keys: int) -> None:
        """`score` forms the scores at one scale, of some queries and keys, or of all if it is given None."""
        self._score, self._visible = score, visible
        self._kept: dict[tuple[float, bytes, bytes], dict[Stage, Tensor]] = {}
        every = torch.arange(n_keys)
        self.everywhere = every, every

    def at(self, stage: Stage, scale: float, some: Positions) -> Bool[Tensor, "queries keys"]:
        """Whether a head has lost an entry of this stage, by query and key."""
        queries, keys = some
        asked = scale, queries.numpy().tobytes(), keys.numpy().tobytes()
        if asked not in self._kept:
            made = self._score(scale, None if some is self.everywhere else some)
            lost: dict[Stage, Tensor] = {"raw": _any_lost(made.raw[0]), "logits": _any_lost(made.logits[0])}
            seen = True if self._visible is None else self._visible[queries][:, keys]
            self._kept[asked] = {stage: (each & seen).cpu() for stage, each in lost.items()}
        return self._kept[asked][stage]


def _any_lost(x: Float[Tensor, "heads queries keys"]) -> Bool[Tensor, "queries keys"]:
    if x.sum().isfinite():  # then every entry is
        return torch.zeros(x.shape[1:], dtype=torch.bool, device=x.device)
    return ~(x.amin(0).isfinite() & x.amax(0).isfinite())  # the least and the largest of NaN are NaN
