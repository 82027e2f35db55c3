"""A rotary result in words: `findings(result)`, a headline per position; `explain(result)`."""

import numpy as np

from qkdemo.charts.columns import gap_in_words
from qkdemo.labs.rope.lab import AGREE, Result
from qkdemo.messages import say
from qkdemo.notation import at_most, counted, digits_apart, written


def findings(result: Result) -> list[str]:
    """The headline at every position."""
    first, last = result.norm_rotary, result.rotary_norm
    kind = "agree" if result.agree else "apart" if result.relative else "moved"
    broken = " " + say("rope.broken", **_bounds(result)) if result.broken else ""
    return [
        say(f"rope.finding.{kind}", position=at, norm_rotary=written(a), rotary_norm=written(b)) + broken
        for at, a, b in zip(result.positions.tolist(), first.logit, last.logit, strict=True)
    ]


def explain(result: Result) -> list[str]:
    """Whether the orders agree, which bound holds, and what moving the text does to each order."""
    settings, at = result.settings, result.at
    spread = [np.ptp(side.logit) for side in (result.norm_rotary, result.rotary_norm)]
    numbers = {
        "disagreement": at_most(100 * result.disagreement, 3),
        "position": settings.position,
        "distance": settings.distance,
        "norm_rotary": written(result.norm_rotary.logit[at]),
        "rotary_norm": written(result.rotary_norm.logit[at]),
    }
    why = "layernorm" if settings.norm == "layernorm" else settings.gain_kind
    key = "agree.vectors" if result.happen_to_agree else f"{'agree' if result.agree else 'apart'}.{why}"
    sentences = [say(f"rope.{key}", **numbers)]
    sentences.append(say("rope.scores", **numbers))
    if result.relative:
        sentences.append(say("rope.relative", **numbers))
    else:
        shift = {"spread": written(spread[1], 3), "still": gap_in_words(spread[0], AGREE, 2)}
        sentences.append(say("rope.not_relative", **numbers, **shift))
    wrong = result.bound_pairwise > result.bound_naive * (1 + AGREE)
    unsafe = "bound_wrong" if result.reach is None else "bound_far"
    unsafe = "bound_layernorm" if settings.norm == "layernorm" else unsafe  # what its vectors can reach is less
    state = "bound_broken" if result.broken else unsafe if wrong else "bound_same"
    last = int(result.distances[-1])
    sentences.append(say(f"rope.{state}", last=last, **_bounds(result)))
    if result.reach is not None:
        assert result.reached is not None
        far = "here" if result.reach == 0 else "far" if result.reach > result.distances[-1] else "near"
        far = "layernorm" if settings.norm == "layernorm" else far
        values = {"reach": counted(result.reach), "reached": written(result.reached), "last": last}
        sentences.append(say(f"rope.reach.{far}", **values, **_bounds(result)))
    return sentences


def _bounds(result: Result) -> dict[str, str]:
    """Four digits; more where a bound would read the same as a larger one, or as what breaks it."""
    naive = result.bound_naive
    above = [x for x in (result.max_abs_logit, result.bound_pairwise) if x > naive * (1 + AGREE)]
    digits = digits_apart(naive, above, most=10)
    return {
        "naive": written(result.bound_naive, digits),
        "pairwise": written(result.bound_pairwise, digits),
        "largest": written(result.max_abs_logit, digits),
        "d": str(result.settings.d_head),
    }
