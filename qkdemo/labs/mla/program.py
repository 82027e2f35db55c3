"""The standalone PyTorch programs of the latent-attention lab. Nothing of this project is imported by them.

* `readings_program(...)`: QK norm with keys formed and without, in float64;
* `alternatives_program(recipe)`: what other ways bound at one scale of the projections, with the weights written out.
"""

from typing import Any, Final

from qkdemo.labs.mla.baselines import STEP, LatentRecipe
from qkdemo.labs.mla.lab import LIVE_HEADS, Settings, latent_recipe
from qkdemo.notation import plain


def readings_program(*, joint: bool, gain_spread: float, **sizes: Any) -> str:
    """A program that prints how far both readings are apart."""
    return _READINGS.format(spread=plain(gain_spread), sizes=_SIZES[joint], **sizes)


def alternatives_program(recipe: LatentRecipe, scale: float) -> str:
    """A program that prints the largest |logit| of every method at this scale, and how far a step moves a logit."""
    return _ALTERNATIVES.format(
        seed=recipe.seed,
        heads=recipe.n_heads,
        keys=recipe.n_keys,
        latent=recipe.latent,
        content=recipe.d_content,
        rotary=recipe.d_rotary,
        spread=plain(recipe.gain_spread),
        head_spread=plain(recipe.head_spread),
        threshold=plain(recipe.threshold),
        scale=plain(scale),
        step=plain(STEP),
        normed="normed(torch.cat([content, turned], -1)).split([C, R], -1)"
        if recipe.joint
        else "(normed(content), normed(turned))",
    )


_SIZES: Final = {
    False: "inverse(K), inverse(k_rotary)[None]",
    True: "(inverse(torch.cat([K, k_rotary.expand(heads, -1, -1)], -1)),) * 2",
}
_READINGS: Final = '''"""QK norm on latent attention, with keys formed and without. Needs torch and NumPy."""
import json

import numpy as np
import torch

rng = np.random.default_rng({seed})
heads, keys, latent, content, rotary = {heads}, {keys}, {latent}, {content}, {rotary}
normal = lambda *shape: torch.tensor(rng.standard_normal(shape))
c, k_rotary = normal(keys, latent), normal(keys, rotary)
up = normal(heads, content, latent) / latent**0.5
q_content, q_rotary = normal(heads, keys, content), normal(heads, keys, rotary)
g_content, g_rotary = (1 + {spread} * torch.tensor(rng.uniform(-1, 1, n)) for n in (content, rotary))


def inverse(x):
    return (x.square().mean(-1) + 1e-6).rsqrt()


def rotate(x):
    angle = torch.arange(keys).double()[:, None] * 10000.0 ** (-torch.arange(rotary // 2).double() / (rotary // 2))
    a, b = x[..., : rotary // 2], x[..., rotary // 2 :]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


K = c @ up.mT
r_content, r_rotary = {sizes}  # 1/rms, all that the cache keeps of the norm

K_hat = torch.cat([K * r_content[..., None] * g_content,
                   rotate(k_rotary * r_rotary[..., None] * g_rotary).expand(heads, -1, -1)], -1)
explicit = torch.cat([q_content, rotate(q_rotary)], -1) @ K_hat.mT

absorbed = ((q_content * g_content) @ up @ c.mT) * r_content[:, None]
absorbed = absorbed + rotate(q_rotary) @ rotate(k_rotary * g_rotary).mT * r_rotary[:, None]
print(json.dumps({{
    "relative_difference": ((absorbed - explicit).norm() / explicit.norm()).item(),
    "largest": explicit.abs().max().item() / (content + rotary) ** 0.5,
}}))
'''
_ALTERNATIVES: Final = '''"""Latent attention: what bounds a logit, and how far a step moves it. Needs torch, NumPy."""
import json
import math

import numpy as np
import torch

rng = np.random.default_rng(({seed}, 1))
H, T, L, C, R = {heads}, {keys}, {latent}, {content}, {rotary}  # heads, tokens, latent, content and rotary width
scale, tau, step = {scale}, {threshold}, {step}
t = torch.tensor
size = t({head_spread} ** (np.linspace(-0.5, 0.5, H) if H > 1 else np.zeros(1)))[:, None, None]
W_q, W_k = (scale * size * t(rng.standard_normal((H, n, L))) / L**0.5 for n in (C + R, C))
U_q, U_k = (t(rng.integers(0, 2, (H, n, L)) * 2.0 - 1) for n in (C + R, C))
gains = [1 + {spread} * t(rng.uniform(-1, 1, n)) for n in (C, R, C, R)]
c_q, c_k = (scale * t(rng.standard_normal((T, L))) for _ in range(2))
rotary_key = scale * t(rng.standard_normal((T, R)))


def normed(x):
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()


def rotate(x):
    angle = torch.arange(T).double()[:, None] * 10000.0 ** (-torch.arange(R // 2).double() / (R // 2))
    a, b = x[..., : R // 2], x[..., R // 2 : R // 2 * 2]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def logits(W_q, W_k, c_q, c_k, qk_norm=False):
    sides = []
    for gain, content, turned in (
        (gains[:2], c_q @ W_q[:, :C].mT, c_q @ W_q[:, C:].mT),
        (gains[2:], c_k @ W_k.mT, rotary_key.expand(H, -1, -1)),
    ):
        if qk_norm:
            content, turned = {normed}
            content, turned = content * gain[0], turned * gain[1]
        sides.append(torch.cat([content, rotate(turned)], -1))
    return (sides[0] @ sides[1].mT / math.sqrt(C + R)).masked_fill(torch.ones(T, T).triu(1).bool(), 0)


def clipped(W_q, W_k):  # the rotary key belongs to all heads and stays: the rotary part of W_q takes all of gamma
    seen = logits(W_q, W_k, n_q, n_k).masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
    gamma = (tau / seen.amax((1, 2)).clamp_min(tau))[:, None, None]
    return torch.cat([gamma.sqrt() * W_q[:, :C], gamma * W_q[:, C:]], 1), gamma.sqrt() * W_k


n_q, n_k = normed(c_q), normed(c_k)
rates = [step * math.sqrt(n) / W.norm(dim=(1, 2), keepdim=True) for n, W in ((C, W_k), (C + R, W_q))]
ways = {{
    "nothing": (W_q, W_k, c_q, c_k, False, step, step),
    "latent_norm": (W_q, W_k, n_q, n_k, False, step, step),
    "qk_clip": (*clipped(W_q, W_k), n_q, n_k, False, step, step),
    "rates": (W_q, W_k, n_q, n_k, False, *rates),
    "qk_norm": (W_q, W_k, c_q, c_k, True, step, step),
}}
found = {{}}
for name, (w_q, w_k, q, k, qk_norm, of_q, of_k) in ways.items():
    before, after = logits(w_q, w_k, q, k, qk_norm), logits(w_q + of_q * U_q, w_k + of_k * U_k, q, k, qk_norm)
    found[name] = {{"largest": before.abs().max().item(), "moved": (after - before).abs().max().item()}}
print(json.dumps(found))
'''


def snippet(settings: Settings) -> str:
    """A standalone PyTorch program that computes both readings in float64 and prints how far they are apart."""
    return readings_program(
        joint=settings.statistic == "joint",
        gain_spread=settings.gain_spread,
        seed=settings.seed,
        heads=min(settings.n_heads, LIVE_HEADS),
        keys=settings.n_keys,
        latent=settings.latent,
        content=settings.d_content,
        rotary=settings.d_rotary,
    )


def alternatives_snippet(settings: Settings) -> str:
    """A standalone PyTorch program that computes the other ways at the scale of these settings."""
    return alternatives_program(latent_recipe(settings), settings.projections)
