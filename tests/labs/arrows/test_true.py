"""Every sentence of the arrows that depends on a result, held against shares formed here with plain arithmetic."""

import math
import random
from collections.abc import Iterator
from typing import Final

import numpy as np

from qkdemo.floats.formats import FORMATS
from qkdemo.labs.arrows import Settings, explain, run
from qkdemo.labs.arrows.lab import Result
from qkdemo.labs.arrows.words import findings
from qkdemo.notation import read
from tests.labs.told import SEED, Truth, computed, hold, reads, states
from tests.oracles import heard

WORDS: Final = ("the", "cat", "sat", "on", "mat")
NAMES: Final = r"arrows\.(word|names)\..*"
SLACK: Final = {"float64": 1e-9, "float32": 1e-4, "bfloat16": 0.2, "float16": 0.02}  # of a share, by what is stored


def shares(logits: list[float]) -> list[float] | None:
    """Softmax; None where the largest is infinite."""
    most = max(logits)
    if not math.isfinite(most):
        return None
    terms = [math.exp(x - most) for x in logits]
    return [x / sum(terms) for x in terms]


class About:
    """A result at one of its scales, and the same in float64 without any rounding."""

    def __init__(self, result: Result, at: int) -> None:
        self.result, self.at, self.settings = result, at, result.settings
        self.scale = float(result.scales[at])
        (q, turned), keys = self.settings.query, self.settings.keys
        cosines = [math.cos(math.radians(angle - turned)) for _, angle in keys]
        self.raw = [self.scale**2 * q * k * c for (k, _), c in zip(keys, cosines, strict=True)]
        self.plain = shares([x / math.sqrt(2) for x in self.raw])
        with_length = [self.settings.gain * c * (q * k > 0) for (k, _), c in zip(keys, cosines, strict=True)]
        self.norm = shares(with_length)

    def held(self, side: str) -> list[float]:
        return [float(x) for x in (self.result.plain if side == "plain" else self.result.twin).shares[self.at]]

    def best(self, side: str, names: str, share: str) -> bool:
        """The words named are those with the largest share, and that is the share that is told."""
        found = self.held(side)
        named = [WORDS.index(word) for word in names.replace("“", "").replace("”", "").split(" and ")]
        most = max(found)
        others = [x for at, x in enumerate(found) if at not in named]
        return (
            all(most - found[at] <= 1e-8 for at in named)
            and all(x < most for x in others)
            and percent(share, most, len(named))
        )

    def near(self, side: str) -> bool:
        """What is held is what is so without rounding, as near as the format stores the logits."""
        exact = self.plain if side == "plain" else self.norm
        assert exact is not None
        size = 1.0 if side == "norm" else max(1.0, *map(abs, self.raw))
        slack = SLACK[self.settings.format] * (size if self.settings.format != "float64" else 1e-9 * size + 1)
        return all(abs(a - b) <= slack for a, b in zip(exact, self.held(side), strict=True))


def percent(text: str, share: float, keys: int) -> bool:
    if text.endswith(" each") != (keys > 1):
        return False
    if text.startswith("<"):
        return 0 < share < 0.0051
    if text.startswith(">"):
        return 0.9949 < share < 1
    return abs(read(text) - 100 * share) <= 0.501


def apart(it: About, v: dict[str, str]) -> bool:
    plain, norm = it.best("plain", v["plain"], v["plain_share"]), it.best("norm", v["norm"], v["norm_share"])
    return plain and norm and it.near("plain") and it.near("norm")


def undefined(it: About, v: dict[str, str]) -> bool:
    with np.errstate(over="ignore"):
        lost = not math.isfinite(max(float(x) for x in it.result.plain.raw[it.at]))
    return lost and all(map(math.isnan, it.held("plain"))) and it.best("norm", v["norm"], v["norm_share"])


def level(it: About, v: dict[str, str]) -> bool:
    return (
        all(abs(x - 0.2) < 1e-9 for side in ("plain", "norm") for x in it.held(side))
        and v["plain_share"] == "20 % each"
    )


def counting(it: About, v: dict[str, str], side: str) -> bool:
    entropy = -sum(x * math.log(x) for x in it.held(side) if x > 0)
    return reads(v["counting"], math.exp(entropy), 2) and v["keys"] == "5"


def lost(it: About, v: dict[str, str]) -> bool:
    limit = FORMATS[it.settings.format].largest
    beyond = sum(abs(x) > limit * (1 + 2e-2) for x in it.raw), sum(abs(x) > limit * (1 - 2e-2) for x in it.raw)
    return beyond[0] <= read(v["lost"]) <= beyond[1] and read(v["lost"]) > 0


TRUTHS: Final[dict[str, Truth]] = {
    "arrows.finding.apart": lambda it, v: apart(it, v) and v["plain"] != v["norm"],
    "arrows.finding.alike": lambda it, v: apart(it, v) and v["plain"] == v["norm"],
    "arrows.finding.undefined": undefined,
    "arrows.finding.level": level,
    "arrows.counting.none": lambda it, v: counting(it, v, "plain"),
    "arrows.counting.l2": lambda it, v: counting(it, v, "norm"),
    "arrows.lost": lost,
    "arrows.why": lambda it, v: reads(v["gain"], it.settings.gain),
    "arrows.zero": lambda it, v: 0 in [length for length, _ in (it.settings.query, *it.settings.keys)],
}


def test_every_sentence_of_a_result_has_an_oracle() -> None:
    assert set(TRUTHS) == computed(r"arrows\.(finding|counting)\..*", r"arrows\.(lost|why|zero)") - {
        "arrows.finding.open"  # a question
    }


def drawn() -> Iterator[Settings]:
    """Random arrows; some keys all alike, some queries of length 0."""
    draw = random.Random(SEED)
    for state in states(Settings, 60):
        first = {name: value for name, value in state.as_dict().items() if name.startswith("key_1_")}
        alike = {
            f"key_{at}_{name.removeprefix('key_1_')}": value for name, value in first.items() for at in range(2, 6)
        }
        lengths = {f"key_{at}_length": draw.uniform(0.1, 3) for at in range(1, 6)} | {"query_length": 1.5}
        yield state.but(**draw.choice([alike, lengths, lengths, {"query_length": 0}, {}]))


def test_every_sentence_is_true_wherever_the_dials_stand() -> None:
    held = set[str]()
    for state in drawn():
        result = run(state)
        with heard() as said:
            explain(result)
        held |= hold(said, TRUTHS, NAMES, About(result, result.at), state)
        with heard() as said:
            findings(result)
        told = [each for each in said if each.key.startswith("arrows.finding")]
        for at, each in enumerate(told):
            held |= hold([each], TRUTHS, NAMES, About(result, at), state)
    assert held == set(TRUTHS)
