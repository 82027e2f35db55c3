"""The base vectors that labs scale, normalise and compare.

* `draw(recipe)`: q and k of some heads, the same for the same recipe on every machine;
* `Inputs`: q and k of somebody's own in their place, and what was made of them;
* `causal_mask(n)`: which keys each query may see.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

T = TypeVar("T")
_MOST_KEPT: Final = 32


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a draw depends on, and nothing else."""

    n_heads: int = 1
    n_keys: int = 16
    d_head: int = 64
    seed: int = 0
    alignment: float = 0.0  # a: k_j becomes a·q_j + √(1 − a²)·k_j; 0 leaves them independent, 1 makes them equal
    mean: float = 0.0  # added to every entry
    head_spread: float = 1.0  # largest head's size over the smallest's, the others evenly between on a log scale


@dataclass(frozen=True, eq=False)
class Inputs:
    """q and k that somebody brought, in float64. What is made of them is kept with them, and so is gone with them."""

    q: Float[Tensor, "n_heads n_keys d_head"]
    k: Float[Tensor, "n_heads n_keys d_head"]
    _made: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made once for this key as long as it is among the newest that were made."""
        if key not in self._made:
            while len(self._made) >= _MOST_KEPT:
                self._made.pop(next(iter(self._made)), None)
            self._made[key] = make()
        made: T = self._made[key]
        return made


@lru_cache(maxsize=16)
def draw(recipe: Recipe) -> tuple[Float[Tensor, "n_heads n_keys d_head"], Float[Tensor, "n_heads n_keys d_head"]]:
    """Base q, then base k: standard normal, float64, from NumPy's `default_rng(seed)`, then as the recipe says.

    The same recipe gives the same tensors again: they are for reading.
    """
    generator = np.random.default_rng(recipe.seed)
    shape = (recipe.n_heads, recipe.n_keys, recipe.d_head)
    q = torch.from_numpy(generator.standard_normal(shape))
    k = torch.from_numpy(generator.standard_normal(shape))
    k = recipe.alignment * q + math.sqrt(1 - recipe.alignment**2) * k
    ends = 0.5 if recipe.n_heads > 1 else 0
    steps = torch.linspace(-ends, ends, recipe.n_heads, dtype=torch.float64)
    size = (recipe.head_spread**steps)[:, None, None]
    return (q + recipe.mean) * size, (k + recipe.mean) * size


def causal_mask(n: int, device: torch.device | str = "cpu") -> Bool[Tensor, "n n"]:
    """True where a query (row) may see a key (column): itself and everything before."""
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()
