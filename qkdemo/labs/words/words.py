"""A sentence's result in words.

* `findings(result)`: a headline per scale; `explain(result)`: all that is said; `verdict(result)`: who is right;
* `learnt()`: what both models have learned.
"""

from typing import Final

import numpy as np

from qkdemo.labs.words.lab import ONE_HOT, Result
from qkdemo.labs.words.network import SideWord, accuracy
from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.training.sentences import WORDS

_LEARNT: Final = 0.75  # of the answers; a guess between two is right half the time
_NAMED: Final = 4  # words that a sentence names one by one


def findings(result: Result) -> list[str]:
    """What each scale of the sweep shows: how the two models go on."""
    return [_finding(result, at) for at in range(len(result.scales))]


def explain(result: Result) -> list[str]:
    """How both go on, whether that is right, where the word looks, and where plain attention ends."""
    sentences = [_finding(result, result.at), verdict(result), *(_row(result, side) for side in result.sides)]
    sentences += [_end(result, side) for side in result.sides]
    return [*sentences, learnt()]


def learnt() -> str:
    """What both models have learned, read off texts drawn for this alone."""
    shares = {f"{side}_{place}": written(100 * x, 3) for side, of in accuracy().items() for place, x in of.items()}
    guessed = all(of["owner"] < _LEARNT for of in accuracy().values())
    return " ".join([say("words.accuracy", **shares), *([say("words.guessed")] if guessed else [])])


def verdict(result: Result) -> str:
    """Whether both sides go on with a word that may follow; and where nothing may, that nothing is right."""
    if not result.may_follow:
        return say("words.verdict.no_story")
    said = {side: one.next_word(result.at) for side, one in result.sides.items()}
    right = [side for side, word in said.items() if word is not None and WORDS[word] in result.may_follow]
    kind = {2: "both", 0: "neither"}.get(len(right)) or right[0]
    lost = "_alone" if kind in said and None in said.values() else ""  # the other one is not wrong: it has no answer
    return say(f"words.verdict.{kind}{lost}", words=listed(sorted(result.may_follow, key=WORDS.index)))


def listed(words: list[str]) -> str:
    """The words in quotes; of many, the first ones."""
    shown = [say("words.quoted", word=word) for word in words[:_NAMED]]
    if len(words) > _NAMED:
        return say("words.more", words=", ".join(shown), count=len(words) - _NAMED)
    return shown[0] if len(shown) == 1 else say("words.or", head=", ".join(shown[:-1]), last=shown[-1])


def _finding(result: Result, at: int) -> str:
    told: dict[str, str] = {"scale": written(result.scales[at])}
    states = []
    for side, one in result.sides.items():
        word = one.next_word(at)
        states.append(word)
        if word is not None:
            told |= {side: WORDS[word], f"{side}_share": written(100 * one.shares[at, word], 3)}
    plain, norm = states
    if plain is None and norm is None:
        return say("words.finding.neither", **told)
    if plain is None or norm is None:
        return say(f"words.finding.{'plain' if plain is None else 'norm'}_undefined", **told)
    return say(f"words.finding.{'alike' if plain == norm else 'apart'}", **told)


def _row(result: Result, side: SideWord) -> str:
    """Where the asking word looks most."""
    settings, row = result.settings, result.sides[side].row(result.settings.query)[result.at]
    values = {"asking": settings.words[settings.query], "layer": settings.of_layer, "head": settings.of_head}
    if np.isnan(row).any():
        return say(f"words.row.{side}_undefined", **values)
    key = int(row.argmax())
    counting = written(result.sides[side].counting(settings.query)[result.at], 2)
    looked = {"word": settings.words[key], "place": key + 1, "share": written(100 * row[key], 3)}
    return say(f"words.row.{side}", **values, **looked, counting=counting)


def _end(result: Result, side: SideWord) -> str:
    """From which scale on the row is one-hot, and undefined."""
    one_hot, lost = (result.first_scale(side, undefined=undefined) for undefined in (False, True))
    kind = ("never" if one_hot is None else "one_hot") + ("" if lost is None else "_lost")
    values = {name: written(x) for name, x in (("one_hot", one_hot), ("lost", lost)) if x is not None}
    return say(f"words.end.{side}_{kind}", least=written(100 * ONE_HOT), format=result.settings.format, **values)
