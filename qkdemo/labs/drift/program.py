"""The smallest standalone PyTorch program for a state that is on the screen.

* `attention_program(...)`: draws q and k, forms logits as one variant does, prints what `measures` reads off.

Nothing of this project is imported by the program: it is an independent second opinion, and tests run it.
"""

from collections.abc import Mapping
from textwrap import indent
from typing import Final

from qkdemo.attention.norms import program_lines
from qkdemo.attention.variants import VARIANTS, DialWord, Variant, VariantWord
from qkdemo.dials import Value
from qkdemo.labs.drift.lab import Settings
from qkdemo.notation import plain

OWN_FILE: Final = "qk.npz"  # with q and k of somebody's own, as the page hands it out
_OVER_ALL_HEADS: Final = """mean = r(r(r(x * x).sum((-3, -1), keepdim=True)) / (x.shape[-1] * x.shape[-3]))
x = r(x * r(r(mean + {epsilon}).rsqrt()))"""
_FACTOR: Final = {"gain": "g", "temperature": "min(1 / tau, 100.0)"}
_NAMES: Final[dict[DialWord, str]] = {
    "gamma": "gamma",
    "gain": "g",
    "temperature": "tau",
    "softcap": "c",
    "alpha": "alpha",
}


def attention_program(settings: Mapping[str, Value], variant: VariantWord, *, own: bool = False) -> str:
    """A program that prints one line of JSON: the measures of `variant` in the state `settings`.

    `settings` holds the dials of the drift lab by name; `own`: q and k are read from a file. The program needs torch
    and NumPy only.
    """
    s = {name: plain(value) if isinstance(value, float) else value for name, value in settings.items()}
    wide = s["format"] in ("float64", "float32")
    formed = VARIANTS[variant]
    factor = next((_FACTOR[dial] for dial in formed.dials if dial in _FACTOR), "q.shape[-1] ** -0.5")
    draw = [
        f"rng = np.random.default_rng({s['seed']})",
        f"q = rng.standard_normal(({s['n_heads']}, {s['n_keys']}, {s['d_head']}))  # heads, positions, head width",
        "k = rng.standard_normal(q.shape)",
        *_preparation(s),
    ]
    if own:
        draw = [
            f'arrays = np.load("{OWN_FILE}")',
            *(f'{x} = arrays["{x}"]  # heads, positions, head width' for x in "qk"),
        ]
    draw += [
        *(f"{name} = {s[dial]}" for dial, name in _NAMES.items() if dial in formed.dials),
    ]
    form = [
        f"q, k = (store(normalise(store(torch.tensor(x) * {s['scale']}))) for x in (q, k))",
        "raw = store(q @ k.mT)",
        f"logits = store(raw * {factor})",
        *(["logits = store(c * torch.tanh(logits / c))"] if formed.capped else []),
        f"visible = torch.ones(logits.shape, dtype=torch.bool){'.tril()' if s['causal'] else ''}",
    ]
    return _PROGRAM.format(
        variant=variant,
        format=s["format"],
        scale=s["scale"],
        draw="\n".join(draw),
        stored=f"x.to(torch.{s['format']})" if wide else f"x.to(torch.{s['format']}).to(torch.float32)",
        inside="store" if s["norm_in_format"] else "lambda x: x",
        normaliser=indent(_normaliser(formed), " " * 4),
        form="\n".join(form),
    )


def _normaliser(formed: Variant) -> str:
    norm = formed.norm
    if formed.over_all_heads:
        lines = _OVER_ALL_HEADS.format(epsilon=f"{norm.epsilon:g}")
    else:
        lines = program_lines(norm, "alpha", rounded=True)
    return "\n".join([*([lines] if lines else []), "return x * gamma" if "gamma" in formed.dials else "return x"])


def _preparation(s: Mapping[str, object]) -> list[str]:
    lines = []
    if s["alignment"] != "0":
        lines.append(f"k = {s['alignment']} * q + (1 - {s['alignment']}**2) ** 0.5 * k")
    if s["mean"] != "0":
        lines.append(f"q, k = q + {s['mean']}, k + {s['mean']}")
    if s["n_heads"] != 1 and s["head_spread"] != "1":
        lines.append(f"size = {s['head_spread']} ** np.linspace(-0.5, 0.5, {s['n_heads']})[:, None, None]")
        lines.append("q, k = q * size, k * size")
    return lines


_PROGRAM: Final = '''"""Attention logits of {variant} in {format} at weight scale {scale}. Needs torch and NumPy."""
import json

import numpy as np
import torch

{draw}


def store(x):  # what writing to memory in {format} does
    return {stored}


r = {inside}  # what happens to every step inside the norm


def normalise(x):
{normaliser}


{form}

logits = logits.double()
p = torch.softmax(logits.masked_fill(~visible, -torch.inf), -1)
rows = p.isfinite().all(-1)  # a row whose largest logit is infinite has no softmax
telling = rows & (visible.sum(-1) > 1)  # where one key is seen, its weight is 1 whatever the logit
size = logits[visible].abs()
size = size[~size.isnan()]
measures = {{"max_abs_logit": size.max().item()}} if len(size) else {{}}
if rows.any():
    measures |= {{
        "top_weight": p[telling if telling.any() else rows].max().item(),
        "entropy": torch.special.entr(p).sum(-1)[rows].mean().item(),
        "softmax_slope": (p * (1 - p))[visible & rows[..., None]].mean().item(),
    }}
print(json.dumps(measures))
'''


def snippet(settings: Settings, variant: VariantWord | None = None) -> str:
    """A standalone PyTorch program for one side of this state, the twin unless `variant` says otherwise."""
    return attention_program(settings.as_dict(), variant or settings.variant, own=settings.own is not None)
