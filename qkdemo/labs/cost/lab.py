"""What does normalising q and k cost, on paper and on this machine?

On paper: two norms touch every entry of q and k once, O(T · d), where attention multiplies every pair of
positions, O(T² · d); their share falls as the text grows. On a machine it is another matter: a norm that is not
fused reads and writes q and k again, and a softcap keeps plain fused attention from being used at all. So the
same layer is timed here, live, several times over, in turns. What it says holds for this machine, now.

* `Settings`, `PRESETS`: the dials, and named states of them;
* `run(settings)`, `sweep(settings)`: operations and bytes by formula; for texts of every length;
* `measure(settings)`: times, with their spread;
* `finding`, `explain`, `rows`, `report`, `snippet` and their like: in words, as tables, as a PyTorch program.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from qkdemo.dials import Choice, Dial, Dials, Switch, Value, preferred_numbers
from qkdemo.floats.devices import DeviceWord, available_devices
from qkdemo.floats.formats import FORMATS, FormatWord

PartWord: TypeAlias = Literal["projections", "attention", "rms", "layernorm", "l2", "softcap"]
_SHORTEST, _LONGEST = 16, 1024  # tokens
_TANH: Final = 8  # operations that a tanh is counted as: a rational approximation of it takes about so many


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials of the cost lab: one attention layer, batch 1."""

    n_keys: Annotated[int, Dial(_SHORTEST, _LONGEST, log=True, stops=(16, 32, 64, 128, 256, 512, 1024))] = 256
    n_heads: Annotated[int, Dial(1, 16, log=True, stops=(1, 2, 4, 8, 16))] = 8
    d_head: Annotated[int, Dial(16, 128, log=True, stops=(16, 32, 64, 128))] = 64
    d_model: Annotated[int, Dial(16, 1024, log=True, stops=(16, 32, 64, 128, 256, 512, 1024))] = 256
    causal: Annotated[bool, Switch()] = True
    format: Annotated[FormatWord, Choice(use="layer")] = "float32"
    repeats: Annotated[int, Dial(3, 15)] = 9
    device: Annotated[DeviceWord, Choice(more=True, available=available_devices)] = "cpu"
    seed: Annotated[int, Dial(0, 9999, more=True)] = 0


PRESETS: Final[dict[str, Settings]] = {
    "one_layer": Settings(),
    "short_text": Settings(n_keys=32),
    "long_text": Settings(n_keys=_LONGEST),
    "bfloat16": Settings(format="bfloat16"),
}


@dataclass(frozen=True)
class Part:
    """One part of the layer, by formula. Multiplication and addition count as two operations."""

    part: PartWord
    flops: int
    bytes_moved: int  # read and written, were each part a pass of its own over memory
    share: float  # of the operations of projections and attention


@dataclass(frozen=True)
class Result:
    """The layer's parts by formula."""

    settings: Settings
    parts: tuple[Part, ...]


def run(settings: Settings) -> Result:
    """Operations and bytes of every part, for the whole text at once."""
    width = FORMATS[settings.format].dtype.itemsize
    counted = {word: count(settings) for word, count in PARTS.items()}
    whole = counted["projections"][0] + counted["attention"][0]
    parts = (Part(word, flops, width * moved, flops / whole) for word, (flops, moved) in counted.items())
    return Result(settings, tuple(parts))


def sweep(settings: Settings) -> tuple[Result, ...]:
    """The same layer over texts of every length, that of `settings` among them, ascending."""
    lengths = {round(length) for length in preferred_numbers(_SHORTEST, _LONGEST, per_decade=10)}
    return tuple(run(settings.but(n_keys=length)) for length in sorted(lengths | {settings.n_keys}))


def _entries(s: Settings) -> int:
    return s.n_keys * s.n_heads * s.d_head


def _pairs(s: Settings) -> int:
    """Pairs of a query and a key that it sees, all heads."""
    return s.n_heads * (s.n_keys * (s.n_keys + 1) // 2 if s.causal else s.n_keys**2)


def count_projections(s: Settings) -> tuple[int, int]:
    """Operations and numbers moved: four matrices, d_model by n_heads · d_head, every token."""
    weights = 4 * s.d_model * s.n_heads * s.d_head
    return 2 * s.n_keys * weights, weights + 2 * s.n_keys * s.d_model + 4 * _entries(s)


def count_attention(s: Settings) -> tuple[int, int]:
    """q·k and the weighted sum of v, for every visible pair; fused: q, k and v read once, the output written."""
    return 4 * _pairs(s) * s.d_head, 4 * _entries(s)


def count_rms(s: Settings) -> tuple[int, int]:
    """q and k: square, add, times 1/rms, times γ: four operations an entry, read and written once."""
    return 2 * 4 * _entries(s), 4 * _entries(s)


def count_layernorm(s: Settings) -> tuple[int, int]:
    """As RMSNorm, and two more an entry: adding up the mean and subtracting it."""
    return 2 * 6 * _entries(s), 4 * _entries(s)


def count_l2(s: Settings) -> tuple[int, int]:
    """As RMSNorm without γ; the learned scale takes the place of 1/√d."""
    return 2 * 3 * _entries(s), 4 * _entries(s)


def count_softcap(s: Settings) -> tuple[int, int]:
    """Divide, tanh and multiply for every visible pair; unfused, the logits are read and written."""
    return (2 + _TANH) * _pairs(s), 2 * _pairs(s)


PARTS: Final[dict[PartWord, Callable[[Settings], tuple[int, int]]]] = {
    "projections": count_projections,
    "attention": count_attention,
    "rms": count_rms,
    "layernorm": count_layernorm,
    "l2": count_l2,
    "softcap": count_softcap,
}


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per part."""
    return [vars(part) for part in result.parts]


def sweep_rows(results: tuple[Result, ...]) -> list[dict[str, Value | None]]:
    """The table behind the curves: one row per length and part."""
    return [{"n_keys": result.settings.n_keys, **row} for result in results for row in rows(result)]


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: the parts by formula."""
    return {"rows": rows(run(settings))}
