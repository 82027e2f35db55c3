"""Steps of the forward pass with their derivatives written out, because that is faster for small models.

* `layer_norm(x)`: LayerNorm without gain; torch's own takes three times as long on rows of 32;
* `entering(x, gain, matrix)`, `leaving(mixed, matrix, x)`, `mlp(...)`: the halves of a block, each as one operation;
* `rms_norm(x)`: RMSNorm without gain, of q and k; `by_part(made, d_head)`: q, k and v apart;
* `causal_attention(qkv, ...)`: attention with the softcap in it, in half as many operations;
* `losses(outputs, ...)`: cross-entropy of every run, and the z-loss.

Those that `by_hand` chains too have their classes public: forward and backward are the same code for both.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from qkdemo.attention.norms import BLOCK_EPSILON, RMS_EPSILON

HIDDEN: Final = -1e30  # added to the logit of a key that a query may not see: its weight becomes exactly 0


@dataclass(frozen=True, eq=False)
class Mask:
    """Which keys a query sees, and the first query that is answered: of the last block few answers are used."""

    hidden: Tensor  # [queries, keys]: 0 where a query sees a key and `HIDDEN` elsewhere
    first: int = 0


@dataclass(frozen=True, eq=False)
class Cap:
    """Runs whose logits are capped, and at what: c · tanh(s/c)."""

    rows: slice
    at: Tensor  # [runs of those rows, 1, 1, 1, 1]


def layer_norm(x: Tensor) -> Tensor:
    """(x − mean) / √(var + 1e-5) over the last axis, as torch.nn.functional.layer_norm."""
    normalised: Tensor = _LayerNorm.apply(x)  # type: ignore[no-untyped-call]
    return normalised


def entering(x: Tensor, gain: Tensor, matrix: Tensor) -> Tensor:
    """LayerNorm(x) times the matrix of its own that every run has, with the gain folded into the matrix."""
    made: Tensor = Entering.apply(x, gain, matrix)  # type: ignore[no-untyped-call]
    return made


def leaving(mixed: Tensor, matrix: Tensor, x: Tensor) -> Tensor:
    """x + the heads side by side times the matrix; `mixed` is [runs, batch, heads, positions, d_head]."""
    left: Tensor = Leaving.apply(mixed, matrix, x)  # type: ignore[no-untyped-call]
    return left


def mlp(x: Tensor, gain: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """x + relu(LayerNorm(x) up) down."""
    left: Tensor = Mlp.apply(x, gain, up, down)  # type: ignore[no-untyped-call]
    return left


def causal_attention(qkv: Tensor, mask: Mask, cap: Cap | None) -> tuple[Tensor, Tensor, Tensor]:
    """softmax(q kᵀ/√d_head + hidden) v for q, k and v in one, [3, runs, batch, heads, positions, d_head].

    It is formed from the mask's first query on. Also returned: logits, with `hidden` in them, and weights of all
    queries.
    """
    mixed, logits, weights = CausalAttention.apply(qkv, mask, cap)  # type: ignore[no-untyped-call]
    return mixed, logits, weights


def losses(
    outputs: Float[Tensor, "runs batch positions symbols"],
    targets: Int[Tensor, "runs batch positions"],
    counted: Float[Tensor, "runs batch positions"],
    z_loss: Float[Tensor, "runs"],
) -> tuple[Float[Tensor, "runs"], Float[Tensor, "runs"]]:
    """What each run minimises, and of that the mean cross-entropy over the counted positions, nats.

    The rest is `z_loss` times the mean square of ln Σ exp. `counted` holds each position's share: they sum to 1 for
    every run. The cross-entropy is for reading: it has no gradient.
    Source of the z-loss: Chowdhery et al. 2022, "PaLM", section 5.
    """
    minimised, read = Losses.apply(outputs, targets, counted, z_loss)  # type: ignore[no-untyped-call]
    return minimised, read


def rms_norm(x: Tensor) -> Tensor:
    """`qkdemo.attention.norms.rms_norm` without gain."""
    normalised: Tensor = _RmsNorm.apply(x)  # type: ignore[no-untyped-call]
    return normalised


def rms_normal(x: Tensor) -> tuple[Tensor, Tensor]:
    """The same, and the 1/√(mean square + ε) that its derivative needs."""
    square = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_()
    scale = square.div_(x.shape[-1]).add_(RMS_EPSILON).rsqrt_()
    return x * scale, scale


def of_rms_normal(gradient: Tensor, normal: Tensor, scale: Tensor) -> Tensor:
    """The gradient of x, from that of its RMSNorm, which it overwrites."""
    along = (gradient * normal).mean(-1, keepdim=True)
    return gradient.addcmul_(normal, along, value=-1).mul_(scale)


def by_part(made: Tensor, d_head: int) -> Tensor:
    """[runs, batch, positions, q k v side by side] as [3, runs, batch, heads, positions, d_head]."""
    return made.view(*made.shape[:3], 3, -1, d_head).permute(3, 0, 1, 4, 2, 5).contiguous()


def _normal(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """LayerNorm without gain, and the mean and 1/√(var + ε) that its derivative needs."""
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    square = torch.linalg.vector_norm(centred, dim=-1, keepdim=True).square_()
    scale = square.div_(x.shape[-1]).add_(BLOCK_EPSILON).rsqrt_()
    return centred.mul_(scale), mean, scale


def _of_normal(gradient: Tensor, x: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    of_x: Tensor = torch.ops.aten.native_layer_norm_backward(
        gradient, x, x.shape[-1:], mean, scale, None, None, [True, False, False]
    )[0]
    return of_x


def _folded(gain: Tensor, matrix: Tensor, of_folded: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of a gain and of the matrix that it was folded into."""
    return (of_folded * matrix).sum(-1), of_folded * gain[:, :, None]


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        normal, mean, scale = _normal(x)
        ctx.save_for_backward(x, mean, scale)
        return normal

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _of_normal(gradient, *ctx.saved_tensors)


class Entering(torch.autograd.Function):
    """`entering` and its derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, matrix: Tensor) -> Tensor:
        normal, mean, scale = _normal(x)
        rows, folded = normal.flatten(1, 2), matrix * gain[:, :, None]
        ctx.save_for_backward(x, mean, scale, rows, folded, gain, matrix)
        return torch.bmm(rows, folded).view(*x.shape[:3], -1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, mean, scale, rows, folded, gain, matrix = ctx.saved_tensors
        gradient = gradient.flatten(1, 2)
        of_gain, of_matrix = _folded(gain, matrix, torch.bmm(rows.mT, gradient))
        return _of_normal(torch.bmm(gradient, folded.mT).view(x.shape), x, mean, scale), of_gain, of_matrix


class Leaving(torch.autograd.Function):
    """`leaving` and its derivative."""

    @staticmethod
    def forward(ctx: Any, mixed: Tensor, matrix: Tensor, x: Tensor) -> Tensor:
        rows = mixed.transpose(2, 3).reshape(len(x), -1, x.shape[-1])
        ctx.save_for_backward(rows, matrix)
        ctx.shape = mixed.shape
        return torch.bmm(rows, matrix).view(x.shape).add_(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows, matrix = ctx.saved_tensors
        runs, batch, heads, positions, width = ctx.shape
        flat = gradient.flatten(1, 2)
        of_mixed = torch.bmm(flat, matrix.mT).view(runs, batch, positions, heads, width).transpose(2, 3)
        return of_mixed, torch.bmm(rows.mT, flat), gradient


class Mlp(torch.autograd.Function):
    """`mlp` and its derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, up: Tensor, down: Tensor) -> Tensor:
        normal, mean, scale = _normal(x)
        rows, folded = normal.flatten(1, 2), up * gain[:, :, None]
        inner = torch.bmm(rows, folded).relu_()
        ctx.save_for_backward(x, mean, scale, rows, folded, inner, gain, up, down)
        return torch.bmm(inner, down).view(x.shape).add_(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        x, mean, scale, rows, folded, inner, gain, up, down = ctx.saved_tensors
        flat = gradient.flatten(1, 2)
        of_inner = torch.ops.aten.threshold_backward(torch.bmm(flat, down.mT), inner, 0)
        of_gain, of_up = _folded(gain, up, torch.bmm(rows.mT, of_inner))
        of_x = _of_normal(torch.bmm(of_inner, folded.mT).view(x.shape), x, mean, scale).add_(gradient)
        return of_x, of_gain, of_up, torch.bmm(inner.mT, flat)


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        normal, scale = rms_normal(x)
        ctx.save_for_backward(normal, scale)
        return normal

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return of_rms_normal(gradient.clone(), *ctx.saved_tensors)


class CausalAttention(torch.autograd.Function):
    """`causal_attention` and its derivative."""

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, mask: Mask, cap: Cap | None) -> tuple[Tensor, Tensor, Tensor]:
        ctx.set_materialize_grads(False)  # none for logits and weights
        ctx.scale, ctx.cap, ctx.first, slope = 1 / math.sqrt(qkv.shape[-1]), cap, mask.first, None
        shape = (*qkv.shape[1:-1], qkv.shape[-2])
        flat = qkv.flatten(1, 3)
        q, k, v = flat.unbind(0)
        logits = torch.baddbmm(mask.hidden, q, k.mT, alpha=ctx.scale).view(shape)
        if cap is not None:  # the others' logits are as they would be without a capped run beside them
            share = torch.tanh(logits[cap.rows] / cap.at)
            slope = 1 - share.square()
            logits[cap.rows] = share * cap.at + mask.hidden
        weights = logits.float().softmax(-1)
        answered = weights.flatten(0, 2)[:, mask.first :]
        ctx.save_for_backward(flat, answered, slope)
        ctx.mark_non_differentiable(logits, weights)
        return torch.bmm(answered.to(v.dtype), v).view(*shape[:3], -1, v.shape[-1]), logits, weights

    @staticmethod
    def backward(ctx: Any, of_mixed: Tensor, *_: None) -> tuple[Any, ...]:
        (flat, weights, slope), first = ctx.saved_tensors, ctx.first
        (q, k, v), shape, of_mixed = flat.unbind(0), of_mixed.shape, of_mixed.flatten(0, 2)
        of_weights = torch.bmm(of_mixed, v.mT)
        of_logits = torch._softmax_backward_data(of_weights.to(weights.dtype), weights, -1, weights.dtype)
        if slope is not None:
            of_logits.view(*shape[:-1], -1)[ctx.cap.rows] *= slope[..., first:, :]
        of_scores = of_logits.mul_(ctx.scale).to(q.dtype)
        of_flat = torch.empty_like(flat)
        if first:
            of_flat[0, :, :first] = 0
            of_flat[0, :, first:] = torch.bmm(of_scores, k)
        else:
            torch.bmm(of_scores, k, out=of_flat[0])
        torch.bmm(of_scores.mT, q[:, first:], out=of_flat[1])
        torch.bmm(weights.to(v.dtype).mT, of_mixed, out=of_flat[2])
        return of_flat.view(3, *shape[:3], *flat.shape[2:]), None, None


class Losses(torch.autograd.Function):
    """`losses` and its derivative."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, targets: Tensor, counted: Tensor, z_loss: Tensor) -> tuple[Tensor, Tensor]:
        log_shares, targets, z_loss = outputs.log_softmax(-1), targets[..., None], z_loss[:, None, None]
        read = -(log_shares.gather(-1, targets).squeeze(-1) * counted).sum((1, 2))
        normaliser = outputs[..., 0] - log_shares[..., 0]  # ln Σ exp
        ctx.save_for_backward(log_shares, normaliser, targets, counted, z_loss)
        ctx.mark_non_differentiable(read)
        return read + (normaliser.square() * counted * z_loss).sum((1, 2)), read

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor, None, None, None]:
        log_shares, normaliser, targets, counted, z_loss = ctx.saved_tensors
        shares = counted * gradient[:, None, None]
        of_normaliser = (2 * z_loss * normaliser).add_(1).mul_(shares)
        of_outputs = log_shares.exp().mul_(of_normaliser[..., None])
        return of_outputs.scatter_add_(-1, targets, -shares[..., None]), None, None, None
