"""A small language: who has what, which of two, and a verb that agrees with a noun far from it.

* `WORDS`: every word it has, in the order of their numbers;
* `STORIES`: what it tells; a letter stands for a word of its kind, and two letters never for the same word;
* `drawn(generator, batch, length)`: texts, as numbers; `decided(texts)`: where only one word may come next;
* `following(words)`: which words may come next in a text that begins so.

A text is one opening and questions about it, or sentences about things that stand near others. Half of those with
questions ask who has what and nothing else. A text has places where only one word is right: the answer, and the verb,
whose noun is not the nearest one (the test of Linzen, Dupoux & Goldberg 2016, "Assessing the Ability of LSTMs to Learn
Syntax-Sensitive Dependencies").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "A": ("Ana", "Eva"),
    "M": ("Ben", "Tom"),
    "xy": ("box", "hat", "cup", "bag"),
    "XY": ("boxes", "hats", "cups", "bags"),
    "cd": ("red", "blue", "green", "white"),
}
OTHERS: Final = ("has", "the", "who", "she", "he", "near", "is", "are", ".", "?")
WORDS: Final = (*(word for words in KINDS.values() for word in words), *OTHERS)


@dataclass(frozen=True)
class Story:
    """An opening, then parts, any of them again and again. Without an opening each part chooses its words anew."""

    opening: str
    parts: tuple[str, ...]


_PARTS: Final = (
    "who has the x ? A .",
    "who has the y ? M .",
    "she has the c x .",
    "he has the d y .",
    "who is she ? A .",
    "who is he ? M .",
)
_OPENINGS: Final = ("A has the c x . M has the d y .", "M has the d y . A has the c x .")
STORIES: Final = (
    *(Story(opening, parts) for opening in _OPENINGS for parts in (_PARTS[:2], _PARTS)),
    Story(
        "",
        (
            "the x near the y is c .",
            "the x near the Y is c .",
            "the X near the y are c .",
            "the X near the Y are c .",
        ),
    ),
)
_KIND_OF: Final = {letter: kind for kind in KINDS for letter in kind}
_NUMBERS: Final = {name: at for at, name in enumerate((*WORDS, *_KIND_OF))}  # of words, then of letters
_NOTHING: Final = len(_NUMBERS)
_SHORTEST: Final = min(len(part.split()) for story in STORIES for part in story.parts)


def drawn(generator: np.random.Generator, batch: int, length: int, n_stories: int = len(STORIES)) -> NDArray[np.int64]:
    """[batch, length] texts of the first stories, each as likely as another, and each of its parts; cut at the end."""
    size = (batch, 1 + -(-length // _SHORTEST))  # an opening, and parts enough
    story = generator.integers(n_stories, size=(batch, 1))
    n_parts = np.array([len(story.parts) for story in STORIES])[story]
    part = generator.integers(np.broadcast_to(n_parts, size)) + 1
    part[:, 0] = 0
    letters = []
    for kind, known in KINDS.items():
        order = generator.permuted(np.broadcast_to(np.arange(len(known)), (*size, len(known))), axis=-1)
        letters.append(_NUMBERS[known[0]] + order[..., : len(kind)])
    chosen = np.concatenate(letters, axis=-1)
    opened = np.array([bool(story.opening) for story in STORIES])[story]
    chosen = np.where(opened[..., None], chosen[:, :1], chosen)
    words = np.broadcast_to(np.arange(len(WORDS)), (*size, len(WORDS)))
    meant = np.concatenate([words, chosen, np.full((*size, 1), _NOTHING)], axis=-1)
    told = np.take_along_axis(meant, _templates()[story, part], axis=-1).reshape(batch, -1)
    kept = np.argsort(told == _NOTHING, axis=-1, kind="stable")[:, :length]
    return np.take_along_axis(told, kept, axis=-1)


def decided(texts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where the next word is an answer, or a verb behind a noun that is not the nearest; shaped like `texts`."""
    near: NDArray[np.bool_] = np.zeros(texts.shape, dtype=bool)
    near[:, 2:] = texts[:, :-2] == _NUMBERS["near"]
    asked: NDArray[np.bool_] = texts == _NUMBERS["?"]
    return near | asked


@cache
def _templates() -> NDArray[np.int64]:
    """[stories, opening and parts, words] numbers of words and letters; after the end, nothing."""
    told = [[template.split() for template in (story.opening, *story.parts)] for story in STORIES]
    longest = max(len(template) for story in told for template in story)
    found = np.full((len(told), max(map(len, told)), longest), _NOTHING)
    for row, templates in enumerate(told):
        for at, template in enumerate(templates):
            found[row, at, : len(template)] = [_NUMBERS[name] for name in template]
    return found


def following(words: Sequence[str]) -> frozenset[str]:
    """The words that may come next; none if no text begins so.

    >>> following("Ana has the red box . Ben has the blue hat . who has the hat ?".split())
    frozenset({'Ben'})
    >>> following("the box near the hats".split())
    frozenset({'is'})
    """
    return frozenset().union(*(_next(words, story, story.opening.split(), {}) for story in STORIES))


def _next(words: Sequence[str], story: Story, template: Sequence[str], meant: Mapping[str, str]) -> frozenset[str]:
    """What may follow `words`, which begin with `template`, where the letters are meant so."""
    meant = dict(meant)
    for name, word in zip(template, words, strict=False):
        if word not in _possible(name, meant):
            return frozenset()
        if name in _KIND_OF:
            meant[name] = word
    if len(words) < len(template):
        return _possible(template[len(words)], meant)
    rest, held = words[len(template) :], meant if story.opening else {}
    return frozenset().union(*(_next(rest, story, part.split(), held) for part in story.parts))


def _possible(name: str, meant: Mapping[str, str]) -> frozenset[str]:
    """The words that a place of a template may hold."""
    if name not in _KIND_OF:
        return frozenset({name})
    kind = _KIND_OF[name]
    taken = {meant[letter] for letter in kind if letter in meant}
    return frozenset({meant[name]}) if name in meant else frozenset(KINDS[kind]) - taken
