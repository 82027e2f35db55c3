"""The standalone program that normalises one vector: `snippet(settings)`."""

from typing import Final

from qkdemo.attention.norms import NORMS, RuleWord
from qkdemo.labs.epsilon.lab import Settings, norm_dtype
from qkdemo.notation import plain

_DIVISOR: Final[dict[RuleWord, str]] = {
    "inside": "((x * x).sum() / n + epsilon).sqrt()",
    "outside": "x.norm() / n**0.5 + epsilon",
    "floor": "(x.norm() / n**0.5).clamp_min(epsilon)",
    "floored_root": "((x * x).sum() / n).sqrt().clamp_min(epsilon)",
    "absent": "x.norm() / n**0.5",
}


def snippet(settings: Settings) -> str:
    """A standalone PyTorch program that prints share and slope of the current vector, and the zero vector's fate."""
    dtype = str(norm_dtype(settings))
    return _PROGRAM.format(
        d=settings.d_head,
        seed=settings.seed,
        size=plain(settings.size),
        stored=settings.format,
        dtype=dtype,
        epsilon=plain(settings.epsilon),
        centre="x = x - x.mean()\n    " if NORMS[settings.norm].centred else "",
        n="d" if NORMS[settings.norm].of_mean else "1",
        divisor=_DIVISOR[settings.rule],
        whole="d**0.5" if NORMS[settings.norm].of_mean else "1",
    )


_PROGRAM: Final = '''"""One vector, normalised with epsilon in one place. Needs torch and NumPy."""
import json

import numpy as np
import torch

d = {d}
n = {n}  # squares are averaged over so many
epsilon = {epsilon}
drawn = torch.from_numpy(np.random.default_rng({seed}).standard_normal((2, d)))
drawn = drawn - drawn.mean(-1, keepdim=True)
along = drawn[0] / drawn[0].norm()
across = drawn[1] - (drawn[1] @ along) * along
across = across / across.norm()


def normalise(x):
    {centre}return x / ({divisor})


def with_gradient(x, weights):
    x = x.to(torch.{stored}).to({dtype}).requires_grad_()
    y = normalise(x)
    (gradient,) = torch.autograd.grad((y * weights.to({dtype})).sum(), x)
    return y.detach().double(), gradient.double()


y, gradient = with_gradient({size} * along * d**0.5, across)
zero, steep = with_gradient(torch.zeros(d), across)
print(json.dumps({{
    "share": (y.norm() / {whole}).item(),
    "slope": gradient.norm().item(),
    "zero_output": zero[0].item(),
    "zero_slope": steep.norm().item(),
}}))
'''
