"""The standalone program that decodes with and without a cache: `snippet(settings)`."""

from textwrap import indent
from typing import Final

from qkdemo.attention.norms import NORMS, program_lines
from qkdemo.floats.formats import FORMATS
from qkdemo.labs.cache.decoding import WayWord
from qkdemo.labs.cache.lab import Settings, divided_by, recipe_of
from qkdemo.notation import plain


def snippet(settings: Settings) -> str:
    """A standalone PyTorch program that decodes with and without this cache and compares the weights."""
    recipe = recipe_of(settings)
    spread = plain(settings.gain_spread)
    tied = "np.concatenate([gain[:, : d // 2]] * 2, 1)" if settings.gains == "tied" else "gain"
    gain = "1 + 0 * gain" if settings.gains == "unit" else f"1 + {spread} * {tied}"
    norm_first = settings.order == "norm_rotary"
    working = str(FORMATS[settings.format].working_dtype)
    stored = "x" if settings.format in ("float64", "float32") else f"x.to(torch.{settings.format}).to({working})"
    return _PROGRAM.format(
        seed=settings.seed,
        heads=settings.n_heads,
        d=settings.d_head,
        keys=settings.n_keys,
        working=working,
        stored=stored,
        width=recipe.d_model,
        gain=gain,
        head_spread=plain(settings.head_spread),
        offset=settings.offset,
        norm=indent(
            program_lines(NORMS[settings.norm], plain(settings.alpha), epsilon=plain(settings.epsilon)), "    "
        ),
        divided=plain(divided_by(settings.norm, settings.d_head))
        if "gain" in NORMS[settings.norm].learns
        else "d**0.5",
        first="norm(x, gain)" if norm_first else "rotate(x, at)",
        second="rotate(x, at)" if norm_first else "norm(x, gain)",
        kept=_KEPT[settings.quantised.split("_")[0]].format(
            dims="" if settings.quantised.endswith("tensor") else "(1, 2), keepdim=True"
        ),
        way=_WAY[settings.way] if norm_first or settings.way != "normed_again" else _NORMED_LAST,
    )


_KEPT: Final = {
    "none": "    return x",
    "int8": "    step = x.abs().amax({dims}) / 127\n    return (x / step).round().clamp(-127, 127) * step",
    "fp8": "    scale = x.abs().amax({dims}) / 448\n    return (x / scale).to(torch.float8_e4m3fn).to(x.dtype) * scale",
}


_WAY: Final[dict[WayWord, str]] = {
    "raw": "    return store(second(first(kept(k), gain_k, at), gain_k, at))",
    "halfway": "    return store(second(kept(store(first(k, gain_k, at))), gain_k, at))",
    "finished": "    return kept(store(second(first(k, gain_k, at), gain_k, at)))",
    "normed_again": """    x = kept(store(norm(k, gain_k)))
    for s in range(step):  # every read so far; the newest key has seen none
        x[:, : s + 1] = store(norm(x, gain_k))[:, : s + 1]
    return store(rotate(x, at))""",
    "other_heads_gain": "    gain = gain_k.roll(1, 0)\n    return kept(store(second(first(k, gain, at), gain, at)))",
    "one_late": "    return kept(store(second(first(k, gain_k, at + 1), gain_k, at + 1)))",
}


_NORMED_LAST: Final = """    x = kept(store(norm(rotate(k, at), gain_k)))
    for s in range(step):
        x[:, : s + 1] = store(norm(x, gain_k))[:, : s + 1]
    return x"""


_PROGRAM: Final = '''"""Decoding with a KV cache against a fresh pass. Needs torch and NumPy."""
import json

import numpy as np
import torch

rng = np.random.default_rng({seed})
heads, d, keys, width = {heads}, {d}, {keys}, {width}
x = rng.standard_normal((keys, width))
x = torch.tensor(x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6))
rng.permuted(np.ones(keys))
W_q, W_k = (rng.standard_normal((heads * d, width)) / width**0.5 for _ in "qk")
rng.standard_normal((heads * d, width)), rng.standard_normal((width, heads * d))  # v, output
gain_q, gain_k = (torch.tensor({gain}) for gain in (rng.uniform(-1, 1, (heads, d)) for _ in "qk"))
size = np.repeat({head_spread} ** (np.linspace(-0.5, 0.5, heads) if heads > 1 else np.zeros(1)), d)
at = torch.arange({offset}, {offset} + keys).double()


def store(x):
    return {stored}


q, k = ((x @ torch.tensor(W * size[:, None]).mT).reshape(keys, heads, d).movedim(0, 1) for W in (W_q, W_k))
q, k = store(q.to({working})), store(k.to({working}))


def norm(x, gain):
{norm}
    return x * gain[:, None].to(x)


def rotate(x, at):
    angle = at[:, None] * 10000.0 ** (-torch.arange(d // 2).double() / (d // 2))
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def first(x, gain, at):
    return {first}


def second(x, gain, at):
    return {second}


def kept(x):  # what the cache gives back
{kept}


def cached(step):  # the keys that step t reads
{way}


q = store(second(first(q, gain_q, at), gain_q, at))
fresh = store(second(first(k, gain_k, at), gain_k, at))
errors = []
for step in range(keys):
    logits = [(q[:, step, None] * x[:, : step + 1]).sum(-1) / {divided} for x in (fresh, cached(step))]
    weights = [torch.softmax(s, -1) for s in logits]
    errors.append((weights[1] - weights[0]).abs().max().item())
print(json.dumps({{"weight_error": errors}}))
'''
