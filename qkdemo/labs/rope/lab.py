"""Does it matter whether q and k are normalised before or after rotary positions?

One query and one key stand at a distance; both orders score them. Without a gain, with one number as gain, or
with gains equal within each rotary pair the orders agree. With a general gain, or with LayerNorm, they do not,
and two things follow. Norm first: the bound √d · max|γq γk| is wrong, since a rotation carries a channel to
its partner. Rotary first: the same pair at the same distance scores differently elsewhere in the text. Move
the position, and watch which curve stays flat.

* `Settings`, `PRESETS`: the dials, and named states of them;
* `run(settings)`: both orders over positions and over distances, with the wrong and the right bound;
* `findings`, `explain`, `rows`, `distance_rows`, `report`, `snippet`: the result in words, as tables and as a PyTorch
  program.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.norms import NORMS, normalise
from qkdemo.attention.rotary import LayoutWord, angles, partners, rotate
from qkdemo.dials import Choice, Dial, Dials, Value, preferred_numbers

GainKind: TypeAlias = Literal["none", "scalar", "tied", "untied", "crossed"]
VectorsWord: TypeAlias = Literal["random", "worst"]
AGREE: Final = 1e-9  # relative difference below which the orders agree: float64 at position 5000 leaves 1e-12
_POSITIONS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_SWEPT: Final = frozenset({0, *(round(x) for x in preferred_numbers(1, 5000, 10))})  # the positions that are computed
_DISTANCES: Final = range(65)
_DRAWN: Final = ("tied", "untied")
_NEAR: Final = 0.999  # of the bound: where the worst vectors count as having reached it


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials of the rotary lab; by default a general gain, so that the orders part."""

    position: Annotated[int, Dial(0, 5000, log=True, stops=_POSITIONS)] = 50
    distance: Annotated[int, Dial(0, 64)] = 3
    norm: Annotated[Literal["rms", "layernorm"], Choice()] = "rms"
    gain_kind: Annotated[GainKind, Choice()] = "untied"
    gain_spread: Annotated[float, Dial(0, 0.95, 0.05, only_for=("gain_kind", _DRAWN))] = 0.5
    gain_size: Annotated[float, Dial(0.1, 10, log=True, only_for=("gain_kind", ("scalar", "crossed")))] = 4.0
    vectors: Annotated[VectorsWord, Choice()] = "random"
    d_head: Annotated[int, Dial(4, 256, log=True, stops=(4, 8, 16, 32, 64, 128, 256))] = 64
    layout: Annotated[LayoutWord, Choice(more=True)] = "half_split"
    seed: Annotated[int, Dial(0, 9999, more=True)] = 0


PRESETS: Final[dict[str, Settings]] = {
    "bound_counterexample": Settings(gain_kind="crossed", vectors="worst", position=0, distance=11),
    "not_relative": Settings(),
    "no_gain": Settings(gain_kind="none"),
    "scalar_gain": Settings(gain_kind="scalar", gain_size=2),
    "tied_gain": Settings(gain_kind="tied"),
    "layernorm_without_gain": Settings(norm="layernorm", gain_kind="none"),
}


@dataclass(frozen=True, eq=False)
class Order:
    """One order of norm and rotary, over the positions: the key stands there, the query a distance later."""

    logit: NDArray[np.float64]  # [positions] at the distance chosen
    length: NDArray[np.float64]  # [positions] ‖q‖ · ‖k‖ as the product meets them
    cosine: NDArray[np.float64]  # [positions] of the angle between them
    largest: NDArray[np.float64]  # [positions] largest |logit| over all distances
    by_distance: NDArray[np.float64]  # [distances] logit, at the position chosen


@dataclass(frozen=True, eq=False)
class Result:
    """Both orders for one query and one key."""

    settings: Settings
    positions: NDArray[np.int64]
    distances: NDArray[np.int64]
    norm_rotary: Order
    rotary_norm: Order
    bound_naive: float  # √d · max|γq γk|
    bound_pairwise: float  # √d · max over rotary pairs of (max|γq| in the pair)(max|γk| in the pair)
    bound_simple: float  # √d · max|γq| · max|γk|
    max_abs_logit: float  # norm first, over the distances
    disagreement: float  # largest difference of the orders over positions and distances, relative to the largest logit
    reach: (
        int | None
    )  # the first distance at which the worst vectors are at their bound, to a thousandth; None if drawn
    reached: float | None  # |logit| there, norm first

    @property
    def agree(self) -> bool:
        """Whether the two orders are one function here, to rounding."""
        return self.disagreement < AGREE

    @property
    def happen_to_agree(self) -> bool:
        """Whether they agree for these vectors alone: another norm or gain than these would part others."""
        return self.agree and not (self.settings.norm == "rms" and tied(self.settings))

    @property
    def relative(self) -> bool:
        """Whether rotary first minds the distance alone, as norm first always does."""
        logits = self.rotary_norm.logit
        return bool(np.ptp(logits) <= AGREE * max(np.abs(logits).max(), 1))

    @property
    def broken(self) -> bool:
        """Whether a logit of norm first is larger than the naive bound."""
        return self.max_abs_logit > self.bound_naive * (1 + AGREE)

    @property
    def at(self) -> int:
        """The index of the current position in `positions`."""
        return int(np.argmin(np.abs(self.positions - self.settings.position)))


@lru_cache(maxsize=128)
def run(settings: Settings) -> Result:
    """Both orders over positions and distances, in float64."""
    gain_q, gain_k = gains(settings)
    positions = sorted({*_POSITIONS, *_SWEPT, settings.position})
    first, last = (_over(settings, order, positions) for order in ORDERS)
    gap = max(np.abs(first.logit - last.logit).max(), np.abs(first.by_distance - last.by_distance).max())
    largest = max(np.abs(logits).max() for side in (first, last) for logits in (side.logit, side.by_distance))
    root = math.sqrt(settings.d_head)
    reach = None if settings.vectors == "random" else _reach(settings)
    return Result(
        settings=settings,
        positions=np.array(positions),
        distances=np.array(_DISTANCES),
        norm_rotary=first,
        rotary_norm=last,
        bound_naive=root * (gain_q * gain_k).abs().max().item(),
        bound_pairwise=root * pairwise_product(gain_q, gain_k, settings.layout),
        bound_simple=root * gain_q.abs().max().item() * gain_k.abs().max().item(),
        max_abs_logit=float(np.abs(first.by_distance).max()),
        disagreement=float(gap / largest) if largest else 0.0,
        reach=reach,
        reached=None if reach is None else _scored(settings, reach),
    )


def pairwise_product(gain_q: Float[Tensor, " d_head"], gain_k: Float[Tensor, " d_head"], layout: LayoutWord) -> float:
    """max over rotary pairs of (max|γq| in the pair)(max|γk| in the pair); an odd last channel is its own pair."""
    first, second = partners(len(gain_q), layout)
    of_q, of_k = (torch.maximum(g.abs()[first], g.abs()[second]) for g in (gain_q, gain_k))
    alone = (gain_q * gain_k).abs()[2 * len(first) :]
    return float(torch.cat([of_q * of_k, alone]).max())


def gains(settings: Settings) -> tuple[Float[Tensor, " d_head"], Float[Tensor, " d_head"]]:
    """γ of q and of k, per channel."""
    d = settings.d_head
    ones = torch.ones(d, dtype=torch.float64)
    first, second = partners(d, settings.layout)
    match settings.gain_kind:
        case "none":
            return ones, ones
        case "scalar":
            return settings.gain_size * ones, settings.gain_size * ones
        case "crossed":
            gain_q, gain_k = ones.clone(), ones.clone()
            gain_q[first[0]] = gain_k[second[0]] = settings.gain_size
            return gain_q, gain_k
        case _:
            generator = np.random.default_rng(settings.seed + 10_000)  # apart from the vectors' draw
            low, high = 1 - settings.gain_spread, 1 + settings.gain_spread
            drawn = torch.from_numpy(generator.uniform(low, high, (2, d)))
            if settings.gain_kind == "tied":
                drawn[:, second] = drawn[:, first]
            return drawn[0], drawn[1]


def tied(settings: Settings) -> bool:
    """Whether the gains are equal within each rotary pair, as one number is."""
    first, second = partners(settings.d_head, settings.layout)
    return all(bool((gain[first] == gain[second]).all()) for gain in gains(settings))


def vectors(settings: Settings) -> tuple[Float[Tensor, " d_head"], Float[Tensor, " d_head"]]:
    """q and k before norm and rotation: drawn, or on the two channels that the right bound is made of."""
    if settings.vectors == "random":
        drawn = torch.from_numpy(np.random.default_rng(settings.seed).standard_normal((2, settings.d_head)))
        return drawn[0], drawn[1]
    q, k = torch.zeros(2, settings.d_head, dtype=torch.float64)
    _, of_q, of_k = _worst(settings)
    q[of_q] = k[of_k] = 1e6  # long, so that epsilon takes nothing away
    return q, k


def _worst(settings: Settings) -> tuple[int, int, int]:
    """The rotary pair with the largest product of gains, and the channel of it in which q, and k, has its own.

    A last channel that has no partner is a pair of its own.
    """
    gain_q, gain_k = (gain.abs() for gain in gains(settings))
    first, second = partners(settings.d_head, settings.layout)
    products = torch.maximum(gain_q[first], gain_q[second]) * torch.maximum(gain_k[first], gain_k[second])
    last = settings.d_head - 1
    if settings.d_head % 2 and gain_q[last] * gain_k[last] > products.max():
        return len(first), last, last
    pair = int(products.argmax())
    channels = torch.stack([first[pair], second[pair]])
    of_q, of_k = (int(channels[gain[channels].argmax()]) for gain in (gain_q, gain_k))
    return pair, of_q, of_k


def _reach(settings: Settings) -> int:
    """The first distance at which that pair of channels lies along each other: 0, or after a quarter turn."""
    pair, of_q, of_k = _worst(settings)
    if of_q == of_k:
        return 0
    frequency = angles(torch.ones(1), settings.d_head)[0, pair].item()
    turned = np.abs(np.sin(frequency * np.arange(max(_DISTANCES.stop, math.ceil(math.pi / 2 / frequency) + 1))))
    near = turned >= _NEAR * turned.max()
    return int(np.argmax(near))


def _scored(settings: Settings, distance: int) -> float:
    """|logit| of norm first at a distance, wherever the text stands."""
    sides = zip(vectors(settings), gains(settings), (float(distance), 0.0), strict=True)
    q, k = (_norm_rotary(x[None], gain, torch.tensor([at], dtype=torch.float64), settings) for x, gain, at in sides)
    return abs((q @ k.mT).item()) / math.sqrt(settings.d_head)


def _over(settings: Settings, order: str, positions: list[int]) -> Order:
    """The query at position + distance and the key at position, for every position and distance."""
    (q, k), (gain_q, gain_k), apply = vectors(settings), gains(settings), ORDERS[order]
    at_k = torch.tensor(positions)
    at_q, where = torch.unique(at_k[:, None] + torch.tensor(_DISTANCES), return_inverse=True)
    queries = apply(q.expand(len(at_q), -1), gain_q, at_q.double(), settings)
    keys = apply(k.expand(len(at_k), -1), gain_k, at_k.double(), settings)
    logits = (queries @ keys.mT)[where, torch.arange(len(keys))[:, None]] / math.sqrt(settings.d_head)
    length = queries[where[:, settings.distance]].norm(dim=-1) * keys.norm(dim=-1)
    logit = logits[:, settings.distance]
    return Order(
        logit=logit.numpy(),
        length=length.numpy(),
        cosine=(logit * math.sqrt(settings.d_head) / length).numpy(),
        largest=logits.abs().amax(-1).numpy(),
        by_distance=logits[positions.index(settings.position)].numpy(),
    )


def _norm_rotary(x: Tensor, gain: Tensor, at: Tensor, settings: Settings) -> Tensor:
    return rotate(normalise(x, NORMS[settings.norm]) * gain, at, settings.layout)


def _rotary_norm(x: Tensor, gain: Tensor, at: Tensor, settings: Settings) -> Tensor:
    return normalise(rotate(x, at, settings.layout), NORMS[settings.norm]) * gain


ORDERS: Final = {"norm_rotary": _norm_rotary, "rotary_norm": _rotary_norm}


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per position."""
    first, last = result.norm_rotary, result.rotary_norm
    return [
        {
            "position": position,
            "distance": result.settings.distance,
            "norm_rotary": first.logit[at].item(),
            "rotary_norm": last.logit[at].item(),
            "norm_rotary_length": first.length[at].item(),
            "rotary_norm_length": last.length[at].item(),
            "norm_rotary_cosine": first.cosine[at].item(),
            "rotary_norm_cosine": last.cosine[at].item(),
            "norm_rotary_largest": first.largest[at].item(),
            "rotary_norm_largest": last.largest[at].item(),
        }
        for at, position in enumerate(result.positions.tolist())
    ]


def distance_rows(result: Result) -> list[dict[str, Value | None]]:
    """The table over distances, at the current position."""
    columns = zip(
        result.distances.tolist(), result.norm_rotary.by_distance, result.rotary_norm.by_distance, strict=True
    )
    return [
        {"position": result.settings.position, "distance": at, "norm_rotary": a.item(), "rotary_norm": b.item()}
        for at, a, b in columns
    ]


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: bounds and the largest logit, then the table over positions."""
    result = run(settings)
    numbers = ("bound_naive", "bound_pairwise", "bound_simple", "max_abs_logit", "disagreement", "reach", "reached")
    return {name: getattr(result, name) for name in numbers} | {"rows": rows(result)}
