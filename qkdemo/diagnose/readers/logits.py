"""Arrays of attention logits as somebody saves them: with a mask in them, and in whatever format.

* `sequences(word, x)`: [batch, heads, queries, keys] in float64; `seen(logits)`: which of them no mask hides;
* `narrowest(x, numbers)`: the narrowest number format that holds them;
* `block_of(arrays, …)`: what they were computed from, where that was saved beside them.
"""

import math
from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor

from qkdemo.attention.blocks import Block
from qkdemo.attention.rotary import THETA
from qkdemo.diagnose.readers.inputs import InputError, listed
from qkdemo.diagnose.watching.heads import HIDES

GAINS: Final = {"gain_q": ("gamma_q", "q_gain", "q_norm.weight"), "gain_k": ("gamma_k", "k_gain", "k_norm.weight")}
WORKING: Final = torch.float32  # in which sums are formed
_NARROW: Final = (torch.bfloat16, torch.float16)  # the coarser first
_LEAST_HIDDEN: Final = 0.8 * HIDES  # of a mask that hides, with the logits that it is added to


def sequences(word: str, x: Tensor) -> Tensor:
    """[batch, heads, queries, keys], in float64. Raises InputError."""
    if not 2 <= x.dim() <= 4:
        if word in "qk":
            raise InputError("bad_axes", name=word, shape=listed(x.shape))
        raise InputError("bad_logits", which=word, shape=listed(x.shape))
    if x.numel() == 0:
        raise InputError("empty", name=word, shape=listed(x.shape))
    x = x.float() if x.is_floating_point() and x.element_size() == 1 else x
    return x.double()[(None,) * (4 - x.dim())]


def seen(logits: Tensor) -> Tensor:
    """True where a number is a logit, and not −∞ or what a mask was added to.

    Such numbers are HIDES or less, and between them and the logits lies a gap, wider than all logits are apart: logits
    that reach as far down without a gap are logits.
    """
    low = logits[(logits <= _LEAST_HIDDEN) & logits.isfinite()].sort(descending=True).values
    others = logits[(logits > _LEAST_HIDDEN) & logits.isfinite()]
    if not low.numel() or low[-1] > HIDES:
        return (logits > -math.inf) | logits.isnan()
    if not others.numel():
        return (logits > HIDES) | logits.isnan()
    above = torch.cat([others.min()[None], low[:-1]])
    apart = (above - low >= others.max() - above).nonzero()
    return (logits > (low[apart[0, 0]] if len(apart) else -math.inf)) | logits.isnan()


def narrowest(x: Tensor, numbers: Tensor) -> torch.dtype:
    """The narrowest format that holds every one of the numbers, as where bfloat16 was saved as float32."""
    if x.is_floating_point() and x.element_size() == 1:
        return x.dtype
    held = numbers[numbers.isfinite()]
    return next((kind for kind in _NARROW if bool((held.to(kind).double() == held).all())), WORKING)


def block_of(arrays: Mapping[str, Tensor], shape: torch.Size, visible: Tensor, theta: float | None) -> Block | None:
    """A block whose projections are q and k; None where they were not brought. Raises InputError.

    `shape`: [heads, queries, keys], of the logits.
    """
    given = {name.lower(): x for name, x in arrays.items()}
    if not {"q", "k"} <= given.keys():
        return None
    q, k = (sequences(side, given[side])[0] for side in "qk")
    heads, positions, width = q.shape
    fits = q.shape[:2] == shape[:2] and k.shape[1:] == (shape[2], width) and heads % k.shape[0] == 0
    if not fits:
        raise InputError("other_pair", q=listed(q.shape), k=listed(k.shape), logits=listed(shape))
    if positions != k.shape[1]:
        raise InputError("pair_of_counts", queries=positions, keys=k.shape[1])
    kv_heads = k.shape[0]
    x = torch.cat([side.movedim(0, 1).flatten(1) for side in (q, k)], 1)
    one = torch.eye(x.shape[1], dtype=torch.float64)
    scalar = {name: _number(name, given[name]) for name in ("theta", "rope_theta", "softcap") if name in given}
    at = given.get("positions")
    return Block(
        x=x,
        w_q=one[: heads * width],
        w_k=one[heads * width :],
        w_v=one[heads * width :],
        gain_q=_gain(given, "gain_q", heads, width),
        gain_k=_gain(given, "gain_k", kv_heads, width),
        positions=torch.arange(positions).double()
        if at is None
        else _positions(at, positions, sequences("q", given["q"])),
        theta=theta or scalar.get("theta") or scalar.get("rope_theta") or THETA,
        softcap=scalar.get("softcap") or 50.0,
        visible=visible,
    )


def _positions(at: Tensor, count: int, q: Tensor) -> Tensor:
    """[positions] of the first sequence, in float64: any finite numbers, as rotary may be given parts of whole ones."""
    if at.dtype == torch.bool or not at.isfinite().all():
        raise InputError("no_positions")
    if at.numel() == count:
        return at.double().reshape(count)
    rows = at.double().reshape(-1, count) if at.dim() and at.shape[-1] == count else at.new_zeros(0, count)
    if not len(rows) or (at.shape[:-1] != q.shape[:1] and not (rows == rows[0]).all()):
        raise InputError("bad_positions", shape=listed(at.shape), count=count)
    return rows[0]


def _number(name: str, x: Tensor) -> float:
    """One that is finite and not below 0; several must be the same."""
    if not x.numel():
        raise InputError("several_numbers", name=name, shape=listed(x.shape))
    number = float(x.reshape(-1)[0])
    if not 0 <= number < math.inf:
        raise InputError("bad_number", name=name, number=number)
    if not (x == x.reshape(-1)[0]).all():
        raise InputError("several_numbers", name=name, shape=listed(x.shape))
    return number


def _gain(given: Mapping[str, Tensor], side: str, heads: int, width: int) -> Tensor:
    """[heads, d_head] as stored; ones where none were brought."""
    name = next((name for name in GAINS[side] if name in given), None)
    if name is None:
        return torch.ones(heads, width, dtype=torch.float64)
    gain = given[name].double()
    if gain.numel() == heads * width:
        return gain.reshape(heads, width)
    if gain.numel() != width:
        whose = {"name": name, "side": side[-1], "all": heads * width}
        raise InputError("bad_gain_of_port", shape=listed(gain.shape), d=width, **whose)
    return gain.reshape(1, width).expand(heads, width).clone()
