"""What the developer's stops on the norm itself read off their labs: its table, its lines, its gain, its format."""

import math
from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import normalize

from qkdemo.attention.bounds import largest_weight
from qkdemo.attention.inputs import Recipe, draw
from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.facts.models import MODELS
from qkdemo.labs import drift, formats
from qkdemo.labs.formats.stages.error_counts import tally
from qkdemo.labs.formats.stages.kinds import STAGES, STORED, drawn
from qkdemo.notation import at_most, written
from qkdemo.tracks.stop import Evidence, closest, only

TABLE: Final = (1, 2, 4, 8, 16)
SEED_TABLE: Final = drift.Settings()
ALIGNED: Final = SEED_TABLE.but(alignment=0.99)
SAME: Final = 1e-9  # relative difference up to which float64 says that two ways are one function
_TRUSTED: Final = 0.1  # relative error of an attention weight
_DEFAULT_AXIS: Final = 1  # of torch.nn.functional.normalize
HEADS: Final = 4
_MANY_KEYS: Final = 128


def table(found: drift.Result) -> Evidence:
    """Logits and entropy at five weight scales, and the first of them at the next."""
    rows = drift.run(found.settings, TABLE).plain
    numbers = {
        f"{name}_{scale}": written(value, digits)
        for name, digits in (("max_abs_logit", 4), ("entropy", 3))
        for scale, value in zip(
            TABLE, 100 * rows.entropy_fraction if name == "entropy" else rows.max_abs_logit, strict=True
        )
    }
    slopes = rows.softmax_slope
    twin = {
        "twin": written(found.twin.max_abs_logit[found.at]),
        "twin_entropy": written(100 * found.twin.entropy_fraction[found.at], 3),
    }
    numbers |= {"fall": written(slopes[0] / slopes[-1], 2)} | twin
    return Evidence(float(found.plain.max_abs_logit[found.at]), numbers)


def lines(found: drift.Result) -> Evidence:
    """What `torch.nn.functional.normalize` makes of [batch, heads, positions, d_head] without its `dim`."""
    settings = found.settings

    def made(axis: int, heads: int = HEADS, keys: int = settings.n_keys) -> tuple[Tensor, Tensor]:
        """The largest logit, and the lengths of q and of k."""
        drawn = draw(Recipe(n_heads=heads, n_keys=keys, d_head=settings.d_head, seed=settings.seed))
        q, k = (normalize(settings.scale * x[None], dim=axis) for x in drawn)
        return (settings.gain * q @ k.mT).abs().max(), torch.stack((q, k)).norm(dim=-1)

    (right, _), (wrong, lengths) = made(-1), made(_DEFAULT_AXIS)
    alone, hidden = made(_DEFAULT_AXIS, heads=1)[0], made(-2, keys=_MANY_KEYS)[0]
    q, k = draw(Recipe(n_heads=HEADS, n_keys=settings.n_keys, d_head=settings.d_head, seed=settings.seed))
    own = scores(q, k, VARIANTS["l2"], Parameters(g=settings.gain))
    assert hidden < settings.gain < wrong < alone
    answer = only(
        nothing=math.isclose(wrong, right, rel_tol=SAME),
        axis=math.isclose(right, own.logits.abs().max(), rel_tol=SAME) and wrong > settings.gain,
    )
    return Evidence(
        answer,
        {
            "right": written(right.item()),
            "wrong": written(wrong.item()),
            "alone": written(alone.item()),
            "hidden": written(hidden.item()),
            "short": written(lengths.min().item(), 3),
            "long": written(lengths.max().item(), 3),
            "heads": str(HEADS),
            "many": str(_MANY_KEYS),
        },
    )


def rms(found: drift.Result) -> Evidence:
    """What bounds the logits of RMSNorm, with unit gain and with another."""
    d = found.settings.d_head
    root, bound = math.sqrt(d), found.twin.bound
    gained = drift.run(found.settings.but(gamma=2), [found.settings.scale]).twin
    every = [model for model in MODELS if model.kind == "model"]
    normed = [model for model in every if model.qk_norm == "yes"]
    assert found.twin.max_abs_logit[found.at] <= bound
    return Evidence(
        closest(bound, {"one": 1, "root": root, "width": d, "square": d * d}),
        {
            "one": written(1),
            "root": written(root),
            "width": written(d),
            "square": written(d * d),
            "largest": written(found.twin.max_abs_logit[found.at]),
            "gained": written(gained.bound),
            "users": str(sum(model.norm == "rms" for model in normed)),
            "normed": str(len(normed)),
            "all": str(len(every)),
        },
    )


def small_g(found: drift.Result) -> Evidence:
    """How sharp attention can get at a small g, at its start value and at a large one."""
    settings, twin, at = found.settings, found.twin, found.at
    usual, large = (drift.run(settings.but(gain=gain), [settings.scale]).twin for gain in (ALIGNED.gain, 100))
    top = float(twin.top_weight[at])
    n = settings.n_keys
    numbers = {
        "top": written(100 * top, 3),
        "usual": written(100 * usual.top_weight[0], 3),
        "effective": written(ALIGNED.gain / math.sqrt(settings.d_head)),
        "start_g": written(math.log2(n * n - n), 3),
        "most": at_most(100 * largest_weight(settings.gain, n), 3),
        "slope": written(twin.softmax_slope[at], 2),
        "large_slope": written(large.softmax_slope[0], 2),
    }
    return Evidence(top, numbers)


def half(found: formats.Result) -> Evidence:
    """Which of four changes lets float16 attention weights be trusted."""
    settings = found.settings
    tried = {
        word: _weights(settings.but(**change), plain=word in ("maximum", "early")) for word, change in _TRIED.items()
    }
    lost = {word: found[0] for word, found in tried.items()}
    bf16 = _weights(settings.but(storage="bfloat16"), plain=True)
    unsafe, safe = (_weights(settings.but(scale=8, max_subtraction=on), plain=True) for on in (False, True))
    raw = STORED.index(settings.storage), STAGES.index("raw_product")
    numbers = {
        "lost": written(found.plain.tally.n_lost[*raw, 0]),
        "of": written(found.plain.tally.n[*raw, 0]),
        "first": written(found.plain.first_loss[raw]),
        "nan": written(lost["maximum"]),
        "early": written(lost["early"]),
        "inside": written(tried["inside"][2]),
        "error": written(100 * tried["outside"][1], 2),
        "bf16": written(bf16[0]),
        "bf16_zero": written(bf16[3]),
        "unsafe": written(unsafe[0]),
        "safe": written(safe[0]),
    }
    trusted = {word: lost == 0 and error < _TRUSTED for word, (lost, error, *_) in tried.items()}
    return Evidence(only(**trusted), numbers)


_TRIED: Final[dict[str, dict[str, object]]] = {
    "maximum": {"max_subtraction": True},
    "early": {"placement": "on_q"},
    "inside": {"norm_in_format": True},
    "outside": {"norm_in_format": False},
}


def _weights(settings: formats.Settings, *, plain: bool) -> tuple[int, float, int, int]:
    """Of the attention weights in the chosen format: lost ones, largest relative error; q entries and weights at 0."""
    choices = formats.choices_of(settings, "none" if plain else settings.variant)
    inputs = drawn(formats.recipe_of(settings), causal=settings.causal)
    counted = tally(inputs, torch.tensor([settings.scale], dtype=torch.float64), choices)
    f, weight, q = STORED.index(settings.storage), STAGES.index("weight"), STAGES.index("q_entering")
    zeros = int(counted.n_zero[f, q, 0]), int(counted.n_zero[f, weight, 0])
    return int(counted.n_lost[f, weight, 0]), float(counted.max_rel_error[f, weight, 0]), *zeros
