"""The standalone program that prints the shares of both sides: `snippet(settings)`."""

from typing import Final

from qkdemo.labs.arrows.lab import Settings
from qkdemo.notation import plain


def snippet(settings: Settings) -> str:
    """A standalone PyTorch program that prints the shares of both sides in this state."""
    return _PROGRAM.format(
        query=_written(settings.query),
        keys=",\n    ".join(_written(key) for key in settings.keys),
        scale=plain(settings.scale),
        gain=plain(settings.gain),
        format=settings.format,
    )


def _written(arrow: tuple[float, int]) -> str:
    return f"({plain(arrow[0])}, {arrow[1]})"


_PROGRAM: Final = '''"""One query and its keys as arrows: shares of attention, plain and with QK norm. Needs torch."""
import json
import math

import torch

query = {query}  # length, degrees
keys = [
    {keys},
]
scale, g = {scale}, {gain}


def tip(length, degrees):
    angle = math.radians(degrees)
    return [scale * length * math.cos(angle), scale * length * math.sin(angle)]


def store(x):  # what writing to memory in {format} does
    return x.to(torch.{format}).double()


q = store(torch.tensor([tip(*query)], dtype=torch.float64))
k = store(torch.tensor([tip(*key) for key in keys], dtype=torch.float64))
plain = store(store(q @ k.T) * 2**-0.5)
unit_q, unit_k = (store(torch.nn.functional.normalize(x, dim=-1)) for x in (q, k))
norm = store(store(unit_q @ unit_k.T) * g)
shares = {{"plain": plain.softmax(-1)[0].tolist(), "norm": norm.softmax(-1)[0].tolist()}}
print(json.dumps(shares))
'''
