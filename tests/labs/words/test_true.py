"""Every sentence about a sentence that the words lab reads is true of its weights and shares: states drawn from a seed.

In float64 the shares are those of a pass by hand. Sentences are beginnings of texts that were drawn from the grammar,
whose next word is known, or words in any order.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.labs.words import Settings, explain, run
from qkdemo.labs.words.network import SHAPE, SideWord, accuracy
from qkdemo.labs.words.words import findings
from qkdemo.training.sentences import WORDS
from qkdemo.training.sentences import drawn as texts
from tests.labs.words.test_lab import by_hand
from tests.oracles import NOTHING, Oracle, Said, keys, near, sought

DRAWN: Final = 40
PERCENT: Final = 6e-3  # as far as three digits are written
TEXTS: Final = [[WORDS[at] for at in text] for text in texts(np.random.default_rng(5), 400, SHAPE.n_keys).tolist()]


class Told:
    """A state, the raw numbers of both sides, and the words that follow in texts that begin so."""

    def __init__(self, rng: np.random.Generator) -> None:
        words = list(TEXTS[int(rng.integers(len(TEXTS)))][: int(rng.choice([1, 2, 3, 5, 12, 15, 32]))])
        if rng.random() < 0.25:
            words = list(rng.permutation(words))
        self.settings = Settings(
            sentence=" ".join(words),
            scale=float(rng.choice([0.01, 0.3, 1, 1, 3, 8, 51, 200, 1000])),
            format=str(rng.choice(["float64", "float32", "bfloat16", "float16", "float16"])),  # type: ignore[arg-type]
            of_layer=int(rng.choice([1, 2])),
            of_head=int(rng.choice([1, 2])),
            word=int(rng.choice([1, 3, SHAPE.n_keys])),
        )
        self.result = run(self.settings)
        self.at = int(np.flatnonzero(self.result.scales == self.settings.scale)[0])
        self.seen = {text[len(words)] for text in TEXTS if text[: len(words)] == words and len(words) < len(text)}

    def __str__(self) -> str:
        return str(self.settings)

    def shares(self, side: SideWord, at: int) -> NDArray[np.float64]:
        shares = self.result.sides[side].shares[at]
        if self.settings.format == "float64" and at == self.at:  # worked out by hand
            by = by_hand(side, self.settings.sentence, float(self.result.scales[at]))[1]
            np.testing.assert_allclose(shares, by, rtol=1e-6, atol=1e-9)
        return shares

    def row(self, side: SideWord) -> NDArray[np.float64]:
        """[scales, words that the asking word sees]"""
        asking = min(self.settings.word, len(self.settings.words)) - 1
        return self.result.sides[side].weights[:, asking, : asking + 1]


def finding(said: Said, told: Told) -> bool:
    """Of the scale that is said: which word each side goes on with, and how surely."""
    (at,) = (at for at, scale in enumerate(told.result.scales) if near(said.number("scale"), scale))
    right = True
    words: dict[str, int | None] = {}
    for side in ("plain", "norm"):
        shares = told.shares(side, at)
        words[side] = None if np.isnan(shares).any() else int(shares.argmax())
        if words[side] is not None and side in said.values:
            best = WORDS.index(str(said.values[side]))
            right &= near(shares[best], shares.max()) and near(
                said.number(f"{side}_share"), 100 * shares.max(), PERCENT
            )
    kinds = {(True, True): "neither", (True, False): "plain_undefined", (False, True): "norm_undefined"}
    same = "alike" if words["plain"] == words["norm"] else "apart"
    lost = words["plain"] is None, words["norm"] is None
    return right and said.key.rpartition(".")[2] == kinds.get(lost, same)


def verdict(said: Said, told: Told) -> bool:
    """Who goes on with a word that some text goes on with; of those that are named every one that was met is one."""
    may, kind = told.result.may_follow, said.key.rpartition(".")[2]
    if kind == "no_story":
        return not may and not told.seen
    words = str(said.values["words"])
    named = [word for word in WORDS if f"“{word}”" in words]
    others = len(may) - len(named)
    counts = (f"{others} other" in words) if others else "other word" not in words
    right, lost = {}, []
    for side in ("plain", "norm"):
        shares = told.shares(side, told.at)
        if np.isnan(shares).any():
            lost.append(side)
        right[side] = not np.isnan(shares).any() and WORDS[int(shares.argmax())] in may
    who = [side for side, is_right in right.items() if is_right]
    expected = {2: "both", 0: "neither"}.get(len(who)) or who[0] + ("_alone" if lost else "")
    return kind == expected and told.seen <= may and set(named) <= may and counts


def row(said: Said, told: Told) -> bool:
    side: SideWord = "plain" if said.key.startswith("words.row.plain") else "norm"
    weights = told.row(side)[told.at]
    asking = min(told.settings.word, len(told.settings.words)) - 1
    if said.values["asking"] != told.settings.words[asking]:
        return False
    if said.key.endswith("undefined"):
        return bool(np.isnan(weights).any())
    place = int(said.number("place")) - 1
    entropy = -sum(p * math.log(p) for p in weights.tolist() if p > 0)
    return (
        said.values["word"] == told.settings.words[place]
        and near(weights[place], weights.max())
        and near(said.number("share"), 100 * weights.max(), PERCENT)
        and near(said.number("counting"), math.exp(entropy), 0.06)
    )


def end(said: Said, told: Told) -> bool:
    """From × 1 on: where the row is one-hot as long as it has numbers, and where it has none any more; read anew."""
    side: SideWord = "plain" if said.key.startswith("words.end.plain") else "norm"
    hot, lost = (said.number(name) if name in said.values else math.inf for name in ("one_hot", "lost"))
    stop = min(lost, 1000.0)

    def tops(scales: list[float]) -> NDArray[np.float64]:
        found = run(told.settings, scales).sides[side].weights
        asking = min(told.settings.word, len(told.settings.words)) - 1
        return np.asarray(found[:, asking, : asking + 1].max(-1))

    right = True
    if lost < math.inf:
        before = [] if near(lost, 1) else tops([max(1.0, 0.98 * lost)])
        right &= bool(np.isnan(tops([lost * x for x in (1, 1.01, 1.5) if lost * x <= 1000])).all())
        right &= not np.isnan(before).any()
    if hot < math.inf:
        inside = tops([x for x in np.geomspace(hot, stop, 12).tolist() if x < stop or lost == math.inf])
        below = tops(np.geomspace(max(1.0, 0.9 * hot), hot, 9)[:-1].tolist())
        right &= bool((inside >= 0.99).all()) and (hot < 1.001 or bool((below < 0.99).any()))
        if side == "norm":  # “growing changes nothing”
            right &= bool(np.ptp(inside) < 0.01)
    else:
        last = tops([x for x in np.geomspace(max(1.0, 0.9 * stop), stop, 9).tolist() if x < stop or lost == math.inf])
        right &= lost <= 1.001 or bool((last < 0.99).any())
    return right


ORACLES: Final[Mapping[str, Oracle]] = {
    **dict.fromkeys(keys("words.finding."), finding),
    **dict.fromkeys(keys("words.verdict."), verdict),
    **dict.fromkeys(keys("words.row."), row),
    **dict.fromkeys(keys("words.end."), end),
    "words.accuracy": lambda said, told: all(
        near(said.number(f"{side}_{place}"), 100 * share, PERCENT)
        for side, of in accuracy().items()
        for place, share in of.items()
    ),
    "words.guessed": lambda said, told: all(of["owner"] < 0.75 for of in accuracy().values()),
    **dict.fromkeys({"words.quoted", "words.or", "words.more"} | keys("number."), NOTHING),
}


def form(told: Any) -> None:
    """Every sentence of a state."""
    explain(told.result)
    findings(told.result)


def search(seeds: range) -> set[str]:
    """Which keys were said of the states of these seeds."""
    return sought(seeds, Told, form, ORACLES)


def test_every_sentence_about_what_a_model_reads_is_true_of_its_numbers() -> None:
    asked = search(range(DRAWN))
    spoken = keys("words.finding.", "words.verdict.", "words.row.", "words.end.")
    assert len(asked & spoken) > 0.6 * len(spoken), sorted(spoken - asked)
