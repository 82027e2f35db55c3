"""Every sentence about a cache is true of its numbers: states drawn from a seed, the edges of every dial among them."""

from collections.abc import Mapping
from typing import Any, Final, get_args

import numpy as np

from qkdemo.attention.blocks import GainsWord
from qkdemo.attention.norms import NormaliserWord
from qkdemo.labs.cache.decoding import QuantWord, TurnWord, WayWord
from qkdemo.labs.cache.lab import Result, Settings, run
from qkdemo.labs.cache.words import explain, findings
from tests.oracles import NOTHING, Oracle, Said, heard, hold, keys, near, sought

DRAWN: Final = 150


def drawn(rng: np.random.Generator) -> Settings:
    """A state; small ones more often than large ones."""
    words = {"way": WayWord, "order": TurnWord, "gains": GainsWord, "norm": NormaliserWord}
    chosen: dict[str, Any] = {name: str(rng.choice(get_args(word))) for name, word in words.items()}
    chosen["quantised"] = str(rng.choice(["none", "none", *get_args(QuantWord)]))
    return Settings(
        **chosen,
        n_keys=int(rng.choice([1, 2, 4, 8])),
        n_heads=int(rng.choice([1, 2, 4])),
        d_head=int(rng.choice([4, 8, 32])),
        gain_spread=float(rng.choice([0, 0, 0.5, 0.95])),
        head_spread=float(rng.choice([1, 4, 16])),
        format=str(rng.choice(["float64", "float32", "bfloat16", "float16"])),  # type: ignore[arg-type]
        epsilon=float(rng.choice([1e-12, 1e-6, 1e-5])),
        step=int(rng.choice([0, 1, 7])),
        seed=int(rng.integers(1000)),
    )


class Told:
    """A state's numbers in its own format, and in float64."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.result = settings, run(settings)
        self.truth: Result = run(settings.but(format="float64"))
        with np.errstate(divide="ignore", invalid="ignore"):  # of a weight that is not seen
            off = np.abs(np.log(self.truth.cached_weights / self.truth.fresh_weights))
        self.wrong = np.flatnonzero(np.nan_to_num(off).max((0, 2)) > 1e-9)

    def __str__(self) -> str:
        return str(self.settings)

    def shown(self, said: Said, name: str, value: float) -> bool:
        """Whether a number is written: as it is, or less than a power of ten above it."""
        text = str(said.values[name])
        if text.startswith("less than"):
            return value < said.number(name) * 1.0001
        return near(said.number(name), value, 6e-3)

    def before_norm(self) -> bool:
        """Whether what is stored has not been normalised yet."""
        way, order = self.settings.way, self.settings.order
        return way == "raw" or (way == "halfway" and order == "rotary_norm")


def at_step(said: Said, told: Told) -> bool:
    """What a step is said to be, and by how much a weight is off there."""
    step, kind = int(said.number("step")), said.key.rpartition(".")[2]
    off = float(told.result.weight_error[step])
    written = "weight" not in said.sentence.split(":")[-1] or told.shown(said, "weight", off)
    different = bool(told.wrong.size) and step >= told.wrong[0]
    right = {
        "one_key": step == 0 and told.settings.n_keys > 1,
        "wrong": different and off > 0 and written,
        "inexact": different and off > 0 and written and told.settings.quantised != "none",
        "not_yet": bool(told.wrong.size) and step < told.wrong[0],
        "unseen": different and off == 0 and said.number("from_step") == told.wrong[0],
        "exact": not told.wrong.size and not told.result.logit_error.any(),
        "rounding": not told.wrong.size and written,
    }
    return bool(right[kind])


def over_all(said: Said, told: Told) -> bool:
    """The label of the whole, its numbers, and its first step."""
    most = told.shown(said, "weight", float(told.result.weight_error.max()))
    if said.key in ("cache.wrong", "cache.inexact"):
        last = (("logit", told.result.logit_error[-1]), ("off", told.result.key_error[-1]))
        numbers = all(told.shown(said, name, float(value)) for name, value in last)
        return most and numbers and said.number("step") == told.wrong[0] and bool(told.result.weight_error.any())
    if said.key == "cache.hidden":
        return bool(told.wrong.size) and not told.result.weight_error.any()
    return not told.wrong.size and (most or said.key == "cache.exact")


def quantised(said: Said, told: Told) -> bool:
    when = ("before" in str(said.values["when"])) == told.before_norm()
    step = "at the last step" in said.sentence  # the tile beside it shows the step that is chosen
    shown = told.shown(said, "off", float(told.result.key_error[-1]))
    return step and when and shown and told.settings.quantised != "none"


def because(said: Said, told: Told) -> bool:
    kind = said.key.rpartition(".")[2]
    return kind == told.settings.way or (kind in ("quantised", "both") and told.settings.quantised != "none")


def unit_gains(said: Said, told: Told) -> bool:
    """Without what epsilon leaves, the same way of caching is no mistake, and the norm does nothing to its result."""
    least = told.settings.but(epsilon=1e-12, quantised="none", format="float64")
    found, again = run(least), run(least.but(way="normed_again"))
    twice = "applied twice" not in said.sentence or again.weight_error.max() < 1e-6
    return bool(found.weight_error.max() < 1e-6 and twice)


ORACLES: Final[Mapping[str, Oracle]] = {
    **dict.fromkeys(keys("cache.finding."), at_step),
    **dict.fromkeys(("cache.wrong", "cache.inexact", "cache.hidden", "cache.exact", "cache.rounding"), over_all),
    **dict.fromkeys(("cache.quantised", "cache.quantised_too"), quantised),
    **dict.fromkeys(keys("cache.because."), because),
    "cache.undecided": lambda said, told: told.settings.n_keys == 1,
    "cache.first_step": lambda said, told: (
        np.allclose(told.result.cached_weights[:, 0, 0], 1) and np.allclose(told.result.fresh_weights[:, 0, 0], 1)
    ),
    "cache.one_head": lambda said, told: told.settings.n_heads == 1,
    **dict.fromkeys(("cache.unit_gains", "cache.gains_alike"), unit_gains),
    "cache.size": lambda said, told: (
        said.number("bytes")
        == told.settings.n_heads
        * told.settings.d_head
        * (1 if told.settings.quantised != "none" else {"float64": 8, "float32": 4}.get(told.settings.format, 2))
    ),
    **dict.fromkeys({"cache.before", "cache.after"} | keys("choice.", "number."), NOTHING),
}


def form(told: Told) -> None:
    """Every sentence of a state."""
    findings(told.result)
    explain(told.result)


def search(seeds: range) -> set[str]:
    """Which keys were said of the states of these seeds."""
    return sought(seeds, lambda rng: Told(drawn(rng)), form, ORACLES)


def test_every_sentence_about_a_cache_is_true_of_it() -> None:
    asked = search(range(DRAWN))
    assert {key for key in ORACLES if key.startswith("cache.")} - asked <= RARE


def test_a_mistake_is_one_also_where_a_weight_next_to_1_hides_it() -> None:
    """Two keys, of which one holds all: the logits are 4 % off, no weight by more than 10⁻⁹."""
    base = Settings(norm="l2", d_head=4, n_heads=1, gain_spread=0.95, format="float64")
    for words in (
        {"way": "one_late", "n_keys": 2, "seed": 6950},
        {"way": "finished", "quantised": "int8_head", "n_keys": 2, "seed": 6058},
        {"way": "normed_again", "n_keys": 4, "seed": 7149},  # its first step was called the same
    ):
        told = Told(base.but(**words))
        assert told.result.weight_error[1] < 1e-9 < told.result.logit_error[1]
        assert (told.result.label, told.result.from_step) == ("wrong", 1)
        with heard() as said:
            form(told)
        assert hold(said, ORACLES, told, str(told))


# Said of few states; a longer search says all of them.
RARE: Final = {"cache.because.both", "cache.exact", "cache.hidden"} | {
    f"cache.finding.{key}" for key in ("unseen", "exact", "not_yet")
}
