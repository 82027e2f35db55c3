"""The arrows in words: `findings(result)`, a headline per scale; `explain(result)`; `percent`, `word_of`."""

import functools
import math

import numpy as np

from qkdemo.labs.arrows.lab import N_KEYS, Result, Side, word_of
from qkdemo.messages import say
from qkdemo.notation import written


def findings(result: Result) -> list[str]:
    """What each scale of the sweep shows."""
    return [_finding(result, at) for at in range(len(result.scales))]


def explain(result: Result) -> list[str]:
    """Which word wins on either side, how many count, and why."""
    at, sentences = result.at, [_finding(result, result.at)]
    for side in (result.plain, result.twin):
        if side.winner(at) is not None:
            values = {"counting": written(side.counting[at], 2), "keys": N_KEYS}
            sentences.append(say(f"arrows.counting.{side.variant}", **values))
    lost = int((~np.isfinite(result.plain.raw[at])).sum())
    if lost:
        sentences.append(say("arrows.lost", lost=lost, format=result.settings.format))
    sentences.append(say("arrows.why", gain=written(result.settings.gain)))
    without = not all(length for length, _ in (result.settings.query, *result.settings.keys))
    return [*sentences, say("arrows.zero")] if without else sentences


def _finding(result: Result, at: int) -> str:
    values = {
        "query": say("arrows.word.query"),
        "plain": _named(result.plain.winners(at)),
        "plain_share": _share(result.plain, at),
        "norm": _named(result.twin.winners(at)),
        "norm_share": _share(result.twin, at),
    }
    kind = "undefined" if not values["plain"] else "alike" if values["plain"] == values["norm"] else "apart"
    if all(len(side.winners(at)) == N_KEYS for side in (result.plain, result.twin)):
        kind = "level"  # as for a query of length 0
    return say(f"arrows.finding.{kind}", **values)


def _named(keys: list[int]) -> str:
    """The words of these keys; the sentence puts the whole into quotes."""
    names = [word_of(key) for key in keys]
    return functools.reduce(lambda head, last: say("arrows.names.both", head=head, last=last), names) if names else ""


def _share(side: Side, at: int) -> str:
    """The largest share at one scale, and that each of several has it."""
    keys = side.winners(at)
    text = percent(side.shares[at, keys[0]]) if keys else ""
    return say("arrows.names.each", share=text) if len(keys) > 1 else text


def percent(share: float) -> str:
    """A share in whole per cent; what is neither nothing nor all is never written as 0 or 100.

    >>> [percent(x) for x in (0.0, 1e-9, 0.666, 0.9999, 1.0)]
    ['0 %', '< 1 %', '67 %', '> 99 %', '100 %']
    """
    if 0 < share < 0.005:
        return "< 1 %"
    return "> 99 %" if 0.995 <= share < 1 else f"{math.floor(100 * share + 0.5)} %"
