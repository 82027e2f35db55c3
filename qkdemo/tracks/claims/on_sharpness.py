"""Claims about how sharp attention can get, and what says so."""

import math
from typing import Final

import torch

from qkdemo.attention.bounds import largest_weight, least_entropy
from qkdemo.attention.inputs import Recipe, draw
from qkdemo.attention.measures import attend
from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.labs import drift
from qkdemo.labs.drift.state import scores_at
from qkdemo.notation import at_least, written
from qkdemo.tracks.claims.on_bounds import DRIFT, FRESH, PLAIN, plain_at
from qkdemo.tracks.claims.verdict import claim
from qkdemo.tracks.stop import Evidence, Read, only

_LONG: Final = 131072  # keys: a context that models are sold with
_SHARP: Final = 0.99  # of a row's weight for one key
_FEW, _MANY = 16, 256  # keys


def _entropy(found: drift.Result) -> Evidence:
    d, n, twin = found.settings.d_head, found.settings.n_keys, found.twin
    measured = float(twin.entropy[found.at])
    least, at_length = least_entropy(twin.bound, n), least_entropy(twin.bound, _LONG)
    return Evidence(
        only(true=0 < least <= measured, false=measured < least or least == 0),
        {
            "bound": written(twin.bound),
            "d": str(d),
            "n": str(n),
            "least": at_least(least),
            "share": written(100 * least / math.log(n), 2),
            "weight": written(largest_weight(twin.bound, n), 8),
            "measured": _percent(found.twin.entropy_fraction[found.at]),
            "long": written(_LONG, 6),
            "at_length": written(at_length, 3),
            "most_at_length": written(math.log(_LONG), 3),
            "gamma": "2",
            "with_gain": written(least_entropy(4 * twin.bound, n), 2),
        },
    )


def _uniform(found: drift.Result) -> Evidence:
    sharp, scale = found.twin, found.settings.scale
    flat, usual = (drift.run(found.settings.but(gain=g), [scale]).twin for g in (_SMALL_G, drift.Settings().gain))
    return Evidence(
        only(true=sharp.top_weight[found.at] > _SHARP, false=sharp.top_weight[found.at] <= _SHARP),
        {
            "top": written(sharp.top_weight[found.at], 9),
            "sharp": _percent(sharp.entropy_fraction[found.at]),
            "usual": _percent(usual.entropy_fraction[0]),
            "usual_g": written(drift.Settings().gain),
            "flat": _percent(flat.entropy_fraction[0]),
        },
    )


def _collapsed(found: drift.Result) -> Evidence:
    at_eight = plain_at(DRIFT.scale)
    large, open_large = at_eight.max_abs_logit[0], found.plain.max_abs_logit[found.at]
    collapsed, open_ = at_eight.entropy_fraction[0], found.plain.entropy_fraction[found.at]
    held, broken = collapsed < drift.DECIDED, open_ > drift.OPEN and min(large, open_large) > 100
    return Evidence(
        only(true=held and not broken, false=not held, depends=held and broken),
        {
            "large": written(large),
            "collapsed": _percent(collapsed),
            "open_large": written(open_large),
            "open": _percent(open_),
        },
    )


def _confidence(found: drift.Result) -> Evidence:
    """One query is made longer; what its first choice gets, plain and normalised, before and after.

    At weight scale √k a row has the logits that it has at scale 1 if its query alone is k times as long: the page shows
    both there.
    """
    settings = found.settings
    q, k = draw(Recipe(n_keys=settings.n_keys, d_head=settings.d_head, seed=settings.seed))
    row = slice(settings.query, settings.query + 1)
    tops = {}
    for word, variant in (("plain", VARIANTS["none"]), ("twin", VARIANTS[settings.variant])):
        for name, factor in (("before", 1.0), ("after", settings.scale**2)):
            logits = scores(factor * q, k, variant, Parameters(g=settings.gain)).logits[..., row, :]
            tops[f"{word}_{name}"] = attend(logits)[1].top_weight.item()
    told = tops["plain_after"] > tops["plain_before"] + 0.1
    silent = math.isclose(tops["twin_after"], tops["twin_before"], rel_tol=1e-9)
    return Evidence(
        only(true=told and silent, false=not silent),
        {name: _percent(x) for name, x in tops.items()} | {"factor": written(settings.scale**2)},
    )


def _longer_text(found: drift.Result) -> Evidence:
    """The largest weight over few keys and over many: under one bound, and with a g that grows with the text.

    There are as many rows as keys, and of many rows one is sharp by chance: the mean over rows falls all the same.
    """
    alike = [found.settings.but(n_keys=n) for n in (_FEW, _MANY)]
    growing = [one.but(variant="l2", gain=math.log2(one.n_keys * one.n_keys - one.n_keys)) for one in alike]
    fixed, grown = ([float(drift.run(one, [one.scale]).twin.top_weight[0]) for one in two] for two in (alike, growing))
    mean = [_mean_top(one) for one in growing]
    falls, rises = fixed[1] < fixed[0], grown[1] > grown[0]
    return Evidence(
        only(true=falls and not rises, false=not falls, depends=falls and rises and mean[1] < mean[0]),
        {"few": str(_FEW), "many": str(_MANY)}
        | {f"fixed_{name}": written(x, 3) for name, x in zip(("few", "many"), fixed, strict=True)}
        | {f"grown_{name}": written(x, 3) for name, x in zip(("few", "many"), grown, strict=True)}
        | {f"mean_{name}": written(x, 2) for name, x in zip(("few", "many"), mean, strict=True)},
    )


def _mean_top(settings: drift.Settings) -> float:
    """The mean over rows of a row's largest weight."""
    logits = scores_at(drift.state_of(settings), torch.tensor([settings.scale])).logits
    return float(torch.softmax(logits, -1).amax(-1).mean())


def _percent(fraction: float) -> str:
    return written(100 * fraction, 3)


_SMALL_G: Final = 1.0
_COLLAPSED: Final = {"scale": 8.0, "mean": 0.0, "d_head": 64}
STOPS: Final = (
    claim(
        "entropy",
        drift.LAB,
        DRIFT.but(variant="rms"),
        _entropy,
        (32,),
        {
            "measured": Read(column="norm.entropy_fraction", times=100),
            "share": Read(column="norm.entropy_fraction", of="level", times=100),
        },
    ),
    claim(
        "uniform",
        drift.LAB,
        DRIFT.but(gain=100),
        _uniform,
        (10, 14, 15),
        {
            "sharp": Read(column="norm.entropy_fraction", times=100),
            "usual": Read(column="norm.entropy_fraction", turns={"gain": 10.0}, times=100),
            "flat": Read(column="norm.entropy_fraction", turns={"gain": _SMALL_G}, times=100),
        },
    ),
    claim(
        "collapsed",
        drift.LAB,
        DRIFT.but(scale=1, d_head=256, mean=3),
        _collapsed,
        (3, 34),
        {
            "open_large": Read(column=PLAIN),
            "open": Read(column="plain.entropy_fraction", times=100),
            "large": Read(column=PLAIN, turns=_COLLAPSED),
            "collapsed": Read(column="plain.entropy_fraction", turns=_COLLAPSED, times=100),
        },
    ),
    claim(
        "confidence",
        drift.LAB,
        DRIFT.but(scale=2),
        _confidence,
        (13, 29),
        {
            "plain_before": Read(column="plain.row", entry=DRIFT.key, turns=FRESH, times=100),
            "plain_after": Read(column="plain.row", entry=DRIFT.key, times=100),
            "twin_after": Read(column="norm.row", entry=DRIFT.key, times=100),
        },
    ),
    claim(
        "longer_text",
        drift.LAB,
        DRIFT.but(variant="rms"),
        _longer_text,
        (10, 15),
        {
            "fixed_few": Read(column="norm.top_weight"),
            "fixed_many": Read(column="norm.top_weight", turns={"n_keys": _MANY}),
        },
    ),
)
