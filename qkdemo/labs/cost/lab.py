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

import math
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Annotated, Any, Final, Literal, TypeAlias

import torch
from torch import Tensor

from qkdemo.attention.norms import rms_norm
from qkdemo.dials import Choice, Dial, Dials, Switch, Value, preferred_numbers
from qkdemo.floats.devices import DeviceWord, available_devices, device_for
from qkdemo.floats.formats import FORMATS, FormatWord
from qkdemo.messages import say
from qkdemo.notation import plain, written

PartWord: TypeAlias = Literal["projections", "attention", "rms", "layernorm", "l2", "softcap"]
WayWord: TypeAlias = Literal["sdpa", "sdpa_norms", "explicit", "explicit_norms", "explicit_softcap"]
UNREPEATABLE: Final = ("times", "machine", "device", "threads")  # parts of the report that a clock and a place make
_WARM_UP: Final = 2  # rounds that are not counted
_CAP: Final = 50.0
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
    format: Annotated[FormatWord, Choice()] = "float32"
    repeats: Annotated[int, Dial(3, 15)] = 9
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
    """One way of computing attention from projected q, k and v, timed on this machine.

    A round times every way once. Ratios are of times in the same round, so that what slows the machine down for a
    while slows both; their median says more than the ratio of medians.
    """

    way: WayWord
    each_ms: tuple[float, ...]  # round by round
    ratios: tuple[float, ...]  # to plain fused attention in the same round

    @property
    def median_ms(self) -> float:
        """The middle one."""
        return median(self.each_ms)

    @property
    def ratio(self) -> float:
        """The middle one."""
        return median(self.ratios)

    @property
    def is_apart(self) -> bool:
        """Whether every single round says the same: slower than plain fused attention, or faster."""
        return min(self.ratios) > 1 or max(self.ratios) < 1


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


def sweep(settings: Settings) -> tuple[Result, ...]:
    """The same layer over texts of every length, that of `settings` among them, ascending."""
    lengths = {round(length) for length in preferred_numbers(_SHORTEST, _LONGEST, per_decade=10)}
    return tuple(run(settings.but(n_keys=length)) for length in sorted(lengths | {settings.n_keys}))


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


def measure(
    settings: Settings,
    clock: Callable[[], float] = time.perf_counter,
    after_round: Callable[[int, int], None] = lambda done, rounds: None,
) -> Measured:
    """Every way `repeats` times, in turns, so that a disturbance meets all of them.

    `clock` gives seconds. `after_round(done, rounds)` hears how far it is, and may stop it by raising.
    """
    device = device_for(settings.device, FORMATS[settings.format].dtype)
    q, k, v, gamma_q, gamma_k = _inputs(settings, device)
    seconds: dict[WayWord, list[float]] = {way: [] for way in WAYS}
    rounds = _WARM_UP + settings.repeats
    for turn in range(rounds):
        with torch.inference_mode():
            for way, attend in WAYS.items():
                start = clock()
                attend(q, k, v, gamma_q, gamma_k, settings)
                _wait_for(device)
                elapsed = clock() - start
                if turn >= _WARM_UP:
                    seconds[way].append(elapsed)
        after_round(turn + 1, rounds)
    times = (
        Times(way, tuple(1e3 * x for x in found), _ratios(found, seconds["sdpa"])) for way, found in seconds.items()
    )
    return Measured(settings, tuple(times), _machine(device), device, torch.get_num_threads())


def _ratios(found: list[float], base: list[float]) -> tuple[float, ...]:
    return tuple(x / y if y > 0 else math.nan for x, y in zip(found, base, strict=True))


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


def finding(result: Result) -> str:
    """What a length of the text says."""
    parts = {part.part: part for part in result.parts}
    return say("cost.finding", keys=written(result.settings.n_keys), rms=written(100 * parts["rms"].share, 2))


def explain(result: Result) -> list[str]:
    """The share of each part on paper."""
    parts = {part.part: part for part in result.parts}
    values = {
        "attention": written(100 * parts["attention"].share, 3),
        "layernorm": written(100 * parts["layernorm"].share, 2),
        "l2": written(100 * parts["l2"].share, 2),
        "softcap": written(100 * parts["softcap"].share, 2),
        "moved": written(parts["rms"].bytes_moved / 2**20, 3),
        "logits": written(parts["softcap"].bytes_moved / 2**20, 3),
    }
    return [finding(result), *(say(f"cost.{name}", **values) for name in ("norms", "memory", "softcap"))]


def explain_times(measured: Measured) -> list[str]:
    """What the clock said of each way, and where it holds."""
    where = {"machine": measured.machine, "device": measured.device, "threads": measured.threads}
    ways = [
        say(f"cost.{'base' if times.way == 'sdpa' else 'time'}", way=say(f"choice.timed.{times.way}"), **spread(times))
        for times in measured.times
    ]
    return [time_finding(measured), *ways, say("cost.where", repeats=measured.settings.repeats, **where)]


def time_finding(measured: Measured) -> str:
    """What norms before fused attention cost here, if the rounds agree at all."""
    times = next(times for times in measured.times if times.way == "sdpa_norms")
    word = "unclear" if not times.is_apart else "slower" if times.ratio > 1 else "faster"
    return say(f"cost.clock.{word}", **spread(times))


def spread(times: Times) -> dict[str, str]:
    """Median and both ends, written."""
    return {
        "median": written(times.median_ms, 3),
        "lowest": written(min(times.each_ms), 3),
        "highest": written(max(times.each_ms), 3),
        "ratio": written(times.ratio, 3),
        "least": written(min(times.ratios), 3),
        "most": written(max(times.ratios), 3),
        "rounds": str(len(times.each_ms)),
    }


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per part."""
    return [vars(part) for part in result.parts]


def sweep_rows(results: tuple[Result, ...]) -> list[dict[str, Value | None]]:
    """The table behind the curves: one row per length and part."""
    return [{"n_keys": result.settings.n_keys, **row} for result in results for row in rows(result)]


def time_rows(measured: Measured) -> list[dict[str, Value | None]]:
    """The table of times: one row per way and round."""
    return [
        {"way": times.way, "round": at, "ms": ms, "ratio": ratio}
        for times in measured.times
        for at, (ms, ratio) in enumerate(zip(times.each_ms, times.ratios, strict=True), 1)
    ]


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: the parts by formula."""
    return {"rows": rows(run(settings))}


def live_report(settings: Settings) -> dict[str, Any]:
    """What it prints when it is to measure: also the times on this machine, round by round."""
    measured = measure(settings)
    where = {"machine": measured.machine, "device": measured.device, "threads": measured.threads}
    return report(settings) | {"times": time_rows(measured)} | where


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
