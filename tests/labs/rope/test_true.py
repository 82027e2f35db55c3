"""Every sentence of the rotary lab that depends on a result, held against rotations of complex numbers."""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.attention.rotary import partners
from qkdemo.labs.rope import Settings, explain, run
from qkdemo.labs.rope.lab import Result, gains, vectors
from qkdemo.labs.rope.view import distance_exhibit
from qkdemo.labs.rope.words import findings
from qkdemo.notation import read
from tests.labs.told import Truth, computed, hold, reads, states
from tests.oracles import heard

NAMES: Final = r"number\.less|rope\.(line|panel|axis)\..*|dial\..*|exhibit\..*"
ELSEWHERE: Final = (0, 3, 77, 1234, 4999)  # positions, most of which the lab does not compute
ROUNDING: Final = 1e-8


class About:
    """The same pair of vectors, its logits formed in another way."""

    def __init__(self, result: Result, at: int) -> None:
        self.result, self.settings = result, result.settings
        self.position = int(result.positions[at])
        settings = result.settings
        self.gains = [gain.numpy() for gain in gains(settings)]
        self.vectors = [x.numpy() for x in vectors(settings)]
        first, second = partners(settings.d_head, settings.layout)
        self.first, self.second = first.numpy(), second.numpy()
        self.root = math.sqrt(settings.d_head)

    def norm(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        x = x - x.mean() if self.settings.norm == "layernorm" else x
        return np.asarray(x / math.sqrt((x**2).mean() + 1e-6))

    def turn(self, x: NDArray[np.float64], at: float) -> NDArray[np.float64]:
        """Each pair as a complex number, times e^(iφ)."""
        pairs = len(self.first)
        turned = (x[self.first] + 1j * x[self.second]) * np.exp(1j * at * 10000.0 ** (-np.arange(pairs) / pairs))
        found = x.copy()
        found[self.first], found[self.second] = turned.real, turned.imag
        return found

    def logit(self, order: str, position: float, distance: float) -> float:
        sides = []
        for x, gain, at in zip(self.vectors, self.gains, (position + distance, position), strict=True):
            first = order == "norm_rotary"
            sides.append(self.turn(gain * self.norm(x), at) if first else gain * self.norm(self.turn(x, at)))
        return float(sides[0] @ sides[1]) / self.root

    def over(self, order: str, distance: float | None = None) -> NDArray[np.float64]:
        """The logit at some positions, at the distance of the dial."""
        apart = self.settings.distance if distance is None else distance
        return np.array([self.logit(order, at, apart) for at in ELSEWHERE])

    @property
    def largest(self) -> float:
        """Norm first, over the distances that are looked at."""
        return max(abs(self.logit("norm_rotary", 0, distance)) for distance in range(65))

    @property
    def naive(self) -> float:
        return self.root * float(np.abs(self.gains[0] * self.gains[1]).max())

    @property
    def pairwise(self) -> float:
        """The largest product of gains that a rotation can bring together."""
        of_q, of_k = self.gains
        found = float(np.abs(of_q * of_k).max())
        for a, b in zip(self.first, self.second, strict=True):
            found = max(found, abs(of_q[a] * of_k[b]), abs(of_q[b] * of_k[a]))
        return self.root * found

    def fixed(self, order: str) -> bool:
        logits = self.over(order)
        return bool(np.ptp(logits) <= ROUNDING * max(1, np.abs(logits).max()))

    def bounds(self, v: dict[str, str]) -> bool:
        return (
            reads(v["naive"], self.naive)
            and reads(v["pairwise"], self.pairwise)
            and reads(v["largest"], self.largest)
            and int(v["d"]) == self.settings.d_head
        )

    def same(self) -> bool:
        """The two orders are one function, at every position and distance that is tried."""
        pairs = [
            (self.logit("norm_rotary", at, s), self.logit("rotary_norm", at, s))
            for at in ELSEWHERE
            for s in (0, 1, 9, 64)
        ]
        size = max(abs(x) for pair in pairs for x in pair)
        return all(abs(a - b) <= ROUNDING * max(1, size) for a, b in pairs)

    def with_other_vectors(self) -> "About":
        """Under the same norm, with the same gains, two vectors that nobody chose."""
        other = About(self.result, self.result.at)
        other.vectors = list(np.random.default_rng(7).standard_normal((2, self.settings.d_head)))
        return other

    def apart(self, v: dict[str, str]) -> bool:
        """By as much somewhere, and by no more where it is tried."""
        share = read(v["disagreement"]) / 100
        pairs = [
            (self.logit("norm_rotary", at, s), self.logit("rotary_norm", at, s))
            for at, s in [(int(at), self.settings.distance) for at in self.result.positions]
            + [(self.settings.position, s) for s in range(65)]
        ]
        size = max(abs(x) for pair in pairs for x in pair)
        return abs(max(abs(a - b) for a, b in pairs) / size - share) <= 1e-2 * share

    def scores(self, v: dict[str, str], at: int) -> bool:
        distance = int(v.get("distance", self.settings.distance))
        return all(near(v[order], self.logit(order, at, distance)) for order in ("norm_rotary", "rotary_norm"))


def near(text: str, x: float) -> bool:
    return reads(text, x) or abs(read(text) - x) < ROUNDING


def unsafe(it: About, v: dict[str, str]) -> bool:
    """Somewhere vectors of length √d pass it: a channel of q turned onto the channel of k, by a slow pair too."""
    return it.bounds(v) and it.pairwise > it.naive * (1 + 1e-9)


def reached(it: About, v: dict[str, str]) -> bool:
    found = abs(it.logit("norm_rotary", 0, read(v["reach"])))
    return near(v["reached"], found) and reads(v["pairwise"], it.pairwise)


def turned(it: About, v: dict[str, str]) -> bool:
    return reached(it, v) and 0.998 * it.pairwise <= read(v["reached"]) <= 1.0005 * it.pairwise


SAME: Final = {
    f"rope.agree.{kind}": lambda it, v, kind=kind: (
        it.same() and it.with_other_vectors().same() and it.settings.norm == "rms" and it.settings.gain_kind == kind
    )
    for kind in ("none", "scalar", "tied", "untied", "crossed")
}
TRUTHS: Final[dict[str, Truth]] = {
    **SAME,
    "rope.agree.vectors": lambda it, v: it.same() and not it.with_other_vectors().same(),
    **{
        f"rope.apart.{kind}": lambda it, v: it.apart(v) and read(v["disagreement"]) < 1e-4
        for kind in ("none", "scalar", "tied")
    },
    **{f"rope.apart.{kind}": lambda it, v: it.apart(v) for kind in ("untied", "crossed")},
    "rope.apart.layernorm": lambda it, v: it.apart(v) and it.settings.norm == "layernorm",
    "rope.scores": lambda it, v: it.scores(v, int(v["position"])),
    "rope.relative": lambda it, v: it.fixed("norm_rotary") and it.fixed("rotary_norm"),
    "rope.not_relative": lambda it, v: (
        it.fixed("norm_rotary")
        and reads(
            v["spread"], np.ptp([it.logit("rotary_norm", at, it.settings.distance) for at in it.result.positions]), 3
        )
    ),
    "rope.bound_broken": lambda it, v: it.bounds(v) and it.naive < it.largest <= it.pairwise * (1 + 1e-9),
    "rope.bound_wrong": lambda it, v: unsafe(it, v) and it.largest <= it.naive * (1 + 1e-9) and int(v["last"]) == 64,
    "rope.bound_far": unsafe,
    "rope.bound_layernorm": lambda it, v: unsafe(it, v) and it.settings.norm == "layernorm" and int(v["last"]) == 64,
    "rope.bound_same": lambda it, v: (
        it.bounds(v) and it.pairwise <= it.naive * (1 + 1e-8) and it.largest <= it.naive * (1 + 1e-8)
    ),
    "rope.broken": lambda it, v: (
        it.largest > it.naive and reads(v["largest"], it.largest) and reads(v["naive"], it.naive)
    ),
    "rope.reach.near": lambda it, v: turned(it, v) and 0 < int(v["reach"]) <= 64,
    "rope.reach.here": lambda it, v: (
        turned(it, v) and int(v["reach"]) == 0 and len({int(x.argmax()) for x in it.vectors}) == 1
    ),
    "rope.reach.far": lambda it, v: turned(it, v) and read(v["reach"]) > 64 and reads(v["largest"], it.largest),
    "rope.reach.layernorm": reached,
    "rope.finding.agree": lambda it, v: (
        it.same() and near(v["norm_rotary"], it.logit("rotary_norm", 77, it.settings.distance))
    ),
    "rope.finding.moved": lambda it, v: it.scores(v, int(v["position"])) and it.fixed("norm_rotary"),
    "rope.finding.apart": lambda it, v: it.scores(v, it.position),
    "rope.finding.distance": lambda it, v: it.scores(v, int(v["position"])),
}


def test_every_sentence_of_a_result_has_an_oracle() -> None:
    needed = computed(
        r"rope\.(finding|agree|apart|reach)\..*", r"rope\.(scores|relative|not_relative|broken|bound_\w+)"
    )
    assert set(TRUTHS) == needed


def test_a_channel_that_no_rotation_turns_says_nothing_of_the_gains() -> None:
    """Both vectors lie in the last channel of five, which has no partner; of other vectors the orders part."""
    told = [explain(run(Settings(d_head=5, vectors="worst", seed=8, gain_kind=kind))) for kind in ("untied", "tied")]
    assert told[0][0] == "For these vectors the two orders happen to agree."
    assert told[1][0].startswith("With gains equal within each rotary pair the two orders are one function")


def test_every_sentence_is_true_wherever_the_dials_stand() -> None:
    held = set[str]()
    for state in states(Settings, 60, {"d_head": 33}):
        result = run(state)
        with heard() as said:
            explain(result)
            distance_exhibit(result)
        headlines = [each for each in said if each.key.startswith("rope.finding.distance")]
        rest = [each for each in said if each not in headlines]
        held |= hold([*rest, *headlines[::13]], TRUTHS, NAMES, About(result, result.at), state)
        with heard() as said:
            findings(result)
        told = [each for each in said if each.key.startswith("rope.finding")]
        for at in range(0, len(told), 7):
            held |= hold([told[at]], TRUTHS, NAMES, About(result, at), state)
    assert len(held) > 0.6 * len(TRUTHS)
