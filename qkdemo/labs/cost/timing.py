"""The same layer timed on this machine, several times over, in turns.

* `measure(settings)`: every way of computing attention, round by round; `Measured`, `Times`;
* `time_rows(measured)`: a row per way and round."""

import math
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, Literal, TypeAlias

import torch
from torch import Tensor

from qkdemo.attention.norms import rms_norm
from qkdemo.dials import Value
from qkdemo.floats.devices import DeviceWord, device_for
from qkdemo.floats.formats import FORMATS
from qkdemo.labs.cost.lab import Settings, report

WayWord: TypeAlias = Literal["sdpa", "sdpa_norms", "explicit", "explicit_norms", "explicit_softcap"]


UNREPEATABLE: Final = ("times", "machine", "device", "threads")  # parts of the report that a clock and a place make


_WARM_UP: Final = 2  # rounds that are not counted


_CAP: Final = 50.0


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


def time_rows(measured: Measured) -> list[dict[str, Value | None]]:
    """The table of times: one row per way and round."""
    return [
        {"way": times.way, "round": at, "ms": ms, "ratio": ratio}
        for times in measured.times
        for at, (ms, ratio) in enumerate(zip(times.each_ms, times.ratios, strict=True), 1)
    ]


def live_report(settings: Settings) -> dict[str, Any]:
    """What it prints when it is to measure: also the times on this machine, round by round."""
    measured = measure(settings)
    where = {"machine": measured.machine, "device": measured.device, "threads": measured.threads}
    return report(settings) | {"times": time_rows(measured)} | where
