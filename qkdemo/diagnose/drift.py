"""Somebody's q and k as the drift lab takes them: as many queries as keys, a few heads, at most 256 positions.

* `opened(pair)`: what the lab is given, the dials that it begins with, and what was left out; `in_words(opened, name)`.

Of many heads the worst are taken, of many positions evenly spread ones and those of the largest logit. A scale other
than 1/√d_head is multiplied into q, so that plain attention has the logits that it has in the file; a norm undoes it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from qkdemo.attention.inputs import Inputs, causal_mask
from qkdemo.diagnose.pair import Pair
from qkdemo.diagnose.readers.inputs import InputError, listed
from qkdemo.diagnose.watching.heads import keys_seen, measure
from qkdemo.messages import say

MOST_HEADS: Final = 4
MOST_POSITIONS: Final = 256
WIDTHS: Final = (4, 256)
_AT_ONCE: Final = 1024  # queries of a sequence, whose logits are formed


@dataclass(frozen=True, eq=False)
class Opened:
    """What the drift lab is given, and what a sentence about it needs."""

    inputs: Inputs
    dials: Mapping[str, str]  # as a link writes them
    heads: Sequence[int]  # of the file, in the lab's order: the worst first
    all_heads: int
    positions: int  # of the file
    left_out: Sequence[str]  # mask, mask_causal, bias or mask_numbers; gains, sequences: words of say("own.left_out.…")
    mask: str  # its name in the file, if one was read
    scaled: bool  # whether another scale than 1/√d_head was multiplied into q


def opened(pair: Pair) -> Opened:
    """q and k for the drift lab. Raises InputError if it cannot take them."""
    if pair.unscaled:
        raise InputError("drift_unscaled", names=", ".join(pair.unscaled))
    batch, heads, positions, width = pair.q.shape
    shapes = {"q": listed(pair.q.shape), "k": listed(pair.k.shape)}
    if pair.k.shape[2] != positions or positions < 2:
        raise InputError("drift_positions", **shapes)
    if not WIDTHS[0] <= width <= WIDTHS[1]:
        raise InputError("drift_width", d=width, low=WIDTHS[0], high=WIDTHS[1])
    found = measure(pair.call, every_sequence=True)["max_logit"].abs().double()
    worst = found.nan_to_num(nan=-1.0).argsort(descending=True, stable=True)[:MOST_HEADS].tolist()
    sequence, query, key = _largest(pair, worst[0])
    kept = _spread(positions, (query, key))
    group = heads // pair.k.shape[1]
    q = pair.q[sequence, worst][:, kept].double() * (pair.scale * math.sqrt(width))
    k = pair.k[sequence, [head // group for head in worst]][:, kept].double()
    if not bool(q.isfinite().all() and k.isfinite().all()):
        raise InputError("drift_infinite")
    causal, mask = _mask(pair, sequence, worst, kept)
    left_out = {
        mask: bool(mask),
        "gains": pair.gamma_q is not None or pair.gamma_k is not None,
        "sequences": batch > 1,
    }
    dials = {"scale": "1", "query": str(kept.index(query)), "key": str(kept.index(key)), "head": "0"}
    dials |= {"n_heads": str(len(worst)), "n_keys": str(len(kept)), "d_head": str(width), "causal": str(int(causal))}
    return Opened(
        inputs=Inputs(q.contiguous(), k.contiguous()),
        dials=dials,
        heads=worst,
        all_heads=heads,
        positions=positions,
        left_out=[word for word, out in left_out.items() if out],
        mask=pair.mask.name if pair.mask else "",
        scaled=not math.isclose(pair.scale, width**-0.5, rel_tol=1e-6),
    )


def in_words(opened: Opened, name: str) -> str:
    """What of the file stands in the lab, and what does not."""
    heads = ", ".join(map(str, opened.heads))
    places = opened.inputs.q.shape[1]
    key = "own.all" if len(opened.heads) == opened.all_heads else "own.some"
    sentences = [say(key, name=name, heads=heads, all=opened.all_heads)]
    if places < opened.positions:
        sentences.append(say("own.positions", shown=places, all=opened.positions))
    if opened.scaled:
        sentences.append(say("own.scaled"))
    sentences += [say(f"own.left_out.{word}", mask=opened.mask) for word in opened.left_out]
    return " ".join(sentences)


def _largest(pair: Pair, head: int) -> tuple[int, int, int]:
    """Sequence, query and key of the logit of largest size of a head."""
    keys = _wide(pair.k[:, head // (pair.q.shape[1] // pair.k.shape[1])])
    best, at = -1.0, (0, 0, 0)
    for sequence in range(pair.q.shape[0]):
        q = _wide(pair.q[sequence, head])
        for start in range(0, len(q), _AT_ONCE):
            asked = torch.arange(start, min(start + _AT_ONCE, len(q)))
            logits = (q[asked] @ keys[sequence].mT).abs().nan_to_num(nan=-1.0)
            logits = logits.masked_fill(~_seen(pair, sequence, head, asked), -1)
            value, place = logits.flatten().max(0)
            if float(value) > best:
                row, key = divmod(int(place), logits.shape[1])
                best, at = float(value), (sequence, int(asked[row]), key)
    return at


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _seen(pair: Pair, sequence: int, head: int, queries: Tensor) -> Tensor:
    """[queries, keys] True where a query sees a key."""
    n_queries, n_keys = pair.q.shape[2], pair.k.shape[2]
    seen = torch.ones(len(queries), n_keys, dtype=torch.bool)
    if pair.causal:
        seen = keys_seen(queries, n_queries, n_keys)
    return seen if pair.visible is None else seen & pair.visible[sequence, head, queries]


def _mask(pair: Pair, sequence: int, heads: Sequence[int], kept: Sequence[int]) -> tuple[bool, str]:
    """Whether the lab hides later keys, and what is left out of the mask of what is taken: a word, or none."""

    def taken(x: Tensor | None) -> Tensor | None:
        return None if x is None else torch.stack([x[sequence, head, kept][:, kept] for head in heads])

    visible, added = taken(pair.visible), taken(pair.mask.added if pair.mask else None)
    causal = causal_mask(len(kept))
    as_causal = visible is not None and bool(((visible & causal if pair.causal else visible) == causal).all())
    biased = added is not None and bool((added & causal if pair.causal or as_causal else added).any())
    if visible is None or bool(visible.all()):
        return pair.causal, "bias" if biased else ""
    if as_causal:
        return True, "mask_numbers" if biased else ""
    if not pair.causal and not bool((visible & ~causal).any()):  # as of padding with the causal mask
        return True, "mask_causal"
    return pair.causal, "mask"


def _spread(positions: int, needed: tuple[int, int]) -> list[int]:
    """At most MOST_POSITIONS places, in order: evenly spread ones, and those that are needed."""
    if positions <= MOST_POSITIONS:
        return list(range(positions))
    even = torch.linspace(0, positions - 1, MOST_POSITIONS - len(needed)).round().long().tolist()
    return sorted({*even, *needed})
