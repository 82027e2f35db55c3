"""A pass through a block in plain NumPy, head by head: what each choice of a pipeline means, written a second time.

Nothing of the pipelines is used here: a block is read as arrays, and every choice is one branch.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qkdemo.attention.blocks import Block
from qkdemo.attention.pipeline import Pipeline

_Array = NDArray[np.float64]
_EPSILON = 1e-6


def passed(p: Pipeline, block: Block) -> dict[str, _Array]:
    """Logits and weights, [heads, queries, keys], and the output before its projection, [queries, heads · width]."""
    x = block.x.numpy()
    d, heads, kv = block.d_head, block.n_heads, block.n_kv_heads
    q, k, v = (_projected(p, side, x, block) for side in "qkv")
    if p.conversion != "none":
        q, k = (y[..., _from_other(p, d)] for y in (q, k))
    if p.on == "qkv" and p.place != "input":
        v = _whole(p, v) if p.place == "full_width" else _normed(p, v)
    q, k = _ready(p, "q", q, block), _ready(p, "k", k, block)
    logits, weights, made = [], [], []
    for head in range(heads):
        of = head // (heads // kv) if p.grouping == "repeat" else head % kv
        scores = q[head] @ k[of].T * _scale(p, d, float(block.learned_scale))
        if p.cap == "softcap":
            scores = block.softcap * np.tanh(scores / block.softcap)
        seen = np.ones(scores.shape, bool) if block.visible is None else block.visible.numpy()
        shares = np.where(seen, np.exp(scores - np.where(seen, scores, -np.inf).max(1, keepdims=True)), 0)
        shares = shares / shares.sum(1, keepdims=True)
        if p.place == "weights":
            shares = _normed(p, shares)
        logits.append(np.where(seen, scores, 0))
        weights.append(shares)
        made.append(shares @ v[of])
    return {"logits": np.array(logits), "weights": np.array(weights), "output": np.concatenate(made, 1)}


def _projected(p: Pipeline, side: str, x: _Array, block: Block) -> _Array:
    """[heads, positions, width]"""
    weight: Any = getattr(block, f"w_{side}")
    bias: Any = getattr(block, f"b_{side}")
    entering = _normed(p, x) if p.place == "input" and side in p.on else x
    made = entering @ weight.numpy().T + np.asarray(bias)
    return np.stack(np.split(made, made.shape[1] // block.d_head, axis=1))


def _normed(p: Pipeline, x: _Array) -> _Array:
    """Along the last axis."""
    if p.norm == "none":
        return x
    if p.norm == "dyt":
        return np.asarray(np.tanh(p.alpha * x))
    if p.norm == "l2":
        return np.asarray(x / np.maximum(np.sqrt((x**2).sum(-1, keepdims=True)), 1e-12))
    if p.norm == "layernorm":
        x = x - x.mean(-1, keepdims=True)
    return np.asarray(x / np.sqrt((x**2).mean(-1, keepdims=True) + _EPSILON))


def _whole(p: Pipeline, x: _Array) -> _Array:
    """All heads of a position as one vector."""
    return np.stack(np.split(_normed(p, np.concatenate(list(x), axis=1)), len(x), axis=1))


def _ready(p: Pipeline, side: str, x: _Array, block: Block) -> _Array:
    """q or k as it enters the product."""
    if side in p.on:
        if p.order == "rotary_norm":
            x = _rotated(p, x, block)
        if p.place in ("per_head", "in_product"):
            x = _normed(p, x)
        if p.place == "full_width":
            x = _whole(p, x)
        x = x * _gain(p, side, block) + _bias(p, side, block)
        return _rotated(p, x, block) if p.order == "norm_rotary" else x
    return x if p.order == "none" else _rotated(p, x, block)


def _gain(p: Pipeline, side: str, block: Block) -> _Array | float:
    """What q or k is multiplied by: [heads or 1, 1, width or 1]."""
    if p.gain == "none" or (side, p.key_gain) in (("k", "q_alone"), ("q", "k_alone")):
        return 1.0
    of_q = block.gain_q.numpy()
    stored = of_q if side == "q" else of_q[: block.n_kv_heads] if p.key_gain == "of_q" else block.gain_k.numpy()
    gain = stored + (p.stored == "one_plus")
    if p.gain in ("scalar", "channel"):
        gain = gain[:1]
    if p.gain in ("scalar", "head"):
        return np.asarray(gain[:, None, :1])
    return np.asarray(
        gain[:, None, _from_other(p, block.d_head) if p.conversion == "weights_and_gain" else slice(None)]
    )


def _bias(p: Pipeline, side: str, block: Block) -> _Array | float:
    if p.bias == "none":
        return 0.0
    drawn: Any = block.bias_q if side == "q" else block.bias_k
    bias = drawn.numpy()[:, None, _carried(p, block.d_head)]
    return np.asarray(bias if p.gain == "head_channel" else bias[:1])


def _pairs(layout: str, width: int) -> list[tuple[int, int]]:
    half = width // 2
    if layout == "interleaved":
        return [(2 * i, 2 * i + 1) for i in range(half)]
    return [(i, i + half) if layout == "half_split" else (i + half, i) for i in range(half)]


def _width(p: Pipeline, d: int) -> int:
    return {"all": d, "half": d // 2, "quarter": d // 4}[p.rotated]


def _from_other(p: Pipeline, d: int) -> list[int]:
    """Where each channel of this layout stands in the other one."""
    width, order = _width(p, d), list(range(d))
    other = "half_split" if p.layout == "interleaved" else "interleaved"
    for here, there in zip(_pairs(p.layout, width), _pairs(other, width), strict=True):
        order[here[0]], order[here[1]] = there
    return order


def _carried(p: Pipeline, d: int) -> list[int]:
    """Where each entry of a gain stands in the checkpoint."""
    return _from_other(p, d) if p.conversion == "weights_and_gain" else list(range(d))


def _rotated(p: Pipeline, x: _Array, block: Block) -> _Array:
    """Each pair as one complex number, times e^{iφ}."""
    y, pairs = x.copy(), _pairs(p.layout, _width(p, block.d_head))
    for at, (real, imaginary) in enumerate(pairs):
        phase = np.exp(1j * block.positions.numpy() * 10000.0 ** (-at / len(pairs)))
        z = (x[..., real] + 1j * x[..., imaginary]) * phase
        y[..., real], y[..., imaginary] = z.real, z.imag
    return y


def _scale(p: Pipeline, d: int, learned: float) -> float:
    return {"inverse_root": d**-0.5, "one": 1.0, "root": d**0.5, "inverse": 1 / d, "learned": learned}[p.scale]
