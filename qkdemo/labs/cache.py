"""What may a KV cache hold, so that decoding stays the function that a fresh pass computes?

Token by token a key is written to the cache and read again at every later step. It may be written raw and
finished on reading, half finished, or finished: all three are the same function. Normalising it again at every
read, with another head's gain, or turning it to the wrong position are not. A quantised cache adds an error of
its own, and a smaller one if the norm has evened the keys out before. Each way is held against recomputing
everything from scratch: exactly equal, equal to rounding, or wrong, by how much, and from which step on.

* `Settings`, `PRESETS`: the dials, and named states of them;
* `run(settings)`: one way of caching against a fresh pass, step by step; `every(settings)`: all of them;
* `explain`, `rows`, `report`, `snippet`: the result in words, as tables and as a PyTorch program.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.blocks import GainsWord, Recipe, draw_block
from qkdemo.normalisers import NORMS, normalise
from qkdemo.notation import plain, written
from qkdemo.numerics import FORMATS, FormatWord, Rounding, exact, rounded
from qkdemo.rotary import rotate
from qkdemo.settings import Choice, Dial, Dials, Value
from qkdemo.strings import say

WayWord: TypeAlias = Literal["raw", "halfway", "finished", "normed_again", "other_heads_gain", "one_late"]
QuantWord: TypeAlias = Literal["none", "int8_tensor", "int8_head", "fp8_tensor", "fp8_head"]
LabelWord: TypeAlias = Literal["exact", "rounding", "wrong", "undecided"]

SAME_FUNCTION: Final = 1e-9  # largest weight difference in float64 up to which two ways are one function
_FP8: Final = torch.float8_e4m3fn  # Micikevicius et al. 2022, "FP8 Formats for Deep Learning": largest number 448
_EPSILONS: Final = (1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5)
_Stage: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials of the cache lab; by default a cache that normalises its keys again at every read."""

    way: Annotated[WayWord, Choice()] = "normed_again"
    quantised: Annotated[QuantWord, Choice()] = "none"
    order: Annotated[Literal["norm_rotary", "rotary_norm"], Choice()] = "norm_rotary"
    gains: Annotated[GainsWord, Choice()] = "untied"
    gain_spread: Annotated[float, Dial(0, 0.95, 0.05)] = 0.5
    head_spread: Annotated[float, Dial(1, 16, 0.5)] = 1.0
    n_keys: Annotated[int, Dial(1, 32, log=True, stops=(1, 2, 4, 8, 16, 32))] = 16
    format: Annotated[FormatWord, Choice()] = "float32"
    n_heads: Annotated[int, Dial(1, 4, log=True, stops=(1, 2, 4), more=True)] = 4
    d_head: Annotated[int, Dial(4, 64, log=True, stops=(4, 8, 16, 32, 64), more=True)] = 32
    offset: Annotated[int, Dial(0, 5000, log=True, stops=(0, 1, 10, 100, 1000, 5000), more=True)] = 0
    epsilon: Annotated[float, Dial(1e-12, 1e-5, log=True, stops=_EPSILONS, more=True)] = 1e-6
    seed: Annotated[int, Dial(0, 9999, more=True)] = 0


PRESETS: Final[dict[str, Settings]] = {
    "normed_at_every_read": Settings(),
    "finished": Settings(way="finished"),
    "half_finished_in_bfloat16": Settings(way="halfway", format="bfloat16"),
    "other_heads_gain": Settings(way="other_heads_gain"),
    "one_position_late": Settings(way="one_late"),
    "unit_gains_hide_it": Settings(gains="unit", epsilon=1e-12),
    "one_token": Settings(n_keys=1),
    "int8_before_the_norm": Settings(way="raw", quantised="int8_tensor", head_spread=16),
    "int8_after_the_norm": Settings(way="finished", quantised="int8_tensor", head_spread=16),
    "fp8_after_the_norm": Settings(way="finished", quantised="fp8_head"),
}


@dataclass(frozen=True, eq=False)
class Result:
    """One way of caching against a fresh pass, over decoding steps; step t sees keys 0 to t."""

    settings: Settings
    label: LabelWord
    from_step: int | None  # the first step whose weights are wrong; None if none is
    weight_error: NDArray[np.float64]  # [steps] largest difference of an attention weight, in the format chosen
    logit_error: NDArray[np.float64]  # [steps] ‖difference‖ / ‖logits‖
    key_error: float  # of the keys that enter the last step's product, relative
    bytes_per_token: int  # that a token's keys occupy, all heads; the scales of a quantised cache not counted


@lru_cache(maxsize=256)
def run(settings: Settings) -> Result:
    """Decoding with the cache against recomputing from scratch.

    Whether it is the same function is decided in float64, so that a narrow format hides no mistake; whether
    it is equal exactly or to rounding, in the format chosen. One key has weight 1 whatever its logit: with a
    single token nothing can be told.
    """
    truth = _decode(settings, exact)
    store = exact if settings.format == "float64" else partial(rounded, format=FORMATS[settings.format])
    seen = truth if settings.format == "float64" else _decode(settings, store)
    wrong = np.flatnonzero(truth.weight_error > SAME_FUNCTION)
    label: LabelWord = "exact" if seen.identical else "rounding"
    if wrong.size:
        label = "wrong"
    if settings.n_keys == 1:
        label = "undecided"
    width = 1 if settings.quantised != "none" else FORMATS[settings.format].dtype.itemsize
    return Result(
        settings=settings,
        label=label,
        from_step=int(wrong[0]) if wrong.size else None,
        weight_error=seen.weight_error,
        logit_error=seen.logit_error,
        key_error=seen.key_error,
        bytes_per_token=settings.n_heads * settings.d_head * width,
    )


@dataclass(frozen=True, eq=False)
class _Decoded:
    identical: bool  # bit for bit, all logits
    weight_error: NDArray[np.float64]
    logit_error: NDArray[np.float64]
    key_error: float


def _decode(settings: Settings, store: Rounding) -> _Decoded:
    block = draw_block(_recipe(settings))
    q, k = (
        store((block.x @ w.mT).reshape(settings.n_keys, settings.n_heads, settings.d_head).movedim(0, 1))
        for w in (block.w_q, block.w_k)
    )
    positions = block.positions
    q_norm, k_norm = (_norm(settings, gain) for gain in (block.gain_q, block.gain_k))
    first, second = _stages(settings, q_norm, positions)
    q = store(second(first(q)))
    first, second = _stages(settings, k_norm, positions)
    fresh = store(second(first(k)))
    cached = WAYS[settings.way](settings, k, block.gain_k, positions, store)  # [heads, keys, d], or [steps, …]
    visible = torch.ones(settings.n_keys, settings.n_keys, dtype=torch.bool).tril()
    logits, others = (_logits(q, keys, visible) for keys in (fresh.expand_as(cached), cached))
    weights, other_weights = (torch.softmax(x, -1) for x in (logits, others))
    hidden = ~visible
    gap, size = (others - logits).masked_fill(hidden, 0), logits.masked_fill(hidden, 0)
    last = cached[-1] if cached.ndim == 4 else cached
    return _Decoded(
        identical=bool((gap == 0).all()),
        weight_error=(other_weights - weights).abs().amax((0, 2)).double().numpy(),
        logit_error=(gap.norm(dim=(0, 2)) / size.norm(dim=(0, 2)).clamp_min(1e-300)).double().numpy(),
        key_error=float((last - fresh).norm() / fresh.norm()),
    )


def _recipe(settings: Settings) -> Recipe:
    return Recipe(
        d_model=settings.n_heads * settings.d_head,
        n_heads=settings.n_heads,
        n_kv_heads=settings.n_heads,
        d_head=settings.d_head,
        n_keys=settings.n_keys,
        gains=settings.gains,
        gain_spread=settings.gain_spread,
        head_spread=settings.head_spread,
        offset=settings.offset,
        seed=settings.seed,
    )


def _norm(settings: Settings, gain: Tensor) -> _Stage:
    return lambda x: normalise(x, NORMS["rms"], "inside", settings.epsilon) * gain[:, None, :].to(x)


def _stages(settings: Settings, norm: _Stage, positions: Tensor) -> tuple[_Stage, _Stage]:
    """Norm and rotation, in the order chosen."""

    def turn(x: Tensor) -> Tensor:
        return rotate(x, positions)

    return (norm, turn) if settings.order == "norm_rotary" else (turn, norm)


def _logits(q: Tensor, keys: Tensor, visible: Tensor) -> Tensor:
    """[heads, steps, keys]; `keys` may differ from step to step."""
    product = torch.einsum("hsd,shkd->hsk" if keys.ndim == 4 else "hsd,hkd->hsk", q, keys)
    return (product / math.sqrt(q.shape[-1])).masked_fill(~visible, -torch.inf)


def _raw(settings: Settings, k: Tensor, gain: Tensor, positions: Tensor, store: Rounding) -> Tensor:
    first, second = _stages(settings, _norm(settings, gain), positions)
    return store(second(first(_kept(settings, k))))


def _halfway(settings: Settings, k: Tensor, gain: Tensor, positions: Tensor, store: Rounding) -> Tensor:
    first, second = _stages(settings, _norm(settings, gain), positions)
    return store(second(_kept(settings, store(first(k)))))


def _finished(settings: Settings, k: Tensor, gain: Tensor, positions: Tensor, store: Rounding) -> Tensor:
    first, second = _stages(settings, _norm(settings, gain), positions)
    return _kept(settings, store(second(first(k))))


def _normed_again(settings: Settings, k: Tensor, gain: Tensor, positions: Tensor, store: Rounding) -> Tensor:
    """At step t key s has been normalised t − s + 1 times: every read normalises the cache and writes it back."""
    norm = _norm(settings, gain)
    first = settings.order == "norm_rotary"
    x = _kept(settings, store(norm(k if first else rotate(k, positions))))
    times = [x]
    for _ in range(settings.n_keys - 1):
        times.append(store(norm(times[-1])))
    ages = torch.arange(settings.n_keys)[:, None] - torch.arange(settings.n_keys)  # [steps, keys]
    aged = torch.stack(times)[ages.clamp_min(0), :, torch.arange(settings.n_keys)].movedim(2, 1)
    return store(rotate(aged, positions)) if first else aged


def _other_heads_gain(settings: Settings, k: Tensor, gain: Tensor, positions: Tensor, store: Rounding) -> Tensor:
    return _finished(settings, k, gain.roll(1, 0), positions, store)


def _one_late(settings: Settings, k: Tensor, gain: Tensor, positions: Tensor, store: Rounding) -> Tensor:
    return _finished(settings, k, gain, positions + 1, store)


WAYS: Final[dict[WayWord, Callable[[Settings, Tensor, Tensor, Tensor, Rounding], Tensor]]] = {
    "raw": _raw,
    "halfway": _halfway,
    "finished": _finished,
    "normed_again": _normed_again,
    "other_heads_gain": _other_heads_gain,
    "one_late": _one_late,
}


def _kept(settings: Settings, x: Tensor) -> Tensor:
    """`x` as the cache gives it back. A quantised cache has one scale, or one per head, fitted to all its keys."""
    if settings.quantised == "none":
        return x
    kind, scope = settings.quantised.split("_")
    largest = x.abs().amax() if scope == "tensor" else x.abs().amax((1, 2), keepdim=True)
    if kind == "int8":
        step = (largest / 127).clamp_min(1e-300 if x.dtype == torch.float64 else 1e-38)
        return (x / step).round().clamp(-127, 127) * step
    scale = (largest / torch.finfo(_FP8).max).clamp_min(1e-300 if x.dtype == torch.float64 else 1e-38)
    return (x / scale).to(_FP8).to(x.dtype) * scale


def every(settings: Settings) -> tuple[Result, ...]:
    """All ways of caching in all ways of storing, for this block."""
    combinations = itertools.product(get_args(WayWord), get_args(QuantWord))
    return tuple(run(settings.but(way=way, quantised=quantised)) for way, quantised in combinations)


def explain(result: Result) -> list[str]:
    """The label, by how much and from which step; then what hides the mistake, or what quantising costs."""
    settings = result.settings
    values = {
        "way": say(f"choice.way.{settings.way}"),
        "format": settings.format,
        "weight": written(result.weight_error.max(), 3),
        "logit": written(result.logit_error[-1], 3),
        "off": written(result.key_error, 3),
        "step": "–" if result.from_step is None else result.from_step,
    }
    sentences = [say(f"cache.{result.label}", **values)]
    if result.label != "undecided" and settings.n_keys > 1:
        sentences.append(say("cache.first_step"))
    if settings.quantised != "none":
        before = say("cache.before" if settings.way == "raw" else "cache.after")
        stored = say(f"choice.quantised.{settings.quantised}")
        sentences.append(say("cache.quantised", stored=stored, when=before, off=values["off"]))
    if settings.way in ("normed_again", "other_heads_gain") and settings.gains == "unit":
        sentences.append(say("cache.unit_gains"))
    return [*sentences, say("cache.size", bytes=result.bytes_per_token)]


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per decoding step."""
    columns = zip(result.weight_error, result.logit_error, strict=True)
    return [
        {"step": step, "keys": step + 1, "weight_error": weight.item(), "logit_error": logit.item()}
        for step, (weight, logit) in enumerate(columns)
    ]


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: the label of every way of caching, then the current one step by step."""
    ways: list[dict[str, Value | None]] = [
        {
            "way": result.settings.way,
            "quantised": result.settings.quantised,
            "label": result.label,
            "from_step": result.from_step,
            "largest_weight_error": float(result.weight_error.max()),
            "last_logit_error": float(result.logit_error[-1]),
        }
        for result in every(settings)
    ]
    return {"ways": ways, "rows": rows(run(settings))}


def snippet(settings: Settings) -> str:
    """A standalone PyTorch program that decodes with and without this cache, in float64, and compares the weights."""
    recipe = _recipe(settings)
    spread = plain(settings.gain_spread)
    tied = "np.concatenate([gain[:, : d // 2]] * 2, 1)" if settings.gains == "tied" else "gain"
    gain = "1 + 0 * gain" if settings.gains == "unit" else f"1 + {spread} * {tied}"
    norm_first = settings.order == "norm_rotary"
    return _PROGRAM.format(
        seed=settings.seed,
        heads=settings.n_heads,
        d=settings.d_head,
        keys=settings.n_keys,
        width=recipe.d_model,
        gain=gain,
        head_spread=plain(settings.head_spread),
        offset=settings.offset,
        epsilon=plain(settings.epsilon),
        first="norm(x, gain)" if norm_first else "rotate(x, at)",
        second="rotate(x, at)" if norm_first else "norm(x, gain)",
        kept=_KEPT[settings.quantised.split("_")[0]].format(
            dims="" if settings.quantised.endswith("tensor") else "(1, 2), keepdim=True"
        ),
        way=_WAY[settings.way] if norm_first or settings.way != "normed_again" else _NORMED_LAST,
    )


_KEPT: Final = {
    "none": "    return x",
    "int8": "    step = x.abs().amax({dims}) / 127\n    return (x / step).round().clamp(-127, 127) * step",
    "fp8": "    scale = x.abs().amax({dims}) / 448\n    return (x / scale).to(torch.float8_e4m3fn).double() * scale",
}
_WAY: Final[dict[WayWord, str]] = {
    "raw": "    return second(first(kept(k), gain_k, at), gain_k, at)",
    "halfway": "    return second(kept(first(k, gain_k, at)), gain_k, at)",
    "finished": "    return kept(second(first(k, gain_k, at), gain_k, at))",
    "normed_again": """    x = kept(norm(k, gain_k))
    for s in range(step):  # every read so far; the newest key has seen none
        x[:, : s + 1] = norm(x, gain_k)[:, : s + 1]
    return rotate(x, at)""",
    "other_heads_gain": "    gain = gain_k.roll(1, 0)\n    return kept(second(first(k, gain, at), gain, at))",
    "one_late": "    return kept(second(first(k, gain_k, at + 1), gain_k, at + 1))",
}
_NORMED_LAST: Final = """    x = kept(norm(rotate(k, at), gain_k))
    for s in range(step):
        x[:, : s + 1] = norm(x, gain_k)[:, : s + 1]
    return x"""

_PROGRAM: Final = '''"""Decoding with a KV cache against a fresh pass. Needs torch and NumPy."""
import json

import numpy as np
import torch

rng = np.random.default_rng({seed})
heads, d, keys, width = {heads}, {d}, {keys}, {width}
x = rng.standard_normal((keys, width))
x = torch.tensor(x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6))
rng.permuted(np.ones(keys))
W_q, W_k = (rng.standard_normal((heads * d, width)) / width**0.5 for _ in "qk")
rng.standard_normal((heads * d, width)), rng.standard_normal((width, heads * d))  # v, output
gain_q, gain_k = (torch.tensor({gain}) for gain in (rng.uniform(-1, 1, (heads, d)) for _ in "qk"))
size = np.repeat({head_spread} ** (np.linspace(-0.5, 0.5, heads) if heads > 1 else np.zeros(1)), d)
q, k = ((x @ torch.tensor(W * size[:, None]).mT).reshape(keys, heads, d).movedim(0, 1) for W in (W_q, W_k))
at = torch.arange({offset}, {offset} + keys).double()


def norm(x, gain):
    return x * (x.square().mean(-1, keepdim=True) + {epsilon}).rsqrt() * gain[:, None]


def rotate(x, at):
    angle = at[:, None] * 10000.0 ** (-torch.arange(d // 2).double() / (d // 2))
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def first(x, gain, at):
    return {first}


def second(x, gain, at):
    return {second}


def kept(x):  # what the cache gives back
{kept}


def cached(step):  # the keys that step t reads
{way}


q = second(first(q, gain_q, at), gain_q, at)
fresh = second(first(k, gain_k, at), gain_k, at)
errors = []
for step in range(keys):
    weights = [torch.softmax((q[:, step, None] * x[:, : step + 1]).sum(-1) / d**0.5, -1) for x in (fresh, cached(step))]
    errors.append((weights[1] - weights[0]).abs().max().item())
print(json.dumps({{"weight_error": errors}}))
'''
