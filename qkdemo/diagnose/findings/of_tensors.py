"""What is found in q and k."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from qkdemo.diagnose import tensors
from qkdemo.diagnose.curves import causes
from qkdemo.diagnose.curves.growth import LARGE
from qkdemo.diagnose.findings.finding import Finding, Level, Report, by_level
from qkdemo.diagnose.pair import Pair
from qkdemo.diagnose.readers.inputs import listed
from qkdemo.diagnose.watching.heads import BATCH, ROWS, keys_seen
from qkdemo.diagnose.weights.gains import reading_of
from qkdemo.floats.formats import FORMATS
from qkdemo.messages import say
from qkdemo.notation import written

_WIDEST: Final = 256  # channels of a head, as Gemma's; where as many are brought, several heads may lie side by side
_MOST_HEADS: Final = 256  # where an axis is longer, it holds positions
_MANY: Final = 0.1  # of gains that are 0 or less


def of_tensors(result: tensors.Result, name: str) -> Report:
    """What is found in q and k."""
    tables = {"heads": result.heads, "variants": result.variants, "formats": result.formats, "growth": result.growth}
    if result.pair.unscaled:  # their numbers are not those of the model
        tables = {}
    return Report("tensors", name, by_level(_of_tensors(result)), tables, pair=result.pair)


def _of_tensors(result: tensors.Result) -> Iterator[Finding]:
    pair, worst = result.pair, result.heads[0]
    logit = abs(worst["max_logit"])
    values = {"head": worst["head"], "logit": written(logit), "cosine": written(worst["cosine"], 2)}
    values |= {"times": written(tensors.times_usual(worst, pair.scale), 2)}
    yield from _of_reading(pair)
    if pair.unscaled:
        whole = f" {say('finding.whole_numbers', names=', '.join(pair.whole))}" if pair.whole else ""
        values = {"names": ", ".join(pair.unscaled), "count": len(pair.unscaled), "whole": whole}
        yield Finding("watch", "tensors_unscaled", values)
    else:
        yield from _of_gains(pair)
    yield from _of_shapes(result)
    if pair.unscaled:
        if math.isinf(logit):
            yield from _of_largest(logit, "", values)
        return
    normed = abs(worst["cosine"]) * math.sqrt(pair.q.shape[-1])  # alignment alone reaches that, at length √d
    values |= {"normed": written(normed), "usual": written(result.at_usual)}
    yield from _of_largest(logit, _grown_by(result, logit, normed), values)
    yield from _of_spread(result.heads, _even_shares(pair))
    for row in result.formats:
        if row["scores_lost"]:
            lost = {"format": row["format"], "lost": row["scores_lost"], "all": row["of"]}
            own = FORMATS[row["format"]].largest >= torch.finfo(pair.stored).max
            yield Finding("bad", "format", lost) if own else Finding("watch", "format_narrower", lost)


def _grown_by(result: tensors.Result, logit: float, normed: float) -> str:
    """What the largest logit comes from; a length that stands out explains it only if little is left without it."""
    reason: str = result.heads[0]["grown_by"]
    if reason == "alignment" and logit > tensors.GROWN * normed:
        return "throughout"
    left = result.at_usual >= LARGE or result.at_usual > logit / tensors.GROWN
    return "at_usual" if reason in ("length", "both") and left else reason


def _even_shares(pair: Pair) -> list[float]:
    """By head, the share of the first key if every query saw its keys evenly: NaN where none sees two."""
    keys = _keys_seen(pair).double()
    return (1 / keys).where(keys > 1, torch.nan).nanmean((0, 2)).tolist()


def _of_spread(heads: Sequence[Mapping[str, Any]], even: Sequence[float]) -> Iterator[Finding]:
    """Heads that give nearly all their attention to one key, or much of it to the first; none is counted twice."""
    first = [row["first_key"] > (1 + even[row["head"]]) / 2 for row in heads]
    gone = [row["entropy_fraction"] < causes.COLLAPSED for row in heads]
    groups: dict[str, tuple[Level, int]] = {
        "one_hot": ("bad", sum(low and not at for low, at in zip(gone, first, strict=True))),
        "one_hot_sink": ("watch", sum(low and at for low, at in zip(gone, first, strict=True))),
        "sink": ("watch", sum(at and not low for low, at in zip(gone, first, strict=True))),
    }
    for key, (level, count) in groups.items():
        if count:
            yield Finding(level, key, {"count": count, "of": len(heads)})


def _of_largest(logit: float, grown_by: str, values: Mapping[str, object]) -> Iterator[Finding]:
    """Nothing for NaN: no query sees a key whose logit is a number, which is said elsewhere."""
    if math.isinf(logit):
        yield Finding("bad", "infinite", values)
    elif logit > causes.CALM:
        yield Finding("bad" if logit >= LARGE else "watch", f"large_{grown_by}", values)
    elif logit <= causes.CALM:
        yield Finding("good", "calm", values)


def _keys_seen(pair: Pair) -> Tensor:
    """How many keys each query sees: [batch, heads, queries]."""
    queries, keys = pair.q.shape[2], pair.k.shape[2]
    ends = torch.full((queries,), keys)
    if pair.causal:
        ends = keys_seen(torch.arange(queries), queries, keys).sum(-1)
    if pair.visible is None:
        return ends.expand(pair.q.shape[:3])
    return torch.stack([pair.visible[:, :, at, :end].sum(-1) for at, end in enumerate(ends.tolist())], -1)


def _of_reading(pair: Pair) -> Iterator[Finding]:
    """How they were read, and what may have been meant otherwise."""
    heads, width = pair.q.shape[1], pair.q.shape[-1]
    mask = pair.mask.name if pair.mask else ""
    hides = "bias" if pair.mask and pair.mask.is_bias else "mask"
    seen = "_".join([hides] * (pair.visible is not None) + ["causal"] * pair.causal) or "every"
    last = f"; {say('finding.last_with_last')}" if pair.causal and pair.q.shape[2] != pair.k.shape[2] else ""
    values = {"shape": listed(pair.q.shape), "seen": say(f"finding.seen.{seen}", mask=mask) + last}
    told = f" {say('finding.axes_untold')}" if pair.axes == "heads" and _untold(pair) else ""
    untold = "" if pair.scale_given else f" {say('finding.scale_untold')}"
    values |= {"scale": written(pair.scale), "untold": untold, "told": told}
    yield Finding("good", "tensors_read", values)
    if pair.axes == "ambiguous":
        yield Finding("watch", "axes", {"shape": listed(pair.q.shape)})
    if pair.axes == "supposed":
        yield Finding("watch", "axes_supposed", {"heads": heads, "kv_heads": pair.k.shape[1]})
    if pair.flat and width >= _WIDEST and heads == pair.k.shape[1]:  # of shared keys heads have been told apart
        yield Finding("watch", "all_heads", {"heads": heads, "d": width})
    if pair.biased:
        yield Finding("watch", "mask_added", {"mask": mask})
    if pair.softcap:
        yield Finding("watch", "softcap_unread", {"name": pair.softcap})
    if pair.scales_unread:
        names = ", ".join(pair.scales_unread)
        yield Finding("watch", "scale_unread", {"names": names, "scale": written(pair.scale)})
    if pair.unread:
        yield Finding("watch", "masks_unread", {"names": ", ".join(pair.unread)})
    if pair.mask and pair.mask.axes:
        yield Finding("watch", f"mask_axes_{pair.mask.axes}", {"mask": mask, "count": pair.q.shape[0]})


def _of_gains(pair: Pair) -> Iterator[Finding]:
    """How gains are read, and whether they may be stored as γ − 1."""
    gains = {side: gain for side, gain in (("q", pair.gamma_q), ("k", pair.gamma_k)) if gain is not None}
    if not gains:
        return
    values = {"sides": ", ".join(gains)}
    if any(map(_like_less_one, gains.values())):
        every = torch.cat([gain.double().reshape(-1) for gain in gains.values()])
        values |= {"mean": written(float(every.mean()), 2)}
        values |= {"count": int((every <= 0).sum()), "all": every.numel()}  # type: ignore[dict-item]
        yield Finding("watch", "gains_like_less_one", values)
    else:
        yield Finding("good", "gains_read", values)


def _like_less_one(gain: Tensor) -> bool:
    """Whether they may be γ − 1: a γ that is trained from 1 on stays near it or above, and hardly one of it at 0."""
    return reading_of([gain.double()]) != "gamma" or float((gain <= 0).double().mean()) > _MANY


def _untold(pair: Pair) -> bool:
    """Whether either axis may hold the heads, of as many keys as queries and no shared ones.

    One head may be one position of many heads, which may share keys; of fewer than four axes it is not.
    """
    (heads, positions), (kv_heads, n_keys) = pair.q.shape[1:3], pair.k.shape[1:3]
    either = heads == kv_heads == 1 and not pair.flat and positions % n_keys == 0
    return (either or (pair.q.shape == pair.k.shape and heads > 1)) and 1 < positions <= _MOST_HEADS


def _of_shapes(result: tensors.Result) -> Iterator[Finding]:
    """What makes numbers mean less than they seem to."""
    pair = result.pair
    for side, x in (("q", pair.q), ("k", pair.k)):
        if lost := int((~x.isfinite()).sum()):
            sequence, head, at, _ = (~x.isfinite()).nonzero()[0].tolist()
            place = {"head": head, "at": at, "of": f" {say('finding.of_sequence', at=sequence)}" if len(x) > 1 else ""}
            yield Finding("bad", "not_finite", {"side": side, "count": lost, "all": x.numel()} | place)
    group = pair.q.shape[1] // pair.k.shape[1]
    sides = [x.transpose(0, 1).flatten(1) for x in (pair.q, pair.k.repeat_interleave(group, 1))]
    q_is, k_is = (x.ne(0).any(1) for x in sides)  # a short length is none
    finite = sides[0].isfinite().all(1) & sides[1].isfinite().all(1)  # 0 times ∞ is not 0
    zeros = int((~(q_is & k_is) & finite).sum())
    if zeros:
        yield Finding("bad", "zeros", {"count": zeros, "of": len(result.heads)})
    keys = _keys_seen(pair)
    if hidden := int((keys == 0).sum()):
        yield Finding("watch", "no_key", {"count": hidden})
    if int(keys.max()) == 1:
        yield Finding("watch", "one_key")
    if not pair.unscaled:  # else nothing is shown that is taken from a part
        yield from _of_parts(result)
    beyond = max(row["beyond_e4m3"] for row in result.heads)
    if beyond and "k" not in pair.unscaled:
        yield Finding("watch", "key_cache", {"share": written(100 * beyond, 2)})


def _of_parts(result: tensors.Result) -> Iterator[Finding]:
    """What is measured of some queries alone."""
    pair = result.pair
    if pair.q.shape[0] > BATCH or pair.q.shape[2] > ROWS:
        yield Finding("good", "softmax_part", {"rows": ROWS, "sequences": BATCH})
    if not result.whole:
        yield Finding("good", "part", {"rows": result.queries, "all": pair.q.shape[2]})
    if not result.growth_whole:
        yield Finding("good", "part_grown", {"rows": result.queries_of_growth, "all": pair.q.shape[2]})
