"""Claims about how large a logit, and how sharp attention, can get."""

import math
from typing import Final

import torch

from qkdemo.attention.bounds import largest_weight, least_entropy
from qkdemo.attention.inputs import Recipe, draw
from qkdemo.attention.measures import attend
from qkdemo.attention.variants import VARIANTS, Parameters, VariantWord, scores
from qkdemo.labs import drift
from qkdemo.labs.drift.scale_sweep import Side, scores_at
from qkdemo.notation import below, written
from qkdemo.tracks.claims.verdict import claim
from qkdemo.tracks.stop import Evidence, Read, only

_LONG: Final = 131072  # keys: a context that models are sold with
_SAME: Final = 1e-6  # weights are kept in float32
_SHARP: Final = 0.99  # of a row's weight for one key
_FEW, _MANY = 16, 256  # keys


def _root_width(found: drift.Result) -> Evidence:
    fresh, grown = _plain(1), found.plain
    wide = drift.run(_DRIFT.but(scale=1, d_head=256), [1.0]).plain.max_abs_logit[0]
    start, end = fresh.max_abs_logit[0], grown.max_abs_logit[found.at]
    ratio = end / start
    unbounded = grown.bound == math.inf and math.isclose(ratio, found.settings.scale**2, rel_tol=1e-9)
    return Evidence(
        only(true=grown.bound < math.inf, false=unbounded and wide < 2 * start),
        {"fresh": written(start), "grown": written(end), "ratio": written(ratio), "wide": written(wide)},
    )


def _gained_bound(found: drift.Result) -> Evidence:
    root = math.sqrt(found.settings.d_head)
    unit = drift.run(found.settings.but(gamma=1), [found.settings.scale]).twin
    with_unit, with_gain = unit.max_abs_logit[0], found.twin.max_abs_logit[found.at]
    held, broken = unit.bound <= root and with_unit <= root, with_gain > root
    return Evidence(
        only(true=held and not broken, false=not held, depends=held and broken),
        {
            "root": written(root),
            "unit": written(with_unit),
            "gained": written(with_gain),
            "bound": written(found.twin.bound),
        },
    )


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
            "least": written(least),
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
    at_eight = _plain(_DRIFT.scale)
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


def _softcap_place(found: drift.Result) -> Evidence:
    """The weights of the twin, against a cap before the softmax and one after it."""
    settings = found.settings
    cap = settings.softcap
    logits = scores_at(drift.state_of(settings.but(variant="none")), torch.tensor([settings.scale])).logits[0, 0]
    before = torch.softmax(cap * torch.tanh(logits / cap), -1)
    plain = torch.softmax(logits, -1)
    after = cap * torch.tanh(plain / cap)
    seen = torch.tensor(found.twin.weights[found.at], dtype=torch.float64)
    off_before, off_after = ((seen - made).abs().max().item() for made in (before, after))
    return Evidence(
        only(true=off_after < _SAME, false=off_before < _SAME < off_after),
        {
            "moved": written((after - plain).abs().max().item(), 2),
            "off": written(off_after, 3),
            "largest": written(found.plain.max_abs_logit[found.at]),
            "capped": written(found.twin.max_abs_logit[found.at]),
        },
    )


def _scale_free(found: drift.Result) -> Evidence:
    """The largest logit and every weight, before the weights of q and k grew and after."""
    before, at = drift.run(found.settings.but(scale=1), [1.0]), found.at
    moved = float(abs(found.twin.weights[at] - before.twin.weights[0]).max())
    start, end = float(before.twin.max_abs_logit[0]), float(found.twin.max_abs_logit[at])
    plain_start, plain_end = float(before.plain.max_abs_logit[0]), float(found.plain.max_abs_logit[at])
    still = math.isclose(start, end, rel_tol=1e-9) and moved < _SAME
    return Evidence(
        only(true=still and plain_end > plain_start, false=not still),
        {
            "after": written(end),
            "moved": below(moved, _SAME),
            "plain_before": written(plain_start),
            "plain_after": written(plain_end),
        },
    )


def _longer_text(found: drift.Result) -> Evidence:
    """The largest weight over few keys and over many: under one bound, and with a g that grows with the text."""
    scale = found.settings.scale

    def top(n: int, **changes: object) -> float:
        return float(drift.run(found.settings.but(n_keys=n, **changes), [scale]).twin.top_weight[0])

    fixed = [top(n) for n in (_FEW, _MANY)]
    grown = [top(n, variant="l2", gain=math.log2(n * n - n)) for n in (_FEW, _MANY)]
    falls, rises = fixed[1] < fixed[0], grown[1] > grown[0]
    return Evidence(
        only(true=falls and not rises, false=not falls, depends=falls and rises),
        {"few": str(_FEW), "many": str(_MANY)}
        | {f"fixed_{name}": written(x, 3) for name, x in zip(("few", "many"), fixed, strict=True)}
        | {f"grown_{name}": written(x, 3) for name, x in zip(("few", "many"), grown, strict=True)},
    )


def _always_bounded(found: drift.Result) -> Evidence:
    """The largest logit of q and k that point nearly the same way, variant by variant, beside the bound."""
    settings, heads = found.settings, 4
    numbers, held = {"g": written(settings.gain), "heads": str(heads)}, []
    for word in _QK_NORMS:
        n_heads = heads if word == "full_width" else 1
        side = drift.run(settings.but(variant=word, n_heads=n_heads), [settings.scale]).twin
        reached = float(side.max_abs_logit[0])
        held.append(math.isfinite(side.bound) and reached <= side.bound)
        numbers |= {word: written(reached), f"{word}_bound": written(side.bound)}
    return Evidence(only(true=all(held), false=not all(held)), numbers)


def _plain(scale: float) -> Side:
    return drift.run(_DRIFT, [scale]).plain


def _percent(fraction: float) -> str:
    return written(100 * fraction, 3)


_DRIFT: Final = drift.Settings()
_SMALL_G: Final = 1.0
_QK_NORMS: Final[tuple[VariantWord, ...]] = ("l2", "rms", "layernorm", "full_width")
_PLAIN, _TWIN = "plain.max_abs_logit", "norm.max_abs_logit"
_FRESH: Final = {"scale": 1.0}
_COLLAPSED: Final = {"scale": 8.0, "mean": 0.0, "d_head": 64}
STOPS: Final = (
    claim(
        "root_width",
        drift.LAB,
        _DRIFT.but(scale=400),
        _root_width,
        (16,),
        {
            "fresh": Read(column=_PLAIN, turns=_FRESH),
            "grown": Read(column=_PLAIN),
            "wide": Read(column=_PLAIN, turns=_FRESH | {"d_head": 256}),
        },
    ),
    claim(
        "gained_bound",
        drift.LAB,
        _DRIFT.but(variant="rms", gamma=2),
        _gained_bound,
        (11,),
        {"gained": Read(column=_TWIN), "bound": Read(column="bound"), "unit": Read(column=_TWIN, turns={"gamma": 1.0})},
    ),
    claim(
        "entropy",
        drift.LAB,
        _DRIFT.but(variant="rms"),
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
        _DRIFT.but(gain=100),
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
        _DRIFT.but(scale=1, d_head=256, mean=3),
        _collapsed,
        (3, 34),
        {
            "open_large": Read(column=_PLAIN),
            "open": Read(column="plain.entropy_fraction", times=100),
            "large": Read(column=_PLAIN, turns=_COLLAPSED),
            "collapsed": Read(column="plain.entropy_fraction", turns=_COLLAPSED, times=100),
        },
    ),
    claim(
        "confidence",
        drift.LAB,
        _DRIFT.but(scale=2),
        _confidence,
        (13, 29),
        {
            "plain_before": Read(column="plain.row", entry=_DRIFT.key, turns=_FRESH, times=100),
            "plain_after": Read(column="plain.row", entry=_DRIFT.key, times=100),
            "twin_after": Read(column="norm.row", entry=_DRIFT.key, times=100),
        },
    ),
    claim(
        "softcap_place",
        drift.LAB,
        _DRIFT.but(variant="softcap"),
        _softcap_place,
        (19,),
        {"largest": Read(column=_PLAIN), "capped": Read(column=_TWIN)},
    ),
    claim(
        "scale_free",
        drift.LAB,
        _DRIFT.but(scale=400),
        _scale_free,
        (2, 13),
        {
            "after": Read(column=_TWIN),
            "plain_before": Read(column=_PLAIN, turns=_FRESH),
            "plain_after": Read(column=_PLAIN),
        },
    ),
    claim(
        "longer_text",
        drift.LAB,
        _DRIFT.but(variant="rms"),
        _longer_text,
        (10, 15),
        {
            "fixed_few": Read(column="norm.top_weight"),
            "fixed_many": Read(column="norm.top_weight", turns={"n_keys": _MANY}),
        },
    ),
    claim(
        "always_bounded",
        drift.LAB,
        _DRIFT.but(scale=1000, alignment=0.99),
        _always_bounded,
        (10, 11, 12),
        {
            "l2": Read(column=_TWIN),
            "l2_bound": Read(column="bound"),
            "rms": Read(column=_TWIN, turns={"variant": "rms"}),
            "rms_bound": Read(column="bound", turns={"variant": "rms"}),
        },
    ),
)
