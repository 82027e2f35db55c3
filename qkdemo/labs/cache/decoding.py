"""Decoding with a KV cache, step by step, and the fresh pass that it has to agree with.

* `fresh_pass(block, order, norm, store)`: queries, finished keys and weights, everything recomputed at each step;
* `decode(fresh, way, quantised)`: the same weights from keys that were cached in one of `WAYS`, and the differences;
* `channels_in_use(keys)`: over how many channels a key is spread.

Step t is the query at position t; it sees keys 0 to t. Values are cached alike in every way and left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from qkdemo.attention.blocks import Block
from qkdemo.attention.rotary import rotate
from qkdemo.floats.formats import Rounding

WayWord: TypeAlias = Literal["raw", "halfway", "finished", "normed_again", "other_heads_gain", "one_late"]
QuantWord: TypeAlias = Literal["none", "int8_tensor", "int8_head", "fp8_tensor", "fp8_head"]
TurnWord: TypeAlias = Literal["norm_rotary", "rotary_norm"]
Stage: TypeAlias = Callable[[Tensor], Tensor]

_FP8: Final = torch.float8_e4m3fn  # Micikevicius et al. 2022, "FP8 Formats for Deep Learning": largest number 448


@dataclass(frozen=True, kw_only=True, eq=False)
class Fresh:
    """A pass that recomputes everything."""

    block: Block
    order: TurnWord
    norm: Stage  # without gain
    scale: float  # what q·k is divided by
    store: Rounding  # what is written to memory is rounded so
    q: Float[Tensor, "heads steps d_head"]  # finished
    k: Float[Tensor, "heads keys d_head"]  # as projected
    keys: Float[Tensor, "heads keys d_head"]  # finished
    weights: Float[Tensor, "heads steps keys"]

    @property
    def visible(self) -> Bool[Tensor, "steps keys"]:
        """Step t sees keys 0 to t."""
        return torch.ones(self.weights.shape[-2:], dtype=torch.bool).tril()


@dataclass(frozen=True, kw_only=True, eq=False)
class Decoded:
    """A pass that reads a cache, and how far it is from the fresh one."""

    keys: Float[Tensor, "*steps heads keys d_head"]  # that enter the product; they may differ from step to step
    weights: Float[Tensor, "heads steps keys"]
    identical: bool  # all logits, bit for bit
    weight_error: Float[Tensor, " steps"]  # largest difference of an attention weight
    log_error: Float[Tensor, " steps"]  # of its logarithm, which also small weights show
    logit_error: Float[Tensor, " steps"]  # ‖difference‖ / ‖logits‖
    key_error: Float[Tensor, " steps"]  # ‖difference‖ / ‖keys‖, of the keys that the step sees


def fresh_pass(block: Block, order: TurnWord, norm: Stage, scale: float, store: Rounding) -> Fresh:
    """Every key finished anew, for all steps at once: nothing of one step enters another.

    `norm` is that of q and k without gain, and q·k is divided by `scale`.
    """
    heads, d_head = block.gain_q.shape
    q, k = (store((block.x @ w.mT).reshape(-1, heads, d_head).movedim(0, 1)) for w in (block.w_q, block.w_k))
    first, second = _stages(order, _with_gain(norm, block.gain_q), block.positions)
    q = store(second(first(q)))
    first, second = _stages(order, _with_gain(norm, block.gain_k), block.positions)
    keys = store(second(first(k)))
    return Fresh(
        block=block,
        order=order,
        norm=norm,
        scale=scale,
        store=store,
        q=q,
        k=k,
        keys=keys,
        weights=torch.softmax(_logits(q, keys, scale), -1),
    )


def decode(fresh: Fresh, way: WayWord, quantised: QuantWord) -> Decoded:
    """The pass over a cache that is written and read in this way."""
    keys = WAYS[way](fresh, lambda x: kept(x, quantised))
    visible = fresh.visible
    # Both in the same shape: a product of another shape may add up in another order.
    truth, logits = (_logits(fresh.q, each, fresh.scale) for each in (fresh.keys.expand_as(keys), keys))
    true_weights, weights = (torch.softmax(each, -1) for each in (truth, logits))
    true_log, log = (torch.log_softmax(each, -1) for each in (truth, logits))
    gap = (logits - truth).masked_fill(~visible, 0)
    size = truth.masked_fill(~visible, 0).norm(dim=(0, 2))
    off = (keys - fresh.keys).square().sum((-3, -1) if keys.ndim == 4 else (0, -1))  # [steps, keys] or [keys]
    seen = (torch.where(visible, squares, 0).sum(-1) for squares in (off, fresh.keys.square().sum((0, -1))))
    off, whole = seen
    return Decoded(
        keys=keys,
        weights=weights,
        identical=bool((gap == 0).all()),
        weight_error=(weights - true_weights).abs().amax((0, 2)),
        log_error=(log - true_log).masked_fill(~visible, 0).abs().amax((0, 2)),
        logit_error=gap.norm(dim=(0, 2)) / size.clamp_min(torch.finfo(size.dtype).tiny),
        key_error=(off / whole.clamp_min(torch.finfo(whole.dtype).tiny)).sqrt(),
    )


def channels_in_use(keys: Float[Tensor, "*batch d_head"]) -> Float[Tensor, "*batch"]:
    """(Σ x²)² / Σ x⁴: d_head if all channels are of one size, 1 if one channel holds everything, 1 for zeros too.

    The participation ratio of physics (Bell and Dean 1970), here of a key's channels.

    >>> channels_in_use(torch.tensor([[1.0, -1.0], [0.0, 5.0], [0.0, 0.0]])).tolist()
    [2.0, 1.0, 1.0]
    """
    share = keys.square() / keys.square().sum(-1, keepdim=True).clamp_min(torch.finfo(keys.dtype).tiny)
    spread = share.square().sum(-1)
    return torch.where(spread > 0, 1 / spread, 1)


def kept(x: Float[Tensor, "heads keys d_head"], quantised: QuantWord) -> Float[Tensor, "heads keys d_head"]:
    """`x` as the cache gives it back. A quantised cache has one scale, or one per head, fitted to all its keys."""
    if quantised == "none":
        return x
    kind, scope = quantised.split("_")
    largest = x.abs().amax() if scope == "tensor" else x.abs().amax((1, 2), keepdim=True)
    least = torch.finfo(x.dtype).tiny
    if kind == "int8":
        step = (largest / 127).clamp_min(least)
        return (x / step).round().clamp(-127, 127) * step
    scale = (largest / torch.finfo(_FP8).max).clamp_min(least)
    return (x / scale).to(_FP8).to(x.dtype) * scale


def _with_gain(norm: Stage, gain: Tensor) -> Stage:
    return lambda x: norm(x) * gain[:, None, :].to(x)


def _stages(order: TurnWord, norm: Stage, positions: Tensor) -> tuple[Stage, Stage]:
    """Norm and rotation, in the order chosen."""

    def turn(x: Tensor) -> Tensor:
        return rotate(x, positions)

    return (norm, turn) if order == "norm_rotary" else (turn, norm)


def _logits(q: Tensor, keys: Tensor, scale: float) -> Tensor:
    """[heads, steps, keys]; `keys` may differ from step to step."""
    product = torch.einsum("hsd,shkd->hsk" if keys.ndim == 4 else "hsd,hkd->hsk", q, keys)
    hidden = torch.ones(product.shape[-2:], dtype=torch.bool).triu(1)
    return (product / scale).masked_fill(hidden, -torch.inf)


def _raw(fresh: Fresh, keep: Stage) -> Tensor:
    first, second = _own_stages(fresh)
    return fresh.store(second(first(keep(fresh.k))))


def _halfway(fresh: Fresh, keep: Stage) -> Tensor:
    first, second = _own_stages(fresh)
    return fresh.store(second(keep(fresh.store(first(fresh.k)))))


def _finished(fresh: Fresh, keep: Stage) -> Tensor:
    first, second = _own_stages(fresh)
    return keep(fresh.store(second(first(fresh.k))))


def _normed_again(fresh: Fresh, keep: Stage) -> Tensor:
    """At step t key s has been normalised t − s + 1 times: every read normalises the cache and writes it back."""
    norm, positions = _with_gain(fresh.norm, fresh.block.gain_k), fresh.block.positions
    norm_first, count = fresh.order == "norm_rotary", len(positions)
    x = keep(fresh.store(norm(fresh.k if norm_first else rotate(fresh.k, positions))))
    times = [x]
    for _ in range(count - 1):
        times.append(fresh.store(norm(times[-1])))
    ages = torch.arange(count)[:, None] - torch.arange(count)  # [steps, keys]
    aged = torch.stack(times)[ages.clamp_min(0), :, torch.arange(count)].movedim(2, 1)
    return fresh.store(rotate(aged, positions)) if norm_first else aged


def _other_heads_gain(fresh: Fresh, keep: Stage) -> Tensor:
    first, second = _stages(fresh.order, _with_gain(fresh.norm, fresh.block.gain_k.roll(1, 0)), fresh.block.positions)
    return keep(fresh.store(second(first(fresh.k))))


def _one_late(fresh: Fresh, keep: Stage) -> Tensor:
    first, second = _stages(fresh.order, _with_gain(fresh.norm, fresh.block.gain_k), fresh.block.positions + 1)
    return keep(fresh.store(second(first(fresh.k))))


def _own_stages(fresh: Fresh) -> tuple[Stage, Stage]:
    return _stages(fresh.order, _with_gain(fresh.norm, fresh.block.gain_k), fresh.block.positions)


WAYS: Final[dict[WayWord, Callable[[Fresh, Stage], Tensor]]] = {
    "raw": _raw,
    "halfway": _halfway,
    "finished": _finished,
    "normed_again": _normed_again,
    "other_heads_gain": _other_heads_gain,
    "one_late": _one_late,
}
