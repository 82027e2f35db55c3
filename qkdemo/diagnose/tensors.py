"""q and k that somebody brings: which head is worst, was it length or alignment, and what would each variant make.

* `pair_of(arrays)`: finds q and k, a mask, gains and a scale among named arrays, and says how it read their axes;
* `run(pair)`: per head what `heads.measure` finds; over all heads, the same tensors under every variant and format.

Axes: [positions, d_head], [heads, positions, d_head] or [batch, heads, positions, d_head]. [batch, positions, heads,
d_head] is recognised where only one reading makes the heads fit, and supposed where fewer heads of k share more of q;
where both fit otherwise, `swapped` says which.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import Tensor

from qkdemo.diagnose import otherwise
from qkdemo.diagnose.masks import MASK, mask_of
from qkdemo.diagnose.pair import SOFTCAP, Pair, q_first, scale_of
from qkdemo.diagnose.readers.inputs import InputError, listed, some
from qkdemo.diagnose.scaled import NARROW, WHOLE, names_float8, scale_name, scaled
from qkdemo.diagnose.watching.heads import keys_seen, largest_at, length_of, measure
from qkdemo.floats.formats import dtype_name

_Q: Final = re.compile(r"(.*[./])?(q|query|queries|query_states|xq)$", re.IGNORECASE)
_K: Final = re.compile(r"(.*[./])?(k|key|keys|key_states|xk)$", re.IGNORECASE)
_V: Final = re.compile(r"(.*[._/])?(v|value|values|value_states|xv)$", re.IGNORECASE)
_GAINS: Final = (
    re.compile(r"(.*[._/])?(gamma_q|q_gain|q_norm\.weight)$"),
    re.compile(r"(.*[._/])?(gamma_k|k_gain|k_norm\.weight)$"),
)
GROWN: Final = 2.0  # times a head's typical length, from which the largest logit is put down to length
_SCALES: Final = tuple(2.0**power for power in range(-4, 5))
_MOST_SCORES: Final = 1 << 21  # formed at once, in float64 and a few copies
_SMALL: Final = 1e-12  # below it, and above the other, squares leave float32
_BIG: Final = 1e12
_TYPICAL: Final = 0.5  # |cosine| from which it is put down to alignment


@dataclass(frozen=True, eq=False)
class Result:
    """What was found. `heads`: one row per query head, worst first; `variants` and `formats`: a row for each."""

    pair: Pair
    heads: list[dict[str, Any]]
    variants: list[dict[str, Any]]
    formats: list[dict[str, Any]]
    growth: list[dict[str, Any]]  # of the worst head: a row for each weight scale, plain and with RMSNorm
    queries: int  # of each head, from which variants and formats are taken
    whole: bool  # whether these are all queries of all sequences
    queries_of_growth: int
    growth_whole: bool
    at_usual: float  # the largest |logit| of the worst head if no vector of it were longer than is usual there


def pair_of(
    arrays: Mapping[str, Tensor], *, scale: float | None = None, causal: bool = False, swapped: bool = False
) -> Pair:
    """q and k among the arrays, by name or, of exactly two, by order. Raises InputError if they cannot be found or fit.

    `scale` is what multiplies q·k, 1/√d_head unless given, here or as an array called scale, scaling or softmax_scale.
    """
    named = _two(arrays)
    unscaled = tuple(side for side, name in zip("qk", named, strict=True) if _lacks_scale(name, arrays))
    q, k = (_finite_axes(side, _in_units(name, arrays)) for side, name in zip("qk", named, strict=True))
    given, scales_unread = scale_of(arrays, named[0]) if scale is None else (scale, ())
    factor = max(1, q.shape[-1]) ** -0.5 if given is None else given
    if torch.float64 in (q.dtype, k.dtype) or not _SMALL < abs(factor) < _BIG:
        q, k = q.double(), k.double()
    axes = _axes(q, k)
    if swapped or axes in ("positions", "supposed"):
        q, k = q.transpose(1, 2), k.transpose(1, 2)
    if q.shape[-1] != k.shape[-1]:
        raise InputError("other_widths", q=listed(q.shape), k=listed(k.shape))
    if q.shape[0] != k.shape[0]:
        raise InputError("other_batches", q=listed(q.shape), k=listed(k.shape))
    if q.shape[1] % k.shape[1]:
        other = not swapped and q.shape[2] % k.shape[2] == 0  # the other order of axes would fit
        key = "positions_before_heads" if other else "heads_do_not_share"
        raise InputError(key, heads=q.shape[1], kv_heads=k.shape[1])
    if not math.isfinite(factor) or factor == 0:
        raise InputError("bad_scale", scale=factor)
    gains = [next((x for name, x in arrays.items() if pattern.fullmatch(name)), None) for pattern in _GAINS]
    for gain in gains:
        if gain is not None and gain.numel() not in (1, q.shape[-1]):
            raise InputError("bad_gain", shape=listed(gain.shape), d=q.shape[-1])
    mask, unread = mask_of(arrays, q, k)
    return Pair(
        q=q,
        k=k,
        scale=factor,
        scale_given=given is not None,
        visible=None if mask is None else mask.visible,
        mask=mask,
        flat=arrays[named[0]].dim() < 4,
        gamma_q=gains[0],
        gamma_k=gains[1],
        causal=causal,
        axes="swapped" if swapped else axes,
        stored=max((_stored(arrays[name]) for name in named), key=lambda kind: torch.finfo(kind).max),
        unscaled=unscaled,
        whole=tuple(
            f"{side} ({dtype_name(arrays[name].dtype)})"
            for side, name in zip("qk", named, strict=True)
            if side in unscaled and arrays[name].dtype in WHOLE
        ),
        scales_unread=scales_unread,
        unread=unread,
        softcap=next((name for name, x in arrays.items() if SOFTCAP.fullmatch(name) and x.double().any()), ""),
    )


def run(pair: Pair) -> Result:
    """Everything that is said of a pair."""
    heads = _heads(pair)
    worst = _alone(pair, heads[0]["head"])
    sequence, query, _ = largest_at(worst.call)
    alone, part = (part_of(each, sequence, query) for each in (worst, pair))
    return Result(
        pair=pair,
        heads=heads,
        variants=otherwise.variants(part),
        formats=otherwise.formats(part),
        growth=[row for scale in _SCALES for row in otherwise.grown(alone, scale)],
        queries=part.q.shape[2],
        whole=part is pair,
        queries_of_growth=alone.q.shape[2],
        growth_whole=alone is worst,
        at_usual=_at_usual(worst, heads[0]),
    )


def _at_usual(alone: Pair, row: Mapping[str, float]) -> float:
    sides = (alone.q.double(), row["q_norm_median"]), (alone.k.double(), row["k_norm_median"])
    q, k = (x * (usual / length_of(x)).clamp(max=1)[..., None] for x, usual in sides)
    return float(measure(replace(alone, q=q, k=k).call, every_sequence=True)["max_logit"].abs())


def part_of(pair: Pair, sequence: int = 0, query: int = 0) -> Pair:
    """The pair itself; if its scores would not fit the memory, of one sequence that query and others, evenly spread."""
    batch, heads, queries, _ = pair.q.shape
    keys = pair.k.shape[2]
    if batch * heads * queries * keys <= _MOST_SCORES:
        return pair
    rows, one = min(queries, _MOST_SCORES // (heads * keys)), slice(sequence, sequence + 1)
    even = torch.linspace(0, queries - 1, rows if rows == queries else max(0, rows - 1)).round().long()
    chosen = torch.tensor(sorted({*even.tolist(), query}))
    visible = None if pair.visible is None else pair.visible[one, :, chosen]
    if pair.causal:
        before = keys_seen(chosen, queries, keys)
        visible = before[None, None] if visible is None else visible & before
    return replace(pair, q=pair.q[one, :, chosen], k=pair.k[one], visible=visible, causal=False)


def names_pair(names: Iterable[str]) -> bool:
    """Whether some of these are names of q, and of k."""
    return all(any(map(pattern.fullmatch, names)) for pattern in (_Q, _K))


def _two(arrays: Mapping[str, Tensor]) -> tuple[str, str]:
    """The names of q and k."""
    found = [[name for name in arrays if pattern.fullmatch(name)] for pattern in (_Q, _K)]
    if all(len(each) == 1 for each in found):
        return found[0][0], found[1][0]
    if any(len(each) > 1 for each in found):
        raise InputError("many_pairs", names=some([*arrays]))
    if len(arrays) == 2 and not any(_V.fullmatch(name) or MASK.fullmatch(name) for name in arrays):
        return q_first(*arrays)
    raise InputError("no_pair", names=some([*arrays]) or "–")


def _in_units(name: str, arrays: Mapping[str, Tensor]) -> Tensor:
    """An array; of 8 bits, times the scale beside it, if there is one that fits."""
    x, beside = arrays[name], scale_name(name, arrays)
    if x.dtype in WHOLE and names_float8(name):
        raise InputError("bytes_of_floats", name=name, dtype=dtype_name(x.dtype))
    made = scaled(x, arrays[beside]) if x.dtype in NARROW and beside else None
    return x if made is None else made


def _lacks_scale(name: str, arrays: Mapping[str, Tensor]) -> bool:
    return arrays[name].element_size() == 1 and _in_units(name, arrays) is arrays[name]


def _stored(x: Tensor) -> torch.dtype:
    return x.dtype if x.is_floating_point() else torch.float64


def _finite_axes(name: str, x: Tensor) -> Tensor:
    if not 2 <= x.dim() <= 4:
        raise InputError("bad_axes", name=name, shape=listed(x.shape))
    if x.numel() == 0:
        raise InputError("empty", name=name, shape=listed(x.shape))
    if not x.is_floating_point():
        x = x.double()
    if x.element_size() == 1:
        x = x.float()  # the 8-bit formats have no arithmetic
    if bool(x.isnan().all()):
        raise InputError("all_nan", name=name)
    size = float(x.abs().nan_to_num(0, 0, 0).max())
    x = x.double() if 0 < size < _SMALL or size > _BIG else x
    return x[(None,) * (4 - x.dim())]


def _axes(q: Tensor, k: Tensor) -> str:
    """Whether axis 1 holds heads or positions, or could be either."""
    if q.shape[1] == 1 and k.shape[1] == 1:
        return "heads"
    heads = q.shape[1] % k.shape[1] == 0
    positions = q.shape[2] % k.shape[2] == 0
    grouped = q.shape[1] == k.shape[1] and q.shape[2] != k.shape[2]
    if positions and q.shape[1] <= k.shape[1] and (not heads or grouped):  # no query comes after the last key
        return "supposed" if heads and q.shape[1] < q.shape[2] else "positions"
    return "ambiguous" if positions and q.shape[1] == k.shape[1] and q.shape[1] >= q.shape[2] else "heads"


def _heads(pair: Pair) -> list[dict[str, Any]]:
    columns = {name: values.double().tolist() for name, values in measure(pair.call, every_sequence=True).items()}
    rows = [
        {"head": head} | {name: column[head] for name, column in columns.items()} for head in range(pair.q.shape[1])
    ]
    for row in rows:
        row["grown_by"] = _reason(row, pair.scale)
    return sorted(rows, key=lambda row: -math.inf if math.isnan(row["max_logit"]) else -abs(row["max_logit"]))


def times_usual(row: Mapping[str, float], scale: float) -> float:
    """How many times as long as usual in this head, together, the query and the key of its largest logit are.

    ∞ where the usual length of either is 0; NaN where lengths are not finite.
    """
    usual = row["q_norm_median"], row["k_norm_median"]
    if not all(usual):
        return math.inf
    if not all(map(math.isfinite, usual)):
        return math.nan
    if not math.isfinite(row["max_logit"]) or not row["cosine"]:  # the pair's own lengths cannot be told then
        return row["q_norm_max"] / usual[0] * (row["k_norm_max"] / usual[1])
    return abs(row["max_logit"]) / abs(scale * row["cosine"]) / usual[0] / usual[1]


def _reason(row: Mapping[str, float], scale: float) -> str:
    """Whether the largest logit is one of long vectors, of well aligned ones, of both, or of neither.

    It is `unusual` where no length is usual: most queries or most keys have length 0, or none is a number.
    """
    times = times_usual(row, scale)
    if not math.isfinite(times):
        return "unusual"
    long = times > GROWN
    aligned = abs(row["cosine"]) > _TYPICAL
    return "both" if long and aligned else "length" if long else "alignment" if aligned else "neither"


def _alone(pair: Pair, head: int) -> Pair:
    """One query head and the key head that it reads."""
    group = pair.q.shape[1] // pair.k.shape[1]
    q, k = pair.q[:, head : head + 1], pair.k[:, head // group : head // group + 1]
    visible = None if pair.visible is None else pair.visible[:, head : head + 1]
    return replace(pair, q=q, k=k, visible=visible)
