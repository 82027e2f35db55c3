"""AdamW of many runs at once, each with its own rate, clip, decay, β₁ and β₂.

* `Hyperparameters`: those of every run; `clip_gradients`, `adamw`: one step, in place.

Source: Loshchilov & Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2. It computes what
torch.optim.AdamW does, to rounding. Rows of the matrices are runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

from qkdemo.training.network.parameters import layout, shape_of
from qkdemo.training.settings import Settings

EPSILON: Final = 1e-8  # beside the root
_CLIP_EPSILON: Final = 1e-6  # torch.nn.utils.clip_grad_norm_


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """One row per run."""

    largest_norm: Float[Tensor, "runs 1"]  # ∞: gradients are not clipped
    decay: Float[Tensor, "runs 1"]  # weight decay
    decaying: Float[Tensor, "parameters"]  # 1 where it acts, else 0
    z_loss: Float[Tensor, "runs"]
    complements: tuple[Float[Tensor, "runs 1"], Float[Tensor, "runs 1"]]  # 1 − β₁ and 1 − β₂
    exact_betas: tuple[tuple[float, float], ...]
    decays: bool  # whether any run's weights decay

    @classmethod
    def of(cls, runs: Sequence[Settings], device: torch.device) -> "Hyperparameters":
        """Those of `runs`; a clip of 0 is none."""
        leaves = layout(shape_of(runs[0]))
        decaying = torch.cat(
            [torch.full((leaf.stop - leaf.start,), float(leaf.decays), device=device) for leaf in leaves]
        )

        def column(values: Sequence[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float32, device=device)[:, None]

        return cls(
            largest_norm=column([run.grad_clip or torch.inf for run in runs]),
            decay=column([run.weight_decay for run in runs]),
            decaying=decaying,
            z_loss=column([run.z_loss for run in runs])[:, 0],
            complements=(column([1 - run.beta1 for run in runs]), column([1 - run.beta2 for run in runs])),
            exact_betas=tuple((run.beta1, run.beta2) for run in runs),
            decays=any(run.weight_decay for run in runs),
        )


def clip_gradients(
    gradients: Float[Tensor, "runs parameters"], largest_norm: Float[Tensor, "runs 1"], later: int = 0
) -> Float[Tensor, "runs"]:
    """The norm of each run's gradient before clipping; longer gradients are shortened to the largest, in place.

    The last `later` parameters are summed apart, so that a run that has none of them keeps its norm to the last bit.
    """
    first, last = gradients.split_with_sizes([gradients.shape[1] - later, later], dim=1)
    norm = torch.hypot(torch.linalg.vector_norm(first, dim=1), torch.linalg.vector_norm(last, dim=1))
    gradients.mul_((largest_norm / (norm[:, None] + _CLIP_EPSILON)).clamp_max_(1))
    return norm


def adamw(
    parameters: Float[Tensor, "runs parameters"],
    gradients: Float[Tensor, "runs parameters"],
    moments: tuple[Float[Tensor, "runs parameters"], Float[Tensor, "runs parameters"]],
    rates: Float[Tensor, "runs columns"],
    hyper: Hyperparameters,
    step: int,
) -> None:
    """One step, in place, the gradients included; `step` counts from 1.

    `rates` has one column, or one per parameter.
    """
    first, second = moments
    if hyper.decays:
        parameters.mul_(1 - rates * hyper.decay * hyper.decaying)
    first.lerp_(gradients, hyper.complements[0])
    second.lerp_(gradients.square_(), hyper.complements[1])
    # m̂ / (√v̂ + ε) with both corrections taken out: fewer passes over the rows
    of_first, root = torch.tensor(
        [(1 - beta1**step, (1 - beta2**step) ** 0.5) for beta1, beta2 in hyper.exact_betas], device=second.device
    )[:, :, None].unbind(1)
    denominator = second.sqrt().add_(root * EPSILON)
    parameters.addcdiv_(first * (rates * root / of_first), denominator, value=-1)
