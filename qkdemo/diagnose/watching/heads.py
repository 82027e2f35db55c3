"""One attention call, measured head by head.

* `Call`: q and k as they enter the product, with scale, mask and whatever else acts on the logits;
* `measure(call)`: per head the largest logit, the norms behind it, entropy, slope, sinks, and what a format would lose;
* `keys_seen(queries, …)`: what a causal mask leaves of the keys;
* `largest_at(call)`: where the largest logit is; `length_of(x)`: of each vector;
* `MEASURES`: the names of these measures, each with its unit.

It looks at `BATCH` sequences of the batch at most, unless all are asked for: then lengths and maxima are of
all. Maxima are taken over every visible pair of these; what needs a softmax over at most `rows` queries, evenly spread,
and never from more than `BATCH` sequences. Grouped keys are not repeated. Everything is computed in float32, or in
float64 for float64 tensors, without gradients, and never touches a random generator.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

BATCH: Final = 4
ROWS: Final = 64
_BLOCK: Final = 1 << 24  # logits formed at once: 64 MiB
_FLOAT16: Final = 65504.0
HIDES: Final = -9e3  # masks of code in the wild: -1e4, which is -9984 in bfloat16, -1e9, or a format's least number
_E4M3: Final = 448.0
_E5M2: Final = 57344.0

MEASURES: Final[Mapping[str, str]] = {
    "max_logit": "the logit of largest size, with its sign",
    "cosine": "cosine between query and key of that logit",
    "q_norm_median": "length of q",
    "q_norm_max": "length of q",
    "k_norm_median": "length of k",
    "k_norm_max": "length of k",
    "entropy": "nats, mean over queries that see two keys or more",
    "entropy_fraction": "of ln(visible keys), mean over the same queries",
    "entropy_without_first": "nats, the same without the first visible key, the others' shares scaled up to 1",
    "softmax_slope": "mean of p(1 − p) over visible keys",
    "first_key": "mean share of the first visible key, over queries that see two keys or more",
    "undefined_rows": "share of queries whose softmax is undefined: their largest logit is infinite, or one is NaN",
    "beyond_float16": "share of q·k, before the scale, beyond 65504",
    "beyond_e4m3": "share of the entries of k beyond 448",
    "beyond_e5m2": "share of the entries of k beyond 57344",
}


@dataclass(frozen=True)
class Call:
    """What one attention call works on. A mask holds True where a query may see a key.

    Raises ValueError if q and k do not fit each other.
    """

    q: Tensor  # [batch, heads, queries, d_head]
    k: Tensor  # [batch, kv_heads, keys, d_head]; heads is a multiple of kv_heads
    scale: float
    visible: Tensor | None = None  # broadcasts to [batch, heads, queries, keys]
    bias: Tensor | None = None  # added to the logits; broadcasts likewise
    softcap: float | None = None
    causal: bool = False  # the last query is aligned with the last key
    window: int | None = None  # a query sees this many keys at most, itself the last

    def __post_init__(self) -> None:
        if self.q.dim() != 4 or self.k.dim() != 4:
            shapes = f"q is {tuple(self.q.shape)} and k is {tuple(self.k.shape)}"
            raise ValueError(f"q and k need four axes, [batch, heads, positions, d_head], but {shapes}.")
        if self.q.shape[-1] != self.k.shape[-1]:
            shapes = f"q is {tuple(self.q.shape)} and k is {tuple(self.k.shape)}"
            raise ValueError(f"q and k need the same head width, but {shapes}.")
        if self.k.shape[1] == 0 or self.q.shape[1] % self.k.shape[1]:
            raise ValueError(f"{self.q.shape[1]} query heads cannot share {self.k.shape[1]} key heads evenly.")


@torch.no_grad()
def measure(call: Call, rows: int = ROWS, *, every_sequence: bool = False) -> dict[str, Tensor]:
    """Every one of MEASURES, a tensor of one entry per query head. NaN where nothing defines it."""
    q, k = (_wide(x.detach() if every_sequence else x.detach()[:BATCH]) for x in (call.q, call.k))
    group = q.shape[1] // k.shape[1]
    largest, at, lost = _extremes(call, q, k)
    q_norm, k_norm = length_of(q), length_of(k).repeat_interleave(group, 1)
    found = {
        "max_logit": largest,
        "cosine": _cosine(q, k, at, group),
        "q_norm_median": _over_positions(q_norm).nanmedian(-1).values,
        "q_norm_max": _over_positions(q_norm).amax(-1),
        "k_norm_median": _over_positions(k_norm).nanmedian(-1).values,
        "k_norm_max": _over_positions(k_norm).amax(-1),
        "beyond_float16": lost,
    }
    for name, limit in (("beyond_e4m3", _E4M3), ("beyond_e5m2", _E5M2)):
        found[name] = (k.abs() > limit).double().mean((0, 2, 3)).repeat_interleave(group)
    chosen = _spread(q.shape[2], rows, q.device)
    return found | _of_softmax(*_logits(call, q[:BATCH], k[:BATCH], chosen)[1:])


@torch.no_grad()
def largest_at(call: Call, head: int = 0) -> tuple[int, int, int]:
    """Sequence, query and key of the logit of largest size of a head; zeros where no logit is a number."""
    _, at, _ = _extremes(call, _wide(call.q), _wide(call.k))
    sequence, query, key = (int(place[head]) for place in at)
    return sequence, query, key


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def length_of(x: Tensor) -> Tensor:
    """Of each vector, without a square that leaves the format: ∞ where an entry is, NaN where one is NaN."""
    largest = x.abs().amax(-1, keepdim=True)
    usable = largest.isfinite() & (largest > 0)
    unit = torch.where(usable, largest, torch.ones_like(largest))
    length: Tensor = ((x / unit).norm(dim=-1, keepdim=True) * unit).squeeze(-1)
    return length


def _over_positions(x: Tensor) -> Tensor:
    """[heads, batch · positions] of [batch, heads, positions]."""
    return x.transpose(0, 1).flatten(1)


def _spread(queries: int, rows: int, device: torch.device) -> Tensor:
    """At most `rows` of the queries, evenly spread; the last is among them."""
    if queries <= rows:
        return torch.arange(queries, device=device)
    return torch.linspace(queries - 1, 0, rows, device=device).round().long().flip(0)


def keys_seen(queries: Tensor, n_queries: int, n_keys: int) -> Tensor:
    """Which keys some of `n_queries` queries see under a causal mask: the last query sees the last key.

    Of more keys than queries the first ones are a past that all queries see, as when a cache is read.

    >>> keys_seen(torch.arange(2), 2, 4).int().tolist()
    [[1, 1, 1, 0], [1, 1, 1, 1]]
    """
    return torch.arange(n_keys, device=queries.device) <= queries[:, None] + (n_keys - n_queries)


def _logits(call: Call, q: Tensor, k: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q·k, the logits and what is visible of them, each [batch, heads, chosen queries, keys]."""
    batch, heads, queries, width = q.shape
    grouped = q[:, :, chosen].reshape(batch, k.shape[1], -1, width)  # a group of heads shares one key head
    raw = (grouped @ k.mT).reshape(batch, heads, len(chosen), -1)
    logits = raw * call.scale
    if call.softcap is not None:
        logits = call.softcap * torch.tanh(logits / call.softcap)
    visible = torch.ones_like(raw[:1, :1], dtype=torch.bool)
    place = chosen[:, None] + (k.shape[2] - queries)
    key = torch.arange(k.shape[2], device=q.device)
    if call.causal:
        visible = visible & keys_seen(chosen, queries, k.shape[2])
    if call.window is not None:
        visible = visible & (key > place - call.window)
    if call.visible is not None:
        visible = visible & _of_rows(call.visible, batch, chosen)
    if call.bias is not None:
        bias = _of_rows(call.bias, batch, chosen).to(logits)
        hides = bias <= max(HIDES, torch.finfo(call.bias.dtype).min / 2)  # how masks are written into a bias
        visible = visible & ~hides
        logits = logits + bias.masked_fill(hides, 0)
    return raw, logits, visible.expand_as(logits)


def _of_rows(x: Tensor, batch: int, chosen: Tensor) -> Tensor:
    """The chosen queries of a tensor that broadcasts to [batch, heads, queries, keys]."""
    x = x.detach()[(None,) * (4 - x.dim())]
    x = x[:batch] if x.shape[0] > 1 else x
    return x[:, :, chosen] if x.shape[2] > 1 else x


def _extremes(call: Call, q: Tensor, k: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor], Tensor]:
    """Per head: the logit of largest size, where it is (batch, query, key), and the share of q·k beyond float16."""
    heads = q.shape[1]
    size = q.new_full((heads,), -1.0)
    best = q.new_full((heads,), math.nan)
    at = tuple(torch.zeros(heads, dtype=torch.long, device=q.device) for _ in range(3))
    beyond, seen = q.new_zeros(heads, dtype=torch.float64), q.new_zeros(heads, dtype=torch.float64)
    for start, block in _blocks(q, k):
        raw, logits, visible = _logits(call, q, k, block)
        beyond += ((raw.abs() > _FLOAT16) & visible).sum((0, 2, 3))
        seen += visible.sum((0, 2, 3))
        sizes = logits.abs().masked_fill(~visible | logits.isnan(), -1)
        flat = sizes.transpose(0, 1).flatten(1)
        top, where = flat.max(-1)
        n_keys, n_rows = logits.shape[-1], len(block)
        sequence, rest = where // (n_rows * n_keys), where % (n_rows * n_keys)
        value = logits.transpose(0, 1).flatten(1).gather(-1, where[:, None])[:, 0]
        better = top > size
        size, best = torch.where(better, top, size), torch.where(better, value, best)
        found = (sequence, rest // n_keys + start, rest % n_keys)
        at = tuple(torch.where(better, new, old) for new, old in zip(found, at, strict=True))
    first, second, third = at
    return best, (first, second, third), beyond / seen.clamp_min(1)


def _blocks(q: Tensor, k: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Runs of queries so short that their logits stay within the budget, each with its first one."""
    length = max(1, _BLOCK // (q.shape[0] * q.shape[1] * k.shape[2]))
    for start in range(0, q.shape[2], length):
        yield start, torch.arange(start, min(start + length, q.shape[2]), device=q.device)


def _cosine(q: Tensor, k: Tensor, at: tuple[Tensor, Tensor, Tensor], group: int) -> Tensor:
    head = torch.arange(q.shape[1], device=q.device)
    a, b = q[at[0], head, at[1]], k[at[0], head // group, at[2]]
    cosine: Tensor = (a / length_of(a)[:, None] * (b / length_of(b)[:, None])).sum(-1)
    return cosine


def _of_softmax(logits: Tensor, visible: Tensor) -> dict[str, Tensor]:
    """What is read off the weights of the chosen rows, per head."""
    hidden = logits.masked_fill(~visible, -math.inf)
    count = visible.sum(-1)
    top = hidden.amax(-1)
    undefined = ((top.isinf() & (top > 0)) | (logits.isnan() & visible).any(-1)) & (count > 0)
    choosing = (count > 1) & ~undefined
    weights = torch.softmax(hidden, -1).masked_fill(~visible, 0)
    # The largest goes first, since logits may be large, and float32; 0 · log 0 is 0.
    log = hidden.log_softmax(-1).masked_fill(hidden == -math.inf, 0)
    entropy = -(weights * log).sum(-1)
    first = visible.to(torch.uint8).argmax(-1, keepdim=True)
    sink = weights.gather(-1, first)[..., 0]
    others = visible.scatter(-1, first, False)
    rest = logits.masked_fill(~others, -math.inf)
    rest_log = rest.log_softmax(-1).masked_fill(rest == -math.inf, 0)
    without = -(rest_log.exp().masked_fill(~others, 0) * rest_log).sum(-1)
    slope = (weights * (1 - weights)).sum(-1)
    defined = (count > 0) & ~undefined
    return {
        "entropy": _mean(entropy, choosing),
        "entropy_fraction": _mean(entropy / count.clamp_min(2).to(entropy).log(), choosing),
        "entropy_without_first": _mean(without, choosing),
        "softmax_slope": slope.masked_fill(~defined, 0).sum((0, 2)) / (count * defined).sum((0, 2)),
        "first_key": _mean(sink, choosing),
        "undefined_rows": undefined.double().sum((0, 2)) / (count > 0).sum((0, 2)).clamp_min(1),
    }


def _mean(x: Tensor, kept: Tensor) -> Tensor:
    """The mean per head over the kept rows of [batch, heads, rows]; NaN where none is kept."""
    return x.masked_fill(~kept, 0).sum((0, 2)) / kept.sum((0, 2))
