"""Which key does a query choose, in whichever direction it points?

Head width three, so that nothing is projected. Keys are drawn; the query points where latitude and longitude say. Turn
up the weight scale: plain arrows leave the frame, and one key has nearly all of the attention in most directions. With
L2 norm all tips stay on one sphere, which falls into one region per key; the learned scale g makes its borders sharp.

* `Settings`, `PRESETS`: the dials, and named states of them;
* `run(settings)`: weights of the query, and of a query in every direction, on both sides; the score over lengths;
* `rows`, `direction_rows`, `report`: the result as tables.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.dials import Dial, Dials, Value

WIDTH: Final = 3
FRAME: Final = 3.0  # half a side of what is seen of the plain arrows
DECIDED: Final = 0.9  # a weight, from which on a direction counts as decided
LATITUDES: Final = np.linspace(-90, 90, 37)
LONGITUDES: Final = np.linspace(-180, 180, 73)  # the last is the first again
_STEPS: Final = 21  # lengths along a side of the score's surface
_REACH: Final = 1.5  # how far it reaches beyond the pair that is shown


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials of the sphere; by default weight scale 1 and g = 10."""

    scale: Annotated[float, Dial(0.01, 1000, log=True, sign="×")] = 1.0
    gain: Annotated[float, Dial(0.01, 100, log=True)] = 10.0
    latitude: Annotated[int, Dial(-90, 90, 5)] = 20
    longitude: Annotated[int, Dial(-180, 180, 5)] = 30
    query_length: Annotated[float, Dial(0, 3, 0.1)] = 1.5
    n_keys: Annotated[int, Dial(2, 5, use="sphere")] = 5
    key: Annotated[int, Dial(0, 4, below="n_keys")] = 0
    turn: Annotated[int, Dial(-180, 180, 5, more=True)] = 45
    tilt: Annotated[int, Dial(-85, 85, 5, more=True)] = 25
    seed: Annotated[int, Dial(0, 9999, more=True)] = 0


PRESETS: Final[dict[str, Settings]] = {
    "fresh": Settings(),
    "grown": Settings(scale=4),
    "blunt": Settings(gain=1),
    "sharp": Settings(gain=50),
}


@dataclass(frozen=True, eq=False)
class Side:
    """One side: the query's weights, and those of a query in every direction."""

    logits: NDArray[np.float64]  # [keys]
    weights: NDArray[np.float64]  # [keys]
    winners: NDArray[np.int64]  # [latitudes, longitudes] the key with the largest weight
    top: NDArray[np.float64]  # [latitudes, longitudes] that weight

    @property
    def decided(self) -> float:
        """The share of all directions, by area, in which one key has a weight of `DECIDED` or more."""
        return _share(self.top >= DECIDED)

    @property
    def undecided(self) -> float:
        """The share in which none has."""
        return 1 - self.decided

    @property
    def level(self) -> bool:
        """Whether every key has the same weight in every direction: a query of length 0, in plain attention."""
        return bool(np.ptp(self.weights) == 0 and np.ptp(self.top) == 0)

    def territory(self, key: int) -> float:
        """The share of all directions in which `key` has the largest weight."""
        return _share(self.winners == key)


@dataclass(frozen=True, eq=False)
class Result:
    """Keys, the query, and both sides."""

    settings: Settings
    keys: NDArray[np.float64]  # [keys, 3] as they enter the score
    query: NDArray[np.float64]  # [3]
    plain: Side
    twin: Side
    lengths: NDArray[np.float64]  # of q, and of k, along the sides of the score's surface
    plain_scores: NDArray[np.float64]  # [lengths of k, lengths of q] at the angle of the pair shown, times 1/√3
    twin_scores: NDArray[np.float64]

    @property
    def shown(self) -> int:
        """The key of the pair that is looked at: the dial, within what this state has."""
        return min(self.settings.key, self.settings.n_keys - 1)

    @property
    def cosine(self) -> float:
        """Between the query's direction and that key."""
        return float(direction(self.settings) @ unit(self.keys[self.shown]))

    @property
    def outside(self) -> int:
        """How many plain arrows, query and keys, leave the frame, which is a cube."""
        return sum(leaves_frame(end) for end in (self.query, *self.keys))


@lru_cache(maxsize=128)
def run(settings: Settings) -> Result:
    """Both sides, in float64."""
    drawn = np.random.default_rng(settings.seed).standard_normal((settings.n_keys, WIDTH))
    keys = settings.scale * drawn
    query = settings.scale * settings.query_length * direction(settings)
    everywhere = directions()
    units = np.array([unit(key) for key in drawn])
    pointing = direction(settings) if settings.query_length else np.zeros(WIDTH)
    longest = max(float(np.linalg.norm(query)), float(np.linalg.norm(keys, axis=-1).max()))
    lengths = np.linspace(0, _REACH * longest, _STEPS)
    cosine = float(direction(settings) @ unit(drawn[min(settings.key, settings.n_keys - 1)]))
    flat = np.where(np.outer(lengths, lengths) > 0, settings.gain * cosine, np.nan)  # length 0 has no direction
    return Result(
        settings=settings,
        keys=keys,
        query=query,
        plain=_side(
            keys @ query / math.sqrt(WIDTH),
            settings.scale * settings.query_length * everywhere @ keys.T / math.sqrt(WIDTH),
        ),
        twin=_side(settings.gain * units @ pointing, settings.gain * everywhere @ units.T),
        lengths=lengths,
        plain_scores=np.outer(lengths, lengths) * cosine / math.sqrt(WIDTH),
        twin_scores=flat,
    )


def leaves_frame(end: NDArray[np.float64]) -> bool:
    """Whether an arrow from the middle of the frame ends outside it."""
    return bool(np.abs(end).max() > FRAME)


def direction(settings: Settings) -> NDArray[np.float64]:
    """[3] where the query points, at length 1."""
    return _pointing(math.radians(settings.latitude), math.radians(settings.longitude))


def unit(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """`x` at length 1."""
    return np.asarray(x / np.linalg.norm(x))


def _pointing(latitude: float, longitude: float) -> NDArray[np.float64]:
    flat = math.cos(latitude)
    return np.array([flat * math.cos(longitude), flat * math.sin(longitude), math.sin(latitude)])


@lru_cache(maxsize=1)
def directions() -> NDArray[np.float64]:
    """[latitudes, longitudes, 3] the grid on which shares are counted; every pole is one place."""
    angles = [(math.radians(at), math.radians(around)) for at in LATITUDES for around in LONGITUDES]
    return np.array([_pointing(*each) for each in angles]).reshape(len(LATITUDES), len(LONGITUDES), WIDTH)


def _side(logits: NDArray[np.float64], everywhere: NDArray[np.float64]) -> Side:
    weights = softmax(everywhere)
    return Side(logits, softmax(logits), weights.argmax(-1), weights.max(-1))


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Over the last axis; the largest logit is subtracted first."""
    terms = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(terms / terms.sum(-1, keepdims=True))


def _share(holds: NDArray[np.bool_]) -> float:
    """Of the sphere's area: a cell of the grid is as wide as its circle of latitude."""
    width = np.broadcast_to(np.cos(np.radians(LATITUDES))[:, None], holds.shape)[:, :-1]
    return float((width * holds[:, :-1]).sum() / width.sum())


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per key."""
    pointing = direction(result.settings)
    return [
        {
            "key": at,
            "length": float(np.linalg.norm(key)),
            "cosine": float(unit(key) @ pointing),
            "plain_logit": float(result.plain.logits[at]),
            "plain_weight": float(result.plain.weights[at]),
            "plain_territory": None if result.plain.level else result.plain.territory(at),
            "norm_logit": float(result.twin.logits[at]),
            "norm_weight": float(result.twin.weights[at]),
            "norm_territory": result.twin.territory(at),
        }
        for at, key in enumerate(result.keys)
    ]


def direction_rows(result: Result) -> list[dict[str, Value | None]]:
    """The table of directions: which key a query there would choose, and how surely."""
    level = result.plain.level
    return [
        {
            "latitude": float(LATITUDES[j]),
            "longitude": float(LONGITUDES[i]),
            "plain_key": None if level else int(result.plain.winners[j, i]),
            "plain_weight": float(result.plain.top[j, i]),
            "norm_key": int(result.twin.winners[j, i]),
            "norm_weight": float(result.twin.top[j, i]),
        }
        for j in range(len(LATITUDES))
        for i in range(len(LONGITUDES) - 1)
    ]


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: how much is decided, then the table of keys."""
    result = run(settings)
    decided = {"plain_decided": result.plain.decided, "norm_decided": result.twin.decided}
    return decided | {"outside": result.outside, "rows": rows(result)}
