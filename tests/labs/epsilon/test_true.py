"""Every sentence of the epsilon lab that depends on a result, held against the formulas of its rules in float64."""

import math
from typing import Final

import numpy as np
import torch

from qkdemo.attention.norms import NORMS
from qkdemo.floats.formats import FORMATS
from qkdemo.labs.epsilon import Settings, explain, run
from qkdemo.labs.epsilon.lab import Result
from qkdemo.labs.epsilon.words import findings
from qkdemo.notation import read
from tests.labs.told import Truth, computed, hold, reads, states
from tests.oracles import heard

FINE: Final = 1e-3  # a size from which on every format holds the squares of most entries
NARROW: Final = ("float16", "bfloat16")


class About:
    """A result, one of its sizes, and the vector of that size as it is stored."""

    def __init__(self, result: Result, at: int) -> None:
        self.result, self.at, self.settings = result, at, result.settings
        settings = result.settings
        drawn = np.random.default_rng(settings.seed).standard_normal((2, settings.d_head))[0]
        drawn -= drawn.mean()
        whole = torch.from_numpy(drawn / np.sqrt((drawn**2).mean()) * result.sizes[at])
        self.x = whole.to(FORMATS[settings.format].dtype).double().numpy()
        self.narrow = settings.norm_in_format and settings.format in NARROW

    @property
    def share(self) -> float:
        return float(self.result.share[self.result.rule, self.at])

    @property
    def slope(self) -> float:
        return float(self.result.slope[self.result.rule, self.at])

    @property
    def epsilon(self) -> float:
        settings = self.settings
        return self.result.epsilon_stored[settings.format] if settings.norm_in_format else settings.epsilon

    @property
    def divisor(self) -> float:
        """Of the stored vector, in float64."""
        return self.divisor_of(self.x)

    def divisor_of(self, x: np.ndarray) -> float:
        count = 1 if self.settings.norm == "l2" else len(x)
        x = x - x.mean() if NORMS[self.settings.norm].centred else x
        size = math.sqrt(float((x**2).sum()) / count)
        match self.settings.rule:
            case "inside":
                return math.sqrt(size**2 + self.epsilon)
            case "outside":
                return size + self.epsilon
            case "absent":
                return size
        return max(size, self.epsilon)

    @property
    def whole(self) -> float:
        return 1.0 if self.settings.norm == "l2" else math.sqrt(self.settings.d_head)

    def short(self, low: float, high: float) -> bool:
        """Whether all vectors between two sizes come out short."""
        shares = self.result.share[self.result.rule]
        return all(share <= 0.99 for size, share in zip(self.result.sizes, shares, strict=True) if low < size < high)


def finding(about: About, v: dict[str, str]) -> bool:
    return reads(v["size"], about.result.sizes[about.at])


def measured(about: About, v: dict[str, str]) -> bool:
    """The length that is due, of the stored vector by the rule; a narrow norm has its own rounding."""
    x = about.x - about.x.mean() if NORMS[about.settings.norm].centred else about.x
    due = math.sqrt(float((x**2).sum())) / about.divisor / about.whole if about.divisor else math.nan
    same = about.narrow or abs(due - about.share) < 1e-4
    return finding(about, v) and reads(v["share"], 100 * about.share, 3) and same


def long(about: About, v: dict[str, str]) -> bool:
    held = float(about.result.divisor[about.result.rule, about.at])
    return measured(about, v) and read(v["share"]) > 101.9 and held < about.divisor


def nothing(about: About, v: dict[str, str]) -> bool:
    return finding(about, v) and about.result.divisor[about.result.rule, about.at] == 0


def below(about: About, v: dict[str, str]) -> bool:
    threshold, coarse = read(v["threshold"]), about.narrow and about.settings.format == "float16"
    root = 1 if about.settings.norm != "l2" else math.sqrt(about.settings.d_head)
    size = (math.sqrt(about.epsilon) if about.settings.rule == "inside" else about.epsilon) / root
    return (
        reads(v["threshold"], size, 3)
        and reads(v["epsilon"], about.settings.epsilon)
        and (coarse or about.short(0, 1.5 * threshold))
    )


def floor(about: About, v: dict[str, str]) -> bool:
    root = 1 if about.settings.norm != "l2" else math.sqrt(about.settings.d_head)
    right = reads(v["threshold"], about.epsilon / root, 3)
    for size, share in zip(about.result.sizes, about.result.share[about.result.rule], strict=True):
        held = size >= FINE or (about.settings.format not in NARROW)
        if held and size > 1.01 * read(v["threshold"]):
            right &= bool(0.99 < share < 1.02)
        if held and size < 0.99 * read(v["threshold"]):
            right &= bool(abs(share - size * root / about.epsilon) < 1e-3)
    return right


def floored_root(about: About, v: dict[str, str]) -> bool:
    """As the floor from where the squares are held on: in float32, above 1e-18 for each entry."""
    shares = dict(zip(about.result.sizes, about.result.share[2:4].T, strict=True))
    least = FINE if about.narrow else 1e-15
    return all(abs(one - other) < 0.03 for size, (one, other) in shares.items() if size >= least)


def absent(about: About, v: dict[str, str]) -> bool:
    shares = zip(about.result.sizes, about.result.share[4], strict=True)
    return all(0.99 < share < 1.02 for size, share in shares if size >= FINE or about.settings.format not in NARROW)


def slope(about: About, v: dict[str, str]) -> bool:
    """1 over the divisor, as far as a narrow format holds the direction of what it stores, and squares of it."""
    small = about.settings.format in NARROW and about.result.sizes[about.at] < FINE
    rough = math.inf if small and about.narrow else 0.5 if small else 0.05
    return reads(v["slope"], about.slope, 3) and abs(about.slope * about.divisor - 1) < rough


def stopped(about: About, v: dict[str, str]) -> bool:
    least = about.divisor_of(np.zeros(2))
    slopes = about.result.slope[about.result.rule]
    above = [size for size, x in zip(about.result.sizes, slopes, strict=True) if not x <= 1.1 / least]
    zeros = all(not About(about.result, list(about.result.sizes).index(size)).x.any() for size in above)
    return slope(about, v) and reads(v["steepest"], 1 / least, 3) and zeros


def squares(about: About, v: dict[str, str]) -> bool:
    """Bounded wherever something is left under the root in the format that computes it, no number where nothing is."""
    least = about.divisor_of(np.zeros(2))
    kind = getattr(torch, v["computed"])
    right = slope(about, v) and reads(v["steepest"], 1 / least, 3)
    for at, found in enumerate(about.result.slope[about.result.rule]):
        x = torch.from_numpy(About(about.result, at).x).to(kind)
        x = x - x.mean() if NORMS[about.settings.norm].centred else x
        under = x.square().sum() / (1 if about.settings.norm == "l2" else len(x))
        right &= bool(found <= 1.1 / least) if under > 0 else math.isnan(found)
    return right


def smaller(about: About) -> bool:
    """Steeper for smaller vectors, where the format tells them apart."""
    slopes, sizes = about.result.slope[about.result.rule], about.result.sizes
    told = slopes[(sizes >= FINE) & np.isfinite(slopes)]
    return bool((np.diff(told) <= 0).all())


def gone(about: About, *, below: bool) -> bool:
    """Whether the slope is ∞ or undefined at some smaller size, or at some larger one."""
    slopes = about.result.slope[about.result.rule]
    return not np.isfinite(slopes[: about.at] if below else slopes[about.at :]).all()


def finite_again(about: About) -> bool:
    """Whether the slope of the smallest vectors is the one at which epsilon stops."""
    return bool(abs(about.result.slope[about.result.rule, 0] * about.divisor_of(np.zeros(2)) - 1) < 0.1)


def held_at(about: About, v: dict[str, str]) -> bool:
    return slope(about, v) and reads(v["steepest"], 1 / about.divisor_of(np.zeros(2)), 3)


def squares_first(about: About, v: dict[str, str]) -> bool:
    """The slope rises to the one told and is undefined below, where nothing is left under the root."""
    slopes = about.result.slope[about.result.rule]
    most = float(np.nanmax(slopes))
    least = about.divisor_of(np.zeros(2))
    return held_at(about, v) and reads(v["most"], most, 3) and most < 0.5 / least and bool(np.isnan(slopes[0]))


def endless(about: About, v: dict[str, str]) -> bool:
    return slope(about, v) and smaller(about) and (about.settings.rule == "absent" or about.epsilon == 0)


TRUTHS: Final[dict[str, Truth]] = {
    "epsilon.normalised": lambda about, v: measured(about, v) and 98.9 < read(v["share"]) < 102.1,
    "epsilon.short": lambda about, v: measured(about, v) and read(v["share"]) < 99.1,
    "epsilon.long": long,
    "epsilon.undefined": lambda about, v: nothing(about, v) and bool((about.x == 0).any()),
    "epsilon.overflow": lambda about, v: nothing(about, v) and math.isinf(about.share),
    "epsilon.lost": lambda about, v: about.epsilon == 0 and about.settings.rule != "absent",
    "epsilon.rule.inside": below,
    "epsilon.rule.outside": below,
    "epsilon.rule.floor": floor,
    "epsilon.rule.floored_root": floored_root,
    "epsilon.rule.absent": absent,
    "epsilon.slope.stopped": stopped,
    "epsilon.slope.squares": squares,
    "epsilon.slope.squares_first": squares_first,
    "epsilon.slope.overflow": lambda about, v: (
        held_at(about, v) and smaller(about) and gone(about, below=True) and not finite_again(about)
    ),
    "epsilon.slope.overflow_gap": lambda about, v: (
        held_at(about, v) and gone(about, below=True) and finite_again(about)
    ),
    "epsilon.slope.stopped_below": lambda about, v: (
        held_at(about, v)
        and gone(about, below=False)
        and bool((about.result.slope[about.result.rule, : about.at] <= 1.1 / about.divisor_of(np.zeros(2))).all())
    ),
    "epsilon.slope.endless": endless,
    "epsilon.slope.infinite": lambda about, v: math.isinf(about.slope),
    "epsilon.slope.undefined": lambda about, v: math.isnan(about.slope),
    "epsilon.zero.fine": lambda about, v: (
        reads(v["slope"], about.result.zero_slope[about.result.rule], 3)
        and about.result.zero_output[about.result.rule] == 0
        and abs(read(v["slope"]) * about.divisor_of(np.zeros(2)) - 1) < 0.05
    ),
    "epsilon.zero.infinite": lambda about, v: (
        math.isinf(about.result.zero_slope[about.result.rule]) and about.result.zero_output[about.result.rule] == 0
    ),
    "epsilon.zero.no_slope": lambda about, v: (
        math.isnan(about.result.zero_slope[about.result.rule]) and about.result.zero_output[about.result.rule] == 0
    ),
    "epsilon.zero.undefined": lambda about, v: (
        math.isnan(about.result.zero_output[about.result.rule]) and about.divisor_of(np.zeros(2)) == 0
    ),
}


def test_every_sentence_of_a_result_has_an_oracle() -> None:
    kinds = computed(r"epsilon\.(normalised|short|long|undefined|overflow|lost)")
    assert set(TRUTHS) == kinds | computed(r"epsilon\.(rule|slope|zero)\..*")


def test_every_sentence_is_true_wherever_the_dials_stand() -> None:
    held = set[str]()
    for state in states(Settings, 80):
        result = run(state)
        with heard() as said:
            explain(result)
        first, rest = said[: len(result.sizes)], said[len(result.sizes) :]
        held |= hold(rest, TRUTHS, "", About(result, result.at), state)
        with heard() as said:
            findings(result)
        assert [each.sentence for each in said] == [each.sentence for each in first]
        for at, each in enumerate(said):
            held |= hold([each], TRUTHS, "", About(result, at), state)
    assert len(held) > 0.7 * len(TRUTHS)
