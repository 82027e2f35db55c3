"""What one side of drift's comparison depends on, and the scores that follow from it.

* `State`: all of it, and nothing else, so that equal sides are computed once, by `once`;
* `scores_at(state, scales)`, `visible_keys(state)`: q, k, q·k and the logits at weight scales, and the mask;
* `stops(recipe)`: the weight scales that are computed for dragging; `blocks`, `runs`: how many of them at once.

q and k are drawn in float64, multiplied by the scale, and stored once in the number format; what follows is stored in
it too.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import torch
from torch import Tensor

from qkdemo.attention.inputs import Inputs, Recipe, causal_mask, draw
from qkdemo.attention.variants import VARIANTS, Parameters, Scores, Variant, VariantWord, scores
from qkdemo.dials import preferred_numbers
from qkdemo.floats.devices import DeviceWord, device_for
from qkdemo.floats.formats import FORMATS, FormatWord, exact, rounded
from qkdemo.labs.drift.first_losses import Positions

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

T = TypeVar("T")
_BLOCK: Final = 1 << 17  # logits worked on at once: 1 MiB, which stays in cache


@dataclass(frozen=True, kw_only=True)
class State:
    """What one side depends on, the weight scale apart. `parameters` must hold plain numbers."""

    variant: VariantWord
    parameters: Parameters
    recipe: Recipe
    format: FormatWord
    norm_in_format: bool
    causal: bool
    shown: tuple[int, int, int]  # head, query and key that are looked at closely
    device: DeviceWord
    own: Inputs | None = None  # in place of what the recipe draws

    @property
    def base(self) -> tuple[Tensor, Tensor]:
        """q and k at weight scale 1."""
        return draw(self.recipe) if self.own is None else (self.own.q, self.own.k)

    @property
    def formed_by(self) -> Variant:
        """The variant itself."""
        return VARIANTS[self.variant]

    @property
    def runs_on(self) -> DeviceWord:
        """The device, or cpu where the device lacks the number format."""
        return device_for(self.device, FORMATS[self.format].dtype)


def once(kept: "_lru_cache_wrapper[T]", state: State, *more: Hashable) -> T:
    """What `kept` gives; of somebody's own q and k it is kept with them alone."""
    if state.own is None:
        return kept(state, *more)
    return state.own.once((kept.__name__, state, *more), lambda: kept.__wrapped__(state, *more))


def stops(recipe: Recipe) -> tuple[float, ...]:
    """The weight scales that are computed for dragging: fewer where one scale costs more."""
    return preferred_numbers(0.01, 1000, stops_per_decade(recipe))


def stops_per_decade(recipe: Recipe) -> Literal[20, 10, 5, 4]:
    """How many values of a dial are computed for dragging: fewer where one costs more."""
    size = recipe.n_heads * recipe.n_keys**2
    return 20 if size <= 4096 else 10 if size <= 16384 else 5 if size <= 131072 else 4


def whatever_is_shown(state: State) -> State:
    """The same for all that is not looked at closely."""
    return replace(state, shown=(0, 0, 0))


def visible_keys(state: State) -> Tensor | None:
    """The mask of keys that each query sees; None if it sees them all."""
    return causal_mask(state.recipe.n_keys, state.runs_on) if state.causal else None


def scores_at(
    state: State,
    scales: Tensor,
    parameters: Parameters | None = None,
    only: Positions | None = None,
    heads: slice = slice(None),
) -> Scores:
    """Scores at every weight scale, [scales, heads, …]; `parameters` may hold tensors that sweep instead.

    `only`: the queries and keys that are looked at; by default all, and of all `heads`.
    """
    store = partial(rounded, format=FORMATS[state.format])
    drawn = state.base[0][heads], state.base[1][heads]
    if only is not None:
        drawn = drawn[0][:, only[0]], drawn[1][:, only[1]]
    q, k = (store(scales[:, None, None, None] * x).to(state.runs_on) for x in drawn)
    inside = store if state.norm_in_format else exact
    return scores(q, k, state.formed_by, parameters or state.parameters, store=store, inside_norm=inside)


def blocks(values: Sequence[float], recipe: Recipe) -> Sequence[Tensor]:
    """`values` in runs so short that the logits of a run stay in cache; within one, all are worked on at once."""
    return runs(values, _BLOCK // (recipe.n_heads * recipe.n_keys**2))


def runs(values: Sequence[float], length: int) -> Sequence[Tensor]:
    """`values` in runs of that length, or of one."""
    return torch.split(torch.tensor(values, dtype=torch.float64), max(1, length))
