"""A drift result in words.

* `findings(result)`: the headline at every scale; `explain(result)`: the current scale, and the numbers behind it;
* `bound_in_words(settings, side)`: a bound, its formula and its conditions."""

import math
from typing import Final

import numpy as np

from qkdemo.labs.drift.lab import Result, Settings
from qkdemo.labs.drift.scale_sweep import Side
from qkdemo.messages import say
from qkdemo.notation import counted, digits_apart, written

DECIDED: Final = 0.1  # entropy fraction below which a mean query gives one key more than half, whatever the keys are
OPEN: Final = 0.5  # and from which on no key gets nine tenths of it
UNMOVED: Final = 0.01  # change of the entropy fraction since scale 1 up to which it is nearly the same
STEADY: Final = 0.05  # and of a weight, relative to the largest one: rounding to 16 bits leaves some per cent


def findings(result: Result) -> list[str]:
    """What each scale of the sweep shows, one sentence or two per scale."""
    return [_finding(result, at) for at in range(len(result.scales))]


def explain(result: Result) -> list[str]:
    """What the current scale shows, then the numbers behind it; the text equivalent of the charts."""
    at, settings = result.at, result.settings
    sentences = [_finding(result, at)]
    for side in result.sides:
        sentences += _side_in_words(settings, side, at)
    if settings.causal:
        sentences.append(say("drift.one_key"))
    return sentences


def _side_in_words(settings: Settings, side: Side, at: int) -> list[str]:
    name, n_rows, sentences = _name(side), settings.n_heads * settings.n_keys, []
    if side.undefined_rows[at] < n_rows:
        sentences.append(
            say(
                "drift.measured",
                side=name,
                logit=written(side.max_abs_logit[at]),
                entropy=written(side.entropy[at]),
                fraction=_fraction_in_words(side.entropy_fraction[at]),
                slope=written(side.softmax_slope[at]),
                top=written(side.top_weight[at]),
            )
        )
    if side.undefined_rows[at]:
        sentences.append(say("drift.undefined", side=name, undefined=side.undefined_rows[at], rows=n_rows))
    if side.zeroed_rows[at]:
        sentences.append(say("drift.zeroed", side=name, zeroed=side.zeroed_rows[at], vectors=2 * n_rows))
    if math.isfinite(side.bound):
        sentences.append(bound_in_words(settings, side))
        if math.isfinite(side.max_abs_logit[at]) and side.max_abs_logit[at] > side.bound:
            above = side.max_abs_logit[at]
            logit = written(above, digits_apart(above, [side.bound]))
            sentences.append(say("drift.rounded_above", format=settings.format, logit=logit))
    if math.isfinite(side.first_raw_loss):
        kind = "lost_before" if side.lost_before else "first_loss"
        scale = written(side.first_raw_loss)
        sentences.append(say(f"drift.{kind}", side=name, format=settings.format, scale=scale))
    return [sentence[0].upper() + sentence[1:] for sentence in sentences]


def _fraction_in_words(fraction: float) -> str:
    if math.isnan(fraction):  # every row that could choose is undefined
        return say("drift.no_fraction")
    return say("drift.fraction", percent=written(100 * fraction, 3))


def bound_in_words(settings: Settings, side: Side) -> str:
    """The bound of a side, its formula and the conditions under which it holds."""
    return say(f"bound.{side.variant}", bound=written(side.bound), d=settings.d_head, heads=settings.n_heads)


def _finding(result: Result, at: int) -> str:
    settings = result.settings
    scale = written(result.scales[at])
    plain = say(f"drift.plain.{_state(result.plain, at)}", scale=scale, **_numbers(settings, result.plain, at))
    if len(result.sides) == 1:
        return plain
    twin = result.twin
    values = _numbers(settings, twin, at) | {"variant": _name(twin), "bound": written(twin.bound)}
    return f"{plain} {say(f'drift.twin.{_relation(result, at)}', **values)}"


def _numbers(settings: Settings, side: Side, at: int) -> dict[str, object]:
    """What a headline counts and measures on one side."""
    n_rows, n_keys = settings.n_heads * settings.n_keys, settings.n_keys
    n_scores = settings.n_heads * (n_keys * (n_keys + 1) // 2 if settings.causal else n_keys**2)
    return {
        "format": settings.format,
        "percent": written(100 * side.entropy_fraction[at], 3),
        "over": say("drift.over_heads" if settings.n_heads > 1 else "drift.over_queries", heads=settings.n_heads),
        "lost": counted(round(side.raw_lost[at] * n_scores)),
        "scores": counted(n_scores),
        "undefined": counted(int(side.undefined_rows[at])),
        "rows": counted(n_rows),
        "zeroed": counted(int(side.zeroed_rows[at])),
        "vectors": counted(2 * n_rows),
    }


def _state(side: Side, at: int) -> str:
    """undefined, zeroed, decided, narrowing or open: how far a side has gone at one scale."""
    if side.undefined_rows[at]:
        return "undefined"
    if side.zeroed_rows[at]:
        return "zeroed"
    fraction = side.entropy_fraction[at]
    return "decided" if fraction < DECIDED else "narrowing" if fraction < OPEN else "open"


def _relation(result: Result, at: int) -> str:
    """How the twin stands beside plain attention at one scale."""
    state, plain = _state(result.twin, at), _state(result.plain, at)
    if state in ("open", "narrowing") and plain in ("decided", "undefined"):
        if state == "narrowing":
            return "holding"
        at_one = int(np.argmin(np.abs(np.log(result.scales))))
        if at == at_one or result.scales[at_one] != 1:
            return "still_open"
        moved = abs(result.twin.entropy_fraction[at] - result.twin.entropy_fraction[at_one])
        now, fresh = (result.twin.weights[one] for one in (at, at_one))
        steady = np.abs(now - fresh).max() <= STEADY * fresh.max()
        return "unmoved" if moved < UNMOVED and steady else "still_open"
    return "also_" + state if state == plain else state


def _name(side: Side) -> str:
    return say(f"variant.{side.variant}.name")
