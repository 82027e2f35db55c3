"""Where a norm can act on its way from the input to the attention weights.

* `Place`, `PLACES`: what a norm is applied to at each place, by its word;
* `heads_of`, `merged`: a projection in heads, and back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from torch import Tensor

PlaceWord: TypeAlias = Literal["per_head", "full_width", "input", "in_product", "weights"]
Norm: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Place:
    """Where a norm acts: each function receives a tensor and the norm, and by default leaves the tensor alone."""

    on_input: Callable[[Tensor, Norm], Tensor] = lambda x, norm: x
    on_heads: Callable[[Tensor, Norm], Tensor] = lambda x, norm: x
    on_weights: Callable[[Tensor, Norm], Tensor] = lambda x, norm: x
    in_product: bool = False  # q·k is divided by the two sizes instead of q and k


def heads_of(x: Tensor, d_head: int) -> Tensor:
    """[…, positions, heads · d_head] → […, heads, positions, d_head]."""
    return x.reshape(*x.shape[:-1], -1, d_head).movedim(-2, -3)


def merged(x: Tensor) -> Tensor:
    """[…, heads, positions, d_head] → […, positions, heads · d_head]."""
    return x.movedim(-3, -2).flatten(-2)


def _apply(x: Tensor, norm: Norm) -> Tensor:
    return norm(x)


def _over_all_heads(x: Tensor, norm: Norm) -> Tensor:
    return heads_of(norm(merged(x)), x.shape[-1])


PLACES: Final[dict[PlaceWord, Place]] = {
    "per_head": Place(on_heads=_apply),
    "full_width": Place(on_heads=_over_all_heads),
    "input": Place(on_input=_apply),
    "in_product": Place(in_product=True),
    "weights": Place(on_weights=_apply),
}
