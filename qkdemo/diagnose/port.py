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
steps add up by their squares. Steps may have been rounded to the format of q and k where logits were not: what the
logits' own format explains is said first.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import Tensor

from qkdemo.attention.blocks import Block
from qkdemo.attention.pipeline import Pipeline
from qkdemo.diagnose.apart import Rounding, Row, in_range, mostly, relative, worst_row
from qkdemo.diagnose.pipelines import Known, compared
from qkdemo.diagnose.readers.inputs import InputError, listed
from qkdemo.diagnose.readers.logits import GAINS, WORKING, block_of, narrowest, seen, sequences
from qkdemo.labs.placement.comparisons import differing
from qkdemo.labs.placement.diagnosis import EXACT, Verdict
from qkdemo.labs.placement.scales import NEAR

MINE: Final = re.compile(r"(mine|port|ported|observed)([_.]?logits)?|logits[_.]?(mine|port)")
REFERENCE: Final = re.compile(r"(reference|ref|expected)([_.]?logits)?|logits[_.]?(reference|ref)")
_POSITIONS: Final = 48  # from which pipelines are told: a fit of gains needs a few hundred pairs
_NEARLY: Final = 0.95  # of the most pairs: the first queries that have as many do as well
_STEPS: Final = 7  # after which numbers are rounded: norm, gain and rotary of q and of k, and the logit
_WIDEST: Final = 256  # channels of a head, where they are not known
_OF_A_ROW: Final = 2.0  # times as much may be left in one row as over all: it has few numbers, or small ones


@dataclass(frozen=True, eq=False)
class Port:
    """Both arrays of logits, and what they were computed from, if that was brought."""

    mine: Tensor  # [heads, queries, keys] float64
    reference: Tensor
    visible: Tensor  # [queries, keys] the pairs that both have
    format: torch.dtype  # the narrowest that holds the numbers of both; float32 for wider ones
    steps: torch.dtype  # to which steps may have been rounded: that of q and k, if it is coarser
    block: Block | None  # whose projections give q and k, of the queries and keys from which pipelines are told
    brought: frozenset[str] = frozenset()  # of gains and softcap, beside q and k
    masked_otherwise: int = 0  # pairs that one of the two hides, and of which the other has a finite logit
    queries: int = 0  # of a sequence, as they were brought
    sequences: int = 1
    later: tuple[float, ...] = ()  # relative differences of the sequences after the first; ∞ where masks differ, too
    own: torch.dtype = torch.float32  # the format of the reference alone
    farthest: float = 0.0  # the largest position, of either sign, that rotary may have been given
    first: int = 0  # of these queries and keys

    @property
    def fitted(self) -> int:
        """Queries and keys from which pipelines are told."""
        return 0 if self.block is None else len(self.block.x)

    def part(self, logits: Tensor) -> Tensor:
        """[heads, queries, keys] of these; of `visible` without heads."""
        of_these = slice(self.first, self.first + self.fitted)
        return logits[..., of_these, of_these]

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.mine.shape[0]

    @property
    def stored(self) -> float:
        """The relative difference of both that storing them may leave, and forming each sum."""
        return self._storing(self.format)

    def _storing(self, kind: torch.dtype) -> float:
        terms = _WIDEST if self.block is None else self.block.d_head
        return _roundoff(kind) + terms * _roundoff(WORKING)

    def _left(self, kind: torch.dtype, stored: float) -> Rounding:
        """What rounding every step to it may leave; float32 turns by rounded angles, which grow with the position."""
        places = max(self.queries, self.mine.shape[2], self.farthest)
        steps, angles = math.sqrt(_STEPS) * _roundoff(kind), places * _roundoff(WORKING)
        return Rounding(kind, *(max(EXACT, stored, stepwise) for stepwise in (steps + angles, steps)))

    @property
    def alone(self) -> Rounding:
        """What rounding to its own format leaves in the reference."""
        return self._left(self.own, self._storing(self.own))

    @property
    def roundings(self) -> list[Rounding]:
        """What rounding to the logits' own format leaves, then, if it is more, what rounding to that of q and k may."""
        own, steps = (self._left(kind, self.stored) for kind in (self.format, self.steps))
        return [own, steps] if steps.limit > own.limit else [own]


@dataclass(frozen=True, eq=False)
class Result:
    """What was found. `verdict` is None if no known pipeline gives the reference's logits."""

    port: Port
    same: float  # relative difference of the two arrays
    worst: Row  # the row of one head in which they differ most
    ratio: float  # of mine over the reference, if it is the same but for rounding over all; else NaN
    told: float  # that of the queries that are fitted, if the verdict was read from one; without it the same
    apart: Row  # in which mine differs most from that ratio times the reference
    reference: Pipeline | None
    factor: float  # of the reference's scale over the one that `reference` names
    untold: frozenset[str]  # choices of the reference that its logits do not tell
    mine: Pipeline | None  # the pipeline that the port is, if one is known
    verdict: Verdict | None
    known: Known
    errors: list[dict[str, Any]]  # one row per head: relative errors of all, the first and the last query
    exact: float  # the relative difference that is put down to rounding
    rounded: torch.dtype  # the format to which every step was rounded, if `exact` is right
    rough: torch.dtype | None  # to which the reference's steps must have been rounded, if its own does not tell it

    def within(self, limit: float) -> bool:
        """Whether both differ by no more than that, over all and, by twice as much, in every row."""
        return self.same <= limit and self.worst.error <= _OF_A_ROW * limit

    @property
    def alike(self) -> bool:
        """Whether both differ, over all, by no more than rounding may leave."""
        return self.same <= self.exact

    @property
    def alike_in_part(self) -> bool:
        """Whether both differ by no more than that in the queries and keys from which pipelines are told."""
        hidden = ~self.port.visible
        one, other = (self.port.part(x.masked_fill(hidden, 0)) for x in (self.port.mine, self.port.reference))
        return relative(one, other) <= self.exact

    @property
    def uneven(self) -> bool:
        """Whether a row is not `told` times the reference's, by more than rounding every step may leave."""
        return self.apart.error > _OF_A_ROW * self.exact

    @property
    def in_all_but_a_row(self) -> bool:
        """Whether there is a ratio, and a row that does not have it."""
        return self.uneven and not math.isnan(self.told)

    @property
    def shared(self) -> bool:
        """Whether most rows have the ratio that is told, rather than that of 1."""
        return mostly(self.port.mine, self.port.reference, self.told, self.port.visible)

    @property
    def differ_later(self) -> list[int]:
        """The sequences after the first that are off by more than rounding may leave."""
        return [at for at, off in enumerate(self.port.later, 1) if off > self.exact]

    @property
    def differing(self) -> list[str]:
        """The choices in which both pipelines differ, if both are known; also in scales of their own."""
        if not self.reference or not self.mine:
            return []
        own = self.reference.scale == self.mine.scale == "learned"
        alike = math.isclose(self.factor, self.known.mine_factor, rel_tol=max(NEAR, 2 * self.exact))
        found = differing(self.reference, self.mine) + ["scale"] * (own and not alike)
        usual = self.known.reference_epsilon is not None and self.mine.scale == "inverse_root"
        return [x for x in found if not (x == "scale" and usual and self.mine.norm == "none")]  # ε alone does that


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
    every = [sequences(word, x) for word, x in found.items()]
    mine, reference = (x[0] for x in every)
    if mine.shape != reference.shape:
        raise InputError("other_logits", mine=listed(mine.shape), reference=listed(reference.shape))
    shown = [seen(x) for x in (mine, reference)]
    visible = (shown[0] & shown[1]).all(0)
    kinds = [narrowest(x, made[:, visible]) for x, made in zip(found.values(), (mine, reference), strict=True)]
    block = block_of(arrays, mine.shape, visible, theta)
    words = {"gains": {name for names in GAINS.values() for name in names}, "softcap": {"softcap"}}
    brought = frozenset(word for word, names in words.items() if names & {name.lower() for name in arrays})
    later = tuple(_difference(*pair) for pair in zip(*(x[1:] for x in every), strict=False))
    first = 0
    if block is not None:
        first = _first_of_many(visible & (reference != 0).any(0), block.positions)
        chosen = slice(first, first + _POSITIONS)
        seen_by = visible[chosen, chosen]
        block = replace(block, x=block.x[chosen], positions=block.positions[chosen], visible=seen_by)
    kind = max(kinds, key=_roundoff)
    steps = max([kind, *_of_pair(arrays)], key=_roundoff)
    held = torch.where(shown[0], mine, reference).isfinite()  # NaN and ∞ stay what they are under an added mask
    otherwise = int(((shown[0] != shown[1]) & held).sum())
    counts = mine.shape[1], max(map(len, every))
    of_both = Port(mine, reference, visible, kind, steps, block, brought, otherwise, *counts, later, kinds[1])
    return replace(of_both, farthest=_farthest(arrays), first=first)


def run(port: Port) -> Result:
    """Which choice was read wrongly."""
    mine, reference = (x.masked_fill(~port.visible, 0) for x in (port.mine, port.reference))
    same = relative(mine, reference)
    a, b = in_range(mine, reference)
    constant = _ratio(a, b)
    steady = relative(a, constant * b)
    known = Known() if port.block is None else _known(port, port.block, mine, reference)
    alone, *roundings = (each.of(known.reference or Pipeline()) for each in (port.alone, *port.roundings))
    rounding = next((each for each in roundings if steady < each.limit), roundings[-1])
    rounding = min([rounding, *([known.within] if known.within else [])], key=lambda each: each.limit)
    ratio = constant if steady < rounding.limit else math.nan
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
    told = ratio if math.isnan(known.ratio) else _ratio(*map(port.part, (a, b)))
    worst, apart = (worst_row(a, x * b, port.visible) for x in (1.0, constant if math.isnan(told) else told))
    capped = "softcap" in port.brought or (known.reference or Pipeline()).cap != "none"
    untold = known.untold if capped else known.untold - {"cap"}
    found = known.reference, known.factor, untold, known.mine, known.verdict, known, ordered
    rough = known.least.kind if known.least and known.least.limit > alone.limit else None
    return Result(port, same, worst, ratio, told, apart, *found, rounding.limit, rounding.kind, rough)


def _known(port: Port, block: Block, mine: Tensor, reference: Tensor) -> Known:
    """What is known of both from some queries and keys."""
    one, other, visible = map(port.part, (mine, reference, port.visible))
    return compared(one, other, visible, block, (port.alone, *port.roundings), port.brought)


def _first_of_many(telling: Tensor, positions: Tensor) -> int:
    """Where those queries and keys start that have nearly the most pairs that tell, as behind padding on the left.

    Pairs at different positions come first: the others tell nothing of rotary.
    """
    worth = telling * (1 + _POSITIONS**2 * (positions[:, None] != positions))
    starts = range(max(1, len(positions) - _POSITIONS + 1))
    sums = [int(worth[at : at + _POSITIONS, at : at + _POSITIONS].sum()) for at in starts]
    enough = _NEARLY * max(sums)
    return next(at for at in starts if sums[at] >= enough)


def _farthest(arrays: Mapping[str, Tensor]) -> float:
    """The largest position of any sequence, of either sign; 0 where none was brought."""
    brought = [x.double().abs() for name, x in arrays.items() if name.lower() == "positions" and x.numel()]
    return max((float(x.max()) for x in brought if x.isfinite().all()), default=0.0)


def _ratio(mine: Tensor, reference: Tensor) -> float:
    """By least squares."""
    return float((mine * reference).sum() / reference.square().sum())


def _roundoff(kind: torch.dtype) -> float:
    return torch.finfo(kind).eps / 2


def _of_pair(arrays: Mapping[str, Tensor]) -> list[torch.dtype]:
    """The narrowest formats of q and of k, where they were brought. No step is rounded to 8 bits."""
    return [narrowest(x.double(), x.double()) for name, x in arrays.items() if name.lower() in ("q", "k")]


def _difference(mine: Tensor, reference: Tensor) -> float:
    """Of one sequence; ∞ where masks differ, or a logit is not finite."""
    shown, other = seen(mine), seen(reference)
    off = relative(mine.masked_fill(~shown, 0), reference.masked_fill(~shown, 0))
    return off if off < math.inf and bool((shown == other).all()) else math.inf
