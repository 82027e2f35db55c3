"""AdamW of many runs at once, each with its own rate, clip, decay and β₂.

* `Hyperparameters`: those of every run; `clip_gradients`, `adamw`: one step, in place.

Source: Loshchilov & Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2; the order of operations is
that of torch.optim.AdamW. Rows of the matrices are runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

from qkdemo.training.settings import Settings

BETA1: Final = 0.9
EPSILON: Final = 1e-8  # beside the root
_CLIP_EPSILON: Final = 1e-6  # torch.nn.utils.clip_grad_norm_


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """One row per run."""

    largest_norm: Float[Tensor, "runs 1"]  # ∞: gradients are not clipped
    weight_decay: Float[Tensor, "runs 1"]
    z_loss: Float[Tensor, "runs"]
    beta2: Float[Tensor, "runs 1"]
    exact_beta2: tuple[float, ...]

    @classmethod
    def of(cls, runs: Sequence[Settings], device: torch.device | str) -> "Hyperparameters":
        """Those of `runs`; a clip of 0 is none."""

        def column(values: Sequence[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float32, device=device)[:, None]

        return cls(
            largest_norm=column([run.grad_clip or torch.inf for run in runs]),
            weight_decay=column([run.weight_decay for run in runs]),
            z_loss=column([run.z_loss for run in runs])[:, 0],
            beta2=column([run.beta2 for run in runs]),
            exact_beta2=tuple(run.beta2 for run in runs),
        )


def clip_gradients(
    gradients: Float[Tensor, "runs parameters"], largest_norm: Float[Tensor, "runs 1"]
) -> Float[Tensor, "runs"]:
    """The norm of each run's gradient before clipping; longer gradients are shortened to the largest, in place."""
    norm = torch.linalg.vector_norm(gradients, dim=1)
    gradients.mul_((largest_norm / (norm[:, None] + _CLIP_EPSILON)).clamp_max_(1))
    return norm


def adamw(
    parameters: Float[Tensor, "runs parameters"],
    gradients: Float[Tensor, "runs parameters"],
    moments: tuple[Float[Tensor, "runs parameters"], Float[Tensor, "runs parameters"]],
    rates: Float[Tensor, "runs columns"],
    decays: Float[Tensor, "parameters"],
    hyper: Hyperparameters,
    step: int,
) -> None:
    """One step, in place; `step` counts from 1. `rates` has one column, or one per parameter.

    `decays` is 1 where weight decay acts, else 0.
    """
    first, second = moments
    parameters.mul_(1 - rates * hyper.weight_decay * decays)
    first.lerp_(gradients, 1 - BETA1)
    second.mul_(hyper.beta2).addcmul_(gradients * (1 - hyper.beta2), gradients)
    root = [(1 - beta2**step) ** 0.5 for beta2 in hyper.exact_beta2]
    denominator = second.sqrt().div_(torch.tensor(root, device=second.device)[:, None]).add_(EPSILON)
    parameters.sub_(first / denominator * (rates / (1 - BETA1**step)))
