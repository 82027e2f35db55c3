"""The beginner's questions, in words: numbers from the drift lab and from two or three arrows."""

import dataclasses
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
from qkdemo.tracks.asked import MOST, RIGHT, Asked, Maker, digits_for, numeric, printed
from qkdemo.tracks.stop import closest, only

_SEEDS: Final = 9999
_FACTORS: Final = (3, 4, 5, 6, 7, 9, 10, 12)
_CLEARLY: Final = 0.03  # of the attention: by as much a share is clearly larger
_NEAR_TIE: Final = 0.1  # relative difference of two scores up to which a reader cannot be asked for the larger
_SIZE: Final = 2  # how long the arrows of `_confidence` are
_SHORTER: Final = 12  # a query that much shorter gains less by pointing better than it loses
_FAR: Final = 0.25  # relative difference from which on two numbers of keys are two answers


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
    others = {"same": 1, "once": k, "both": 2 * k, "cube": k**3, "twofold": 2 * k * k, "undivided": k * k * root}
    assert closest(after / before, {"square": k * k, "once": k, "both": 2 * k, "same": 1}) == "square"
    return numeric(dice, after / before, others, numbers)


def _twin(dice: random.Random) -> Asked:
    """With q and k normalised, the same growth changes nothing; without it logits grow by its square.

    Either is asked, for one of the two has its answer in the question.
    """
    k, form = dice.choice(_FACTORS), dice.choice(("normed", "plain", "plain"))
    found = _drifted(dice, 1, k)
    before, after = found.twin.max_abs_logit
    fresh, plain = found.plain.max_abs_logit
    digits = digits_for(lambda shown: [written(k * k * shown(fresh))], 4)
    shown, bare = printed(before, 4), printed(fresh, digits)
    ends = {"fresh_plain": written(fresh, digits), "plain": written(plain)}
    numbers = {"k": written(k), "before": written(before), **ends}
    if form == "normed":
        others = {"fresh": printed(fresh, 4), "once": shown * k, "square": shown * k * k, "shrunk": shown / k}
        others |= {"both": 2 * k * shown, "shrunk_square": shown / (k * k), "half": shown / 2}
    else:
        others = {"fresh": bare, "normed": shown, "plain_once": bare * k, "plain_both": 2 * k * bare}
        others |= {"plain_cube": bare * k**3, "plain_twice": 2 * k * k * bare, "plain_fourth": bare * k**4}
    asked = numeric(dice, float(after if form == "normed" else plain), others, numbers)
    return dataclasses.replace(asked, form=form)


def _winner(dice: random.Random) -> Asked:
    """Over how many keys attention is spread, as many as an even spread of the same entropy would need.

    The weights grow or shrink, and attention is plain or normalised.
    """
    k, side = dice.choice((6, 8, 10, 1 / 4, 1 / 5, 1 / 6)), dice.choice(("plain", "plain", "normed"))
    found = _drifted(dice, 1, k)
    shown = found.plain if side == "plain" else found.twin
    fresh, after = np.exp(shown.entropy)
    n = found.settings.n_keys
    around = {"few": 1.5, "half": fresh / 2, "less": 0.8 * fresh, "same": fresh, "most": n}
    others = {word: value for word, value in around.items() if abs(value / after - 1) > _FAR}
    kept = dict(sorted(others.items(), key=lambda item: abs(math.log(item[1] / after)))[: MOST - 1])
    numbers = {"k": written(max(k, 1 / k)), "fresh": written(fresh, 3), "n": written(n)}
    choices = {RIGHT: float(after), **kept}
    form = f"{side}_{'grown' if k > 1 else 'shrunk'}"
    return Asked(tuple(choices), RIGHT, numbers | {word: written(x, 3) for word, x in choices.items()}, form)


def _stuck(dice: random.Random) -> Asked:
    """How much of a nudge to a score still reaches the attention, after weights have grown, or shrunk back."""
    k, side = dice.choice((8, 10, 12, 14, 16)), dice.choice(("plain", "plain", "normed"))
    found = _drifted(dice, *dice.choice(((1.0, float(k)), (float(k), 1.0))))
    shown = found.plain if side == "plain" else found.twin
    before, after = shown.softmax_slope
    ratio = float(after / before)
    grew = found.scales[1] > found.scales[0]
    answer = only(weaker=ratio < 1 / 2, same=1 / 2 <= ratio <= 2, stronger=ratio > 2)
    numbers = {"k": written(k), "ratio": written(ratio, 3), "inverse": written(1 / ratio, 3)}
    return Asked(("weaker", "same", "stronger"), answer, numbers, f"{side}_{'grown' if grew else 'shrunk'}")


def _arrows(dice: random.Random) -> Asked:
    """Two keys: a long one and a short one; one of them points closer to the query. No score comes near the other."""
    lengths = [dice.choice((4.0, 5.0, 6.0, 8.0)), dice.choice((1.0, 1.5, 2.0))]
    angles = [dice.choice((40, 45, 50, 55, 60, 65)), dice.choice((5, 10, 15, 20, 25))]
    if dice.random() < 0.5:
        lengths.reverse()  # the short one points elsewhere: then both agree
    if dice.random() < 0.5:
        lengths.reverse()
        angles.reverse()
    keys = torch.stack([_arrow(length, angle) for length, angle in zip(lengths, angles, strict=True)])
    size = dice.choice((2, 3, 4))
    query = _arrow(size, 0)
    rows = query.expand_as(keys)[None]
    plain, normed = (scores(rows, keys[None], VARIANTS[word], Parameters()).raw[0, 0] for word in ("none", "l2"))
    if plain.min() > (1 - _NEAR_TIE) * plain.max():
        return _arrows(dice)
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
    return Asked(("a_a", "b_b", "a_b", "b_a"), answer, numbers | {"query": written(size)})


def _confidence(dice: random.Random) -> Asked:
    """What a change of one query does to its favourite key's share: length counts without the norm alone."""
    k, change = dice.choice((3, 4, 5, 6)), dice.choice(("longer", "longer", "closer", "turned", "both"))
    lead = dice.choice((30, 35, 40, 45))
    rival = lead + 8
    angles = (lead, -rival, 150, 200)  # of the keys: the one that leads, its rival on the other side, two far ones
    keys = torch.stack([_arrow(_SIZE, angle) for angle in angles])
    query, changed = (
        _arrow(_SIZE, 0),
        {
            "longer": _arrow(_SIZE * k, 0),
            "closer": _arrow(_SIZE, lead),
            "turned": _arrow(_SIZE, 0),
            "both": _arrow(_SIZE / _SHORTER, lead),
        }[change],
    )
    turned = _turned(keys, 40) if change == "turned" else keys
    changed = _turned(changed[None], 40)[0] if change == "turned" else changed
    top = {
        word: [
            _share_of_first(_logits(q, rows, word, Parameters(g=4.0))) for q, rows in ((query, keys), (changed, turned))
        ]
        for word in ("none", "l2")
    }
    grew = {word: after - before > _CLEARLY for word, (before, after) in top.items()}
    answer = only(
        both=grew["none"] and grew["l2"],
        plain=grew["none"] and not grew["l2"],
        normed=grew["l2"] and not grew["none"],
        neither=not grew["none"] and not grew["l2"],
    )
    stated = {"k": k, "shorter": _SHORTER, "size": _SIZE, "lead": lead, "rival": rival}
    numbers = {word: written(x) for word, x in stated.items()} | {
        f"{side}_{when}": written(100 * share, 3)
        for side, word in (("plain", "none"), ("normed", "l2"))
        for when, share in zip(("before", "after"), top[word], strict=True)
    }
    return Asked(("both", "plain", "normed", "neither"), answer, numbers, change)


def _ceiling(dice: random.Random) -> Asked:
    """How large a logit can get at all, once arrows have length 1 and are multiplied by one dial."""
    g, k = dice.choice((4, 5, 6, 8, 12, 15, 20, 60, 80, 100)), dice.choice((2, 3, 30, 40, 50, 80, 100))
    d = dice.choice((32, 64, 128))
    largest = drift.run(drift.Settings(seed=dice.randint(0, _SEEDS), gain=g, d_head=d, scale=k), [k]).twin
    same_way = _logits(_arrow(3, 0), _arrow(5, 0)[None], "l2", Parameters(g=g))  # no two arrows agree more
    numbers = {"g": written(g), "k": written(k), "d": written(d), "largest": written(largest.max_abs_logit[0])}
    others = {"scale": k, "width": d, "with_scale": g * k, "root": math.sqrt(d), "one": 1, "with_square": g * k * k}
    return numeric(dice, float(same_way[0]), others, numbers, written)


def _overflow(dice: random.Random) -> Asked:
    """At which scale the largest score passes what float16 can hold: the root of what a straight line would say."""
    largest = FORMATS["float16"].largest
    while True:
        settings = drift.Settings(seed=dice.randint(0, _SEEDS), format="float16", d_head=dice.choice((32, 64, 128)))
        q, k = (x[0] for x in _drawn(settings.seed, settings.d_head))
        raw, first = float((q @ k.mT).abs().max()), drift.run(settings, [1.0, 1000.0]).plain.first_raw_loss
        if written(first, 3) == written(
            math.sqrt(largest / raw), 3
        ):  # what rounds down to `largest` makes no difference
            break
    digits = digits_for(lambda shown: [written(math.sqrt(largest / shown(raw)), 3)], 3)
    shown = printed(raw, digits)
    numbers = {"raw": written(raw, digits), "largest": written(largest, 5)}
    others = {
        "straight": largest / shown,
        "fourth": (largest / shown) ** 0.25,
        "half": largest / (2 * shown),
        "halved": math.sqrt(largest / shown) / 2,
        "thirds": (largest / shown) ** (2 / 3),
        "third": (largest / shown) ** (1 / 3),
    }
    return numeric(dice, first, others, numbers, lambda x: written(x, 3))


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


def _turned(arrows: Tensor, degrees: float) -> Tensor:
    """The same arrows [arrows, 2], all turned by one angle."""
    angle = math.radians(degrees)
    turn = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
    return arrows @ torch.tensor(turn, dtype=torch.float64)


def _share_of_first(logits: Tensor) -> float:
    return float(attend(logits[None, None])[0][0, 0, 0])
