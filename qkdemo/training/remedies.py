"""What is done about growing queries and keys: one entry per remedy, each saying what it acts on.

* `REMEDIES`: word → `Remedy`, in the order in which runs stand in a batch: first those that go `by_hand`, RMSNorm last
  of them; nGPT last of all;
* `normalised(qk, ...)`: q and k as they enter their product, by `qkdemo.attention`;
* `reparametrised(...)`: σReparam's weights; `clip_heads`: QK-clip; `scale_rates`, `rates_by_norm`: learning rates of
  W_q and W_k; `to_sphere`: nGPT's weights.

None of them is tuned here: they stand side by side to be understood, not to be ranked.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from qkdemo.attention.norms import NORMS, Norm, NormaliserWord, Number, l2_normalise
from qkdemo.attention.variants import SETS, VARIANTS, Parameters, VariantWord
from qkdemo.training.network.parameters import Part, Shape, columns, power_sizes, xavier_deviation
from qkdemo.training.settings import RemedyWord, Settings

Leaves: TypeAlias = Mapping[str, Tensor]  # of one layer, by their names without it
Former: TypeAlias = Callable[[Leaves, slice], Parameters]

_SPHERE_AXES: Final = {"embedding": -1, "head": -2, "position": -1, "qkv": -2, "out": -1, "up": -2, "down": -1}
_EACH_OTHER: Final[tuple[tuple[Part, Part], ...]] = (("q", "k"), ("k", "q"))
_SMALLEST_NORM: Final = 1e-12
_OF_BOTH: Final = ("gamma", "alpha")  # of q and of k each


@dataclass(frozen=True)
class Remedy:
    """A remedy. `forms` and `parameters` say how logits are formed; the rest what else it changes."""

    word: RemedyWord
    forms: VariantWord = "none"
    parameters: Former = lambda leaves, rows: Parameters()
    reparametrises: bool = False  # every block matrix W becomes γ · W / σ(W)
    on_sphere: bool = False  # hidden states and weights of unit length
    clips: bool = False  # rescales W_q and W_k after the step
    caps: bool = False  # c · tanh(s/c)
    rates: Callable[[Tensor, Tensor, Shape, Tensor], None] | None = None  # scale of the rates, qkv, shape, factor


def normalised(
    qk: Float[Tensor, "2 runs batch heads positions d_head"], *, remedy: Remedy, parameters: Parameters
) -> Float[Tensor, "2 runs batch heads positions d_head"]:
    """q and k so that q·k/√d_head are the logits of `qkdemo.attention.variants.scores`, but for a softcap."""
    variant = VARIANTS[remedy.forms]
    gains, alphas = (_stacked(getattr(parameters, f"{name}_q"), getattr(parameters, f"{name}_k")) for name in _OF_BOTH)
    normal = variant.normalise(qk, gains, alphas)
    factor = variant.factor(parameters, qk.shape[-1])
    if isinstance(factor, float):  # 1/√d_head itself
        return normal
    return normal * _stacked(factor * math.sqrt(qk.shape[-1]), torch.ones_like(factor))


def gains_of(parameters: Parameters) -> Tensor:
    """The gains of q and of k, one above the other."""
    gains = _stacked(parameters.gamma_q, parameters.gamma_k)
    assert isinstance(gains, Tensor)
    return gains


def _stacked(q: Number, k: Number) -> Number:
    """One multiplier for q and one for k; plain numbers are the same for both."""
    return torch.stack([q, k]) if isinstance(q, Tensor) and isinstance(k, Tensor) else q


def reparametrised(
    matrix: Float[Tensor, "runs inputs outputs"],
    gain: Float[Tensor, "runs"],
    vector: Float[Tensor, "runs outputs"],
) -> Float[Tensor, "runs inputs outputs"]:
    """γ · W / σ, with σ = ‖W u‖ for the power vector u: the largest singular value, from below.

    Gradients go through W in σ, and not through u.
    Source: Zhai et al. 2023, "Stabilizing Transformer Training by Preventing Attention Entropy Collapse".
    """
    image = _image(matrix, vector)
    left = l2_normalise(image.detach())
    return matrix * (gain / (left * image).sum(-1))[:, None, None]


def power_step(matrix: Float[Tensor, "runs inputs outputs"], vector: Float[Tensor, "runs outputs"]) -> Tensor:
    """One step of the power iteration on WᵀW."""
    left = l2_normalise(_image(matrix, vector))
    return l2_normalise((matrix * left[:, :, None]).sum(1))


def _image(matrix: Tensor, vector: Tensor) -> Tensor:
    """W u. torch's product with a vector rounds otherwise for one run than for several."""
    return (matrix * vector[:, None, :]).sum(-1)


def block_matrices(leaves: Leaves, shape: Shape) -> list[Tensor]:
    """W_q, W_k, W_v, W_out, W_up and W_down of a layer."""
    qkv = [leaves["qkv"][..., columns(shape, part)] for part in ("q", "k", "v")]
    return [*qkv, leaves["out"], leaves["up"], leaves["down"]]


def clip_heads(
    qkv: Float[Tensor, "runs d_model columns"],
    largest: Float[Tensor, "runs heads"],
    threshold: Float[Tensor, "runs 1"],
    shape: Shape,
) -> None:
    """QK-clip, in place: a head whose largest logit exceeded the threshold is scaled back to it.

    With η = τ / max s of that head, W_q and W_k of the head are each multiplied by √η. If all heads share one key
    head, its weights stay, since other heads look at them too, and W_q takes all of η. Nothing happens where the
    largest logit is at most τ, at most 0, or not finite. `largest` is the signed maximum over the batch's visible
    pairs, in the forward pass of this step. The optimiser's moments are left alone.
    Source: Kimi Team 2025, "Kimi K2", section 2.1, algorithm 1.
    """
    exceeds = (largest > threshold) & (largest > 0) & largest.isfinite()
    eta = torch.where(exceeds, threshold / largest, 1.0)
    shared = shape.n_kv_heads < shape.n_heads
    per_column = (eta if shared else eta.sqrt()).repeat_interleave(shape.d_head, dim=-1)[:, None, :]
    qkv[..., columns(shape, "q")] *= per_column
    if not shared:
        qkv[..., columns(shape, "k")] *= per_column


def scale_rates(
    rates: Float[Tensor, "runs d_model columns"],
    qkv: Float[Tensor, "runs d_model columns"],
    shape: Shape,
    factor: Float[Tensor, "runs"],
) -> None:
    """W_q and W_k learn at `factor` times the rate."""
    rates[..., columns(shape, "q")] = factor[:, None, None]
    rates[..., columns(shape, "k")] = factor[:, None, None]


def rates_by_norm(
    rates: Float[Tensor, "runs d_model columns"],
    qkv: Float[Tensor, "runs d_model columns"],
    shape: Shape,
    factor: Float[Tensor, "runs"],
) -> None:
    """W_q learns at a rate ∝ 1/‖W_k‖ and W_k at one ∝ 1/‖W_q‖, per head.

    A step ΔW_q changes a logit by at most ‖x‖² ‖ΔW_q‖ ‖W_k‖: what is kept constant is this product.
    Source: Anson & Aitchison 2025, "Controlling changes to attention logits" (QuacK). The norm (Frobenius, per head)
    and the constant (so that a fresh model has the base rate) are this project's choice.
    """
    for mine, other in _EACH_OTHER:
        weights = qkv[..., columns(shape, other)]
        fresh = xavier_deviation(shape.d_model, weights.shape[-1]) * math.sqrt(shape.d_model * shape.d_head)
        by_head = weights.reshape(*weights.shape[:2], -1, shape.d_head).square().sum((1, 3))
        if by_head.shape[1] > _n_heads(shape, mine):
            by_head = by_head.mean(1, keepdim=True)
        rate = (fresh / by_head.sqrt().clamp_min(_SMALLEST_NORM)).expand(-1, _n_heads(shape, mine))
        rates[..., columns(shape, mine)] = rate.repeat_interleave(shape.d_head, dim=-1)[:, None, :]


def _n_heads(shape: Shape, part: Part) -> int:
    return shape.n_heads if part == "q" else shape.n_kv_heads


def to_sphere(leaves: Leaves) -> None:
    """Every matrix of nGPT at unit length along the hidden state's dimension, in place.

    Source: Loshchilov et al. 2024, "nGPT: Normalized Transformer".
    """
    for name, matrix in leaves.items():
        axis = _SPHERE_AXES.get(name.rpartition(".")[2])
        if axis is not None:
            matrix.div_(torch.linalg.vector_norm(matrix, dim=axis, keepdim=True).clamp_min_(_SMALLEST_NORM))


def power_vectors_of(flat: Float[Tensor, "runs entries"], shape: Shape) -> list[Tensor]:
    """The power vector of every block matrix, layer by layer, as views."""
    return list(flat.split_with_sizes(power_sizes(shape), dim=1))


def factor_of(settings: Settings) -> float:
    """What `rates` takes as its factor."""
    return settings.qk_lr_factor


def _learnt(norm: Norm) -> Former:
    """What a norm learns, by the names of `Parameters`: a scale per head, or γ per channel and α."""

    def formed(leaves: Leaves, rows: slice) -> Parameters:
        names = [name for dial in norm.learns for name in SETS[dial]]
        of_head = {name: leaves[name][rows, None, :, None, None] for name in names if name == "g"}
        others = {name: leaves[name][rows, None, None, None, :] for name in names if name != "g"}
        return Parameters(**of_head, **others)

    return formed


def _temperature(leaves: Leaves, rows: slice) -> Parameters:
    return Parameters(temperature=torch.exp(-leaves["log_scale"][rows, None, :, None, None]))


def _sphere_gains(leaves: Leaves, rows: slice) -> Parameters:
    """One gain s for q and for k, per head and channel; √d_head · q̂ · k̂ · s² is RMSNorm's logit with γ = s.

    The parameter starts at 1/√d_model and stands for s = 1.
    """
    s = leaves["s_qk"][rows, None, :, None, :]
    s = s * math.sqrt(s.shape[2] * s.shape[-1])
    return Parameters(gamma_q=s, gamma_k=s)


REMEDIES: Final[dict[RemedyWord, Remedy]] = {
    remedy.word: remedy
    for remedy in (
        Remedy("none"),
        Remedy("qk_clip", clips=True),
        Remedy("qk_lr", rates=scale_rates),
        Remedy("quack", rates=rates_by_norm),
        Remedy("softcap", caps=True),
        *(Remedy(word, word, _learnt(NORMS[word])) for word in sorted(get_args(NormaliserWord), key="rms".__ne__)),
        Remedy("sigma_reparam", reparametrises=True),
        Remedy("cosine", "cosine", _temperature),
        Remedy("ngpt", "rms", _sphere_gains, on_sphere=True),
    )
}
