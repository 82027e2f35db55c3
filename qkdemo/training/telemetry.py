"""What is read off every step of every run.

* `Telemetry`: arrays, one row per step and one column per run; `joined`: several of them, end to end; `beside`: the
  same steps of other runs;
* `read_attention(...)`: the attention's numbers; `spectral_norm(matrices)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.training.network.model import Attention
from qkdemo.training.network.parameters import Part, Shape, columns

MEASURED: Final = 4  # sequences of a batch on which entropy and slope are taken; the largest logit is taken over all
_SQUARINGS: Final = 8
_UNSCALED: Final = 3  # squarings between two rescalings: the largest of d eigenvalues is ≥ 1/d, and d⁻⁸ is far from 0


@dataclass(frozen=True, eq=False)
class Telemetry:
    """Of consecutive steps. The loss and the norms are those before the step's update."""

    first_step: int  # counted from 1
    loss: NDArray[np.float32]  # [steps, runs] nats, without the z-loss
    max_abs_logit: NDArray[np.float32]  # over layers, heads, the whole batch and visible keys
    entropy_fraction: NDArray[np.float32]  # of ln(visible keys), mean
    softmax_slope: NDArray[np.float32]  # mean of p(1 − p)
    gradient_norm: NDArray[np.float32]  # before clipping
    spectral_q: NDArray[np.float32]  # the largest singular value of W_q, largest over layers
    spectral_k: NDArray[np.float32]
    learning_rate: NDArray[np.float32]
    maps: NDArray[
        np.float16
    ]  # [steps, runs, layers, heads, queries, keys] weights in the batch's first sequence; no layers if not asked for

    def __len__(self) -> int:
        return len(self.loss)

    def of_runs(self, columns: Sequence[int]) -> "Telemetry":
        """The same steps of some of the runs."""
        return Telemetry(self.first_step, *(getattr(self, name)[:, list(columns)] for name in ARRAYS))

    def after(self, step: int) -> "Telemetry":
        """What follows that step."""
        skipped = max(0, step + 1 - self.first_step)
        return Telemetry(self.first_step + skipped, *(getattr(self, name)[skipped:] for name in ARRAYS))


ARRAYS = tuple(field.name for field in fields(Telemetry) if field.name != "first_step")
CURVES = ARRAYS[:-1]  # all but the maps: one number per step and run


def joined(parts: Sequence[Telemetry]) -> Telemetry:
    """Parts that follow one another, as one."""
    return Telemetry(parts[0].first_step, *(np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS))


def beside(parts: Sequence[Telemetry]) -> Telemetry:
    """The same steps of several groups of runs, as of one."""
    arrays = ([getattr(part, name) for part in parts] for name in ARRAYS)
    return Telemetry(parts[0].first_step, *(np.concatenate(each, axis=1) for each in arrays))


def read_attention(
    layers: Sequence[Attention], hidden: Float[Tensor, "queries keys"], shape: Shape
) -> dict[str, Float[Tensor, "runs"]]:
    """The numbers of one step that are read off the attention of all layers."""
    matrices = [layer.qkv[..., columns(shape, part)] for layer in layers for part in _QK]
    spectral = spectral_norm(torch.stack(matrices) if shape.d_kv == shape.d_model else _padded(matrices))
    spread = [spread_of(layer.weights[:, :MEASURED]) for layer in layers]
    return {
        "max_abs_logit": torch.stack([largest_size(layer.logits, hidden) for layer in layers]).amax(0),
        "entropy_fraction": torch.stack([fraction for fraction, _ in spread]).mean(0),
        "softmax_slope": torch.stack([slope for _, slope in spread]).mean(0),
        "spectral_q": spectral[0::2].amax(0),
        "spectral_k": spectral[1::2].amax(0),
    }


def spread_of(
    weights: Float[Tensor, "runs batch heads queries keys"],
) -> tuple[Float[Tensor, "runs"], Float[Tensor, "runs"]]:
    """Entropy fraction and softmax slope of causal attention weights, as `attention.measures.attend` defines them.

    That function works on logits, and keeps its relative precision where a weight is within rounding of 1; this one
    spares the second softmax. Its entropy fraction and slope are right to 1e-6 in absolute terms. A row that is not
    defined makes both NaN.
    """
    n_keys = weights.shape[-1]
    rows = weights.shape[1] * weights.shape[2]
    seen = torch.arange(2, n_keys + 1, device=weights.device)  # by every query but the first
    by_query = weights.clamp_min(_TINY).log_().mul_(weights).sum((1, 2, 4))[:, 1:]
    fraction = -(by_query / seen.log()).sum(1) / (rows * (n_keys - 1))
    slope = (1 - weights).mul_(weights).sum((1, 2, 3, 4)) / (rows * n_keys * (n_keys + 1) / 2)
    return fraction, slope


_QK: Final[tuple[Part, ...]] = ("q", "k")


def largest_size(
    logits: Float[Tensor, "runs batch heads queries keys"], hidden: Float[Tensor, "queries keys"]
) -> Float[Tensor, "runs"]:
    """Largest |logit| over visible keys; `hidden` has been added to the logits. ∞ if one is not finite."""
    sizes = logits.float().abs().amax((1, 2)).add_(2 * hidden)  # far below 0 where hidden
    return sizes.amax((1, 2)).nan_to_num(nan=torch.inf, posinf=torch.inf)


def largest_by_head(logits: Float[Tensor, "runs batch heads queries keys"]) -> Float[Tensor, "runs heads"]:
    """The largest logit of each head over visible keys, with its sign."""
    return logits.float().amax((1, 3, 4))


def spectral_norm(matrices: Float[Tensor, "*batch inputs outputs"]) -> Float[Tensor, "*batch"]:
    """The largest singular value σ₁ of each matrix, by squaring WᵀW eight times.

    (WᵀW)^256 is, up to a factor, the projector on the leading direction v; ‖W v‖ is σ₁ from below, within 1 % however
    close the other singular values are, and to rounding if the second is 3 % smaller. Zero for a zero matrix; NaN
    where an entry is not finite.
    """
    flat = matrices.reshape(-1, *matrices.shape[-2:])
    largest = flat.flatten(1).abs().amax(1)
    exponent = torch.frexp(largest).exponent.clamp_(-_EXPONENTS, _EXPONENTS)
    # by a power of 2, which is exact: squares neither overflow nor vanish
    flat = flat * torch.ldexp(torch.ones_like(largest), -exponent)[:, None, None]
    power = torch.bmm(flat.mT, flat)
    for squaring in range(_SQUARINGS):
        if squaring % _UNSCALED == 0:
            power = power / _trace(power)
        power = torch.bmm(power, power)
    leading = power.diagonal(dim1=-2, dim2=-1).argmax(-1)[:, None, None]
    direction = power.gather(-1, leading.expand(*power.shape[:-1], 1))
    length = torch.linalg.vector_norm(direction, dim=-2, keepdim=True).clamp_min_(_TINY)
    norm = torch.linalg.vector_norm(torch.bmm(flat, direction / length), dim=(-2, -1))
    return torch.ldexp(norm, exponent).view(matrices.shape[:-2])


_TINY: Final = 1e-30
_EXPONENTS: Final = 126  # powers of 2 that float32 holds both ways


def _trace(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=-2, dim2=-1).sum(-1).clamp_min_(_TINY)[:, None, None]


def _padded(matrices: Sequence[Tensor]) -> Tensor:
    """Matrices of unequal width, with zero columns added: their singular values stay."""
    width = max(matrix.shape[-1] for matrix in matrices)
    return torch.stack([torch.nn.functional.pad(matrix, (0, width - matrix.shape[-1])) for matrix in matrices])
