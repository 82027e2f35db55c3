"""The standalone program of the sphere: `snippet(settings)`."""

from typing import Final

from qkdemo.labs.sphere.lab import Settings
from qkdemo.notation import plain


def snippet(settings: Settings) -> str:
    """A standalone NumPy program that prints the weights of both sides, and where all queries are sure."""
    numbers = ("scale", "gain", "latitude", "longitude", "query_length", "n_keys", "seed")
    return _PROGRAM.format(**{name: plain(getattr(settings, name)) for name in numbers})


_PROGRAM: Final = '''"""A query and its keys in space: weights of both sides, and where a query is sure. Needs NumPy."""
import json
import math

import numpy as np

scale, g = {scale}, {gain}
keys = np.random.default_rng({seed}).standard_normal(({n_keys}, 3))
units = keys / np.linalg.norm(keys, axis=-1, keepdims=True)


def pointing(latitude, longitude):
    a, b = math.radians(latitude), math.radians(longitude)
    return np.array([math.cos(a) * math.cos(b), math.cos(a) * math.sin(b), math.sin(a)])


def softmax(logits):
    terms = np.exp(logits - logits.max(-1, keepdims=True))
    return terms / terms.sum(-1, keepdims=True)


def weights(u):
    """Of a query with direction u: plain q·k/√3, and g · cos θ."""
    q, there = scale * {query_length} * u, 1.0 if {query_length} else 0.0
    return softmax(scale * keys @ q / math.sqrt(3)), softmax(g * there * units @ u)


plain, norm = weights(pointing({latitude}, {longitude}))
sure = [0.0, 0.0]
area = 0.0
for latitude in np.linspace(-90, 90, 37):
    for longitude in np.linspace(-180, 180, 73)[:-1]:
        u, width = pointing(latitude, longitude), math.cos(math.radians(latitude))
        q = scale * {query_length} * u
        tops = softmax(scale * keys @ q / math.sqrt(3)).max(), softmax(g * units @ u).max()
        sure = [have + width * bool(top >= 0.9) for have, top in zip(sure, tops)]
        area += width
print(json.dumps({{"plain": plain.tolist(), "norm": norm.tolist(), "decided": [have / area for have in sure]}}))
'''
