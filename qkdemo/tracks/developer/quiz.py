"""The developer's questions: formats, the wrong scale, ports that nothing complains about, caches, cost."""

import dataclasses
import math
import random
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import torch

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.bounds import largest_weight
from qkdemo.attention.inputs import Recipe, draw
from qkdemo.attention.pipeline import trace
from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.labs import cache, cost
from qkdemo.labs.cache.decoding import WayWord
from qkdemo.labs.formats.stages.error_counts import tally
from qkdemo.labs.formats.stages.kinds import STAGES, STORED, Choices, drawn
from qkdemo.labs.placement.comparisons import difference
from qkdemo.labs.placement.mistakes import ROUNDING, pair_of
from qkdemo.notation import at_least, at_most, written
from qkdemo.tracks.asked import Asked, Maker, digits_for, numeric
from qkdemo.tracks.stop import only

_SEEDS: Final = 9999
_BLOCK: Final = BlockRecipe(d_model=64, n_heads=2, n_kv_heads=2, d_head=32, n_keys=16)
_FOUND: Final = (  # which of four is the worst, and which the mildest, is measured
    *("rotary_first", "q_gain_on_k", "gain_not_permuted", "norm_skipped", "layernorm_for_rms"),
    *("one_plus_as_gamma", "l2_scale_kept", "gamma_as_one_plus"),
)
_APART: Final = 1.25  # ratio of two errors from which on they can be told apart
_OTHERS: Final = tuple(  # blocks on which an answer has to be the same: who is asked sees no draw, and no head width
    dataclasses.replace(_BLOCK, d_head=d_head, seed=seed) for d_head in (32, 64, 128) for seed in range(3)
)
_SEEN: Final = ("scale_one", "norm_skipped", "layernorm_for_rms", "l2_scale_kept", "gamma_as_one_plus")
_HIDDEN: Final = ("rotary_first", "q_gain_on_k", "gain_not_permuted")  # candidates: what hides is measured
_CACHES: Final[tuple[WayWord, ...]] = ("raw", "halfway", "finished")
_BROKEN: Final[tuple[WayWord, ...]] = ("normed_again", "other_heads_gain", "one_late")


def _half(dice: random.Random) -> Asked:
    """Dividing by √d after a float16 product gives nothing back that the product has lost."""
    scale, recipe = dice.choice((90, 100, 112, 125, 140, 160)), Recipe(n_keys=32, seed=dice.randint(0, _SEEDS))
    scales, half = torch.tensor([scale], dtype=torch.float64), STORED.index("float16")
    found, divided = (tally(drawn(recipe), scales, Choices(placement=where)) for where in ("after", "on_q"))
    raw, scaled = (int(found.n_lost[half, STAGES.index(stage), 0]) for stage in ("raw_product", "scaled"))
    too_large = int(found.n_exceeding[half, STAGES.index("scaled"), 0])
    n = int(found.n[half, STAGES.index("scaled"), 0])
    numbers = {
        "scale": written(scale),
        "n": written(n),
        "root": written(math.sqrt(recipe.d_head)),
        "too_large": written(too_large),
        "on_q": written(int(divided.n_lost[half, STAGES.index("scaled"), 0])),
    }
    others = {"fits": n - raw, "all": n, "too_large": too_large, "more": (n + raw) // 2, "most": n - raw // 8}
    others |= {"half": raw // 2, "quarter": raw // 4}
    return numeric(dice, scaled, others, numbers)


def _kept_scale(dice: random.Random) -> Asked:
    """Unit vectors, a learned scale, and 1/√d that somebody left in place."""
    g, d = dice.choice((8, 10, 12, 15, 20, 25)), dice.choice((64, 128, 256))
    x, _ = draw(Recipe(n_keys=1, d_head=d, seed=dice.randint(0, _SEEDS)))
    aligned = scores(x, 3 * x, VARIANTS["l2"], Parameters(g=g)).logits  # k points where q points: no logit is larger
    kept = float(aligned) / math.sqrt(d)
    others = {"bound": g, "rms": math.sqrt(d), "per_width": g / d, "grown": g * math.sqrt(d)}
    others |= {"inverse": 1 / math.sqrt(d), "half": g / (2 * math.sqrt(d))}
    digits = digits_for(lambda shown: [written(g / shown(math.sqrt(d)))], 4)
    numbers = {"g": written(g), "d": written(d), "bound": written(g), "root": written(math.sqrt(d), digits)}
    return numeric(dice, kept, others, numbers)


def _small_g(dice: random.Random) -> Asked:
    """The largest weight that a bound on logits allows: one key at +g, all others at −g."""
    g, n = dice.choice((1, 1.5, 2, 2.5, 3)), dice.choice((128, 256, 512, 1024))
    top = largest_weight(g, n)
    enough = (math.log(n - 1)) / 2  # then the favourite and all others together weigh the same
    others = {
        "third": top / 3,
        "others_at_zero": math.exp(g) / (math.exp(g) + n - 1),
        "even": 1 / n,
        "threefold": min(1.0, 3 * top),
        "half": 0.5,
        "twice": 1 / (1 + (n - 1) * math.exp(-4 * g)),
        "whole": 1,
        "root": 1 / math.sqrt(n),
    }
    return numeric(dice, top, others, {"g": written(g), "n": written(n), "enough": at_most(enough, 3)}, _percent)


def _worst_port(dice: random.Random) -> Asked:
    """Which of four mistakes in porting moves the logits most, or least; nothing complains about any of them."""
    recipe = dataclasses.replace(_BLOCK, seed=dice.randint(0, _SEEDS), gain_spread=dice.choice((0.3, 0.4, 0.5)))
    form = dice.choice(("most", "least"))
    extreme = max if form == "most" else min
    while True:
        names = dice.sample(_FOUND, 4)
        off = {name: _off(name, recipe) for name in names}
        ranked = sorted(off, key=off.__getitem__, reverse=form == "most")
        first, second = (off[name] for name in ranked[:2])
        told = max(first, second) > _APART * min(first, second)
        if told and all(extreme(names, key=on.__getitem__) == ranked[0] for on in _elsewhere(recipe.gain_spread)):
            break  # else nobody could tell
    numbers = {"first": _percent(first), "next": _percent(second), "last": _percent(off[ranked[-1]])}
    return Asked(tuple(names), ranked[0], {"spread": written(recipe.gain_spread)} | numbers, form)


@lru_cache(maxsize=8)
def _elsewhere(spread: float) -> tuple[Mapping[str, float], ...]:
    """How far each mistake puts the logits of the other blocks off."""
    recipes = (dataclasses.replace(recipe, gain_spread=spread) for recipe in _OTHERS)
    return tuple({name: _off(name, recipe) for name in _FOUND} for recipe in recipes)


def _hidden_port(dice: random.Random) -> Asked:
    """Which mistake a test with fresh weights cannot find; or the only one that it does."""
    recipe = dataclasses.replace(_BLOCK, seed=dice.randint(0, _SEEDS))
    form = dice.choice(("hidden", "seen"))
    one, others = (_HIDDEN, _SEEN) if form == "hidden" else (_SEEN, _HIDDEN)
    names = (dice.choice(one), *dice.sample(others, 3))
    off = {name: _off(name, dataclasses.replace(recipe, gains="unit")) for name in names}
    answer = only(**{name: (error < ROUNDING) == (form == "hidden") for name, error in off.items()})
    least = min(error for error in off.values() if error >= ROUNDING)
    numbers = {"trained": _percent(_off(answer, recipe)), "spread": written(recipe.gain_spread)}
    return Asked(names, answer, numbers | {"least": (at_least if form == "hidden" else written)(100 * least, 3)}, form)


def _length_on(dice: random.Random) -> Asked:
    """Which length q has as it enters the product, if the norm is really there."""
    d, scale = dice.choice((32, 64, 128, 256)), dice.choice((2, 3, 4, 5, 6))
    x, _ = draw(Recipe(n_keys=8, d_head=d, seed=dice.randint(0, _SEEDS)))
    made = scores(scale * x, scale * x, VARIANTS["rms"], Parameters())
    lengths, raw = made.q.norm(dim=-1), float((scale * x).norm(dim=-1).mean())
    others = {"raw": raw, "unit": 1, "width": d, "inverse": 1 / math.sqrt(d), "root": math.sqrt(math.sqrt(d))}
    others |= {"twice": 2 * math.sqrt(d), "scaled": raw / math.sqrt(d)}
    numbers = {"d": written(d), "raw": written(raw, 3)}
    return numeric(dice, float(lengths.mean()), others, numbers, lambda x: written(x, 3))


def _cached(dice: random.Random) -> Asked:
    """Which cache of keys computes another function than a fresh pass does; or the only one that computes the same."""
    form = dice.choice(("wrong", "right"))
    one, others = (_BROKEN, _CACHES) if form == "wrong" else (_CACHES, _BROKEN)
    settings = cache.Settings(n_keys=8, d_head=16, n_heads=2, format="float64", seed=dice.randint(0, _SEEDS))
    found = {way: cache.run(settings.but(way=way)) for way in (dice.choice(one), *others)}
    answer = only(**{way: (result.label == "wrong") == (form == "wrong") for way, result in found.items()})
    off = min(max(result.weight_error) for result in found.values() if result.label == "wrong")
    error = at_most(off, 3) if form == "wrong" else at_least(off, 3)
    return Asked(tuple(found), answer, {"error": error, "steps": written(settings.n_keys)}, form)


def _cost(dice: random.Random) -> Asked:
    """The operations of two RMSNorms beside those of projections and attention."""
    settings = cost.Settings(
        n_keys=dice.choice((128, 256, 512, 1024)),
        n_heads=dice.choice((4, 8, 16)),
        d_head=dice.choice((32, 64, 128)),
        d_model=dice.choice((128, 256, 512, 1024)),
    )
    share = {part.part: 100 * part.share for part in cost.run(settings).parts}
    near = dice.choice((3, 4))  # the right answer is neither always nor never one of the two that lie closest
    others = {
        "tenfold": 10 * share["rms"],
        "tenth": share["rms"] / 10,
        "few_fold": near * share["rms"],
        "part": share["rms"] / near,
        "hundredfold": 100 * share["rms"],
        "hundredth": share["rms"] / 100,
    }
    numbers = {
        "n": written(settings.n_keys),
        "heads": written(settings.n_heads),
        "d": written(settings.d_head),
        "width": written(settings.d_model),
        "softcap": written(share["softcap"], 2),
    }
    return numeric(dice, share["rms"], others, numbers, lambda x: written(x, 2))


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
