"""A port beside its reference: which choice was read wrongly, from two arrays of logits.

* `port_of(arrays)`: the logits of both, and q and k if they are there, among named arrays;
* `run(port)`: which pipeline the reference is, why the port's logits differ from it, and where.

With q and k as the projections leave them, before any norm and any rotation, every pipeline that is known here is
computed, and the one that gives the reference's logits is the reference; then the Placement lab's diagnosis reads the
port's. From logits alone only a constant ratio can be told.

What rounding may leave is taken from the narrowest format that holds every number of an array, by its unit roundoff u:
to store a logit moves it by u of its size at most, and a sum of n products formed in float32 by about √n u of their
sizes, which together are about √n times as large as the sum. (Higham, Accuracy and Stability of Numerical Algorithms,
2002, section 3.1; Higham and Mary, SIAM Journal on Scientific Computing 41, 2019.) Independent errors of several
steps add up by their squares.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from qkdemo.attention.blocks import Block
from qkdemo.attention.pipeline import Pipeline
from qkdemo.attention.rotary import THETA
from qkdemo.diagnose.pipelines import identified, in_range, relative
from qkdemo.diagnose.readers.inputs import InputError, listed
from qkdemo.diagnose.watching.heads import HIDES
from qkdemo.labs.placement.comparisons import differing
from qkdemo.labs.placement.diagnosis import EXACT, Verdict, diagnose

MINE: Final = re.compile(r"(mine|port|ported|observed)([_.]?logits)?|logits[_.]?(mine|port)")
REFERENCE: Final = re.compile(r"(reference|ref|expected)([_.]?logits)?|logits[_.]?(reference|ref)")
_POSITIONS: Final = 48  # from which pipelines are told: a fit of gains needs a few hundred pairs
_NARROW: Final = (torch.bfloat16, torch.float16)  # the coarser first
_WORKING: Final = torch.float32  # in which sums are formed
_STEPS: Final = 7  # after which numbers are rounded: norm, gain and rotary of q and of k, and the logit
_WIDEST: Final = 256  # channels of a head, where they are not known
_LEAST_HIDDEN: Final = 0.8 * HIDES  # of a mask that hides, with the logits that it is added to
_OF_A_ROW: Final = 2.0  # times as much may be left in one row as over all: it has few numbers, or small ones
_GAINS: Final = {"gain_q": ("gamma_q", "q_gain", "q_norm.weight"), "gain_k": ("gamma_k", "k_gain", "k_norm.weight")}


@dataclass(frozen=True, eq=False)
class Port:
    """Both arrays of logits, and what they were computed from, if that was brought."""

    mine: Tensor  # [heads, queries, keys] float64
    reference: Tensor
    visible: Tensor  # [queries, keys] the pairs that both have
    format: torch.dtype  # the narrowest that holds the numbers of both; float32 for wider ones
    block: Block | None  # whose projections give q and k
    gains: bool = False  # whether gains were brought
    masked_otherwise: int = 0  # pairs that one of the two hides and the other does not
    queries: int = 0  # of a sequence, as they were brought
    sequences: int = 1

    @property
    def fitted(self) -> int:
        """Queries and keys, the first ones, from which pipelines are told."""
        return 0 if self.block is None else len(self.block.x)

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.mine.shape[0]

    @property
    def stored(self) -> float:
        """The relative difference of both that storing them may leave, and forming each sum."""
        terms = _WIDEST if self.block is None else self.block.d_head
        return _roundoff(self.format) + terms * _roundoff(_WORKING)

    @property
    def exact(self) -> float:
        """The relative difference that rounding at every step may leave; float32 turns by rounded angles."""
        places = max(self.queries, self.mine.shape[2])
        stepwise = math.sqrt(_STEPS) * _roundoff(self.format) + places * _roundoff(_WORKING)
        return max(EXACT, self.stored, stepwise)


@dataclass(frozen=True)
class Row:
    """Of one query in one head: by how much both differ, of its logits' size, or of the head's if that is larger."""

    head: int
    query: int
    error: float


@dataclass(frozen=True, eq=False)
class Result:
    """What was found. `verdict` is None if no known pipeline gives the reference's logits."""

    port: Port
    same: float  # relative difference of the two arrays
    worst: Row  # the row of one head in which they differ most
    ratio: float  # of mine over the reference, if it is the same but for rounding over all; else NaN
    apart: Row  # in which mine differs most from that ratio times the reference
    reference: Pipeline | None
    mine: Pipeline | None  # the pipeline that the port is, if one is known
    verdict: Verdict | None
    errors: list[dict[str, Any]]  # one row per head: relative errors of all, the first and the last query

    def within(self, limit: float) -> bool:
        """Whether both differ by no more than that, over all and, by twice as much, in every row."""
        return self.same <= limit and self.worst.error <= _OF_A_ROW * limit

    @property
    def uneven(self) -> bool:
        """Whether a row is not that ratio times the reference's, by more than rounding every step may leave."""
        return self.apart.error > _OF_A_ROW * self.port.exact

    @property
    def differing(self) -> list[str]:
        """The choices in which both pipelines differ, if both are known."""
        return differing(self.reference, self.mine) if self.reference and self.mine else []


def holds_port(arrays: Mapping[str, object]) -> bool:
    """Whether both logits are among the arrays."""
    return all(any(pattern.fullmatch(name.lower()) for name in arrays) for pattern in (MINE, REFERENCE))


def together(mine: Mapping[str, Tensor], reference: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The arrays of two files, with the logits of each named for it. Raises InputError if one has none."""
    found = {**reference, **mine}
    for word, arrays, pattern in (("mine", mine, MINE), ("reference", reference, REFERENCE)):
        known = re.compile(rf"{pattern.pattern}|(attn_)?(logits|scores)")
        names = [name for name in arrays if known.fullmatch(name.lower())] or (list(arrays) if len(arrays) == 1 else [])
        if len(names) != 1:
            key = "many_logits" if names else "no_logits"
            raise InputError(key, which=word, names=", ".join(names or arrays) or "–")
        found[word] = arrays[names[0]]
    return {name: x for name, x in found.items() if name in ("mine", "reference") or name.lower() != "logits"}


def port_of(arrays: Mapping[str, Tensor], *, theta: float | None = None) -> Port:
    """Both logits, and q and k, gains, positions, theta and softcap where they are there. Raises InputError."""
    found = {
        word: next(x for name, x in arrays.items() if pattern.fullmatch(name.lower()))
        for word, pattern in (("mine", MINE), ("reference", REFERENCE))
    }
    mine, reference = (_of_heads(word, x) for word, x in found.items())
    if mine.shape != reference.shape:
        raise InputError("other_logits", mine=listed(mine.shape), reference=listed(reference.shape))
    seen = [_seen(x) for x in (mine, reference)]
    visible = (seen[0] & seen[1]).all(0)
    kinds = [_format(x, made[:, visible]) for x, made in zip(found.values(), (mine, reference), strict=True)]
    block = _block(arrays, mine.shape, visible, theta)
    gains = any(name in arrays for names in _GAINS.values() for name in names)
    brought = mine.shape[1], found["mine"].shape[0] if found["mine"].dim() == 4 else 1
    chosen = torch.arange(0, mine.shape[1])[:_POSITIONS]
    if block is not None:
        seen_by = visible[chosen][:, chosen]
        block = replace(block, x=block.x[chosen], positions=block.positions[chosen], visible=seen_by)
    kind = max(kinds, key=_roundoff)
    return Port(mine, reference, visible, kind, block, gains, int((seen[0] != seen[1]).sum()), *brought)


def run(port: Port) -> Result:
    """Which choice was read wrongly."""
    mine, reference = (x.masked_fill(~port.visible, 0) for x in (port.mine, port.reference))
    same = relative(mine, reference)
    a, b = in_range(mine, reference)
    constant = float((a * b).sum() / b.square().sum())
    ratio = constant if relative(a, constant * b) < port.exact else math.nan
    known = verdict = other = None
    if port.block is not None:
        n, block = port.fitted, port.block
        seen = port.visible[:n, :n]
        of_logits = partial(identified, block=block, visible=seen, exact=port.exact, gains=port.gains)
        found = of_logits(reference[:, :n, :n])
        if found is not None:
            known, block = found
            verdict = diagnose(known, block, port.mine[:, :n, :n], port.exact)
            again = of_logits(mine[:, :n, :n]) if verdict.cause != "same" else None
            other = again[0] if again else None
    errors = [
        {
            "head": head,
            "error": relative(mine[head], reference[head]),
            "first_query": relative(mine[head, 0], reference[head, 0]),
            "last_query": relative(mine[head, -1], reference[head, -1]),
            "not_finite": int((~mine[head].isfinite()).sum()),
        }
        for head in range(port.heads)
    ]
    ordered = sorted(errors, key=lambda row: -row["error"])
    worst, apart = (_worst_row(a, made, port.visible) for made in (b, constant * b))
    return Result(port, same, worst, ratio, apart, known, other, verdict, ordered)


def _roundoff(kind: torch.dtype) -> float:
    return torch.finfo(kind).eps / 2


def _worst_row(mine: Tensor, reference: Tensor, visible: Tensor) -> Row:
    """A row of small logits is measured by the head's: its errors are of the size of the products that cancel there."""
    counts = visible.sum(-1).clamp_min(1)
    sizes = (reference.square().sum(-1) / counts).sqrt()  # [heads, queries]
    of_head = (reference.square().sum((1, 2), keepdim=False) / visible.sum().clamp_min(1)).sqrt()
    differences = ((mine - reference).square().sum(-1) / counts).sqrt()
    errors = torch.where(differences == 0, 0.0, differences / torch.maximum(sizes, of_head[:, None]))
    head, query = divmod(int(errors.nan_to_num(math.inf).argmax()), errors.shape[1])
    return Row(head, query, float(errors[head, query]))


# ---- reading


def _seen(logits: Tensor) -> Tensor:
    """True where a number is a logit, and not −∞ or what a mask was added to.

    Such numbers are HIDES or less, and between them and the logits lies a gap, wider than all logits are apart: logits
    that reach as far down without a gap are logits.
    """
    low = logits[(logits <= _LEAST_HIDDEN) & logits.isfinite()].sort(descending=True).values
    others = logits[(logits > _LEAST_HIDDEN) & logits.isfinite()]
    if not low.numel() or low[-1] > HIDES:
        return (logits > -math.inf) | logits.isnan()
    if not others.numel():
        return (logits > HIDES) | logits.isnan()
    above = torch.cat([others.min()[None], low[:-1]])
    apart = (above - low >= others.max() - above).nonzero()
    return (logits > (low[apart[0, 0]] if len(apart) else -math.inf)) | logits.isnan()


def _format(x: Tensor, numbers: Tensor) -> torch.dtype:
    """The narrowest format that holds every one of the numbers, as where bfloat16 was saved as float32."""
    if x.is_floating_point() and x.element_size() == 1:
        return x.dtype
    held = numbers[numbers.isfinite()]
    return next((kind for kind in _NARROW if bool((held.to(kind).double() == held).all())), _WORKING)


def _of_heads(word: str, x: Tensor) -> Tensor:
    """[heads, queries, keys] of the first sequence, in float64."""
    if not 2 <= x.dim() <= 4:
        if word in "qk":
            raise InputError("bad_axes", name=word, shape=listed(x.shape))
        raise InputError("bad_logits", which=word, shape=listed(x.shape))
    if x.numel() == 0:
        raise InputError("empty", name=word, shape=listed(x.shape))
    x = x.float() if x.is_floating_point() and x.element_size() == 1 else x
    x = x.double()
    return x[0] if x.dim() == 4 else x[(None,) * (3 - x.dim())]


def _block(arrays: Mapping[str, Tensor], shape: torch.Size, visible: Tensor, theta: float | None) -> Block | None:
    """A block whose projections are q and k; None where they were not brought."""
    given = {name.lower(): x for name, x in arrays.items()}
    if not {"q", "k"} <= given.keys():
        return None
    q, k = (_of_heads(side, given[side]) for side in "qk")
    heads, positions, width = q.shape
    fits = q.shape[:2] == shape[:2] and k.shape[1:] == (shape[2], width) and positions == k.shape[1]
    if not fits or heads % k.shape[0]:
        raise InputError("other_pair", q=listed(q.shape), k=listed(k.shape), logits=listed(shape))
    kv_heads = k.shape[0]
    x = torch.cat([side.movedim(0, 1).flatten(1) for side in (q, k)], 1)
    one = torch.eye(x.shape[1], dtype=torch.float64)
    scalar = {name: float(given[name].reshape(-1)[0]) for name in ("theta", "rope_theta", "softcap") if name in given}
    at = given.get("positions")
    return Block(
        x=x,
        w_q=one[: heads * width],
        w_k=one[heads * width :],
        w_v=one[heads * width :],
        gain_q=_gain(given, "gain_q", heads, width),
        gain_k=_gain(given, "gain_k", kv_heads, width),
        positions=torch.arange(positions).double() if at is None else at.double().reshape(-1)[:positions],
        theta=theta or scalar.get("theta") or scalar.get("rope_theta") or THETA,
        softcap=scalar.get("softcap", 50.0),
        visible=visible,
    )


def _gain(given: Mapping[str, Tensor], side: str, heads: int, width: int) -> Tensor:
    """[heads, d_head] as stored; ones where none were brought."""
    gain = next((given[name] for name in _GAINS[side] if name in given), None)
    if gain is None:
        return torch.ones(heads, width, dtype=torch.float64)
    gain = gain.double()
    if gain.numel() == heads * width:
        return gain.reshape(heads, width)
    if gain.numel() != width:
        raise InputError("bad_gain", shape=listed(gain.shape), d=width)
    return gain.reshape(1, width).expand(heads, width).clone()
