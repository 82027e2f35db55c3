"""Which word does a small language model listen to when its query and key weights grow?

Two small transformers learned the same sentences: one with plain attention, one with RMSNorm on q and k. Build a
sentence from the words that they know, choose a layer, a head and the word that asks, and let W_q and W_k grow: plain
attention becomes one-hot, its next word changes, and in float16 it ends without a number. The normalised model goes on.

* `Settings`, `PRESETS`: the sentence, the weight scale, the number format, and whose attention is shown;
* `run(settings)`: attention and next words on both sides, over a sweep of the weight scale;
* `ends(settings, side)`: from which scales on a row is one-hot, and undefined;
* `rows`, `next_rows`, `scale_rows`, `report`: the result as tables.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.dials import Choice, Dial, Dials, Sentence, Value, preferred_numbers
from qkdemo.floats.formats import FormatWord
from qkdemo.labs.words.network import SHAPE, SideWord, read, read_once
from qkdemo.training.sentences import WORDS, following

ONE_HOT: Final = 0.99  # of a row's attention on one word
_FACTS: Final = "Ana has the red box . Ben has the blue hat ."

_Shown = Literal["both", SideWord]
_Row: TypeAlias = NDArray[np.float64]  # a row's largest weight at some scales, or these


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials; by default two sentences and a question about them, in float16. Layers, heads and words count from 1.

    `word` is the one whose attention is shown; beyond the end of the sentence it is the last.
    """

    sentence: Annotated[str, Sentence(WORDS, most=SHAPE.n_keys)] = f"{_FACTS} who is he ?"
    scale: Annotated[float, Dial(0.01, 1000, log=True, sign="×")] = 1.0
    format: Annotated[FormatWord, Choice()] = "float16"
    of_layer: Annotated[int, Dial(1, SHAPE.n_layers)] = 2
    of_head: Annotated[int, Dial(1, SHAPE.n_heads)] = 2
    shown: Annotated[_Shown, Choice()] = "both"
    word: Annotated[int, Dial(1, SHAPE.n_keys)] = SHAPE.n_keys

    @property
    def words(self) -> tuple[str, ...]:
        """The sentence, word by word."""
        return tuple(self.sentence.split())

    @property
    def query(self) -> int:
        """The word that asks, counted from 0."""
        return min(self.word, len(self.words)) - 1


_OWNER: Final = Settings(sentence=f"{_FACTS} who has the hat ?")
PRESETS: Final[dict[str, Settings]] = {
    "which": Settings(),
    "owner": _OWNER,
    "grown": _OWNER.but(scale=8),
    "overflow": _OWNER.but(scale=200),
    "verb": Settings(sentence="the box near the hats"),
    "next": Settings(sentence="Ana has the"),
    "no_story": Settings(sentence="who is near Ana ?"),
}


@dataclass(frozen=True, eq=False)
class Side:
    """One side over the sweep; NaN where a softmax has no value, and behind it."""

    logits: NDArray[np.float64]  # [scales, words, words] of the chosen head; −∞ for a later word
    weights: NDArray[np.float64]  # [scales, words, words]
    shares: NDArray[np.float64]  # [scales, symbols] of the next word

    def row(self, query: int) -> NDArray[np.float64]:
        """[scales, words] the attention of one word."""
        return self.weights[:, query]

    def top(self, query: int) -> NDArray[np.float64]:
        """[scales] The largest weight in that row."""
        found: NDArray[np.float64] = self.row(query).max(-1)
        return found

    def counting(self, query: int) -> NDArray[np.float64]:
        """[scales] How many words count: e to the entropy of that row."""
        row = self.row(query)
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(row == 0, 0, row * np.log(row))
        return np.asarray(np.exp(-parts.sum(-1)))

    def largest_logit(self, query: int) -> NDArray[np.float64]:
        """[scales] The largest |logit| that this word forms with those that it sees; NaN if one is."""
        found: NDArray[np.float64] = np.abs(self.logits[:, query, : query + 1]).max(-1)
        return found

    def next_word(self, at: int) -> int | None:
        """The word with the largest share at one scale; None where there are no shares."""
        shares = self.shares[at]
        return None if np.isnan(shares).any() else int(shares.argmax())


@dataclass(frozen=True, eq=False)
class Result:
    """Both sides over the same scales, and the words that may come next in a text that begins so."""

    settings: Settings
    scales: NDArray[np.float64]
    sides: Mapping[SideWord, Side]
    may_follow: frozenset[str]  # none if nothing that was learnt begins so

    @property
    def at(self) -> int:
        """The index of the current weight scale in `scales`."""
        return int(np.argmin(np.abs(self.scales - self.settings.scale)))

    def first_scale(self, side: SideWord, *, undefined: bool) -> float | None:
        """The scale, × 1 or more, from which on the word's row is undefined, or one-hot where it is not; or None."""
        one_hot, lost = ends(self.settings.but(scale=1.0, shown="both"), side)
        return lost if undefined else one_hot


@lru_cache(maxsize=512)
def ends(settings: Settings, side: SideWord) -> tuple[float | None, float | None]:
    """From which scales on, × 1 or more, the word's row is one-hot, and undefined; None if it is not to the last one.

    Both are searched for, wherever the dial stands, and written up in four digits: there the row is so already.
    """

    row = (slice(None), settings.of_layer - 1, settings.of_head - 1, settings.query)

    def tops(scales: _Row) -> _Row:
        return np.asarray(_tops(side, settings.sentence, settings.format, scales)[row])

    of_tried = _TRIED, np.asarray(_tops_of_tried(side, settings.sentence, settings.format)[row])
    lost = _onset(np.isnan, of_tried, tops)
    one_hot = _onset(lambda x: np.isnan(x) | (x >= ONE_HOT), of_tried, tops)
    return (None if one_hot is None or (lost is not None and one_hot >= lost) else one_hot), lost


@lru_cache(maxsize=32)
def _tops_of_tried(side: SideWord, sentence: str, format: FormatWord) -> NDArray[np.float64]:
    return _tops(side, sentence, format, _TRIED)


def _tops(side: SideWord, sentence: str, format: FormatWord, scales: _Row) -> NDArray[np.float64]:
    """[scales, layers, heads, words] The largest weight of every row."""
    return np.asarray(read_once(side, sentence, format, scales.tolist()).weights.max(-1).values.numpy())


_TRIED: Final = np.union1d(np.geomspace(1, 1000, 241), preferred_numbers(1, 1000))  # with the dial's own stops
_CELLS: Final = 4  # between them that are looked at closely: about the limit rounding makes a row come and go
_PARTS: Final = 8  # of each cell, and then of each part
_ROUNDS: Final = 4


def _onset(
    holds: Callable[[_Row], NDArray[np.bool_]], tried: tuple[_Row, _Row], tops: Callable[[_Row], _Row]
) -> float | None:
    """The scale from which on it `holds` of a row's largest weight, where it is tried; None if not at the last one."""
    scales, found = tried
    for _ in range(_ROUNDS):
        failing = int(np.flatnonzero(~holds(found)).max(initial=-1))
        if failing == -1:
            return float(scales[0])
        if failing == len(scales) - 1:
            return None
        scales = np.geomspace(scales[failing], scales[min(failing + _CELLS, len(scales) - 1)], _CELLS * _PARTS + 1)
        found = tops(scales)
    high = scales[np.flatnonzero(~holds(found)).max(initial=-1) + 1]
    step = 10.0 ** (math.floor(math.log10(high)) - 3)
    written_up = (float(f"{at * step:.4g}") for at in itertools.count(math.ceil(high / step)))
    return next(scale for scale in written_up if holds(tops(np.array([scale])))[0])


def run(settings: Settings, scales: Sequence[float] | None = None) -> Result:
    """Both sides over `scales`: by default preferred numbers over the dial's range, and the current scale."""
    swept = sorted({*preferred_numbers(0.01, 1000, 10), settings.scale}) if scales is None else scales
    return _run(settings, tuple(swept))


@lru_cache(maxsize=128)
def _run(settings: Settings, scales: tuple[float, ...]) -> Result:
    sides: dict[SideWord, Side] = {}
    for side, reading in read(settings.sentence, settings.format, scales).items():
        of_head = (slice(None), settings.of_layer - 1, settings.of_head - 1)
        sides[side] = Side(reading.logits[of_head].numpy(), reading.weights[of_head].numpy(), reading.shares.numpy())
    return Result(settings, np.array(scales), sides, following(settings.words))


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table at the current weight scale: one row per word that the asking word sees."""
    at, query = result.at, result.settings.query
    found: list[dict[str, Value | None]] = []
    for key, word in enumerate(result.settings.words[: query + 1]):
        numbers: dict[str, float] = {}
        for side, read_off in result.sides.items():
            numbers[f"{side}_logit"] = read_off.logits[at, query, key].item()
            numbers[f"{side}_weight"] = read_off.weights[at, query, key].item()
        found.append({"place": key + 1, "word": word, **_counted(numbers)})
    return found


def next_rows(result: Result) -> list[dict[str, Value | None]]:
    """The table of next words at the current weight scale: one row per word that the models know."""
    return [
        {
            "next_word": word,
            "may_follow": word in result.may_follow,
            **_counted({f"{side}_share": one.shares[result.at, at].item() for side, one in result.sides.items()}),
        }
        for at, word in enumerate(WORDS)
    ]


def scale_rows(result: Result) -> list[dict[str, Value | None]]:
    """The table over weight scales: the asking word's row, and the next word."""
    query = result.settings.query
    found: list[dict[str, Value | None]] = []
    for at, scale in enumerate(result.scales.tolist()):
        row: dict[str, Value | None] = {"scale": scale}
        for side, one in result.sides.items():
            word = one.next_word(at)
            numbers = {
                f"{side}_largest_logit": one.largest_logit(query)[at].item(),
                f"{side}_top_weight": one.top(query)[at].item(),
                f"{side}_counting": one.counting(query)[at].item(),
                f"{side}_next_share": one.shares[at].max().item(),
            }
            row |= {**numbers, f"{side}_next_word": None if word is None else WORDS[word]}
        found.append(row)
    return found


def _counted(numbers: dict[str, float]) -> dict[str, float]:
    """The numbers, and how many of them are none."""
    return numbers | {"numbers_lost": sum(not math.isfinite(x) for x in numbers.values())}


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: the word's row and the next words at the current weight scale."""
    result = run(settings, [settings.scale])
    return {"rows": rows(result), "next": next_rows(result)}
