"""The standalone program that reads a sentence with both models: `snippet(settings)`."""

from typing import Final

from qkdemo.labs.words.lab import Settings
from qkdemo.labs.words.network import FILE, SHAPE
from qkdemo.notation import plain
from qkdemo.training.sentences import WORDS


def snippet(settings: Settings) -> str:
    """A standalone PyTorch program that prints the chosen row and the next word of both models in this state."""
    return _PROGRAM.format(
        file=FILE.relative_to(FILE.parents[3]).as_posix(),
        sentence=settings.sentence,
        known=" ".join(WORDS),
        scale=plain(settings.scale),
        format=settings.format,
        layer=settings.of_layer,
        head=settings.of_head,
        word=settings.query + 1,
        layers=SHAPE.n_layers,
        heads=SHAPE.n_heads,
        width=SHAPE.d_head,
    )


_PROGRAM: Final = '''"""A sentence, read by two small transformers, plain and with RMSNorm on q and k. Needs torch."""
import json

import numpy as np
import torch
import torch.nn.functional as F

FILE = "{file}"  # the recorded weights: a file of this project
sentence = "{sentence}"
known = "{known}".split()
scale, layer, head, word = {scale}, {layer}, {head}, {word}  # W_q and W_k times scale; the others count from 1
LAYERS, HEADS, WIDTH = {layers}, {heads}, {width}
kept = np.load(FILE)


def store(x):  # what writing to memory in {format} does
    return x.to(torch.{format}).double()


def read(side):
    own = [name for name in kept if name.startswith(side)]
    w = {{name.removeprefix(side + "."): torch.from_numpy(kept[name]).double() for name in own}}
    tokens = [known.index(each) for each in sentence.split()]
    T = len(tokens)
    later = torch.ones(T, T).triu(1).bool()
    x = w["embedding"][tokens] + w["position"][:T]
    normal = lambda x, gain: F.layer_norm(x, x.shape[-1:], gain)
    attention = []
    for at in range(LAYERS):
        qkv = normal(x, w[f"{{at}}.attention_gain"]) @ w[f"{{at}}.qkv"]
        q, k, v = (part.view(T, HEADS, WIDTH).transpose(0, 1) for part in qkv.chunk(3, dim=-1))
        q, k = store(scale * q), store(scale * k)
        if side == "norm":
            q, k = (
                store(z * (z.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w[f"{{at}}.gamma_{{name}}"])
                for name, z in (("q", q), ("k", k))
            )
        s = store(store(q @ k.mT) * WIDTH**-0.5).masked_fill(later, -torch.inf)
        attention.append(s.softmax(-1))  # NaN where the largest score of a row is infinite
        x = x + (attention[-1] @ v).transpose(0, 1).reshape(T, -1) @ w[f"{{at}}.out"]
        x = x + (normal(x, w[f"{{at}}.mlp_gain"]) @ w[f"{{at}}.up"]).relu() @ w[f"{{at}}.down"]
    shares = (normal(x[-1], w["gain"]) @ w["head"]).softmax(-1)
    return attention[layer - 1][head - 1, word - 1], shares


for side in ("plain", "norm"):
    row, shares = read(side)
    best = shares.argmax().item()
    print(json.dumps({{"side": side, "row": row.tolist(), "next_word": known[best], "share": shares[best].item()}}))
'''
