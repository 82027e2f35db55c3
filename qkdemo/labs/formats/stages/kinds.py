"""The stages of attention, and what a kernel decides about them.

* `STAGES`: the stages, in order, from the stored q to the weighted values; `PARTS`: the same in five parts;
* `Choices`: what a kernel decides: which format holds what, where the scale is applied, how the mask is written;
* `read_by`: the choices that a part reads; `factors`, `power_on`: what q·k is scaled by, and where;
* `Inputs`: q, k and v; `drawn`: those of a recipe.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from qkdemo.attention.inputs import Recipe, causal_mask, draw
from qkdemo.attention.norms import ALPHA, NORMS, NormWord

StoredWord: TypeAlias = Literal["float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"]
RoleWord: TypeAlias = Literal["stored", "float32", "bfloat16", "float16"]  # stored: the format of q and k
PlacementWord: TypeAlias = Literal["after", "in_accumulator", "on_q", "split"]
MaskWord: TypeAlias = Literal["-inf", "finfo.min", "-1e4", "-1e9"]
CastWord: TypeAlias = Literal["overflow", "saturate"]
Fp8ScaleWord: TypeAlias = Literal["one", "amax"]
StageWord: TypeAlias = Literal[
    "q_stored",  # x · weight scale, as written to memory
    "k_stored",
    "q_sum_of_squares",  # Σ x², each square rounded, summed wide, rounded once; LayerNorm: of x − mean
    "k_sum_of_squares",
    "q_reciprocal_root",  # 1 / max(‖x‖, 1e-12) for l2, 1 / √(mean(x²) + 1e-6) for rms and layernorm
    "k_reciprocal_root",
    "q_entering",  # as it enters the product: normalised, gain applied, scaled if the scale stands here
    "k_entering",
    "raw_product",
    "scaled",
    "masked",
    "max_subtracted",
    "exp",
    "sum",  # over keys, from key 0 upwards, rounded at each step
    "weight",
    "weighted_values",
]

STAGES: Final[tuple[StageWord, ...]] = get_args(StageWord)
STORED: Final[tuple[StoredWord, ...]] = get_args(StoredWord)
OVER_KEYS: Final[tuple[StageWord, ...]] = ("raw_product", "scaled", "masked", "max_subtracted", "exp", "weight")
IN_NORM: Final = STAGES[2:6]
Part: TypeAlias = tuple[StageWord, ...]
PARTS: Final[tuple[Part, ...]] = (STAGES[:2], STAGES[2:8], STAGES[8:11], STAGES[11:15], STAGES[15:])
STAGE_OF: Final = {(stage[0], stage[2:]): stage for stage in STAGES[:8]}


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What a kernel decides. `stored` as a role means the format in which q and k are stored."""

    variant: NormWord = "none"
    gain: float = 10.0  # g, l2
    gamma: float = 1.0  # rms, layernorm and dyt, on q and on k
    alpha: float = ALPHA  # dyt
    accumulator: RoleWord = "float32"
    product_format: RoleWord = "stored"
    softmax_format: RoleWord = "stored"
    placement: PlacementWord = "after"
    norm_in_format: bool = False
    max_subtraction: bool = True
    mask: MaskWord = "-inf"
    fp8_cast: CastWord = "overflow"
    fp8_scale: Fp8ScaleWord = "one"
    fp8_cache: bool = False  # 8-bit formats hold k and v alone, after the norm; all else is bfloat16 then


@dataclass(frozen=True, eq=False)
class Inputs:
    """Base q, k and v, and which keys each query sees; None: all of them."""

    q: Float[Tensor, "queries d_head"]
    k: Float[Tensor, "keys d_head"]
    v: Float[Tensor, "keys d_head"]
    visible: Bool[Tensor, "queries keys"] | None = None


def drawn(recipe: Recipe, *, causal: bool = False) -> Inputs:
    """q and k of the recipe's only head; v is the third standard normal draw of the same generator.

    v is not multiplied by the weight scale: it is the weights of q and k that grow.
    """
    q, k = draw(recipe)
    shape = (3, recipe.n_keys, recipe.d_head)
    v = torch.from_numpy(np.random.default_rng(recipe.seed).standard_normal(shape)[2])
    return Inputs(q[0], k[0], v, causal_mask(recipe.n_keys) if causal else None)


def read_by(part: Part, choices: Choices, *, causal: bool) -> Choices:
    """`choices` with all that neither this part nor one before it reads at its default: what to remember it by."""
    names = ["fp8_cast", "fp8_scale", "fp8_cache"]
    early = choices.placement in ("on_q", "split")  # the scale stands on q and k themselves
    last = PARTS.index(part)
    if last >= 1:
        names += ["variant", "gamma", "alpha", "norm_in_format", *(("placement", "gain") if early else ())]
    if last >= 2:
        names += ["gain", "accumulator", "product_format", "placement", *(("mask",) if causal else ())]
    if last >= 3:
        names += ["softmax_format", "max_subtraction"]
    return Choices(**{name: getattr(choices, name) for name in names})


def factors(choices: Choices, d_head: int) -> tuple[float, float]:
    """What q·k is multiplied by, and what it is divided by: l2 multiplies by g, all others divide by √d_head."""
    return (choices.gain, 1.0) if "gain" in NORMS[choices.variant].learns else (1.0, math.sqrt(d_head))


def power_on(name: str, choices: Choices) -> float:
    """The power of the factor that stands on q, or on k, itself."""
    if choices.placement == "split":
        return 0.5
    return 1.0 if choices.placement == "on_q" and name == "q" else 0.0
