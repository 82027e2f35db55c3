"""The developer's questions: formats, the wrong scale, ports that nothing complains about, caches, cost."""

import dataclasses
import math
import random
from collections.abc import Mapping
from typing import Final

import torch

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.inputs import Recipe, draw
from qkdemo.attention.measures import attend
from qkdemo.attention.pipeline import trace
from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.floats.formats import FORMATS
from qkdemo.labs import cache, cost
from qkdemo.labs.cache.decoding import WayWord
from qkdemo.labs.formats.error_counts import tally
from qkdemo.labs.formats.stages import STAGES, STORED, Choices, drawn
from qkdemo.labs.placement.comparisons import difference
from qkdemo.labs.placement.mistakes import ROUNDING, pair_of
from qkdemo.notation import written
from qkdemo.tracks.asked import Asked, Maker, digits_for, numeric
from qkdemo.tracks.stop import only

_SEEDS: Final = 9999
_BLOCK: Final = BlockRecipe(d_model=64, n_heads=2, n_kv_heads=2, d_head=32, n_keys=16)
_MILD: Final = ("rotary_first", "q_gain_on_k", "gain_not_permuted", "norm_skipped")  # which is worst is measured
_MIDDLING: Final = ("one_plus_as_gamma", "l2_scale_kept")
_GRAVE: Final = ("gamma_as_one_plus", "scale_one")
_SEEN: Final = ("scale_one", "norm_skipped", "layernorm_for_rms", "l2_scale_kept", "gamma_as_one_plus")
_HIDDEN: Final = ("rotary_first", "q_gain_on_k", "gain_not_permuted")  # candidates: what hides is measured
_CACHES: Final[tuple[WayWord, ...]] = ("raw", "halfway", "finished")
_BROKEN: Final[tuple[WayWord, ...]] = ("normed_again", "other_heads_gain", "one_late")


def _half(dice: random.Random) -> Asked:
    """Dividing by √d after a float16 product gives nothing back that the product has lost."""
    scale, recipe = dice.choice((224, 250, 280, 315, 355, 400, 450)), Recipe(seed=dice.randint(0, _SEEDS))
    found = tally(drawn(recipe), torch.tensor([scale], dtype=torch.float64), Choices(placement="after"))
    half = STORED.index("float16")
    raw, scaled = (int(found.n_lost[half, STAGES.index(stage), 0]) for stage in ("raw_product", "scaled"))
    too_large = int(found.n_exceeding[half, STAGES.index("scaled"), 0])
    numbers = {
        "scale": written(scale),
        "n": written(int(found.n[half, STAGES.index("scaled"), 0])),
        "raw": written(raw),
        "root": written(math.sqrt(recipe.d_head)),
        "largest": written(FORMATS["float16"].largest, 5),
        "too_large": written(too_large),
    }
    return numeric(scaled, {"none": 0, "too_large": too_large, "share": raw // 8, "half": raw // 2}, numbers)


def _kept_scale(dice: random.Random) -> Asked:
    """Unit vectors, a learned scale, and 1/√d that somebody left in place."""
    g, d = dice.choice((8, 10, 12, 15, 20, 25)), dice.choice((64, 128, 256))
    x, _ = draw(Recipe(n_keys=1, d_head=d, seed=dice.randint(0, _SEEDS)))
    aligned = scores(x, 3 * x, VARIANTS["l2"], Parameters(g=g)).logits  # k points where q points: no logit is larger
    kept = float(aligned) / math.sqrt(d)
    others = {"bound": g, "rms": math.sqrt(d), "per_width": g / d, "grown": g * math.sqrt(d)}
    digits = digits_for(lambda shown: [written(g / shown(math.sqrt(d)))], 4)
    numbers = {"g": written(g), "d": written(d), "bound": written(g), "root": written(math.sqrt(d), digits)}
    return numeric(kept, others, numbers)


def _small_g(dice: random.Random) -> Asked:
    """The largest weight that a bound on logits allows: one key at +g, all others at −g."""
    g, n = dice.choice((1, 1.5, 2, 2.5, 3)), dice.choice((128, 256, 512, 1024))
    row = torch.full((1, 1, n), -float(g), dtype=torch.float64)
    row[..., 0] = g
    top = float(attend(row)[1].top_weight)
    enough = (math.log(n - 1)) / 2  # then the favourite and all others together weigh the same
    others = {
        "others_at_zero": math.exp(g) / (math.exp(g) + n - 1),
        "whole": 1,
        "half": 0.5,
    }
    return numeric(top, others, {"g": written(g), "n": written(n), "enough": written(enough, 3)}, _percent)


def _worst_port(dice: random.Random) -> Asked:
    """Which of four mistakes in porting moves the logits most; nothing complains about any of them."""
    recipe = dataclasses.replace(_BLOCK, seed=dice.randint(0, _SEEDS), gain_spread=dice.choice((0.2, 0.3, 0.4, 0.5)))
    names = (*dice.sample(_MILD, 2), dice.choice(_MIDDLING), dice.choice(_GRAVE))
    off = {name: _off(name, recipe) for name in names}
    ranked = sorted(off, key=lambda name: -off[name])
    numbers = {
        word: _percent(off[name])
        for word, name in zip(("worst", "next", "least"), ranked[:2] + ranked[-1:], strict=True)
    }
    return Asked(names, ranked[0], {"spread": written(recipe.gain_spread)} | numbers)


def _hidden_port(dice: random.Random) -> Asked:
    """Which mistake a test with fresh weights cannot find."""
    recipe = dataclasses.replace(_BLOCK, seed=dice.randint(0, _SEEDS))
    names = (dice.choice(_HIDDEN), *dice.sample(_SEEN, 3))
    off = {name: _off(name, dataclasses.replace(recipe, gains="unit")) for name in names}
    trained = _off(names[0], recipe)
    answer = only(**{name: error < ROUNDING for name, error in off.items()})
    least = min(error for name, error in off.items() if name != answer)
    numbers = {"trained": _percent(trained), "spread": written(recipe.gain_spread), "least": _percent(least)}
    return Asked(names, answer, numbers)


def _length_on(dice: random.Random) -> Asked:
    """Which length q has as it enters the product, if the norm is really there."""
    d, scale = dice.choice((32, 64, 128, 256)), dice.choice((2, 3, 4, 5, 6))
    x, _ = draw(Recipe(n_keys=8, d_head=d, seed=dice.randint(0, _SEEDS)))
    made = scores(scale * x, scale * x, VARIANTS["rms"], Parameters())
    lengths, raw = made.q.norm(dim=-1), float((scale * x).norm(dim=-1).mean())
    others = {"raw": raw, "unit": 1, "width": d, "inverse": 1 / math.sqrt(d)}
    return numeric(float(lengths.mean()), others, {"d": written(d), "raw": written(raw, 3)}, lambda x: written(x, 3))


def _cached(dice: random.Random) -> Asked:
    """Which cache of keys computes another function than a fresh pass does."""
    wrong = dice.choice(_BROKEN)
    settings = cache.Settings(n_keys=8, d_head=16, n_heads=2, format="float64", seed=dice.randint(0, _SEEDS))
    found = {way: cache.run(settings.but(way=way)) for way in (*_CACHES, wrong)}
    answer = only(**{way: result.label == "wrong" for way, result in found.items()})
    off = max(found[wrong].weight_error)
    return Asked(tuple(found), answer, {"error": written(off, 3), "steps": written(settings.n_keys)})


def _cost(dice: random.Random) -> Asked:
    """The operations of two RMSNorms beside those of projections and attention."""
    settings = cost.Settings(
        n_keys=dice.choice((128, 256, 512, 1024)),
        n_heads=dice.choice((4, 8, 16)),
        d_head=dice.choice((32, 64, 128)),
        d_model=dice.choice((128, 256, 512, 1024)),
    )
    share = {part.part: 100 * part.share for part in cost.run(settings).parts}
    others = {
        "tenfold": 10 * share["rms"],
        "attention": share["attention"],
        "half": 50,
        "hundredfold": 100 * share["rms"],
    }
    numbers = {
        "n": written(settings.n_keys),
        "heads": written(settings.n_heads),
        "d": written(settings.d_head),
        "width": written(settings.d_model),
        "softcap": written(share["softcap"], 2),
    }
    return numeric(share["rms"], others, numbers, lambda x: written(x, 2))


QUESTIONS: Final[Mapping[str, Maker]] = {
    "half": _half,
    "kept_scale": _kept_scale,
    "small_g": _small_g,
    "worst_port": _worst_port,
    "hidden_port": _hidden_port,
    "length_on": _length_on,
    "cached": _cached,
    "cost": _cost,
}


def _off(mistake: str, recipe: BlockRecipe) -> float:
    """How far a mistake puts the logits of this block off, relative."""
    left, right = pair_of(mistake)
    block = draw_block(dataclasses.replace(recipe, offset_stored=left.stored == "one_plus"))
    return difference(trace(left, block), trace(right, block)).logits


def _percent(share: float) -> str:
    return written(100 * share, 3)
