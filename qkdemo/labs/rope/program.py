"""The standalone program that scores one query and one key in both orders: `snippet(settings)`."""

from textwrap import indent
from typing import Final

from torch import Tensor

from qkdemo.attention.norms import NORMS, program_lines
from qkdemo.attention.rotary import THETA
from qkdemo.labs.rope.lab import Settings, gains, vectors
from qkdemo.notation import plain


def snippet(settings: Settings) -> str:
    """A standalone PyTorch program that prints the logits of both orders at the current position and distance."""
    halves = "slice(None, d // 2)", "slice(d // 2, None)"
    pairs = {"half_split": halves, "half_split_swapped": halves[::-1]}
    q, k = (_tensor(x) for x in vectors(settings))
    drawn = f"torch.from_numpy(np.random.default_rng({settings.seed}).standard_normal((2, {settings.d_head})))"
    gain_q, gain_k = (_tensor(x) for x in gains(settings))
    return _PROGRAM.format(
        d=settings.d_head,
        pairs=", ".join(pairs.get(settings.layout, ("slice(0, None, 2)", "slice(1, None, 2)"))),
        draw=f"q, k = {drawn}" if settings.vectors == "random" else f"q = {q}\nk = {k}",
        gain_q=gain_q,
        gain_k=gain_k,
        norm=indent(program_lines(NORMS[settings.norm], ""), " " * 4),
        theta=plain(THETA),
        at_q=settings.position + settings.distance,
        at_k=settings.position,
    )


def _tensor(x: Tensor) -> str:
    return f"torch.tensor([{', '.join(plain(v) for v in x.tolist())}], dtype=torch.float64)"


_PROGRAM: Final = '''"""One query and one key, normalised before and after rotary positions. Needs torch and NumPy."""
import json

import numpy as np
import torch

d = {d}
first, second = {pairs}  # the two channels of every rotary pair
{draw}
gain_q = {gain_q}
gain_k = {gain_k}


def norm(x):
{norm}
    return x


def rotate(x, position):
    angle = position * {theta} ** (-torch.arange(d // 2).double() / (d // 2))
    y = x.clone()
    y[first] = x[first] * angle.cos() - x[second] * angle.sin()
    y[second] = x[first] * angle.sin() + x[second] * angle.cos()
    return y


norm_first = rotate(norm(q) * gain_q, {at_q}) @ rotate(norm(k) * gain_k, {at_k}) / d**0.5
rotary_first = (norm(rotate(q, {at_q})) * gain_q) @ (norm(rotate(k, {at_k})) * gain_k) / d**0.5
print(json.dumps({{"norm_rotary": norm_first.item(), "rotary_norm": rotary_first.item()}}))
'''
