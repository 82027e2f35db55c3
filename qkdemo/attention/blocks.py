"""An attention block as numbers: inputs, projections and what a checkpoint stores beside them.

* `Block`: the tensors that any pipeline reads;
* `BlockRecipe`, `draw_block(recipe)`: a small random block, the same for the same recipe on every machine;
* `spread_to(recipe, spread)`: that block with its gains drawn closer together or further apart, also to many spreads
  at once.

A block knows no order and no norm: that is what a `pipeline` is.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.norms import NORMS, normalise
from qkdemo.attention.rotary import THETA, LayoutWord, RotatedWord, partners, turned

GainsWord: TypeAlias = Literal["unit", "tied", "untied"]
_Shape: TypeAlias = tuple[int, int, int, int, int, int]  # what `_draw` takes


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """What a checkpoint and an input hold. Projections are stored out × in, as torch does.

    Gains and biases may have axes in front, as many as the states that are computed at once.
    """

    x: Float[Tensor, "positions d_model"]
    w_q: Float[Tensor, "q_width d_model"]
    w_k: Float[Tensor, "kv_width d_model"]
    w_v: Float[Tensor, "kv_width d_model"]
    b_q: Float[Tensor, " q_width"] | float = 0.0  # added by the projection
    b_k: Float[Tensor, " kv_width"] | float = 0.0
    b_v: Float[Tensor, " kv_width"] | float = 0.0
    w_o: Float[Tensor, "d_model q_width"] | None = None
    gain_q: Float[Tensor, "*states n_heads d_head"]  # the number that is stored, be it γ or γ − 1
    gain_k: Float[Tensor, "*states n_kv_heads d_head"]
    bias_q: Float[Tensor, "*states n_heads d_head"] | None = None  # added after the gain
    bias_k: Float[Tensor, "*states n_kv_heads d_head"] | None = None
    positions: Float[Tensor, " positions"]
    theta: float = THETA
    learned_scale: Float[Tensor, "n_heads"] | float = 10.0
    softcap: float = 50.0
    added: Float[Tensor, "n_heads positions positions"] | None = None  # to the logits: a bias of the position
    visible: Bool[Tensor, "positions positions"] | None = None

    @property
    def n_heads(self) -> int:
        """Query heads."""
        return self.gain_q.shape[-2]

    @property
    def n_kv_heads(self) -> int:
        """Key and value heads."""
        return self.gain_k.shape[-2]

    @property
    def d_head(self) -> int:
        """Entries of one head."""
        return self.gain_q.shape[-1]


@dataclass(frozen=True, kw_only=True)
class BlockRecipe:
    """What a drawn block depends on. `n_kv_heads` is lowered to the nearest number that divides `n_heads`."""

    d_model: int = 256
    n_heads: int = 4
    n_kv_heads: int = 4
    d_head: int = 64
    n_keys: int = 32
    gains: GainsWord = "untied"
    gain_spread: float = 0.5  # s: gains are uniform in [1 − s, 1 + s]
    offset_stored: bool = False  # the checkpoint holds γ − 1
    layout: LayoutWord = "half_split"  # the pairs in which tied gains are the same
    rotated: RotatedWord = "all"
    mean: float = 0.0  # added to every entry of q and k
    head_spread: float = 1.0  # largest head's size over the smallest's
    token_spread: float = 1.0  # longest input's length over the shortest's
    offset: int = 0  # the first position
    learned_scale: float = 10.0
    softcap: float = 50.0
    causal: bool = False
    seed: int = 0


@lru_cache(maxsize=8)
def draw_block(recipe: BlockRecipe) -> Block:
    """Inputs of unit size, as a block's own norm leaves them, and projections N(0, 1/d_model): q and k are near
    unit size. float64."""
    n_kv = dividing(recipe.n_heads, recipe.n_kv_heads)
    shape = (recipe.d_model, recipe.n_heads, n_kv, recipe.d_head, recipe.n_keys, recipe.seed)
    drawn = _draw(shape, recipe.head_spread)
    x, b_q, b_k = _entering(shape, recipe.head_spread, recipe.token_spread, recipe.mean)
    stored = 0.0 if recipe.offset_stored else 1.0
    seen = torch.ones(recipe.n_keys, recipe.n_keys, dtype=torch.bool).tril() if recipe.causal else None
    return Block(
        x=x,
        w_q=drawn["w_q"],
        w_k=drawn["w_k"],
        w_v=drawn["w_v"],
        w_o=drawn["w_o"],
        b_q=b_q,
        b_k=b_k,
        gain_q=stored + _spread(recipe, drawn["gain_q"]),
        gain_k=stored + _spread(recipe, drawn["gain_k"]),
        bias_q=recipe.gain_spread * drawn["bias_q"],
        bias_k=recipe.gain_spread * drawn["bias_k"],
        positions=torch.arange(recipe.offset, recipe.offset + recipe.n_keys, dtype=torch.float64),
        learned_scale=recipe.learned_scale,
        softcap=recipe.softcap,
        visible=seen,
    )


@lru_cache(maxsize=8)  # of up to seventeen megabytes each, which all blocks of a draw share
def _draw(shape: _Shape, head_spread: float) -> dict[str, Tensor]:
    """Every number that comes from the generator, in the order in which it comes; W_q and W_k with heads of a size."""
    d_model, n_heads, n_kv_heads, d_head, n_keys, seed = shape
    generator = np.random.default_rng(seed)

    q_width, kv_width = n_heads * d_head, n_kv_heads * d_head
    drawn = {
        "x": normalise(_normal(generator, n_keys, d_model), NORMS["rms"]),
        "order": torch.from_numpy(generator.permuted(np.arange(n_keys))),
    }
    for name, width in (("q", q_width), ("k", kv_width), ("v", kv_width)):
        drawn[f"w_{name}"] = _normal(generator, width, d_model).div_(d_model**0.5)
    for name, size in zip("qk", _sizes(head_spread, n_heads, n_kv_heads, d_head), strict=True):
        drawn[f"w_{name}"].mul_(size[:, None])
    drawn["w_o"] = _normal(generator, d_model, q_width).div_(q_width**0.5)
    for name, heads in (("gain_q", n_heads), ("gain_k", n_kv_heads), ("bias_q", n_heads), ("bias_k", n_kv_heads)):
        drawn[name] = torch.from_numpy(generator.uniform(-1, 1, (heads, d_head)))
    return drawn


def _normal(generator: np.random.Generator, *shape: int) -> Tensor:
    return torch.from_numpy(generator.standard_normal(shape))


@lru_cache(maxsize=8)
def _entering(shape: _Shape, head_spread: float, token_spread: float, mean: float) -> tuple[Tensor, Tensor, Tensor]:
    """The inputs, and what the projections of q and k add: the same tensors for all blocks of a draw."""
    drawn, (_, n_heads, n_kv_heads, d_head, n_keys, _) = _draw(shape, head_spread), shape
    lengths = torch.from_numpy(steps(token_spread, n_keys))[drawn["order"]]
    size_q, size_k = _sizes(head_spread, n_heads, n_kv_heads, d_head)
    return drawn["x"] * lengths[:, None], mean * size_q, mean * size_k


def _sizes(spread: float, n_heads: int, n_kv_heads: int, d_head: int) -> tuple[Tensor, Tensor]:
    """How large each row of W_q and W_k is, the largest head `spread` times the smallest."""
    q, k = (torch.from_numpy(steps(spread, heads).repeat(d_head)) for heads in (n_heads, n_kv_heads))
    return q, k


def spread_to(recipe: BlockRecipe, spread: float | Sequence[float]) -> Block:
    """The block of `recipe`, but with gains (and biases) spread by `spread`; all else is the same draw.

    Of several spreads, the gains of each stand along an axis in front.
    """
    block = draw_block(dataclasses.replace(recipe, gain_spread=1.0))
    factor = torch.tensor(spread, dtype=torch.float64)[..., None, None]
    stored = 0.0 if recipe.offset_stored else 1.0
    assert block.bias_q is not None  # a drawn block has them
    assert block.bias_k is not None
    return dataclasses.replace(
        block,
        gain_q=stored + factor * (block.gain_q - stored),
        gain_k=stored + factor * (block.gain_k - stored),
        bias_q=factor * block.bias_q,
        bias_k=factor * block.bias_k,
    )


def dividing(n_heads: int, n_kv_heads: int) -> int:
    """The largest number up to `n_kv_heads` that divides `n_heads`.

    >>> dividing(8, 8), dividing(8, 3), dividing(6, 4), dividing(4, 8)
    (8, 2, 3, 4)
    """
    return max(n for n in range(1, min(n_heads, n_kv_heads) + 1) if n_heads % n == 0)


def _spread(recipe: BlockRecipe, deviation: Tensor) -> Tensor:
    """γ − 1 from numbers in [−1, 1]: nothing, the same within each rotary pair, or every channel its own."""
    if recipe.gains == "unit":
        return torch.zeros_like(deviation)
    if recipe.gains == "tied":
        first, second = partners(turned(recipe.d_head, recipe.rotated), recipe.layout)
        deviation = deviation.clone()  # a draw is shared
        deviation[:, second] = deviation[:, first]
    return recipe.gain_spread * deviation


def steps(spread: float, count: int) -> NDArray[np.float64]:
    """`count` sizes around 1, the largest `spread` times the smallest, evenly between on a logarithmic scale."""
    ends = 0.5 if count > 1 else 0
    sizes: NDArray[np.float64] = spread ** np.linspace(-ends, ends, count)
    return sizes
