"""Where every weight stands, and its first value.

* `Shape`: the sizes that runs in one batch share;
* `layout(shape)`: the leaves, each a tensor of one run, end to end in one flat row;
* `initial(settings)`: the first row of a run; `shape_of(settings)`: its sizes;
* `views(rows, shape)`: the leaves of many rows, by name, without a copy;
* `columns(shape, part)`: the columns of W_q, W_k or W_v.

All runs hold the parameters of every remedy, so that runs with different remedies are rows of one matrix. A
parameter that a run does not use has no gradient and stays as it is. Whatever the remedy, runs with the same
seed and sizes start from the same weights.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from qkdemo.training.settings import Settings, canonical
from qkdemo.training.tasks import TASKS

ALPHA_START: Final = 0.05  # nGPT: how far a block moves the hidden state; "of order 1/n_layers"
MATRICES: Final = ("qkv", "out", "up", "down")  # of a layer; qkv holds three side by side
OF_LAYER: Final = (
    *("attention_gain", "qkv", "out", "mlp_gain", "up", "down"),
    *("gamma_q", "gamma_k", "g", "log_scale", "sigma_gain", "s_qk", "alpha_attention", "alpha_mlp", "s_up"),
)
LATER_OF_LAYER: Final = ("alpha_q", "alpha_k")  # at the end of the row, so that a state kept without them goes on
RANDOM_WEIGHTS: Final = 0  # the stream of random numbers that first weights are drawn from
_POWER_VECTORS: Final = 2  # and the one for σReparam's first vectors; 1 draws the batches

Part: TypeAlias = Literal["q", "k", "v"]


@dataclass(frozen=True)
class Shape:
    """The sizes of a model."""

    n_symbols: int
    n_keys: int
    n_layers: int
    n_heads: int
    n_kv_heads: int  # n_heads, or 1 if all query heads share one key head
    d_head: int

    @property
    def d_model(self) -> int:
        """The width of the hidden state."""
        return self.n_heads * self.d_head

    @property
    def d_kv(self) -> int:
        """The width of all keys of a position together."""
        return self.n_kv_heads * self.d_head

    @property
    def d_ff(self) -> int:
        """The width inside the MLP."""
        return 2 * self.d_model


@dataclass(frozen=True)
class Leaf:
    """One tensor of one run: its place in the flat row."""

    name: str
    size: tuple[int, ...]
    start: int

    @property
    def stop(self) -> int:
        """One past its last entry in the row."""
        return self.start + math.prod(self.size)

    @property
    def decays(self) -> bool:
        """Whether weight decay acts on it: on matrices, not on gains and scales."""
        return self.name.rpartition(".")[2] in (*MATRICES, "embedding", "position", "head")


def shape_of(settings: Settings) -> Shape:
    """The sizes that `settings` ask for."""
    return Shape(
        n_symbols=TASKS[settings.task].symbols(),
        n_keys=settings.n_keys,
        n_layers=settings.n_layers,
        n_heads=settings.n_heads,
        n_kv_heads=1 if settings.shared_keys else settings.n_heads,
        d_head=settings.d_head,
    )


@lru_cache(maxsize=64)
def layout(shape: Shape) -> tuple[Leaf, ...]:
    """The leaves of a model, in order. A matrix maps rows to columns: [in, out]."""
    d, ff, heads, width = shape.d_model, shape.d_ff, shape.n_heads, shape.d_head
    of_layer = {
        "attention_gain": (d,),
        "qkv": (d, d + 2 * shape.d_kv),
        "out": (d, d),
        "mlp_gain": (d,),
        "up": (d, ff),
        "down": (ff, d),
        "gamma_q": (width,),  # rms, layernorm, dyt: shared by the heads
        "gamma_k": (width,),
        "g": (heads,),  # l2
        "log_scale": (heads,),  # cosine: −ln τ
        "sigma_gain": (6,),  # sigma_reparam: of q, k, v, out, up, down
        "s_qk": (heads, width),  # ngpt, and the three below
        "alpha_attention": (d,),
        "alpha_mlp": (d,),
        "s_up": (ff,),
    }
    assert tuple(of_layer) == OF_LAYER
    sizes: dict[str, tuple[int, ...]] = {"embedding": (shape.n_symbols, d), "position": (shape.n_keys, d)}
    for layer in range(shape.n_layers):
        sizes |= {f"{layer}.{name}": size for name, size in of_layer.items()}
    sizes |= {"gain": (d,), "head": (d, shape.n_symbols), "s_logits": (shape.n_symbols,)}
    sizes |= {f"{layer}.{name}": (1,) for layer in range(shape.n_layers) for name in LATER_OF_LAYER}  # dyt
    leaves, start = [], 0
    for name, size in sizes.items():
        leaves.append(Leaf(name, size, start))
        start = leaves[-1].stop
    return tuple(leaves)


def n_parameters(shape: Shape) -> int:
    """The length of the flat row."""
    return layout(shape)[-1].stop


def n_later(shape: Shape) -> int:
    """How many of its last entries a state has not that was kept before they came."""
    return shape.n_layers * len(LATER_OF_LAYER)


def views(rows: Float[Tensor, "runs parameters"], shape: Shape) -> dict[str, Tensor]:
    """Every leaf of every run, [runs, …], as views into `rows`."""
    return {leaf.name: rows[:, leaf.start : leaf.stop].view(-1, *leaf.size) for leaf in layout(shape)}


def columns(shape: Shape, part: Part) -> slice:
    """Where W_q, W_k or W_v stands among the columns of a layer's `qkv`."""
    starts = {"q": 0, "k": shape.d_model, "v": shape.d_model + shape.d_kv}
    return slice(starts[part], starts[part] + (shape.d_model if part == "q" else shape.d_kv))


def initial(settings: Settings) -> Float[Tensor, "parameters"]:
    """A run's first weights, float32, on the CPU.

    Xavier-normal per matrix, q, k and v apart (Glorot & Bengio 2010, eq. 12 as variance: 2/(in + out));
    embeddings, positions and head with standard deviation 1/√d_model; gains 1. W_q and W_k are then multiplied by
    `qk_start`. Drawn in float64 by NumPy, in the order of the layout.
    """
    settings = canonical(settings)
    shape, row = shape_of(settings), []
    generator = np.random.default_rng((settings.seed, RANDOM_WEIGHTS))
    for leaf in layout(shape):
        first = _FIRST.get(leaf.name.rpartition(".")[2])
        if first is not None:
            row.append(np.full(leaf.size, first(settings, shape)).ravel())
        elif leaf.name.endswith(".qkv"):
            parts = [
                _xavier(generator, shape.d_model, size) * scale
                for size, scale in (
                    (shape.d_model, settings.qk_start),
                    (shape.d_kv, settings.qk_start),
                    (shape.d_kv, 1),
                )
            ]
            row.append(np.concatenate(parts, axis=1).ravel())
        elif leaf.name in ("embedding", "position", "head"):
            row.append((generator.standard_normal(leaf.size) / math.sqrt(shape.d_model)).ravel())
        else:
            row.append(_xavier(generator, *leaf.size).ravel())
    return torch.from_numpy(np.concatenate(row)).float()


def _xavier(
    generator: np.random.Generator, inputs: int, outputs: int
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    return generator.standard_normal((inputs, outputs)) * xavier_deviation(inputs, outputs)


def xavier_deviation(inputs: int, outputs: int) -> float:
    """Standard deviation of the entries of a fresh matrix."""
    return math.sqrt(2 / (inputs + outputs))


def _one(settings: Settings, shape: Shape) -> float:
    return 1.0


def _inverse_root_width(settings: Settings, shape: Shape) -> float:
    """nGPT keeps its scales as parameters of the size of a weight, 1/√d_model, and multiplies them up in use."""
    return 1 / math.sqrt(shape.d_model)


_FIRST: Final[dict[str, Callable[[Settings, Shape], float]]] = {
    "attention_gain": _one,
    "mlp_gain": _one,
    "gain": _one,
    "gamma_q": lambda settings, shape: settings.gamma,
    "gamma_k": lambda settings, shape: settings.gamma,
    "alpha_q": lambda settings, shape: settings.alpha,
    "alpha_k": lambda settings, shape: settings.alpha,
    # Henry et al. 2020: g starts at log₂(T² − T)
    "g": lambda settings, shape: math.log2(shape.n_keys**2 - shape.n_keys),
    "log_scale": lambda settings, shape: -math.log(settings.temperature),
    "sigma_gain": _one,
    "s_qk": _inverse_root_width,
    "alpha_attention": _inverse_root_width,
    "alpha_mlp": _inverse_root_width,
    "s_up": _one,
    "s_logits": _inverse_root_width,
}


def power_vectors(settings: Settings) -> Float[Tensor, "entries"]:
    """σReparam's first vectors, one of unit length per matrix of the blocks, end to end."""
    shape = shape_of(settings)
    generator = np.random.default_rng((settings.seed, _POWER_VECTORS))
    vectors = [generator.standard_normal(size) for size in power_sizes(shape)]
    return torch.from_numpy(np.concatenate([v / np.linalg.norm(v) for v in vectors])).float()


def power_sizes(shape: Shape) -> tuple[int, ...]:
    """The lengths of those vectors: outputs of q, k, v, out, up and down, layer by layer."""
    d, kv, ff = shape.d_model, shape.d_kv, shape.d_ff
    return (d, kv, kv, d, ff, d) * shape.n_layers
