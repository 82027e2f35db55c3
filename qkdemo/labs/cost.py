"""What does normalising q and k cost, on paper and on this machine?

On paper: two norms touch every entry of q and k once, O(T · d), where attention multiplies every pair of
positions, O(T² · d); their share falls as the text grows. On a machine it is another matter: a norm that is not
fused reads and writes q and k again, and a softcap keeps plain fused attention from being used at all. So the
same layer is timed here, live, several times over, in turns. What it says holds for this machine, now.

* `Settings`, `PRESETS`: the dials, and named states of them;
* `run(settings)`: operations and bytes by formula; `measure(settings)`: times, with their spread;
* `explain`, `explain_times`, `rows`, `report`, `snippet`: the result in words, as tables, as a PyTorch program.
"""

import math
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Annotated, Any, Final, Literal, TypeAlias

import torch
from torch import Tensor

from qkdemo.attention import rms_norm
from qkdemo.devices import DeviceWord, available_devices, device_for
from qkdemo.notation import plain, written
from qkdemo.numerics import FORMATS
from qkdemo.settings import Choice, Dial, Dials, Switch, Value
from qkdemo.strings import say

PartWord: TypeAlias = Literal["projections", "attention", "rms", "layernorm", "l2", "softcap"]
WayWord: TypeAlias = Literal["sdpa", "sdpa_norms", "explicit", "explicit_norms", "explicit_softcap"]
UNREPEATABLE: Final = ("times", "machine", "device", "threads")  # parts of the report that a clock and a place make
_WARM_UP: Final = 2  # rounds that are not counted
_CAP: Final = 50.0
_TANH: Final = 8  # operations that a tanh is counted as: a rational approximation of it takes about so many


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials of the cost lab: one attention layer, batch 1."""

    n_keys: Annotated[int, Dial(16, 256, log=True, stops=(16, 32, 64, 128, 256))] = 128
    n_heads: Annotated[int, Dial(1, 8, log=True, stops=(1, 2, 4, 8))] = 4
    d_head: Annotated[int, Dial(16, 128, log=True, stops=(16, 32, 64, 128))] = 64
    d_model: Annotated[int, Dial(16, 1024, log=True, stops=(16, 32, 64, 128, 256, 512, 1024))] = 256
    causal: Annotated[bool, Switch()] = True
    # float16 and float64 are left out: processors have no fast way to multiply in them
    format: Annotated[Literal["float32", "bfloat16"], Choice()] = "float32"
    repeats: Annotated[int, Dial(3, 12)] = 7
    device: Annotated[DeviceWord, Choice(more=True, available=available_devices)] = "cpu"
    seed: Annotated[int, Dial(0, 9999, more=True)] = 0


PRESETS: Final[dict[str, Settings]] = {
    "one_layer": Settings(),
    "short_text": Settings(n_keys=32),
    "long_text": Settings(n_keys=256),
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


@dataclass(frozen=True)
class Times:
    """One way of computing attention from projected q, k and v, timed on this machine."""

    way: WayWord
    median_ms: float
    lowest_ms: float
    highest_ms: float
    ratio: float  # of medians, to plain fused attention


@dataclass(frozen=True)
class Measured:
    """All ways, timed in turns, and where."""

    settings: Settings
    times: tuple[Times, ...]
    machine: str
    device: DeviceWord
    threads: int


def run(settings: Settings) -> Result:
    """Operations and bytes of every part, for the whole text at once."""
    width = FORMATS[settings.format].dtype.itemsize
    counted = {word: count(settings) for word, count in PARTS.items()}
    whole = counted["projections"][0] + counted["attention"][0]
    parts = (Part(word, flops, width * moved, flops / whole) for word, (flops, moved) in counted.items())
    return Result(settings, tuple(parts))


def _entries(s: Settings) -> int:
    return s.n_keys * s.n_heads * s.d_head


def _pairs(s: Settings) -> int:
    """Pairs of a query and a key that it sees, all heads."""
    return s.n_heads * (s.n_keys * (s.n_keys + 1) // 2 if s.causal else s.n_keys**2)


def _projections(s: Settings) -> tuple[int, int]:
    """Operations and numbers moved: four matrices, d_model by n_heads · d_head, every token."""
    weights = 4 * s.d_model * s.n_heads * s.d_head
    return 2 * s.n_keys * weights, weights + 2 * s.n_keys * s.d_model + 4 * _entries(s)


def _attention(s: Settings) -> tuple[int, int]:
    """q·k and the weighted sum of v, for every visible pair; fused: q, k and v read once, the output written."""
    return 4 * _pairs(s) * s.d_head, 4 * _entries(s)


def _rms(s: Settings) -> tuple[int, int]:
    """q and k: square, add, times 1/rms, times γ: four operations an entry, read and written once."""
    return 2 * 4 * _entries(s), 4 * _entries(s)


def _layernorm(s: Settings) -> tuple[int, int]:
    """As RMSNorm, and two more an entry: adding up the mean and subtracting it."""
    return 2 * 6 * _entries(s), 4 * _entries(s)


def _l2(s: Settings) -> tuple[int, int]:
    """As RMSNorm without γ; the learned scale takes the place of 1/√d."""
    return 2 * 3 * _entries(s), 4 * _entries(s)


def _softcap(s: Settings) -> tuple[int, int]:
    """Divide, tanh and multiply for every visible pair; unfused, the logits are read and written."""
    return (2 + _TANH) * _pairs(s), 2 * _pairs(s)


PARTS: Final[dict[PartWord, Callable[[Settings], tuple[int, int]]]] = {
    "projections": _projections,
    "attention": _attention,
    "rms": _rms,
    "layernorm": _layernorm,
    "l2": _l2,
    "softcap": _softcap,
}


def measure(settings: Settings, clock: Callable[[], float] = time.perf_counter) -> Measured:
    """Every way `repeats` times, in turns, so that a disturbance meets all of them. `clock` gives seconds."""
    device = device_for(settings.device, FORMATS[settings.format].dtype)
    q, k, v, gamma_q, gamma_k = _inputs(settings, device)
    seconds: dict[WayWord, list[float]] = {way: [] for way in WAYS}
    with torch.inference_mode():
        for turn in range(_WARM_UP + settings.repeats):
            for way, attend in WAYS.items():
                start = clock()
                attend(q, k, v, gamma_q, gamma_k, settings)
                _wait_for(device)
                elapsed = clock() - start
                if turn >= _WARM_UP:
                    seconds[way].append(elapsed)
    base = median(seconds["sdpa"])
    times = (
        Times(way, 1e3 * median(found), 1e3 * min(found), 1e3 * max(found), median(found) / base if base else math.nan)
        for way, found in seconds.items()
    )
    return Measured(settings, tuple(times), _machine(device), device, torch.get_num_threads())


def _inputs(settings: Settings, device: DeviceWord) -> list[Tensor]:
    generator = torch.Generator().manual_seed(settings.seed)
    shape = (1, settings.n_heads, settings.n_keys, settings.d_head)
    drawn = [torch.randn(shape, generator=generator) for _ in range(3)]
    drawn += [1 + 0.1 * torch.randn(settings.d_head, generator=generator) for _ in range(2)]
    return [x.to(device, FORMATS[settings.format].dtype) for x in drawn]


def _wait_for(device: DeviceWord) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
    elif device == "mps":
        torch.mps.synchronize()


def _machine(device: DeviceWord) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"{platform.machine()} {platform.system()}, torch {torch.__version__}"


def _sdpa(q: Tensor, k: Tensor, v: Tensor, gamma_q: Tensor, gamma_k: Tensor, s: Settings) -> Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=s.causal)


def _sdpa_norms(q: Tensor, k: Tensor, v: Tensor, gamma_q: Tensor, gamma_k: Tensor, s: Settings) -> Tensor:
    return _sdpa(rms_norm(q, gamma_q), rms_norm(k, gamma_k), v, gamma_q, gamma_k, s)


def _explicit(q: Tensor, k: Tensor, v: Tensor, gamma_q: Tensor, gamma_k: Tensor, s: Settings) -> Tensor:
    return _weighted(q @ k.mT / math.sqrt(s.d_head), v, s)


def _explicit_norms(q: Tensor, k: Tensor, v: Tensor, gamma_q: Tensor, gamma_k: Tensor, s: Settings) -> Tensor:
    return _explicit(rms_norm(q, gamma_q), rms_norm(k, gamma_k), v, gamma_q, gamma_k, s)


def _explicit_softcap(q: Tensor, k: Tensor, v: Tensor, gamma_q: Tensor, gamma_k: Tensor, s: Settings) -> Tensor:
    return _weighted(_CAP * torch.tanh(q @ k.mT / (math.sqrt(s.d_head) * _CAP)), v, s)


def _weighted(logits: Tensor, v: Tensor, s: Settings) -> Tensor:
    if s.causal:
        hidden = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).triu(1)
        logits = logits.masked_fill(hidden, -torch.inf)
    return torch.softmax(logits, -1) @ v


WAYS: Final[dict[WayWord, Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Settings], Tensor]]] = {
    "sdpa": _sdpa,
    "sdpa_norms": _sdpa_norms,
    "explicit": _explicit,
    "explicit_norms": _explicit_norms,
    "explicit_softcap": _explicit_softcap,
}


def explain(result: Result) -> list[str]:
    """The share of each part on paper."""
    parts = {part.part: part for part in result.parts}
    attention, moved = parts["attention"], parts["rms"].bytes_moved
    values = {
        "keys": result.settings.n_keys,
        "rms": written(100 * parts["rms"].share, 2),
        "layernorm": written(100 * parts["layernorm"].share, 2),
        "softcap": written(100 * parts["softcap"].share, 2),
        "attention": written(100 * attention.share, 3),
        "moved": written(moved / 2**20, 3),
        "factor": written(moved / attention.bytes_moved, 2),
    }
    return [say("cost.norms", **values), say("cost.memory", **values), say("cost.softcap", **values)]


def explain_times(measured: Measured) -> list[str]:
    """What the clock said, each with its spread, and where it holds."""
    sentences = [
        say(
            "cost.time",
            way=say(f"choice.timed.{times.way}"),
            median=written(times.median_ms, 3),
            lowest=written(times.lowest_ms, 3),
            highest=written(times.highest_ms, 3),
            ratio=written(times.ratio, 3),
        )
        for times in measured.times
    ]
    where = {"machine": measured.machine, "device": measured.device, "threads": measured.threads}
    return [*sentences, say("cost.where", repeats=measured.settings.repeats, **where)]


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per part."""
    return [vars(part) for part in result.parts]


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: the parts by formula, then the times on this machine."""
    measured = measure(settings)
    where = {"machine": measured.machine, "device": measured.device, "threads": measured.threads}
    return {"rows": rows(run(settings)), "times": [vars(times) for times in measured.times], **where}


def snippet(settings: Settings) -> str:
    """A standalone PyTorch program that times plain and normalised fused attention on the machine it runs on."""
    return _PROGRAM.format(
        shape=f"1, {settings.n_heads}, {settings.n_keys}, {settings.d_head}",
        d=settings.d_head,
        format=settings.format,
        device=settings.device,
        causal=settings.causal,
        seed=settings.seed,
        repeats=settings.repeats,
        flops=plain(_rms(settings)[0] / (_projections(settings)[0] + _attention(settings)[0])),
    )


_PROGRAM: Final = '''"""Fused attention with and without RMSNorm on q and k, timed in turns. Needs torch alone."""
import json
import statistics
import time

import torch
from torch.nn.functional import rms_norm, scaled_dot_product_attention

torch.manual_seed({seed})
q, k, v = (torch.randn({shape}, device="{device}", dtype=torch.{format}) for _ in "qkv")
gain_q, gain_k = (1 + 0.1 * torch.randn({d}, device="{device}", dtype=torch.{format}) for _ in "qk")
ways = {{
    "sdpa": lambda: scaled_dot_product_attention(q, k, v, is_causal={causal}),
    "sdpa_norms": lambda: scaled_dot_product_attention(
        rms_norm(q, ({d},), gain_q, 1e-6), rms_norm(k, ({d},), gain_k, 1e-6), v, is_causal={causal}
    ),
}}
times = {{way: [] for way in ways}}
with torch.inference_mode():
    for turn in range(2 + {repeats}):
        for way, attend in ways.items():
            start = time.perf_counter()
            attend()
            if q.is_cuda:
                torch.cuda.synchronize()
            if turn > 1:  # the first two warm up
                times[way].append(1e3 * (time.perf_counter() - start))
# By formula, the norms' share of the operations of projections and attention:
print(json.dumps({{"share": {flops}, **{{way: statistics.median(found) for way, found in times.items()}}}}))
'''
