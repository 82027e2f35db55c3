"""The steps that `by_hand` chains: each the forward pass of a piece of the model, and its derivative written out.

* `Entering`, `Leaving`, `Mlp`: the halves of a block, each as one operation; LayerNorm in them takes a third of the
  time of torch's own on rows of 32;
* `CausalAttention`, with the softcap in it, in half as many operations; `RmsNorm`, of q and k, in place;
* `Losses`: cross-entropy of every run, and the z-loss.

`forward` is called once and then `backward` once: an object keeps what its derivative needs. Arguments are those of the
functions of `model`.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from qkdemo.attention.norms import BLOCK_EPSILON, RMS_EPSILON
from qkdemo.training.network.model import Cap, Mask


class Entering:
    """LayerNorm(x) times the matrix of its own that every run has, with the gain folded into the matrix."""

    def forward(self, x: Tensor, gain: Tensor, matrix: Tensor) -> Tensor:
        """The product, [runs, batch, positions, outputs]."""
        self._norm = _LayerNorm(x)
        self._rows, self._folded = self._norm.normal.flatten(1, 2), matrix * gain[:, :, None]
        self._gain, self._matrix = gain, matrix
        return torch.bmm(self._rows, self._folded).view(*x.shape[:3], -1)

    def backward(self, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of x, gain and matrix."""
        gradient = gradient.flatten(1, 2)
        of_gain, of_matrix = _of_folded(self._gain, self._matrix, torch.bmm(self._rows.mT, gradient))
        return self._norm.backward(torch.bmm(gradient, self._folded.mT)), of_gain, of_matrix


class Leaving:
    """x + the heads side by side times the matrix; `mixed` is [runs, batch, heads, positions, d_head]."""

    def forward(self, mixed: Tensor, matrix: Tensor, x: Tensor) -> Tensor:
        """The hidden state after attention."""
        self._rows = mixed.transpose(2, 3).reshape(len(x), -1, x.shape[-1])
        self._matrix, self._shape = matrix, mixed.shape
        return torch.bmm(self._rows, matrix).view(x.shape).add_(x)

    def backward(self, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of mixed, matrix and x."""
        runs, batch, heads, positions, width = self._shape
        flat = gradient.flatten(1, 2)
        of_mixed = torch.bmm(flat, self._matrix.mT).view(runs, batch, positions, heads, width).transpose(2, 3)
        return of_mixed, torch.bmm(self._rows.mT, flat), gradient


class Mlp:
    """x + relu(LayerNorm(x) up) down."""

    def forward(self, x: Tensor, gain: Tensor, up: Tensor, down: Tensor) -> Tensor:
        """The hidden state after the block."""
        self._norm = _LayerNorm(x)
        self._rows, self._folded = self._norm.normal.flatten(1, 2), up * gain[:, :, None]
        self._inner = torch.bmm(self._rows, self._folded).relu_()
        self._gain, self._up, self._down = gain, up, down
        return torch.bmm(self._inner, down).view(x.shape).add_(x)

    def backward(self, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Gradients of x, gain, up and down."""
        flat = gradient.flatten(1, 2)
        of_inner = torch.ops.aten.threshold_backward(torch.bmm(flat, self._down.mT), self._inner, 0)
        of_gain, of_up = _of_folded(self._gain, self._up, torch.bmm(self._rows.mT, of_inner))
        of_x = self._norm.backward(torch.bmm(of_inner, self._folded.mT)).add_(gradient)
        return of_x, of_gain, of_up, torch.bmm(self._inner.mT, flat)


class RmsNorm:
    """RMSNorm with gains that broadcast against q and k, in place both ways."""

    def __init__(self, gains: Tensor) -> None:
        self._gains = gains

    def forward(self, qk: Tensor) -> None:
        """Turns q and k into their RMSNorm."""
        square = torch.linalg.vector_norm(qk, dim=-1, keepdim=True).square_()
        self._scale = square.div_(qk.shape[-1]).add_(RMS_EPSILON).rsqrt_()
        self._normal = qk * self._scale
        torch.mul(self._normal, self._gains, out=qk)

    def backward(self, gradient: Tensor) -> Tensor:
        """Turns the gradient of its result into that of q and k; returns that of the gains."""
        of_gains: Tensor = (gradient * self._normal).sum((2, 3, 4), keepdim=True)
        gradient.mul_(self._gains)
        along = (gradient * self._normal).mean(-1, keepdim=True)
        gradient.addcmul_(self._normal, along, value=-1).mul_(self._scale)
        return of_gains


class CausalAttention:
    """softmax(q kᵀ/√d_head + hidden) v for q, k and v in one, [3, runs, batch, heads, positions, d_head]."""

    def forward(self, qkv: Tensor, mask: Mask, cap: Cap | None) -> tuple[Tensor, Tensor, Tensor]:
        """Mixed values from the mask's first query on; logits, with `hidden` in them, and weights of all queries."""
        self._scale, self._cap, self._first = 1 / math.sqrt(qkv.shape[-1]), cap, mask.first
        shape = (*qkv.shape[1:-1], qkv.shape[-2])
        self._flat = qkv.flatten(1, 3)
        q, k, v = self._flat.unbind(0)
        logits = torch.baddbmm(mask.hidden, q, k.mT, alpha=self._scale).view(shape)
        if cap is not None:  # the others' logits are as they would be without a capped run beside them
            share = torch.tanh(logits[cap.rows] / cap.at)
            self._slope = 1 - share.square()
            logits[cap.rows] = share * cap.at + mask.hidden
        weights = logits.softmax(-1)
        self._answered = weights.flatten(0, 2)[:, mask.first :]
        return torch.bmm(self._answered, v).view(*shape[:3], -1, v.shape[-1]), logits, weights

    def backward(self, of_mixed: Tensor) -> Tensor:
        """The gradient of q, k and v."""
        (q, k, v), weights, first = self._flat.unbind(0), self._answered, self._first
        runs, batch, heads = of_mixed.shape[:3]
        of_mixed = of_mixed.flatten(0, 2)
        of_weights = torch.bmm(of_mixed, v.mT)
        of_logits = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
        if self._cap is not None:
            capped = of_logits.view(runs, batch, heads, *of_logits.shape[1:])[self._cap.rows]
            capped *= self._slope[..., first:, :]
        of_scores = of_logits.mul_(self._scale)
        of_flat = torch.empty_like(self._flat)
        if first:
            of_flat[0, :, :first] = 0
            of_flat[0, :, first:] = torch.bmm(of_scores, k)
        else:
            torch.bmm(of_scores, k, out=of_flat[0])
        torch.bmm(of_scores.mT, q[:, first:], out=of_flat[1])
        torch.bmm(weights.mT, of_mixed, out=of_flat[2])
        return of_flat.view(3, runs, batch, heads, *of_flat.shape[2:])


class Losses:
    """`model.losses`."""

    def forward(
        self,
        outputs: Float[Tensor, "runs batch counted symbols"],
        targets: Int[Tensor, "runs batch counted"],
        counted: Float[Tensor, "runs batch counted"],
        z_loss: Float[Tensor, "runs"],
    ) -> Float[Tensor, "runs"]:
        """The mean cross-entropy over the counted positions, nats."""
        self._log_shares, self._targets = outputs.log_softmax(-1), targets[..., None]
        self._counted, self._z_loss = counted, z_loss[:, None, None]
        self._normaliser = outputs[..., 0] - self._log_shares[..., 0]  # ln Σ exp
        return -(self._log_shares.gather(-1, self._targets).squeeze(-1) * counted).sum((1, 2))

    def backward(self) -> Float[Tensor, "runs batch counted symbols"]:
        """The gradient of the outputs, of what each run minimises."""
        of_normaliser = (2 * self._z_loss * self._normaliser).add_(1).mul_(self._counted)
        of_outputs = self._log_shares.exp().mul_(of_normaliser[..., None])
        return of_outputs.scatter_add_(-1, self._targets, -self._counted[..., None])


class _LayerNorm:
    """LayerNorm without gain: (x − mean) / √(var + ε) over the last axis."""

    def __init__(self, x: Tensor) -> None:
        self._x, self._mean = x, x.mean(-1, keepdim=True)
        centred = x - self._mean
        square = torch.linalg.vector_norm(centred, dim=-1, keepdim=True).square_()
        self._scale = square.div_(x.shape[-1]).add_(BLOCK_EPSILON).rsqrt_()
        self.normal = centred.mul_(self._scale)

    def backward(self, gradient: Tensor) -> Tensor:
        """The gradient of x."""
        x = self._x
        of_x: Tensor = torch.ops.aten.native_layer_norm_backward(
            gradient.view(x.shape), x, x.shape[-1:], self._mean, self._scale, None, None, [True, False, False]
        )[0]
        return of_x


def _of_folded(gain: Tensor, matrix: Tensor, of_folded: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of a gain and of the matrix that it was folded into."""
    return (of_folded * matrix).sum(-1), of_folded * gain[:, :, None]
