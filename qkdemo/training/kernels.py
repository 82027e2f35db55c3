"""Steps of the forward pass with their derivatives written out, because that is faster for small models.

* `layer_norm(x)`: LayerNorm without gain; torch's own takes three times as long on rows of 32;
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


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        centred = x - mean
        square = torch.linalg.vector_norm(centred, dim=-1, keepdim=True).square_()
        scale = (square / x.shape[-1] + NORM_EPSILON).rsqrt_()
        ctx.save_for_backward(x, mean, scale)
        return centred.mul_(scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        x, mean, scale = ctx.saved_tensors
        of_x: Tensor = torch.ops.aten.native_layer_norm_backward(
            gradient, x, x.shape[-1:], mean, scale, None, None, [True, False, False]
        )[0]
        return of_x


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
    def backward(ctx: Any, of_mixed: Tensor, *_: None) -> tuple[Tensor | None, ...]:
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
