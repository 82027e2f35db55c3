"""Every sentence about latent attention is true of its numbers: states drawn from a seed, costs counted anew."""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from qkdemo.labs.mla.lab import Settings, run
from qkdemo.labs.mla.words import explain, explain_other_ways, findings, other_ways
from tests.oracles import NOTHING, Oracle, Said, keys, near, sought

DRAWN: Final = 25


def drawn(rng: np.random.Generator) -> Settings:
    """A state, one head and one key among them."""
    sizes = {
        "context": [1, 2, 4, 32768, 131072],
        "n_heads": [1, 1, 2, 128],
        "latent": [8, 64, 512],
        "d_content": [8, 32, 128],
        "d_rotary": [2, 16, 64],
        "n_keys": [1, 2, 16],
    }
    numbers: dict[str, Any] = {name: int(rng.choice(values)) for name, values in sizes.items()}
    words: dict[str, Any] = {
        "statistic": str(rng.choice(["content", "joint"])),
        "format": str(rng.choice(["float64", "float32", "bfloat16", "float16"])),
    }
    return Settings(
        **numbers,
        **words,
        gain_spread=float(rng.choice([0, 0.5, 0.95])),
        projections=float(rng.choice([0.1, 1, 3, 100])),
        clip_threshold=float(rng.choice([1, 30, 1000])),
        head_spread=float(rng.choice([1, 4, 16])),
        seed=int(rng.integers(1000)),
    )


class Told:
    """A state and the numbers of its cache, by the widths alone."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.result, s = settings, run(settings), settings
        self.plain = s.latent + s.d_rotary
        self.more = s.n_heads + (s.statistic == "content")
        self.at = list(self.result.alternatives.scales).index(s.projections)

    def __str__(self) -> str:
        return str(self.settings)

    def operations(self, context: float) -> tuple[float, float]:
        """Of forming every key, and of the absorbed reading: a multiplication and an addition count two."""
        s, joint = self.settings, self.settings.statistic == "joint"
        own = s.n_heads if joint else 1  # rotary parts that a norm makes
        norm = 2 * (2 * s.n_heads * s.d_content + s.d_rotary + own * s.d_rotary)
        query, up = 4 * s.n_heads * (s.d_content + s.d_rotary), 2 * s.n_heads * s.latent * s.d_content
        forming = up + norm + 2 * s.n_heads * (s.d_content + s.d_rotary)
        absorbed = 2 * s.n_heads * self.plain + s.n_heads * (1 if joint else 2)
        size_of_new = up + 2 * s.n_heads * s.d_content + 3 * s.d_rotary
        return context * forming + query, context * absorbed + up + query + size_of_new

    def of(self, name: str, method: str) -> float:
        return float(getattr(self.result.alternatives, name)[method][self.at])


def size(text: object) -> float:
    """Bytes as they are written."""
    units = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    return Said("", {"x": str(text)}).number("x") * units.get(str(text).rpartition(" ")[2], 1)


def finding(said: Said, told: Told) -> bool:
    forming, absorbed = told.operations(said.number("context"))
    factor = forming / absorbed
    right = {"dearer": factor > 1.04, "cheaper": factor < 0.96, "alike": 0.94 < factor < 1.06}
    pays = told.operations(8)  # a few tokens
    written = "factor" not in said.sentence or near(said.number("factor"), max(factor, 1 / factor), 6e-3)
    return right[said.key.rpartition(".")[2]] and written and pays[0] > pays[1]


def absorbed(said: Said, told: Told) -> bool:
    cache = 2 * told.settings.context * (told.plain + told.more)
    right = said.number("more") == told.more and said.key.endswith(told.settings.statistic)
    return (
        right
        and near(said.number("share"), 100 * told.more / told.plain, 6e-3)
        and near(size(said.values["cache"]), cache)
    )


def naive(said: Said, told: Told) -> bool:
    s = told.settings
    finished = s.n_heads * s.d_content + s.d_rotary * (s.n_heads if s.statistic == "joint" else 1)
    return all(near(size(said.values[name]), 2 * s.context * finished) for name in ("formed", "full"))


def agree(said: Said, told: Told) -> bool:
    """The readings' logits, held against each other."""
    result = told.result
    a, b, c = (each.all for each in (result.explicit, result.absorbed, result.without_norm))
    gap, left_out = (float(np.linalg.norm(x - a) / np.linalg.norm(a)) for x in (b, c))
    least = {"float64": 1e-12, "float32": 1e-5}.get(told.settings.format, 0.05)
    text = str(said.values["difference"])
    written = gap < said.number("difference") if text.startswith("less") else near(said.number("difference"), gap, 0.06)
    return written and gap < least and near(said.number("without"), left_out, 6e-3) and said.number("live") == len(a)


def ways(said: Said, told: Told) -> bool:
    found = told.result.alternatives
    at = [at for at, scale in enumerate(found.scales) if near(scale, said.number("scale"))]
    return any(all(near(said.number(w), float(c[i]), 6e-3) for w, c in found.largest.items()) for i in at)


def clipped(said: Said, told: Told) -> bool:
    """From the logits before: nothing is clipped but heads whose largest logit passes τ."""
    factors = told.result.alternatives.factors[told.at]
    right = said.number("clipped") == (factors < 1).sum() > 0 and near(said.number("factor"), factors.min(), 0.06)
    return right and near(said.number("unseen"), float(told.result.alternatives.unseen["qk_clip"][told.at]), 6e-3)


def rates(said: Said, told: Told) -> bool:
    found = told.result.alternatives
    moved = found.moved["rates"][found.scales >= 1]
    numbers = {"moved_rates": told.of("moved", "rates"), "moved_latent_norm": told.of("moved", "latent_norm")}
    ends = str(said.values["moved_range"]).replace("about ", "").split(" to ")
    ends_are_apart = len(set(ends)) == len(ends)
    right = all(near(said.number(name), float(value), 0.06) for name, value in numbers.items())
    wanted = zip((ends[0], ends[-1]), (moved.min(), moved.max()), strict=True)
    return right and ends_are_apart and all(near(size(end), float(value), 0.06) for end, value in wanted)


def bounded(said: Said, told: Told) -> bool:
    found = told.result.alternatives
    most = max(found.largest["qk_norm"].max(), found.unseen["qk_norm"].max())
    bound, moved = (said.number(name) for name in ("bound", "moved_qk_norm"))
    least = told.of("moved", "qk_norm")  # rounded away from what they bound
    return (
        max(most, found.bound) <= bound * (1 + 1e-11)
        and near(bound, found.bound, 0.011)
        and least <= moved * (1 + 1e-11)
        and near(moved, least, 0.11)
    )


def latent_norm(said: Said, told: Told) -> bool:
    found = told.result.alternatives
    at = [float(found.largest["latent_norm"][list(found.scales).index(scale)]) for scale in (1.0, 10.0)]
    numbers = {f"largest_{word}": told.of("largest", word) for word in ("latent_norm", "nothing")}
    square = math.isclose(at[1], 100 * at[0], rel_tol=1e-3)  # “still grow with the square of the scale”
    return square and all(near(said.number(name), value, 6e-3) for name, value in numbers.items())


ORACLES: Final[Mapping[str, Oracle]] = {
    **dict.fromkeys(keys("mla.finding."), finding),
    "mla.agree": agree,
    "mla.naive": naive,
    **dict.fromkeys(keys("mla.absorbed_"), absorbed),
    "mla.rotary_joint": lambda said, told: told.settings.statistic == "joint",
    "mla.rotary_content": lambda said, told: told.settings.statistic == "content",
    "mla.rotary_gain": lambda said, told: (
        said.number("apart") == 2 * told.settings.d_rotary and said.number("d_rotary") == told.settings.d_rotary
    ),
    "mla.rotary_gain_one": lambda said, told: told.settings.n_heads == 1,
    "other_ways.finding": ways,
    "other_ways.latent_norm": latent_norm,
    "other_ways.qk_clip": lambda said, told: near(said.number("threshold"), told.settings.clip_threshold),
    "other_ways.clipped": clipped,
    "other_ways.unclipped": lambda said, told: (told.result.alternatives.factors[told.at] == 1).all(),
    "other_ways.shared_key": lambda said, told: 0 < (told.result.alternatives.factors[told.at] < 1).mean() < 1,
    "other_ways.rates": rates,
    **dict.fromkeys(keys("other_ways.range."), NOTHING),
    "other_ways.qk_norm": bounded,
    **dict.fromkeys(keys("mla.unit.", "number."), NOTHING),
}


def form(told: Told) -> None:
    """Every sentence of a state."""
    findings(told.result)
    explain(told.result)
    other_ways(told.result)
    explain_other_ways(told.result)


def search(seeds: range) -> set[str]:
    """Which keys were said of the states of these seeds."""
    return sought(seeds, lambda rng: Told(drawn(rng)), form, ORACLES)


def test_every_sentence_about_latent_attention_is_true_of_it() -> None:
    asked = search(range(DRAWN))
    assert {key for key in ORACLES if key.startswith(("mla.", "other_ways."))} - asked <= {
        "mla.finding.alike",
        "mla.unit.0",
    }


def test_a_rotary_gain_of_each_heads_own_is_absorbed_where_entries_of_a_pair_are_cached_turned_apart() -> None:
    rng = np.random.default_rng(0)
    (x, y), gains, q = rng.standard_normal((2, 5)), rng.uniform(0.5, 1.5, (8, 2)), rng.standard_normal((8, 2))
    cos, sin = np.cos(angle := np.arange(5.0)), np.sin(angle)
    cached = np.stack([x * cos, x * sin, y * cos, y * sin])  # of one pair: twice as many numbers, for any head
    for (gx, gy), (a, b) in zip(gains, q, strict=True):
        direct = a * (gx * x * cos - gy * y * sin) + b * (gx * x * sin + gy * y * cos)
        np.testing.assert_allclose(np.array([a * gx, b * gx, b * gy, -a * gy]) @ cached, direct, rtol=1e-12, atol=1e-12)


def test_one_query_absorbs_rotary_gains_that_differ_by_one_factor_per_pair_and_no_others() -> None:
    """Cached is the first head's turned key; one query must make another head's logits with every key."""
    rng = np.random.default_rng(0)
    (x, y), q, angle = rng.standard_normal((2, 9)), rng.standard_normal(2), np.arange(9.0)

    def turned(gx: float, gy: float) -> np.ndarray[Any, Any]:
        cos, sin = np.cos(angle), np.sin(angle)
        return np.stack([gx * x * cos - gy * y * sin, gx * x * sin + gy * y * cos])

    def missed(gx: float, gy: float) -> float:
        cached, wanted = turned(0.7, 1.4).T, q @ turned(gx, gy)
        return float(np.abs(cached @ np.linalg.lstsq(cached, wanted, rcond=None)[0] - wanted).max())

    assert missed(3 * 0.7, 3 * 1.4) < 1e-12  # unequal within the pair, and absorbed
    assert missed(0.7, 1.0) > 0.01
