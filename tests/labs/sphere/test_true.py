"""Every sentence of the sphere that depends on a result, held against points spread evenly over it, in another way."""

import math
import re
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.labs.sphere import Settings, explain, run
from qkdemo.labs.sphere.lab import Result
from qkdemo.labs.sphere.words import alt_plain, alt_scores, alt_sphere, shares
from qkdemo.notation import read
from tests.labs.told import Truth, computed, hold, reads, states
from tests.oracles import heard

NAMES: Final = r"number\.percent|sphere\.(region|arrow)"
_TURNS: Final = np.arange(6000)
_UP: Final = 1 - (2 * _TURNS + 1) / len(_TURNS)
_AROUND: Final = math.pi * (1 + 5**0.5) * _TURNS  # Fibonacci's: each has the same area
EVENLY: Final = np.stack([np.sqrt(1 - _UP**2) * np.cos(_AROUND), np.sqrt(1 - _UP**2) * np.sin(_AROUND), _UP], -1)


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    terms = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(terms / terms.sum(-1, keepdims=True))


class About:
    """The same arrows again, and their weights, by another way round."""

    def __init__(self, result: Result) -> None:
        self.result, self.settings = result, result.settings
        settings = result.settings
        self.keys = settings.scale * np.random.default_rng(settings.seed).standard_normal((settings.n_keys, 3))
        up, around = math.radians(settings.latitude), math.radians(settings.longitude)
        way = np.array([math.cos(up) * math.cos(around), math.cos(up) * math.sin(around), math.sin(up)])
        self.query = settings.scale * settings.query_length * way
        self.way = way
        self.units = self.keys / np.sqrt((self.keys**2).sum(-1, keepdims=True))
        self.plain_logits = self.keys @ self.query / math.sqrt(3)
        self.norm_logits = settings.gain * self.units @ way * (settings.query_length > 0)

    @cached_property
    def everywhere(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The weights of a query in every direction, plain and normalised."""
        long = self.settings.scale * self.settings.query_length
        return softmax(long * EVENLY @ self.keys.T / math.sqrt(3)), softmax(self.settings.gain * EVENLY @ self.units.T)

    def decided(self, side: int) -> float:
        return float((self.everywhere[side].max(-1) >= 0.9).mean())

    def chosen(self, side: int, key: str, weight: str) -> bool:
        weights = softmax((self.plain_logits, self.norm_logits)[side])
        best = bool(weights[int(key)] >= weights.max() - 1e-12)
        return best and reads(weight.removesuffix(" %"), 100 * weights.max(), 3)

    def regions(self, text: str, side: int) -> bool:
        """Keys and the part of the sphere in which they win."""
        told = [(int(key), read(part)) for key, part in re.findall(r"key (\d) (\S+)", text)]
        winners = self.everywhere[side].argmax(-1)
        return len(told) == len(self.keys) and all(about(part, float((winners == key).mean())) for key, part in told)


def about(percent: float, share: float) -> bool:
    """In whole per cent: a tenth would be that of the grid on which directions are counted."""
    return percent == round(percent) and abs(percent - 100 * share) < 3


def finding(it: About, v: dict[str, str]) -> bool:
    same = v["plain"] == v["norm"]
    return (
        it.chosen(0, v["plain"], v["plain_weight"])
        and it.chosen(1, v["norm"], v["norm_weight"])
        and reads(v["scale"], it.settings.scale)
        and reads(v["gain"], it.settings.gain)
        and same == (v["plain"] == v["norm"])
    )


def none(it: About, v: dict[str, str]) -> bool:
    return it.settings.query_length == 0 and reads(v["plain_weight"].removesuffix(" %"), 100 / it.settings.n_keys, 3)


def longest(it: About, v: dict[str, str]) -> bool:
    arrows = np.array([it.query, *it.keys])
    lengths = np.sqrt((arrows**2).sum(-1))
    beyond = [any(abs(x) > 3 for x in arrow) for arrow in arrows]
    return (
        reads(v["length"], float(lengths.max()))
        and read(v["frame"]) == 3
        and int(v["outside"]) == sum(beyond)
        and int(v["arrows"]) == len(lengths)
    )


def pair(it: About, v: dict[str, str]) -> bool:
    at = min(it.settings.key, it.settings.n_keys - 1)
    angle = math.degrees(
        math.atan2(float(np.linalg.norm(np.cross(it.way, it.units[at]))), float(it.way @ it.units[at]))
    )
    return (
        int(v["key"]) == at
        and reads(v["angle"], angle, 3)
        and reads(v["q"], float(np.linalg.norm(it.query)))
        and reads(v["k"], float(np.linalg.norm(it.keys[at])))
        and reads(v["plain"], it.plain_logits[at])
        and reads(v["norm"], it.norm_logits[at])
    )


def surfaces(it: About, v: dict[str, str]) -> bool:
    at = min(it.settings.key, it.settings.n_keys - 1)
    cosine, reach = float(it.way @ it.units[at]), read(v["longest"])
    far = reads(v["plain"], reach**2 * cosine / math.sqrt(3), 4, 2e-3)
    return far and reads(v["norm"], it.settings.gain * cosine) and reach > 0


def shared(it: About, v: dict[str, str]) -> bool:
    """Of one side or the other: the page says each below its picture."""
    return any(
        it.regions(v["regions"], side) and about(100 - read(v["undecided"]), it.decided(side)) for side in (0, 1)
    )


TRUTHS: Final[dict[str, Truth]] = {
    "sphere.finding.none": none,
    "sphere.finding.alike": lambda it, v: finding(it, v) and v["plain"] == v["norm"],
    "sphere.finding.apart": lambda it, v: finding(it, v) and v["plain"] != v["norm"],
    "sphere.decided": lambda it, v: about(read(v["plain"]), it.decided(0)) and about(read(v["norm"]), it.decided(1)),
    "sphere.decided_of_none": lambda it, v: it.settings.query_length == 0 and about(read(v["norm"]), it.decided(1)),
    "sphere.longest": longest,
    "sphere.score": pair,
    "sphere.score_of_none": lambda it, v: it.settings.query_length == 0 and not it.plain_logits.any(),
    "sphere.shares": shared,
    "sphere.level": lambda it, v: bool(np.ptp(it.everywhere[0]) == 0),
    "sphere.alt.plain": lambda it, v: all(
        reads(length.rstrip(","), float(np.linalg.norm(it.keys[int(key)])))
        for key, length in re.findall(r"key (\d) ([^,]+)", v["arrows"])
    ),
    "sphere.alt.sphere": lambda it, v: it.regions(v["regions"], 1) and about(read(v["decided"]), it.decided(1)),
    "sphere.alt.scores": surfaces,
}


def test_every_sentence_of_a_result_has_an_oracle() -> None:
    needed = computed(r"sphere\.(finding|alt)\..*", r"sphere\.(decided|decided_of_none|longest|score|score_of_none)")
    assert set(TRUTHS) == needed | computed(r"sphere\.(shares|level)")


def test_every_sentence_is_true_wherever_the_dials_stand() -> None:
    held = set[str]()
    for state in states(Settings, 100):
        result = run(state)
        with heard() as said:
            explain(result)
            alt_plain(result), alt_sphere(result), alt_scores(result)
            shares(result.plain), shares(result.twin)
        held |= hold(said, TRUTHS, NAMES, About(result), state)
    assert held == set(TRUTHS)
