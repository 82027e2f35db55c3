"""The beginner's questions: no formula, numbers from the drift lab and from two or three arrows."""

import math
import random
from collections.abc import Mapping
from typing import Final

import numpy as np
import torch
from torch import Tensor

from qkdemo.attention.inputs import Recipe, draw
from qkdemo.attention.measures import attend
from qkdemo.attention.variants import VARIANTS, Parameters, VariantWord, scores
from qkdemo.floats.formats import FORMATS
from qkdemo.labs import drift
from qkdemo.notation import written
from qkdemo.tracks.asked import Asked, Maker, digits_for, numeric, printed
from qkdemo.tracks.stop import closest, only

_SEEDS: Final = 9999
_FACTORS: Final = (3, 4, 5, 6, 7, 9, 10, 12)
_UNCHANGED: Final = 0.01  # of a share of attention


def _drifted(dice: random.Random, *scales: float) -> drift.Result:
    return drift.run(drift.Settings(seed=dice.randint(0, _SEEDS)), scales)


def _growth(dice: random.Random) -> Asked:
    """Plain logits grow with the square of a common scale, whatever constant divides them."""
    k = dice.choice(_FACTORS)
    found = _drifted(dice, 1, k)
    before, after = found.plain.max_abs_logit
    root = math.sqrt(found.settings.d_head)
    digits = digits_for(lambda shown: [written(shown(after) / shown(before))], 4)
    sizes = {"before": written(before, digits), "after": written(after, digits)}
    numbers = {"k": written(k), "root": written(root), **sizes}
    asked = numeric(after / before, {"same": 1, "once": k, "both": 2 * k, "divided": k * k / root}, numbers)
    assert closest(after / before, {"square": k * k, "once": k, "both": 2 * k, "same": 1}) == "square"
    return asked


def _twin(dice: random.Random) -> Asked:
    """With q and k normalised, the same growth changes nothing."""
    k = dice.choice(_FACTORS)
    found = _drifted(dice, 1, k)
    before, after = found.twin.max_abs_logit
    plain = found.plain.max_abs_logit[1] / found.plain.max_abs_logit[0]
    shown = printed(before, 4)
    others = {"square": shown * plain, "once": shown * k, "shrunk": shown / k}
    return numeric(float(after), others, {"k": written(k), "before": written(before), "plain": written(plain)})


def _winner(dice: random.Random) -> Asked:
    """Over how many keys a query's attention is spread, as many as an even spread of the same entropy would need."""
    k = dice.choice((6, 7, 8, 9, 10))
    found = _drifted(dice, 1, k)
    fresh, after = np.exp(found.plain.entropy)
    numbers = {"k": written(k), "fresh": written(fresh, 3), "n": written(found.settings.n_keys)}
    shown = printed(fresh, 3)
    others = {"all": found.settings.n_keys, "same": shown, "half": shown / 2}
    return numeric(float(after), others, numbers, lambda x: written(x, 3))


def _stuck(dice: random.Random) -> Asked:
    """How much of a nudge to a score still reaches the attention."""
    k = dice.choice((6, 8, 10, 12, 14, 16))
    found = _drifted(dice, 1, k)
    fresh, after = found.plain.softmax_slope
    ratio = float(fresh / after)
    twin = float(found.twin.softmax_slope[0] / found.twin.softmax_slope[1])
    numbers = {"k": written(k), "ratio": written(ratio, 3), "twin": written(twin, 3)}
    answer = only(weaker=ratio > 2, same=1 / 2 <= ratio <= 2, stronger=ratio < 1 / 2)
    return Asked(("weaker", "same", "stronger"), answer, numbers)


def _arrows(dice: random.Random) -> Asked:
    """Two keys: a long one that points elsewhere, a short one that points the query's way."""
    lengths = [dice.choice((4.0, 5.0, 6.0, 8.0)), dice.choice((1.0, 1.5, 2.0))]
    angles = [dice.choice((40, 45, 50, 55, 60, 65)), dice.choice((5, 10, 15, 20, 25))]
    if dice.random() < 0.25:
        lengths.reverse()  # the short one points elsewhere: then both agree
    if dice.random() < 0.5:
        lengths.reverse()
        angles.reverse()
    keys = torch.stack([_arrow(length, angle) for length, angle in zip(lengths, angles, strict=True)])
    query = _arrow(dice.choice((2, 3, 4)), 0)
    plain, normed = (_logits(query, keys, word) for word in ("none", "l2"))
    wins = [bool(row[0] > row[1]) for row in (plain, normed)]
    answer = only(
        a_a=wins == [True, True], b_b=wins == [False, False], a_b=wins == [True, False], b_a=wins == [False, True]
    )
    named = zip("ab", lengths, angles, plain.tolist(), normed.tolist(), strict=True)
    numbers = {
        f"{part}_{key}": written(value, 3)
        for key, length, angle, score, cosine in named
        for part, value in (("length", length), ("angle", angle), ("plain", score), ("normed", cosine))
    }
    return Asked(("a_a", "b_b", "a_b", "b_a"), answer, numbers)


def _confidence(dice: random.Random) -> Asked:
    """A query that is made longer looks more sharply without a norm, and exactly as before with one."""
    k, seed = dice.choice((3, 4, 5, 6)), dice.randint(0, _SEEDS)
    q, keys = (x[0] for x in _drawn(seed))
    top = {word: [_top_share(_logits(factor * q[0], keys, word)) for factor in (1, k)] for word in ("none", "l2")}
    grew = {word: after - before > _UNCHANGED for word, (before, after) in top.items()}
    answer = only(
        both=grew["none"] and grew["l2"],
        plain=grew["none"] and not grew["l2"],
        normed=grew["l2"] and not grew["none"],
        neither=not grew["none"] and not grew["l2"],
    )
    numbers = {"k": written(k)} | {
        f"{side}_{when}": written(100 * share, 3)
        for side, word in (("plain", "none"), ("normed", "l2"))
        for when, share in zip(("before", "after"), top[word], strict=True)
    }
    return Asked(("both", "plain", "normed", "neither"), answer, numbers)


def _ceiling(dice: random.Random) -> Asked:
    """How large a score can get at all, once arrows have length 1 and are multiplied by one dial."""
    g, k = dice.choice((4, 5, 6, 8, 12, 15, 20)), dice.choice((20, 40, 50, 80, 100))
    settings = drift.Settings(seed=dice.randint(0, _SEEDS), gain=g, scale=k)
    found = drift.run(settings, [k])
    same_way = _logits(_arrow(3, 0), _arrow(5, 0)[None], "l2", Parameters(g=g))  # no two arrows agree more
    numbers = {"g": written(g), "k": written(k), "largest": written(found.twin.max_abs_logit[0])}
    others = {"with_scale": g * k, "with_square": g * k * k, "one": 1}
    return numeric(float(same_way[0]), others, numbers, written)


def _overflow(dice: random.Random) -> Asked:
    """At which scale the largest product passes what float16 can hold: the root of what a straight line would say."""
    largest = FORMATS["float16"].largest
    while True:
        settings = drift.Settings(seed=dice.randint(0, _SEEDS), format="float16", d_head=dice.choice((32, 64, 128)))
        q, k = (x[0] for x in _drawn(settings.seed, settings.d_head))
        raw, first = float((q @ k.mT).abs().max()), drift.run(settings).plain.first_raw_loss
        if written(first, 3) == written(
            math.sqrt(largest / raw), 3
        ):  # what rounds down to `largest` makes no difference
            break
    digits = digits_for(lambda shown: [written(math.sqrt(largest / shown(raw)), 3)], 3)
    shown = printed(raw, digits)
    numbers = {"raw": written(raw, digits), "largest": written(largest, 5)}
    others = {"straight": largest / shown, "never": math.inf, "half": largest / (2 * shown)}
    return numeric(first, others, numbers, lambda x: written(x, 3))


QUESTIONS: Final[Mapping[str, Maker]] = {
    "arrows": _arrows,
    "growth": _growth,
    "winner": _winner,
    "stuck": _stuck,
    "overflow": _overflow,
    "twin": _twin,
    "ceiling": _ceiling,
    "confidence": _confidence,
}


def _drawn(seed: int, d_head: int = 64) -> tuple[Tensor, Tensor]:
    return draw(Recipe(seed=seed, d_head=d_head))


def _arrow(length: float, degrees: float) -> Tensor:
    angle = math.radians(degrees)
    return torch.tensor([length * math.cos(angle), length * math.sin(angle)], dtype=torch.float64)


def _logits(query: Tensor, keys: Tensor, word: VariantWord, parameters: Parameters | None = None) -> Tensor:
    """Logits of one query, [keys]."""
    made = scores(query.expand_as(keys)[None], keys[None], VARIANTS[word], parameters or Parameters())
    return made.logits[0, 0]


def _top_share(logits: Tensor) -> float:
    return float(attend(logits[None, None])[0].max())
