"""The researcher's questions: bounds and their conditions, the Jacobian, entropy under a bound, formats, latents."""

import math
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np
import torch
from torch import Tensor

from qkdemo.attention.bounds import high_keys, least_entropy
from qkdemo.attention.measures import attend
from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.floats.formats import FORMATS
from qkdemo.floats.layout import rung
from qkdemo.labs import mla, rope
from qkdemo.labs.mla.costs import COSTS
from qkdemo.notation import written
from qkdemo.tracks.asked import Asked, Maker, digits_for, numeric, printed

_SEEDS: Final = 9999


def _rotary_bound(dice: random.Random) -> Asked:
    """Norm first, then rotation: a rotation carries a large gain of q to where k's gain is large."""
    size, d = dice.choice((2, 2.5, 3, 4, 5, 6)), dice.choice((16, 32, 64, 128))
    settings = rope.Settings(gain_kind="crossed", gain_size=size, vectors="worst", d_head=d, position=0)
    found = rope.run(settings)
    root = math.sqrt(d)
    others = {"naive": found.bound_naive, "width": d * size * size, "fourth": root * size**4, "unit": root}
    others |= {"twice": 2 * root * size * size, "gains": size * size}
    numbers = {
        "size": written(size),
        "d": written(d),
        "naive": written(found.bound_naive),
        "reached": written(found.max_abs_logit),  # with the digits of the bound, which it does not pass
    }
    return numeric(dice, found.bound_pairwise, others, numbers)


def _entropy_floor(dice: random.Random) -> Asked:
    """How small a row's entropy gets under a bound: some keys at +B, the others at −B; one, where B is large."""
    d, n = dice.choice((32, 64, 96, 128)), dice.choice((64, 256, 1024, 2048, 8192, 32768))
    bound = math.sqrt(d)  # of RMSNorm with unit gain
    least = least_entropy(bound, n)
    digits = digits_for(lambda shown: [written(least_entropy(shown(bound), n), 3)], 4)
    shown = printed(bound, digits)
    others = {
        "one_key": _entropy(n, shown, -shown),
        "one_sided": _entropy(n, shown, 0.0),
        "half_bound": least_entropy(shown / 2, n),
        "double_bound": least_entropy(2 * shown, n),
        "tenth": least / 10,
        "third": least / 3,
        "even": math.log(n),
        "hundredth": math.log(n) / 100,
    }
    numbers = {
        "d": written(d),
        "n": written(n, 6),
        "bound": written(bound, digits),
        "even": written(math.log(n)),
        "share": written(100 * least / math.log(n), 2),
        "high": written(high_keys(bound, n)),
    }
    return numeric(dice, least, others, numbers, lambda x: written(x, 3))


def _jacobian(dice: random.Random) -> Asked:
    """∂p/∂s of the favourite, by automatic differentiation."""
    gap, n = dice.choice((2.5, 3, 3.5, 4, 5, 6)), dice.choice((16, 32, 64, 128))
    logits = torch.zeros(n, dtype=torch.float64)
    logits[0] = gap + math.log(n - 1)  # so that the favourite beats all others together by the gap
    top = float(torch.softmax(logits, 0)[0])
    slope = _slope(lambda x: torch.softmax(x, 0)[0], logits)
    digits = digits_for(lambda shown: [written(shown(top) * (1 - shown(top)), 3)], 4)
    shown = printed(top, digits)
    others = {"weight": shown, "square": shown * shown, "rest_square": (1 - shown) ** 2, "even": 1 / n, "quarter": 0.25}
    others |= {"half": slope / 2, "third": slope / 3, "linear": 1 / gap}
    numbers = {"n": written(n), "top": written(top, digits), "rest": written(1 - shown, digits)}
    return numeric(dice, slope, others, numbers, lambda x: written(x, 3))


def _spectral(dice: random.Random) -> Asked:
    """The spectral norm that bounds a logit, when the two projections grow by different factors."""
    a, b, d = dice.choice((2, 3, 4)), dice.choice((5, 6, 7, 8)), dice.choice((16, 24, 32))
    w_q, w_k = np.random.default_rng(dice.randint(0, _SEEDS)).standard_normal((2, d // 2, d))
    before, after = (float(np.linalg.norm((x * w_q).T @ (y * w_k), 2)) for x, y in ((1, 1), (a, b)))
    others = {
        "sum": a + b,
        "square": (a * b) ** 2,
        "largest": b,
        "one": a * b * b,
        "other": a * a * b,
        "root": math.sqrt(a * b),
    }
    digits = digits_for(lambda shown: [written(shown(after) / shown(before))], 4)
    sizes = {"before": written(before, digits), "after": written(after, digits)}
    numbers = {"a": written(a), "b": written(b), **sizes}
    return numeric(dice, after / before, others, numbers)


def _softcap_slope(dice: random.Random) -> Asked:
    """How much of a gradient a softcap lets through, by automatic differentiation."""
    cap, times = dice.choice((15, 20, 30, 50)), dice.choice((1.2, 1.5, 1.8, 2, 2.2, 2.5))
    logit = cap * times
    slope = _slope(partial(_capped, cap=cap), torch.tensor([logit], dtype=torch.float64))
    capped = cap * math.tanh(times)
    digits = digits_for(lambda shown: [written(1 - (shown(capped) / cap) ** 2, 3)], 4)
    tanh = printed(capped, digits) / cap
    others = {"ratio": printed(capped, digits) / logit, "one_less": 1 - tanh, "tanh": tanh, "linear": 1 / (1 + times)}
    others |= {"square": slope * slope, "per_cap": slope / cap, "all": 1}
    numbers = {"cap": written(cap), "logit": written(logit), "capped": written(capped, digits)}
    return numeric(dice, slope, others, numbers, lambda x: written(x, 3))


def _bfloat_step(dice: random.Random) -> Asked:
    """How far apart two neighbouring logits are in bfloat16, and what that does to a ratio of weights."""
    logit = dice.choice((10, 12, 20, 24, 40, 48, 50, 80, 100, 120, 200, 240))
    spacing = {word: rung(float(logit), kind).spacing for word, kind in FORMATS.items()}
    step = spacing["bfloat16"]
    others = {"half": spacing["float16"], "share": logit / 100, "single": spacing["float32"], "coarse": 4 * step}
    others |= {"eight": 8 * step, "fine": step / 4}
    numbers = {"logit": written(logit), "ratio": written(math.exp(spacing["bfloat16"]), 3)}
    return numeric(dice, spacing["bfloat16"], others, numbers)


def _full_width(dice: random.Random) -> Asked:
    """One head takes the whole norm of a statistic over all of them."""
    heads, d = dice.choice((2, 4, 8, 16, 32)), dice.choice((32, 64, 128))
    x = torch.zeros(heads, 1, d, dtype=torch.float64)
    x[0, 0] = torch.from_numpy(np.random.default_rng(dice.randint(0, _SEEDS)).standard_normal(d))
    reached = float(scores(100 * x, 100 * x, VARIANTS["full_width"], Parameters()).logits.max())
    root = math.sqrt(d)
    others = {"per_head": root, "joint": math.sqrt(heads * d), "width": heads * d, "square": heads * heads * root}
    others |= {"twice": 2 * heads * root, "half": heads * root / 2}
    return numeric(dice, reached, others, {"heads": written(heads), "d": written(d), "per_head": written(math.sqrt(d))})


def _latent(dice: random.Random) -> Asked:
    """What an exact norm on keys that need not be formed adds to the cache of latent attention."""
    settings = mla.Settings(
        n_heads=dice.choice((16, 32, 64, 128)),
        latent=dice.choice((256, 512, 1024)),
        d_content=dice.choice((64, 128)),
        d_rotary=dice.choice((8, 16, 32)),
    )
    cached = {word: mla.cost(settings, word, 1).cache_bytes // 2 for word in COSTS}  # two bytes a number
    extra = cached["absorbed"] - cached["without_norm"]
    others = {
        "latent": settings.latent,
        "all": cached["without_norm"],
        "content": settings.d_content,
        "rotary": settings.d_rotary,
        "keys": cached["full_keys"] - cached["without_norm"],
        "one": 1,
        "two": 2 * settings.n_heads,
        "halved": settings.n_heads // 2,
        "quarter": settings.n_heads // 4,
    }
    numbers = {
        "heads": written(settings.n_heads),
        "latent_width": written(settings.latent),
        "rotary_width": written(settings.d_rotary),
        "content": written(settings.d_content),
        "before": written(cached["without_norm"], 9),  # a count is not rounded
        "full": written(cached["full_keys"], 9),
    }
    return numeric(dice, extra, others, numbers, lambda x: written(x, 9))


QUESTIONS: Final[Mapping[str, Maker]] = {
    "jacobian": _jacobian,
    "rotary_bound": _rotary_bound,
    "entropy_floor": _entropy_floor,
    "full_width": _full_width,
    "spectral": _spectral,
    "softcap_slope": _softcap_slope,
    "bfloat_step": _bfloat_step,
    "latent": _latent,
}


def _entropy(n: int, first: float, rest: float) -> float:
    row = torch.full((1, 1, n), rest, dtype=torch.float64)
    row[..., 0] = first
    return float(attend(row)[1].entropy)


def _capped(logit: Tensor, cap: float) -> Tensor:
    """The logit [1] under a softcap, by the variant of the labs: q of one entry, the logit itself, and k of one."""
    made = scores(
        logit[None, :, None], torch.ones(1, 1, 1, dtype=logit.dtype), VARIANTS["softcap"], Parameters(softcap=cap)
    )
    return made.logits[0, 0, 0]


def _slope(function: Callable[[Tensor], Tensor], at: Tensor) -> float:
    """∂f/∂x₀ in float64."""
    x = at.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(x), x)
    return float(gradient[0])
