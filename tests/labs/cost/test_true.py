"""Every sentence about costs is true of them: of formulas, counted anew, and of times that are made up."""

from collections.abc import Mapping
from itertools import pairwise
from statistics import median
from typing import Any, Final

import numpy as np

from qkdemo.labs.cost.lab import Settings, run, sweep
from qkdemo.labs.cost.timing import Measured, Times
from qkdemo.labs.cost.words import explain, explain_times
from qkdemo.messages import say
from tests.oracles import NOTHING, Oracle, Said, heard, hold, keys, near

DRAWN: Final = 150
WAYS: Final = ("sdpa", "sdpa_norms", "explicit", "explicit_norms", "explicit_softcap")


class Told:
    """A layer's operations and bytes, and what a clock said."""

    def __init__(self, rng: np.random.Generator) -> None:
        words = {"format": str(rng.choice(["float64", "float32", "bfloat16"])), "causal": bool(rng.random() < 0.5)}
        sizes = {"n_keys": [16, 256, 1024], "n_heads": [1, 8, 16], "d_head": [16, 128], "d_model": [16, 1024]}
        numbers = {name: int(rng.choice(values)) for name, values in sizes.items()}
        self.settings = Settings(**words, **numbers, repeats=int(rng.choice([3, 15])))  # type: ignore[arg-type]
        s = self.settings
        self.pairs = s.n_heads * (s.n_keys * (s.n_keys + 1) / 2 if s.causal else s.n_keys**2)
        self.entries = s.n_keys * s.n_heads * s.d_head
        self.attention = 4 * self.pairs * s.d_head
        self.whole = self.attention + 8 * s.n_keys * s.d_model * s.n_heads * s.d_head
        self.bytes = {"float64": 8, "float32": 4}.get(s.format, 2)
        centre = rng.choice([0.5, 1.0, 1.0001, 3.0])
        each = {way: np.full(s.repeats, 2.0) if way == "sdpa" else 2 * self._ratios(rng, centre) for way in WAYS}
        self.times = {way: (times, times / each["sdpa"]) for way, times in each.items()}

    def _ratios(self, rng: np.random.Generator, centre: float) -> Any:
        return centre * (1 + rng.choice([0, 1e-5, 0.3]) * rng.uniform(-1, 1, self.settings.repeats))

    def measured(self) -> Measured:
        times = tuple(Times(way, tuple(ms), tuple(ratios)) for way, (ms, ratios) in self.times.items())  # type: ignore[arg-type]
        return Measured(self.settings, times, machine="x", device="cpu", threads=1)

    def share(self, said: Said, name: str, operations: float) -> bool:
        return near(said.number(name), 100 * operations / self.whole, 0.06)

    def mib(self, said: Said, name: str, numbers: float) -> bool:
        return near(said.number(name), self.bytes * numbers / 2**20, 6e-3)


def clock(said: Said, told: Told) -> bool:
    ratios, kind = told.times["sdpa_norms"][1], said.key.rpartition(".")[2]
    right = {"slower": (ratios > 1).all(), "faster": (ratios < 1).all()}
    right["unclear"] = not any(right.values())
    numbers = {"ratio": median(ratios), "least": ratios.min(), "most": ratios.max(), "rounds": len(ratios)}
    ends = [said.number(name) for name in ("ratio", "least", "most")]  # none reads as 1, which is on no side
    beyond = {"slower": min(ends) > 1, "faster": max(ends) < 1, "unclear": True}[kind]
    return bool(
        beyond and right[kind] and all(near(said.number(name), float(value), 6e-3) for name, value in numbers.items())
    )


def way(said: Said, told: Told) -> bool:
    (name,) = [name for name in WAYS if say(f"choice.timed.{name}") == said.values["way"]]
    ms, ratios = told.times[name]
    numbers = {"median": median(ms), "lowest": ms.min(), "highest": ms.max(), "ratio": median(ratios)}
    return all(near(said.number(each), float(value), 6e-3) for each, value in numbers.items())


ORACLES: Final[Mapping[str, Oracle]] = {
    "cost.finding": lambda said, told: told.share(said, "rms", 8 * told.entries),
    "cost.norms": lambda said, told: (
        told.share(said, "layernorm", 12 * told.entries)
        and told.share(said, "l2", 6 * told.entries)
        and told.share(said, "attention", told.attention)
    ),
    "cost.memory": lambda said, told: told.mib(said, "moved", 4 * told.entries),
    "cost.softcap": lambda said, told: (
        told.share(said, "softcap", 10 * told.pairs) and told.mib(said, "logits", 2 * told.pairs)
    ),
    **dict.fromkeys(keys("cost.clock."), clock),
    "cost.base": way,
    "cost.time": way,
    "cost.where": lambda said, told: said.number("repeats") == told.settings.repeats,
    **dict.fromkeys(keys("choice.timed."), NOTHING),
}


def search(seeds: range) -> set[str]:
    """Which keys were said of the layers of these seeds."""
    asked: set[str] = set()
    for seed in seeds:
        told = Told(np.random.default_rng(seed))
        with heard() as said:
            explain(run(told.settings))
            explain_times(told.measured())
        asked |= hold(said, ORACLES, told, f"seed {seed}")
    return asked


def test_every_sentence_about_costs_is_true_of_them() -> None:
    assert search(range(DRAWN)) >= {key for key in ORACLES if key.startswith("cost.")}


def test_the_titles_of_both_curves_hold_at_every_length() -> None:
    """The norms' share falls, softcap's does not; an unfused norm moves what fused attention must."""
    for seed in range(20):
        results = sweep(Told(np.random.default_rng(seed)).settings)
        share, moved = ({p.part: p.share for p in r.parts} for r in results), results
        shares = list(share)
        for norm in ("rms", "layernorm", "l2"):
            assert all(one[norm] > other[norm] for one, other in pairwise(shares))  # type: ignore[index]
        assert all(one["softcap"] <= other["softcap"] for one, other in pairwise(shares))  # type: ignore[index]
        for result in moved:
            parts = {part.part: part.bytes_moved for part in result.parts}
            assert parts["rms"] == parts["attention"]
