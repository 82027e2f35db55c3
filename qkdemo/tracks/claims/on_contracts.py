"""Claims about what may be exchanged for what, what it costs, and whether it helps."""

from dataclasses import replace
from typing import Final

import torch

from qkdemo.attention.inputs import Recipe, draw
from qkdemo.attention.norms import NORMS, normalise
from qkdemo.labs import cache, cost, epsilon, mla, placement, rope
from qkdemo.labs import training as twins
from qkdemo.messages import say
from qkdemo.notation import at_least, at_most, below, written
from qkdemo.runs.plan import outcomes
from qkdemo.tracks.claims.verdict import claim
from qkdemo.tracks.stop import Evidence, Read, only

_ROUNDING: Final = 1e-12
_AGREE: Final = 1e-14  # under it a relative difference in float64 is rounding, and its digits the machine's
_LITTLE: Final = 0.01  # of the layer's operations
_MUCH: Final = 0.1  # of its memory traffic
_HUNDRED: Final = 100  # times the operations
_FLOAT32: Final = 1e-6  # of an attention weight: rounding


def _commute(found: rope.Result) -> Evidence:
    settings = found.settings
    alike = [rope.run(settings.but(gain_kind=kind)) for kind in ("none", "scalar", "tied")]
    centred = rope.run(settings.but(gain_kind="none", norm="layernorm"))
    held, broken = all(one.agree for one in alike), not found.agree and not centred.agree
    return Evidence(
        only(true=held and not broken, false=not held, depends=held and broken),
        {
            "alike": below(max(one.disagreement for one in alike), _AGREE),
            "apart": at_most(100 * found.disagreement, 3),
            "norm_first": written(found.norm_rotary.logit[found.at]),
            "rotary_first": written(found.rotary_norm.logit[found.at]),
            "centred": at_most(100 * centred.disagreement, 3),
        },
    )


def _before_projection(found: placement.Result) -> Evidence:
    uneven = placement.run(found.settings.but(head_spread=4))
    return Evidence(
        only(true=found.relative_score_error < _ROUNDING, false=found.relative_score_error > _LITTLE),
        {
            "error": _percent(found.relative_score_error),
            "weight": written(found.largest_weight_difference, 3),
            "uneven": _percent(uneven.relative_score_error),
            "spread": "4",
        },
    )


def _layernorm(found: placement.Result) -> Evidence:
    x = draw(Recipe())[0]
    centred = x - x.mean(-1, keepdim=True)
    one, other = (normalise(centred, NORMS[word]) for word in ("rms", "layernorm"))
    gap = torch.linalg.vector_norm(one - other) / torch.linalg.vector_norm(one)
    drawn = placement.run(found.settings.but(mean=0)).relative_score_error
    held, broken = gap < _ROUNDING, min(drawn, found.relative_score_error) > _LITTLE
    return Evidence(
        only(true=held and not broken, false=not held, depends=held and broken),
        {"same": below(float(gap), _AGREE), "drawn": _percent(drawn), "shifted": _percent(found.relative_score_error)},
    )


def _epsilon(found: epsilon.Result) -> Evidence:
    usual = epsilon.run(found.settings.but(size=1))
    small, long = found.share[found.rule, found.at], usual.share[usual.rule, usual.at]
    held, broken = long > epsilon.NORMALISED, small < epsilon.NORMALISED
    return Evidence(
        only(true=held and not broken, false=not held, depends=held and broken),
        {
            "small": _percent(small),
            "usual": written(100 * long, 6),
            "threshold": written(found.threshold),
            "steepest": written(found.steepest),
            "float16": written(found.epsilon_stored["float16"], 2),
        },
    )


def _free(found: cost.Result) -> Evidence:
    parts = {part.part: part for part in found.parts}
    share = parts["rms"].share
    traffic = parts["rms"].bytes_moved / (parts["projections"].bytes_moved + parts["attention"].bytes_moved)
    return Evidence(
        only(true=share < _LITTLE > traffic, false=share > _LITTLE, depends=share < _LITTLE and traffic > _MUCH),
        {"share": _percent(share), "traffic": _percent(traffic), "n": str(found.settings.n_keys)},
    )


def _latent(found: mla.Result) -> Evidence:
    costs = {item.reading: item for item in found.costs}
    extra = costs["absorbed"].cache_bytes / costs["without_norm"].cache_bytes - 1
    absorbed = costs["absorbed"].flops
    cheap = absorbed / costs["without_norm"].flops - 1 < _LITTLE and costs["naive"].flops > _HUNDRED * absorbed
    exact = found.relative_difference < _ROUNDING < found.without_norm_difference
    return Evidence(
        only(true=exact and extra > 0 and cheap, false=not exact),
        {
            "difference": below(found.relative_difference, _AGREE),
            "left_out": _percent(found.without_norm_difference),
            "extra": _percent(extra),
            "with_norm": mla.size_text(costs["absorbed"].cache_bytes),
            "without_norm": mla.size_text(costs["without_norm"].cache_bytes),
        },
    )


def _raw_cache(found: cache.Result) -> Evidence:
    """What each way of caching does to an attention weight, beside a fresh pass."""
    ways = {way: cache.run(found.settings.but(way=way)) for way in ("raw", "halfway", "finished", "normed_again")}
    again = ways.pop("normed_again")
    right = all(one.label in ("exact", "rounding") for one in ways.values())
    apart = max(float(one.weight_error.max()) for one in ways.values())
    return Evidence(
        only(true=right and again.label == "wrong", false=found.label == "wrong"),
        {"raw": below(apart, _FLOAT32), "again": written(float(again.weight_error.max()), 2)},
    )


def _twice(found: cache.Result) -> Evidence:
    """At step 1 the first key has been normalised twice, the second key once; later ones are normalised more often."""
    unit = cache.run(found.settings.but(gains="unit"))
    second, worst = float(found.weight_error[1]), float(found.weight_error.max())
    nothing = float(unit.weight_error.max())
    held, broken = nothing < _FLOAT32, second > _LITTLE
    return Evidence(
        only(true=held and not broken, false=not held, depends=held and broken),
        {"unit": below(nothing, _FLOAT32), "step": "1", "second": written(second, 2), "worst": written(worst, 2)},
    )


def _fresh_test(found: placement.Result) -> Evidence:
    """Which known mistakes a block with unit gains shows, and which hide."""
    every = placement.mistakes_of(found.settings.but(gains="untied"))
    hidden = [one.mistake for one in every if one.with_unit_gains < _ROUNDING]
    seen = [one.with_unit_gains for one in every if one.with_unit_gains >= _ROUNDING]
    trained = min(one.relative_score_error for one in every)
    differ = placement.run(found.settings.but(gains="untied")).relative_score_error
    return Evidence(
        only(true=not hidden, false=not seen, depends=bool(hidden) and bool(seen) and trained > _LITTLE),
        {
            "hidden": str(len(hidden)),
            "seen": str(len(seen)),
            "all": str(len(every)),
            "names": ", ".join(say(f"mistake_name.{name}") for name in hidden),
            "least": at_least(100 * min(seen), 3),
            "trained": at_least(100 * trained, 3),
            "skipped": _percent(found.relative_score_error),
            "differ": _percent(differ),
        },
    )


def _rounding(found: placement.Result) -> Evidence:
    """One order of rounding beside another: in float64 one function, in bfloat16 two results."""
    exact = placement.run(found.settings.but(format="float64")).relative_score_error
    least = min(one.relative_score_error for one in placement.mistakes_of(found.settings))
    apart = found.relative_score_error
    return Evidence(
        only(true=exact < _ROUNDING and apart > 1e-4, false=apart <= 1e-4),
        {"exact": below(exact, _ROUNDING), "error": _percent(apart), "least": at_least(100 * least, 3)},
    )


def _always_helps(found: twins.Result) -> Evidence:
    plain, twin = outcomes(found.plan, found.curves)[:2]
    both = plain.outcome == twin.outcome == "solved"
    return Evidence(
        only(true=plain.outcome != "solved" and twin.outcome == "solved", false=both),
        {
            "ratio": written(plain.max_abs_logit / twin.max_abs_logit, 2),
            "plain": written(plain.final_loss, 2),
            "twin": written(twin.final_loss, 2),
        },
    )


def _percent(fraction: float) -> str:
    return written(100 * fraction, 3)


_PORT: Final = placement.PRESETS
_ERROR: Final = Read(column="pair.logits", times=100)
STOPS: Final = (
    claim(
        "commute",
        rope.LAB,
        rope.Settings(),
        _commute,
        (23,),
        {"norm_first": Read(column="left.logit"), "rotary_first": Read(column="right.logit")},
    ),
    claim(
        "before_projection",
        placement.LAB,
        _PORT["before_projection"],
        _before_projection,
        (18, 22),
        {"error": _ERROR, "weight": Read(column="pair.weight"), "uneven": replace(_ERROR, turns={"head_spread": 4.0})},
    ),
    claim(
        "layernorm",
        placement.LAB,
        _PORT["layernorm_for_rms"].but(mean=3),
        _layernorm,
        (12,),
        {"shifted": _ERROR, "drawn": replace(_ERROR, turns={"mean": 0.0})},
    ),
    claim(
        "epsilon",
        epsilon.LAB,
        epsilon.Settings(),
        _epsilon,
        (24,),
        {
            "small": Read(column="inside.share", times=100),
            "usual": Read(column="inside.share", turns={"size": 1.0}, times=100),
        },
    ),
    claim("free", cost.LAB, cost.Settings(), _free, (30,), {"share": Read(column="share.rms")}),
    claim(
        "latent",
        mla.LAB,
        mla.Settings(),
        _latent,
        (27,),
        {
            "with_norm": Read(column="cache.text.absorbed"),
            "without_norm": Read(column="cache.text.without_norm"),
        },
    ),
    claim(
        "raw_cache",
        cache.LAB,
        cache.Settings(way="raw"),
        _raw_cache,
        (26,),
        {"again": Read(column="error.normed_again", of="largest", turns={"way": "normed_again"})},
    ),
    claim(
        "twice",
        cache.LAB,
        cache.Settings(),
        _twice,
        (26,),
        {
            "second": Read(column="error.normed_again", turns={"step": 1}),
            "worst": Read(column="error.normed_again", of="largest"),
        },
    ),
    claim(
        "fresh_test",
        placement.LAB,
        _PORT["norm_skipped"].but(gains="unit"),
        _fresh_test,
        (28,),
        {"skipped": _ERROR, "differ": replace(_ERROR, turns={"gains": "untied"})},
    ),
    claim("rounding", placement.LAB, _PORT["cast_order"], _rounding, (25,), {"error": _ERROR}),
    claim(
        "always_helps",
        twins.LAB,
        twins.PRESETS["gentle"],
        _always_helps,
        (8, 35),
        {"plain": Read(column="plain.loss", of="last"), "twin": Read(column="norm.loss", of="last")},
    ),
)
