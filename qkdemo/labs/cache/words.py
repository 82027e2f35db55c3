"""A cache result in words: `findings(result)`, a headline per step; `explain(result)`, the shown step and its label."""

from typing import Final

from qkdemo.attention.norms import SIZED
from qkdemo.charts.columns import gap_in_words
from qkdemo.labs.cache.lab import Result, run
from qkdemo.messages import say

_MISTAKES: Final = ("normed_again", "other_heads_gain", "one_late")


def findings(result: Result) -> list[str]:
    """What each step shows, one sentence per step."""
    return [_finding(result, step) for step in range(result.settings.n_keys)]


def _finding(result: Result, step: int) -> str:
    settings = result.settings
    values = {
        "step": step,
        "way": say(f"choice.way.{settings.way}"),
        "weight": gap_in_words(result.weight_error[step], result.noise),
        "format": settings.format,
        "stored": say(f"choice.quantised.{settings.quantised}"),
    }
    if step == 0:
        return say("cache.undecided" if settings.n_keys == 1 else "cache.finding.one_key", **values)
    if result.label != "wrong":
        return say(f"cache.finding.{result.label}", **values)
    if result.from_step is not None and step < result.from_step:
        return say("cache.finding.not_yet", **values)
    if result.weight_error[step] == 0:
        return say("cache.finding.unseen", from_step=result.from_step, **values)
    mistaken = _mistaken(result)
    because = say(f"cache.because.{settings.way if mistaken else 'quantised'}", **values)
    if mistaken and settings.quantised != "none":
        because = say("cache.because.both", mistake=because, quantised=say("cache.because.quantised", **values))
    return say(f"cache.finding.{'wrong' if mistaken else 'inexact'}", because=because, **values)


def _mistaken(result: Result) -> bool:
    """Whether the way of caching is a mistake here: not where one head, unit gains or a first step leave none."""
    settings = result.settings
    if settings.way not in _MISTAKES or settings.quantised == "none":
        return settings.way in _MISTAKES
    alone = run(settings.but(quantised="none"))
    return alone.label == "wrong" or (alone.label == "undecided" and bool(alone.key_error[-1] > alone.noise))


def explain(result: Result) -> list[str]:
    """What the shown step says; the label, by how much and from which step; what hides a mistake, what it costs."""
    settings = result.settings
    values = {
        "way": say(f"choice.way.{settings.way}"),
        "format": settings.format,
        "weight": gap_in_words(result.weight_error.max(), result.noise),
        "logit": gap_in_words(result.logit_error[-1], result.noise),
        "off": gap_in_words(result.key_error[-1], result.noise),
        "step": "–" if result.from_step is None else result.from_step,
        "stored": say(f"choice.quantised.{settings.quantised}"),
    }
    sentences = [_finding(result, result.shown[0])]
    if result.label != "undecided":
        inexact = result.label == "wrong" and not _mistaken(result)
        hidden = result.label == "wrong" and not result.weight_error.any()
        word = "hidden" if hidden else "inexact" if inexact else result.label
        sentences += [say(f"cache.{word}", **values), say("cache.first_step")]
    if settings.quantised != "none":
        early = settings.way == "raw" or (settings.way == "halfway" and settings.order == "rotary_norm")
        before = say("cache.before" if early else "cache.after")
        stored = say(f"choice.quantised.{settings.quantised}")
        quantised = "quantised_too" if _mistaken(result) else "quantised"
        sentences.append(say(f"cache.{quantised}", way=values["way"], stored=stored, when=before, off=values["off"]))
    if settings.way == "other_heads_gain" and settings.n_heads == 1:
        sentences.append(say("cache.one_head"))
    elif settings.way == "other_heads_gain" and settings.gains == "unit":
        sentences.append(say("cache.gains_alike"))
    elif settings.way == "normed_again" and settings.gains == "unit" and settings.norm in SIZED:
        sentences.append(say("cache.unit_gains"))
    return [*sentences, say("cache.size", bytes=result.bytes_per_token)]
