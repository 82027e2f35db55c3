"""How far two arrays of logits are apart.

* `relative(one, other)`: over all; `worst_row(mine, reference, visible)`: in which `Row` they are furthest apart;
* `in_range(one, other)`: both by a power of two, so that no square leaves float64;
* `Rounding`: how far apart two may be that are the same but for it.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import torch
from torch import Tensor

from qkdemo.attention.pipeline import Pipeline

_LEAST: Final = 1e-100  # sizes whose squares, and those of what is a little smaller, are numbers of float64


@dataclass(frozen=True)
class Row:
    """Of one query in one head: by how much both differ, of its logits' size, or of the head's if that is larger."""

    head: int
    query: int
    error: float


@dataclass(frozen=True)
class Rounding:
    """The relative difference that may be left where every step is rounded to a format."""

    kind: torch.dtype
    limit: float
    unturned: float  # the part of it that is left without rotary, whose angles are rounded, too

    def of(self, pipeline: Pipeline) -> "Rounding":
        """What it leaves in that pipeline’s logits."""
        return replace(self, limit=self.unturned) if pipeline.order == "none" else self


def in_range(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Both by the same power of two, so that no square leaves float64."""
    size = max(float(x.abs().nan_to_num(0, 0, 0).max()) for x in (one, other))
    if size == 0 or _LEAST < size < 1 / _LEAST:
        return one, other
    factor = 2.0 ** -math.frexp(size)[1]
    return one * factor, other * factor


def relative(one: Tensor, other: Tensor) -> float:
    """The length of their difference over that of the second."""
    one, other = in_range(one, other)
    length = float(other.norm())
    difference = float((one - other).norm())
    return difference / length if length else math.inf if difference else 0.0


def worst_row(mine: Tensor, reference: Tensor, visible: Tensor) -> Row:
    """A row of small logits is measured by the head's: its errors are of the size of the products that cancel there."""
    counts = visible.sum(-1).clamp_min(1)
    sizes = (reference.square().sum(-1) / counts).sqrt()  # [heads, queries]
    of_head = (reference.square().sum((1, 2), keepdim=False) / visible.sum().clamp_min(1)).sqrt()
    differences = ((mine - reference).square().sum(-1) / counts).sqrt()
    errors = torch.where(differences == 0, 0.0, differences / torch.maximum(sizes, of_head[:, None]))
    head, query = divmod(int(errors.nan_to_num(math.inf).argmax()), errors.shape[1])
    return Row(head, query, float(errors[head, query]))
