"""What the small models learn.

* `TASKS`: word → `Task`;
* `batch_of(task, n_keys, batch, seed, step)`: the batch of one step, a pure function of its arguments;
* `text_digest()`, `words_digest()`: what the texts of two tasks are made of, in short.

Every step draws a fresh batch, from a stock that is large for the copies, induction and recall and limited for sums,
sentences and the text; none of it is kept apart for a test.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.training import sentences

TaskWord: TypeAlias = Literal["copy", "noisy_copy", "induction", "recall", "addition", "text", "words"]
Tokens: TypeAlias = NDArray[np.int64]
Draw: TypeAlias = Callable[[np.random.Generator, int, int], tuple[Tokens, NDArray[np.bool_]]]

_ALPHABET: Final = 16
_MODULUS: Final = 23
_NOISE: Final = 0.1  # share of the second copy that is replaced by another symbol
OTHER_WORDS: Final = 0.02  # share of the words that count where several may come next
LESSON_STEPS: Final = 1000  # of the words
_DATA: Final = 1  # the stream of random numbers that batches are drawn from; 0 draws the first weights


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences, what follows each of their positions, and which of those guesses count."""

    tokens: Tokens  # [batch, n_keys]
    targets: Tokens  # [batch, n_keys]
    counted: NDArray[np.bool_]  # [batch, n_keys]


@dataclass(frozen=True)
class Task:
    """A task. `chance` and `floor` are losses in nats: of knowing nothing but the symbols, and the least possible.

    `floor` is None where nobody knows it, and where it depends on the length. `draw(generator, batch, length)` gives
    sequences of `length` symbols and marks the positions whose *next* symbol counts; `length` is one more than the
    model reads.
    """

    word: TaskWord
    symbols: Callable[[], int]
    chance: Callable[[], float]
    floor: float | None
    draw: Draw
    first_counted: Callable[[int], int] = lambda n_keys: 0  # what stands before never counts and needs no output
    lesson: Draw | None = None  # what is drawn instead up to step `lesson_steps`: the same, made easier
    lesson_steps: int = 0


def batch_of(task: Task, n_keys: int, batch: int, seed: int, step: int) -> Batch:
    """The batch of `step`: the same for the same arguments, whatever was drawn before."""
    draw = task.lesson if task.lesson is not None and step <= task.lesson_steps else task.draw
    sequences, counted = draw(np.random.default_rng((seed, _DATA, step)), batch, n_keys + 1)
    return Batch(tokens=sequences[:, :-1], targets=sequences[:, 1:], counted=counted[:, :-1])


def _copy(generator: np.random.Generator, batch: int, length: int) -> tuple[Tokens, NDArray[np.bool_]]:
    """Random symbols, then the same again. The offset is fixed, so that one head that looks at it suffices."""
    half = (length - 1) // 2 + 1
    symbols = generator.integers(_ALPHABET, size=(batch, half))
    return np.concatenate([symbols, symbols], axis=1)[:, :length], _second_half(batch, length, half)


@cache
def _second_half(batch: int, length: int, half: int) -> NDArray[np.bool_]:
    """Every step counts the same positions; read only."""
    return np.broadcast_to(np.arange(length) >= half, (batch, length))


def _noisy_copy(generator: np.random.Generator, batch: int, length: int) -> tuple[Tokens, NDArray[np.bool_]]:
    """A copy in which one symbol in ten of the second half is replaced by another."""
    sequences, counted = _copy(generator, batch, length)
    half = (length - 1) // 2 + 1
    shift = generator.integers(1, _ALPHABET, size=sequences.shape)
    hit = (generator.random(sequences.shape) < _NOISE) & (np.arange(length) >= half)
    return np.where(hit, (sequences + shift) % _ALPHABET, sequences), counted


def _induction(generator: np.random.Generator, batch: int, length: int) -> tuple[Tokens, NDArray[np.bool_]]:
    """Random symbols repeated with a period of its own for each sequence: only the content says where to look.

    Where the repetition begins the period may not be known yet, so the least possible loss is about 0.001 nats; it is
    counted as 0.
    """
    low, high = (length - 1) // 4, (length - 1) // 2
    period = generator.integers(low, high + 1, size=(batch, 1))
    symbols = generator.integers(_ALPHABET, size=(batch, high))
    at = np.arange(length)[None, :]
    return np.take_along_axis(symbols, at % period, axis=1), at >= period


def _recall(generator: np.random.Generator, batch: int, length: int) -> tuple[Tokens, NDArray[np.bool_]]:
    """Keys with their values, then the same keys in another order, each followed by its value."""
    n_pairs = (length - 1) // 4
    keys = generator.permuted(np.tile(np.arange(_ALPHABET), (batch, 1)), axis=1)[:, :n_pairs]
    values = generator.integers(_ALPHABET, 2 * _ALPHABET, size=(batch, n_pairs))
    order = generator.permuted(np.tile(np.arange(n_pairs), (batch, 1)), axis=1)
    order = np.concatenate([order, order[:, :1]], axis=1)  # a pair more, of which `length` may cut the value
    asked = [np.take_along_axis(x, order, axis=1) for x in (keys, values)]
    told = np.stack([keys, values], axis=-1).reshape(batch, -1)
    sequences = np.concatenate([told, np.stack(asked, axis=-1).reshape(batch, -1)], axis=1)[:, :length]
    at = np.arange(length)
    return sequences, np.broadcast_to((at >= 2 * n_pairs) & (at % 2 == 0), (batch, length))


def _addition(generator: np.random.Generator, batch: int, length: int) -> tuple[Tokens, NDArray[np.bool_]]:
    """Sums modulo 23, one after another: a b c with c = a + b; c counts."""
    n_sums = -(-length // 3)
    a, b = generator.integers(_MODULUS, size=(2, batch, n_sums))
    sums = np.stack([a, b, (a + b) % _MODULUS], axis=-1).reshape(batch, -1)
    return sums[:, :length], np.broadcast_to(np.arange(length) % 3 == 1, (batch, length))


def _text(generator: np.random.Generator, batch: int, length: int) -> tuple[Tokens, NDArray[np.bool_]]:
    """Windows of Python's own help topics; the next character counts everywhere."""
    text, _ = _encoded_text()
    start = generator.integers(len(text) - length, size=(batch, 1))
    return text[start + np.arange(length)], np.ones((batch, length), dtype=bool)


def _words(
    generator: np.random.Generator, batch: int, length: int, n_stories: int = len(sentences.STORIES)
) -> tuple[Tokens, NDArray[np.bool_]]:
    """Sentences of a small grammar; what is decided counts, and of the many other words a few.

    Who has what is hard to learn from all stories at once: the first lesson is the first story alone.
    """
    texts = sentences.drawn(generator, batch, length, n_stories)
    counted = sentences.decided(texts) | (generator.random(texts.shape) < OTHER_WORDS)
    counted[:, 0] |= ~counted[:, :-1].any(axis=1)  # of a text in which nothing counts, one word does
    return texts, counted


@cache
def _topics() -> str:
    from pydoc_data.topics import topics  # noqa: PLC0415  half a megabyte that only this task needs

    joined = "\n".join(topics[name] for name in sorted(topics))
    return "".join(character if character.isascii() else "?" for character in joined)


@cache
def _encoded_text() -> tuple[Tokens, int]:
    """The text as symbols, and how many symbols there are."""
    letters, symbols = np.unique(np.frombuffer(_topics().encode(), dtype=np.uint8), return_inverse=True)
    return symbols.astype(np.int64), len(letters)


def text_digest() -> str:
    """A hash of the text: it ships with Python and differs between its versions."""
    return hashlib.sha256(_topics().encode()).hexdigest()[:16]


def words_digest() -> str:
    """A hash of the grammar and of what counts in it: both changed once."""
    made_of = (sentences.KINDS, sentences.OTHERS, sentences.STORIES, OTHER_WORDS, LESSON_STEPS)
    return hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]


@cache
def _text_chance() -> float:
    """The entropy of single characters: the loss of whoever knows how frequent each is, and no more."""
    text, n_symbols = _encoded_text()
    share = np.bincount(text, minlength=n_symbols) / len(text)
    return float(-(share * np.log(share)).sum())


def _noise_floor() -> float:
    """Entropy of a symbol that is right with probability 0.9 and else any of the 15 others: 0.596 nats."""
    return -(1 - _NOISE) * math.log(1 - _NOISE) - _NOISE * math.log(_NOISE / (_ALPHABET - 1))


def _uniform(n: int) -> Callable[[], float]:
    return lambda: math.log(n)


TASKS: Final[dict[TaskWord, Task]] = {
    task.word: task
    for task in (
        Task("copy", lambda: _ALPHABET, _uniform(_ALPHABET), 0.0, _copy, lambda n: n // 2 + 1),
        Task("noisy_copy", lambda: _ALPHABET, _uniform(_ALPHABET), _noise_floor(), _noisy_copy, lambda n: n // 2 + 1),
        Task("induction", lambda: _ALPHABET, _uniform(_ALPHABET), 0.0, _induction, lambda n: n // 4),
        Task("recall", lambda: 2 * _ALPHABET, _uniform(_ALPHABET), 0.0, _recall),
        Task("addition", lambda: _MODULUS, _uniform(_MODULUS), 0.0, _addition),
        Task(
            "words",
            lambda: len(sentences.WORDS),
            _uniform(len(sentences.WORDS)),
            None,
            _words,
            lesson=partial(_words, n_stories=1),
            lesson_steps=LESSON_STEPS,
        ),
        Task("text", lambda: _encoded_text()[1], _text_chance, None, _text),
    )
}
