"""Which word does a query listen to when every arrow grows?

One query and five keys, each an arrow in the plane: head width two, so that what is drawn is all there is. A score is
length × length × agreement. Let all arrows grow together, none of them turning: plain attention comes to listen to the
longest arrow, its twin, whose arrows all have one length, goes on listening to the one that agrees.

* `Settings`, `PRESETS`: every arrow's length and angle, the weight scale, g and the number format;
* `run(settings)`: shares of attention on both sides, over a sweep of the weight scale;
* `findings`, `explain`, `rows`, `report`, `snippet`: the result in words, as tables and as a PyTorch program.

The twin is the variant `l2` (Henry et al. 2020). The browser computes this two-wide case itself while an arrow is
dragged (`web/arrows/plane.js`); a test compares the two.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.measures import attend
from qkdemo.attention.variants import VARIANTS, Parameters, VariantWord, scores
from qkdemo.dials import Choice, Dial, Dials, Value, preferred_numbers
from qkdemo.floats.formats import FORMATS, FormatWord, rounded
from qkdemo.messages import say

N_KEYS: Final = 5
LONGEST: Final = 3.0  # an arrow before it grows
_ALIKE: Final = 1e-9  # of all attention: two shares closer than that are one

_Length: Final = Dial(0, LONGEST, 0.05, more=True)
_Angle: Final = Dial(-180, 180, more=True)


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials of the arrows: by default “the cat sat on the mat”, asked by “sat”.

    Lengths are those at weight scale 1; angles are degrees, counter-clockwise from the right.
    """

    scale: Annotated[float, Dial(0.01, 1000, log=True, sign="×")] = 1.0
    gain: Annotated[float, Dial(0.1, 100, log=True)] = 4.0
    format: Annotated[FormatWord, Choice()] = "float64"
    query_length: Annotated[float, _Length] = 1.5
    query_angle: Annotated[int, _Angle] = 35
    key_1_length: Annotated[float, _Length] = 0.7
    key_1_angle: Annotated[int, _Angle] = 150
    key_2_length: Annotated[float, _Length] = 1.4
    key_2_angle: Annotated[int, _Angle] = 20
    key_3_length: Annotated[float, _Length] = 0.9
    key_3_angle: Annotated[int, _Angle] = 95
    key_4_length: Annotated[float, _Length] = 2.0
    key_4_angle: Annotated[int, _Angle] = 75
    key_5_length: Annotated[float, _Length] = 1.2
    key_5_angle: Annotated[int, _Angle] = -35

    @property
    def query(self) -> tuple[float, int]:
        """Length and angle of the query."""
        return self.query_length, self.query_angle

    @property
    def keys(self) -> tuple[tuple[float, int], ...]:
        """Length and angle of every key."""
        return tuple(
            (getattr(self, f"key_{at}_length"), getattr(self, f"key_{at}_angle")) for at in range(1, N_KEYS + 1)
        )


PRESETS: Final[dict[str, Settings]] = {
    "fresh": Settings(),
    "grown": Settings(scale=4),
    "overflow": Settings(scale=315, format="float16"),
    "one_length": Settings(key_1_length=1, key_2_length=1, key_3_length=1, key_4_length=1, key_5_length=1, scale=4),
}


@dataclass(frozen=True, eq=False)
class Side:
    """One side over the sweep; NaN where a row of scores has no softmax."""

    variant: VariantWord
    raw: NDArray[np.float64]  # [scales, keys] q·k
    logits: NDArray[np.float64]  # [scales, keys]
    shares: NDArray[np.float64]  # [scales, keys] attention weights
    entropy: NDArray[np.float64]  # [scales] nats

    @property
    def counting(self) -> NDArray[np.float64]:
        """[scales] How many keys count: e to the entropy, 1 if one takes all, 5 if all have the same share."""
        return np.asarray(np.exp(self.entropy))

    def winners(self, at: int) -> list[int]:
        """The keys with the largest share at one scale, more than one if they are alike; none where there are none."""
        shares = self.shares[at]
        return [] if np.isnan(shares).any() else np.flatnonzero(shares >= shares.max() - _ALIKE).tolist()

    def winner(self, at: int) -> int | None:
        """The key with the largest share at one scale, the first of several; None where there are no shares."""
        return next(iter(self.winners(at)), None)


@dataclass(frozen=True, eq=False)
class Result:
    """Plain attention and its twin over the same scales."""

    settings: Settings
    scales: NDArray[np.float64]
    plain: Side
    twin: Side

    @property
    def at(self) -> int:
        """The index of the current weight scale in `scales`."""
        return int(np.argmin(np.abs(self.scales - self.settings.scale)))


def run(settings: Settings, scales: Sequence[float] | None = None) -> Result:
    """Both sides over `scales`: by default preferred numbers over the dial's range, and the current scale."""
    swept = sorted({*preferred_numbers(0.01, 1000), settings.scale}) if scales is None else scales
    return _run(settings, tuple(swept))


@lru_cache(maxsize=128)
def _run(settings: Settings, scales: tuple[float, ...]) -> Result:
    plain, twin = (_side(settings, scales, word) for word in ("none", "l2"))
    return Result(settings=settings, scales=np.array(scales), plain=plain, twin=twin)


def _side(settings: Settings, scales: Sequence[float], word: VariantWord) -> Side:
    def store(x: Tensor) -> Tensor:  # sums are formed in float64, and rounded once
        return rounded(x, FORMATS[settings.format]).double()

    grown = torch.tensor(scales, dtype=torch.float64)[:, None, None, None]
    q, k = (store(grown * _vectors(arrows)) for arrows in ((settings.query,) * N_KEYS, settings.keys))
    made = scores(q, k, VARIANTS[word], Parameters(g=settings.gain), store=store)
    logits = made.logits[:, :, :1]  # one query asks
    weights, measures = attend(logits)
    raw, formed, shares = (x[:, 0, 0].numpy() for x in (made.raw, logits, weights))
    return Side(variant=word, raw=raw, logits=formed, shares=shares, entropy=measures.entropy.numpy())


def _vectors(arrows: Sequence[tuple[float, int]]) -> Tensor:
    """[1, arrows, 2] the tips."""
    tips = [
        (length * math.cos(math.radians(angle)), length * math.sin(math.radians(angle))) for length, angle in arrows
    ]
    return torch.tensor(tips, dtype=torch.float64)[None]


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table at the current weight scale: one row per key."""
    at, settings = result.at, result.settings
    found: list[dict[str, Value | None]] = []
    for key, (length, angle) in enumerate(settings.keys):
        numbers: dict[str, float] = {
            "raw_score": result.plain.raw[at, key].item(),
            "plain_logit": result.plain.logits[at, key].item(),
            "plain_share": result.plain.shares[at, key].item(),
            "norm_logit": result.twin.logits[at, key].item(),
            "norm_share": result.twin.shares[at, key].item(),
        }
        lost = sum(not math.isfinite(x) for x in numbers.values())
        place: dict[str, Value | None] = {"word": word_of(key), "length": length * settings.scale, "angle": angle}
        cosine = math.cos(math.radians(angle - settings.query_angle))
        found.append(place | {"cosine": cosine} | numbers | {"numbers_lost": lost})
    return found


def scale_rows(result: Result) -> list[dict[str, Value | None]]:
    """The table over weight scales: the share of every key on both sides."""
    sides = (("plain", result.plain), ("norm", result.twin))
    return [
        {"scale": float(scale)}
        | {f"{name}_{key + 1}": side.shares[at, key].item() for name, side in sides for key in range(N_KEYS)}
        for at, scale in enumerate(result.scales)
    ]


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: the table at the current weight scale."""
    return {"rows": rows(run(settings, [settings.scale]))}


def word_of(key: int) -> str:
    """The word of a key, counted from 0."""
    return say(f"arrows.word.key_{key + 1}")
