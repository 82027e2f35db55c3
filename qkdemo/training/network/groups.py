"""Which rows of a batch of runs are treated alike.

* `Groups`: the runs in the order of their remedies, so that whatever treats some of them takes one slice;
* `by_rows(parts, ...)`: a function per slice, joined again; `replaced(x, rows, new)`: other numbers in a slice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor

from qkdemo.training.remedies import REMEDIES, Remedy
from qkdemo.training.settings import RemedyWord

Part: TypeAlias = tuple[int, Callable[..., Tensor]]


@dataclass(frozen=True)
class Groups:
    """Runs in the order of `REMEDIES`. `slices` has one entry per remedy present."""

    slices: tuple[tuple[Remedy, slice], ...]

    @classmethod
    def of(cls, words: Sequence[RemedyWord]) -> "Groups":
        """The groups of runs whose remedies are `words`, already in order."""
        slices, start = [], 0
        for word, remedy in REMEDIES.items():
            count = sum(word == other for other in words)
            if count:
                slices.append((remedy, slice(start, start + count)))
                start += count
        return cls(tuple(slices))

    @cached_property
    def formed_alike(self) -> tuple[tuple[Remedy, slice], ...]:
        """The same, with neighbours joined that form their logits alike; the first stands for all of them."""
        joined: list[tuple[Remedy, slice]] = []
        for remedy, rows in self.slices:
            if joined and joined[-1][0].forms == remedy.forms and joined[-1][0].parameters is remedy.parameters:
                joined[-1] = (joined[-1][0], slice(joined[-1][1].start, rows.stop))
            else:
                joined.append((remedy, rows))
        return tuple(joined)

    def of_sphere(self, plain: Callable[..., Tensor], sphere: Callable[..., Tensor]) -> tuple[Part, ...]:
        """`plain` for all rows but nGPT's, which stand last and get `sphere`."""
        stop = self.slices[-1][1].stop
        cut = next((rows.start for remedy, rows in self.slices if remedy.on_sphere), stop)
        return tuple(part for part in ((cut, plain), (stop - cut, sphere)) if part[0])


def by_rows(parts: Sequence[Part], *tensors: Tensor, dim: int = 0) -> Tensor:
    """Each part's function of its rows of the tensors, along `dim`; no copy if there is one part."""
    if len(parts) == 1:
        return parts[0][1](*tensors)
    sizes = [size for size, _ in parts]
    pieces = zip(*(tensor.split_with_sizes(sizes, dim) for tensor in tensors), strict=True)
    return torch.cat([function(*piece) for (_, function), piece in zip(parts, pieces, strict=True)], dim)


def replaced(x: Tensor, rows: slice, new: Tensor) -> Tensor:
    """`x` with `new` in these rows: a copy, so that autograd finds its way."""
    return torch.cat([x[: rows.start], new, x[rows.stop :]])
