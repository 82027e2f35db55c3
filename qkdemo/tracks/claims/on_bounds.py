"""Claims about how large a logit can get."""

import math
from typing import Final

import torch

from qkdemo.attention.variants import VariantWord
from qkdemo.labs import drift
from qkdemo.labs.drift.scale_sweep import Side
from qkdemo.labs.drift.state import scores_at
from qkdemo.notation import at_most, below, written
from qkdemo.tracks.claims.verdict import claim
from qkdemo.tracks.stop import Evidence, Read, only

_SAME: Final = 1e-6  # weights are kept in float32


def _root_width(found: drift.Result) -> Evidence:
    fresh, grown = plain_at(1), found.plain
    wide = drift.run(DRIFT.but(scale=1, d_head=256), [1.0]).plain.max_abs_logit[0]
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
            "moved": at_most((after - plain).abs().max().item(), 2),
            "off": at_most(off_after, 3),
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


def plain_at(scale: float) -> Side:
    """Plain attention at one weight scale, all else as the lab starts."""
    return drift.run(DRIFT, [scale]).plain


DRIFT: Final = drift.Settings()
_QK_NORMS: Final[tuple[VariantWord, ...]] = ("l2", "rms", "layernorm", "full_width")
PLAIN, TWIN = "plain.max_abs_logit", "norm.max_abs_logit"
FRESH: Final = {"scale": 1.0}
STOPS: Final = (
    claim(
        "root_width",
        drift.LAB,
        DRIFT.but(scale=400),
        _root_width,
        (16,),
        {
            "fresh": Read(column=PLAIN, turns=FRESH),
            "grown": Read(column=PLAIN),
            "wide": Read(column=PLAIN, turns=FRESH | {"d_head": 256}),
        },
    ),
    claim(
        "gained_bound",
        drift.LAB,
        DRIFT.but(variant="rms", gamma=2),
        _gained_bound,
        (11,),
        {"gained": Read(column=TWIN), "bound": Read(column="bound"), "unit": Read(column=TWIN, turns={"gamma": 1.0})},
    ),
    claim(
        "softcap_place",
        drift.LAB,
        DRIFT.but(variant="softcap"),
        _softcap_place,
        (19,),
        {"largest": Read(column=PLAIN), "capped": Read(column=TWIN)},
    ),
    claim(
        "scale_free",
        drift.LAB,
        DRIFT.but(scale=400),
        _scale_free,
        (2, 13),
        {
            "after": Read(column=TWIN),
            "plain_before": Read(column=PLAIN, turns=FRESH),
            "plain_after": Read(column=PLAIN),
        },
    ),
    claim(
        "always_bounded",
        drift.LAB,
        DRIFT.but(scale=1000, alignment=0.99),
        _always_bounded,
        (10, 11, 12),
        {
            "l2": Read(column=TWIN),
            "l2_bound": Read(column="bound"),
            "rms": Read(column=TWIN, turns={"variant": "rms"}),
            "rms_bound": Read(column="bound", turns={"variant": "rms"}),
        },
    ),
)
