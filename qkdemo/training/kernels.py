"""Steps of the forward pass with their derivatives written out, because that is faster for small models.

* `layer_norm(x)`: LayerNorm without gain; torch's own takes three times as long on rows of 32;
* `entering(x, gain, matrix)`, `leaving(mixed, matrix, x)`, `mlp(...)`: the halves of a block, each as one operation;
* `block(x, weights, ...)`: a whole block of plain attention and RMSNorm, made of the same operations;
* `rms_norm(x)`: RMSNorm without gain, of q and k;
* `causal_attention(q, k, v, ...)`: attention with the softcap in it, in half as many operations.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from qkdemo.attention import RMS_EPSILON

NORM_EPSILON: Final = 1e-5  # torch.nn.LayerNorm's, under the root
HIDDEN: Final = -1e30  # added to the logit of a key that a query may not see: its weight becomes exactly 0


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
    made: Tensor = _Entering.apply(x, gain, matrix)  # type: ignore[no-untyped-call]
    return made


def leaving(mixed: Tensor, matrix: Tensor, x: Tensor) -> Tensor:
    """x + the heads side by side times the matrix; `mixed` is [runs, batch, heads, positions, d_head]."""
    left: Tensor = _Leaving.apply(mixed, matrix, x)  # type: ignore[no-untyped-call]
    return left


def mlp(x: Tensor, gain: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """x + relu(LayerNorm(x) up) down."""
    left: Tensor = _Mlp.apply(x, gain, up, down)  # type: ignore[no-untyped-call]
    return left


@dataclass(frozen=True, eq=False)
class BlockWeights:
    """The weights of a block, one of each run's own.

    `gains`, [2, runs, 1, 1, 1, d_head], are of q and of k in the runs that normalise them, which stand last.
    """

    attention_gain: Tensor
    qkv: Tensor
    out: Tensor
    mlp_gain: Tensor
    up: Tensor
    down: Tensor
    gains: Tensor | None


def block(
    x: Tensor, w: BlockWeights, d_head: int, rows: slice, hidden: Tensor, cap: Cap | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The hidden state after a block, RMSNorm in it for the runs of `rows` if there are gains; logits and weights."""
    weights = (w.attention_gain, w.qkv, w.gains, w.out, w.mlp_gain, w.up, w.down)
    x, logits, shares = _Block.apply(x, *weights, d_head, rows, hidden, cap)  # type: ignore[no-untyped-call]
    return x, logits, shares


def causal_attention(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, cap: Cap | None) -> tuple[Tensor, Tensor, Tensor]:
    """softmax(q kᵀ/√d_head + hidden) v, all [runs, batch, heads, positions, d_head]; also logits and weights.

    `hidden` is 0 where a query sees a key and `HIDDEN` elsewhere; it is part of the logits returned.
    """
    mixed, logits, weights = _CausalAttention.apply(q, k, v, hidden, cap)  # type: ignore[no-untyped-call]
    return mixed, logits, weights


def rms_norm(x: Tensor) -> Tensor:
    """`qkdemo.attention.rms_norm` without gain."""
    normalised: Tensor = _RmsNorm.apply(x)  # type: ignore[no-untyped-call]
    return normalised


def _normal(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """LayerNorm without gain, and the mean and 1/√(var + ε) that its derivative needs."""
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    square = torch.linalg.vector_norm(centred, dim=-1, keepdim=True).square_()
    scale = (square / x.shape[-1] + NORM_EPSILON).rsqrt_()
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


class _Entering(torch.autograd.Function):
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


class _Leaving(torch.autograd.Function):
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


class _Mlp(torch.autograd.Function):
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


class _Heads(torch.autograd.Function):
    """q, k and v, [runs, batch, heads, positions, d_head] each, of what a position's product made."""

    @staticmethod
    def forward(ctx: Any, made: Tensor, d_head: int, gains: Tensor | None, rows: slice) -> tuple[Tensor, ...]:
        by_part = made.view(*made.shape[:3], 3, -1, d_head).permute(3, 0, 1, 4, 2, 5).contiguous()
        ctx.rows, ctx.shape = rows, made.shape
        if gains is not None:
            part = by_part[:2, rows]
            square = torch.linalg.vector_norm(part, dim=-1, keepdim=True).square_()
            scale = (square / d_head + RMS_EPSILON).rsqrt_()
            normal = part * scale
            torch.mul(normal, gains, out=part)
            ctx.save_for_backward(normal, scale, gains)
        return by_part[0], by_part[1], by_part[2]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        runs, batch, n_heads, positions, width = gradients[0].shape
        of_made = gradients[0].new_empty(runs, batch, positions, 3, n_heads, width)
        by_part = of_made.permute(3, 0, 1, 4, 2, 5)
        plain = ctx.rows.start if ctx.saved_tensors else runs  # RMSNorm's rows stand last
        for part, gradient, stop in zip(by_part, gradients, (plain, plain, runs), strict=True):
            part[:stop] = gradient[:stop]
        if not ctx.saved_tensors:
            return of_made.view(ctx.shape), None, None, None
        normal, scale, gains = ctx.saved_tensors
        part = torch.stack([gradient[plain:] for gradient in gradients[:2]])
        of_gains = (part * normal).sum((2, 3, 4), keepdim=True)
        of_normal = part.mul_(gains)
        along = (of_normal * normal).mean(-1, keepdim=True)
        torch.mul(torch.addcmul(of_normal, normal, along, value=-1), scale, out=by_part[:2, plain:])
        return of_made.view(ctx.shape), None, of_gains, None


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        square = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_()
        scale = (square / x.shape[-1] + RMS_EPSILON).rsqrt_()
        normalised: Tensor = x * scale
        ctx.save_for_backward(normalised, scale)
        return normalised

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        normalised, scale = ctx.saved_tensors
        along = (gradient * normalised).mean(-1, keepdim=True)
        return torch.addcmul(gradient, normalised, along, value=-1).mul_(scale)


class _CausalAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, cap: Cap | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.set_materialize_grads(False)  # none for logits and weights
        ctx.scale, ctx.cap, slope = 1 / math.sqrt(q.shape[-1]), cap, None
        shape = (*q.shape[:-1], k.shape[-2])
        q, k, v = (x.flatten(0, 2) for x in (q, k, v))
        if cap is None:
            logits = torch.baddbmm(hidden, q, k.mT, alpha=ctx.scale).view(shape)
        else:
            logits = torch.bmm(q, k.mT).mul_(ctx.scale).view(shape)
            share = torch.tanh(logits[cap.rows] / cap.at)
            slope = 1 - share.square()
            logits[cap.rows] = share * cap.at
            logits = logits + hidden
        weights = logits.float().softmax(-1)
        flat = weights.flatten(0, 2).to(v.dtype)
        ctx.save_for_backward(q, k, v, weights, slope)
        ctx.mark_non_differentiable(logits, weights)
        return torch.bmm(flat, v).view(*shape[:-1], -1), logits, weights

    @staticmethod
    def backward(ctx: Any, of_mixed: Tensor, *_: None) -> tuple[Any, ...]:
        q, k, v, weights, slope = ctx.saved_tensors
        shape, of_mixed = weights.shape, of_mixed.flatten(0, 2)
        of_weights = torch.bmm(of_mixed, v.mT).view(shape)
        of_logits = torch._softmax_backward_data(of_weights.to(weights.dtype), weights, -1, weights.dtype)
        if slope is not None:
            of_logits[ctx.cap.rows] *= slope
        of_scores = of_logits.mul_(ctx.scale).flatten(0, 2).to(q.dtype)
        gradients = (
            torch.bmm(of_scores, k),
            torch.bmm(of_scores.mT, q),
            torch.bmm(weights.flatten(0, 2).to(v.dtype).mT, of_mixed),
        )
        of_q, of_k, of_v = (x.view(*shape[:-1], -1) for x in gradients)
        return of_q, of_k, of_v, None, None


class _Kept:
    """What one part of a block keeps for its derivative."""

    saved_tensors: tuple[Tensor | None, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *_: Tensor) -> None: ...

    def set_materialize_grads(self, _: object) -> None: ...


class _Block(torch.autograd.Function):
    """The parts of a block one after another: at these sizes it is the number of operations that costs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *weights_and_rest: Any) -> tuple[Tensor, Tensor, Tensor]:
        attention_gain, qkv, gains, out, mlp_gain, up, down, d_head, rows, hidden, cap = weights_and_rest
        ctx.set_materialize_grads(False)
        ctx.parts = entering, parted, attention, leaving, inner = [_Kept() for _ in range(5)]
        q, k, v = _Heads.forward(parted, _Entering.forward(entering, x, attention_gain, qkv), d_head, gains, rows)
        mixed, logits, weights = _CausalAttention.forward(attention, q, k, v, hidden, cap)
        ctx.mark_non_differentiable(logits, weights)
        return _Mlp.forward(inner, _Leaving.forward(leaving, mixed, out, x), mlp_gain, up, down), logits, weights

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: None) -> tuple[Any, ...]:
        entering, parted, attention, leaving, inner = ctx.parts
        of_x, of_mlp_gain, of_up, of_down = _Mlp.backward(inner, gradient)
        of_mixed, of_out, of_x = _Leaving.backward(leaving, of_x)
        of_q, of_k, of_v = _CausalAttention.backward(attention, of_mixed)[:3]
        of_made, of_gains = _Heads.backward(parted, of_q, of_k, of_v)[::2]
        of_entered, of_attention_gain, of_qkv = _Entering.backward(entering, of_made)
        of_weights = (of_attention_gain, of_qkv, of_gains, of_out, of_mlp_gain, of_up, of_down)
        return of_x + of_entered, *of_weights, None, None, None, None
