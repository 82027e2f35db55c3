"""The same tensors otherwise: with larger weights, under every variant, in every number format."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from qkdemo.attention.variants import VARIANTS, Parameters, VariantWord
from qkdemo.diagnose.pair import Pair
from qkdemo.diagnose.watching.heads import Call, keys_seen, measure
from qkdemo.floats.formats import FORMATS, rounded


def grown(pair: Pair, scale: float) -> list[dict[str, Any]]:
    """Plain and normalised attention with W_q and W_k `scale` times as large, as in the drift lab."""
    larger = replace(pair, q=pair.q.double() * scale, k=pair.k.double() * scale)
    rows = variants(larger, ("none", "rms"))
    return [
        {"scale": scale, **{name: row[name] for name in ("variant", "max_abs_logit", "entropy_fraction")}}
        for row in rows
    ]


def variants(pair: Pair, words: Iterable[VariantWord] = tuple(VARIANTS)) -> list[dict[str, Any]]:
    """The same q and k under every variant, with the gains and scale that were given; g of l2 is √d_head."""
    q, k = pair.q.double(), _for_every_head(pair, pair.k).double()
    width = q.shape[-1]
    gains = {
        f"gamma_{side}": gain.double().reshape(-1)
        for side, gain in (("q", pair.gamma_q), ("k", pair.gamma_k))
        if gain is not None
    }
    parameters = Parameters(g=math.sqrt(width), scale=pair.scale, **gains)
    rows: list[dict[str, Any]] = []
    for word, variant in ((word, VARIANTS[word]) for word in words):
        a, b = (variant.normalise(x, gain) for x, gain in ((q, parameters.gamma_q), (k, parameters.gamma_k)))
        factor = float(variant.factor(parameters, width))
        softcap = float(parameters.softcap) if variant.capped else None
        call = Call(q=a, k=b, scale=factor, visible=pair.visible, softcap=softcap, causal=pair.causal)
        rows.append(
            {"variant": word} | _summed(call) | {"bound": _finite(variant.bound(parameters, width, q.shape[1]))}
        )
    return rows


def formats(pair: Pair) -> list[dict[str, Any]]:
    """Plain attention of the same q and k, stored in every format: scores, then logits."""
    there = (pair.q.double() @ _for_every_head(pair, pair.k).double().mT).isfinite()  # what is lost is not lost again
    seen = torch.ones_like(there) if pair.visible is None else pair.visible
    if pair.causal:
        queries, keys = there.shape[-2:]
        seen = seen & keys_seen(torch.arange(queries), queries, keys)
    seen = seen.expand_as(there)
    rows = []
    for word, kind in FORMATS.items():
        q, k = (rounded(x.double(), kind).double() for x in (pair.q, pair.k))
        scores = rounded(q @ _for_every_head(pair, k).mT, kind)
        lost = ~scores.isfinite() & seen & there
        low = scores == -math.copysign(math.inf, pair.scale)  # of such a logit the softmax makes 0, beside others
        undefined = (lost & (~low | (low | ~seen).all(-1, keepdim=True))).any(-1).double().mean()
        rows.append(
            {"format": word, "scores_lost": int(lost.sum()), "rows_undefined": float(undefined), "of": int(seen.sum())}
        )
    return rows


def _for_every_head(pair: Pair, k: Tensor) -> Tensor:
    """Each query head's own keys, where heads share them."""
    return k.repeat_interleave(pair.q.shape[1] // pair.k.shape[1], 1)


def _summed(call: Call) -> dict[str, float]:
    """Over all heads: the largest |logit|, the mean entropy fraction and the mean slope."""
    found = measure(call, every_sequence=True)
    return {
        "max_abs_logit": float(found["max_logit"].abs().max()),
        "entropy_fraction": float(found["entropy_fraction"].nanmean()),
        "softmax_slope": float(found["softmax_slope"].nanmean()),
    }


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None
