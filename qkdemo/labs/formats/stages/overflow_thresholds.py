"""The weight scale from which on each stage loses entries, bisected.

* `first_losses(inputs, choices)`: from which it loses some at every larger one;
* `first_exceeding(inputs, choices)`: from which its exact values would be too large, whatever came before.

Both are arrays over [formats, stages], in the order of `STORED` and `STAGES`. Hidden keys are no entries.

**How.** Losses are known at some weight scales, or looked up there, which leaves a bracket for every format and
stage. All brackets are narrowed together, in rounds. Most entries are first lost where the largest one is: that is
sought with a few vectors, up to the product, then with those that form the largest logits, and then it is looked
whether it holds for all. Where rounding makes losses come and go, which of them is found depends on where it looked.
"""

import math
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.norms import NORMS
from qkdemo.floats.formats import ALL_FORMATS
from qkdemo.labs.formats.stages.error_counts import Tally
from qkdemo.labs.formats.stages.exact import exactly
from qkdemo.labs.formats.stages.kinds import (
    IN_NORM,
    OVER_KEYS,
    STAGE_OF,
    STAGES,
    STORED,
    Choices,
    Inputs,
    StageWord,
    StoredWord,
)
from qkdemo.labs.formats.stages.rounded import follow, holder

LOWEST: Final = 0.01  # weight scales between which first losses are sought
HIGHEST: Final = 1e38
_COARSE: Final = np.geomspace(LOWEST, HIGHEST, 6)  # looked at in any case
_PRECISION: Final = 1e-6  # relative, of a first loss
_PARTS: Final = 8  # that a bracket is divided into by one round
_TOP: Final = 2  # logits
_AGAIN: Final = 3  # times that some rows are settled alone
_FEW: Final = 8  # rows, of which to look for fewer costs as much as it spares
_WEIGHT: Final = STAGES.index("weight")
_FAR: Final = np.arange(len(STAGES)) >= STAGES.index("raw_product")
_DEGREE: Final[dict[StageWord, int]] = {  # how an exact value grows with the weight scale before any norm
    **dict.fromkeys(("q_stored", "k_stored"), 1),
    **dict.fromkeys(("q_sum_of_squares", "k_sum_of_squares", "raw_product", "scaled"), 2),
}


def first_losses(
    inputs: Inputs, choices: Choices, scales: Sequence[float] = (), counted: Tally | None = None
) -> NDArray[np.float64]:
    """The weight scale from which on a stage loses entries at every larger one, per [format, stage].

    Sought from `LOWEST` (returned if it fails there already) to `HIGHEST` (∞ if it does not fail there), then in
    ever smaller steps to a relative precision of 1e-6, all stages and formats at once. NaN where the norm has
    no such stage. What was `counted` at ascending `scales` from `LOWEST` on need not be looked up again.
    """
    known, few = _Brackets(), _Brackets()
    if counted is not None:
        known.learn(np.arange(len(STORED)).repeat(len(scales)), np.tile(scales, len(STORED)), _lost_in(counted))
    truth = exactly(inputs, torch.tensor([known.earliest()], dtype=torch.float64), choices)
    longest = _longest(truth, choices)
    places = np.concatenate([_near(first_exceeding(inputs, choices)), _everywhere(_COARSE)], -1)
    places = np.concatenate([known.within(places), known.ends()], -1)
    _settle(few, np.where(_FAR[:, None], np.nan, places), _taken(inputs, *longest), choices)
    ends = few.ends().reshape(len(STORED), 1, -1)  # where a vector is lost, what is computed from it mostly is
    places = np.concatenate([places, known.within(_everywhere(ends))], -1)
    _settle(few, np.where(_FAR[:, None], places, np.nan), _taken(inputs, *_largest(truth, inputs, longest)), choices)
    _look(known, known.within(np.concatenate([few.ends(), _everywhere(_COARSE[[0, -1]])], -1)), inputs, choices)
    for _ in range(_AGAIN):  # below where some rows begin to lose entries, others may lose some
        of_rows = copy(known)  # what is safe for all is so for some
        _settle_rows(of_rows, inputs, choices, longest[0])
        _look(known, known.within(of_rows.ends()), inputs, choices)
    _settle(known, known.inner(), inputs, choices)
    return np.where(_exist(choices), known.first(), np.nan)


def first_exceeding(inputs: Inputs, choices: Choices) -> NDArray[np.float64]:
    """The weight scale from which the exact values of a stage exceed the format that holds it, per [format, stage].

    Known in closed form where the exact value grows as a power of the weight scale: q, k and their sums of
    squares, and without a norm the raw product and the scaled logit. ∞ elsewhere.
    """
    one = torch.ones(1, dtype=torch.float64)
    truth = exactly(inputs, one, choices)
    found = np.full((len(STORED), len(STAGES)), np.inf)
    for stage, degree in _DEGREE.items():
        if stage in truth and (choices.variant == "none" or stage not in OVER_KEYS):
            seen = truth[stage] if inputs.visible is None or stage not in OVER_KEYS else truth[stage][:, inputs.visible]
            ratio = holder(stage, choices).limits / seen.abs().max()
            found[:, STAGES.index(stage)] = ratio.numpy() ** (1 / degree)
    return found


class _Brackets:
    """Between which weight scales each stage begins to lose entries, [formats, stages].

    Weight scales to look at are [formats, stages, places]; NaN: at none.
    """

    def __init__(self) -> None:
        shape = len(STORED), len(STAGES)
        self._safe = np.zeros(shape)  # the last one that is known to be safe
        self._lost = np.full(shape, np.inf)  # the next one that is known to lose entries
        self._seen: tuple[NDArray[Any], ...] = np.empty(0, int), np.empty(0), np.empty((0, len(STAGES)))

    def learn(self, formats: NDArray[np.int64], scales: NDArray[np.float64], lost: NDArray[np.float64]) -> None:
        """Take in whether a format loses entries at a scale, [pairs, stages]: 1, 0, or NaN where nobody looked."""
        self._seen = tuple(np.concatenate(x) for x in zip(self._seen, (formats, scales, lost), strict=True))
        formats, scales, lost = self._seen
        at = scales[:, None]
        self._safe, self._lost = np.zeros_like(self._safe), np.full_like(self._lost, np.inf)
        np.maximum.at(self._safe, formats, np.where(lost == 0, at, 0))
        np.minimum.at(self._lost, formats, np.where((lost == 1) & (at > self._safe[formats]), at, np.inf))

    def ends(self) -> NDArray[np.float64]:
        """Both ends of each, as far as they are known."""
        ends = np.stack([self._safe, self._lost], -1)
        return np.where((ends > 0) & np.isfinite(ends), ends, np.nan)

    def within(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Those of `places` that tell anything new: they lie inside, or beyond all that was looked at."""
        inside = (places > self._safe[..., None]) & (places < self._lost[..., None])
        return np.where(inside | (places > self._seen[1].max(initial=0)), places, np.nan)

    @property
    def wide(self) -> NDArray[np.bool_]:
        """Which of them are not yet as narrow as they shall be."""
        wide: NDArray[np.bool_] = (self._safe > 0) & np.isfinite(self._lost)
        return wide & (self._lost > self._safe * (1 + _PRECISION))

    def inner(self) -> NDArray[np.float64]:
        """Places that divide those."""
        low, high = (x[..., None] for x in (self._safe, self._lost))
        with np.errstate(all="ignore"):
            return np.where(self.wide[..., None], low * (high / low) ** (np.arange(1, _PARTS) / _PARTS), np.nan)

    def earliest(self) -> float:
        """Where anything that is computed from the vectors is lost first; 1 if that is not known."""
        first = float(self._lost[:, _FAR].min())
        return first if math.isfinite(first) else 1.0

    def first(self) -> NDArray[np.float64]:
        """The first losses."""
        return np.where(self._safe == 0, LOWEST, self._lost)


def _settle(known: _Brackets, places: NDArray[np.float64], inputs: Inputs, choices: Choices) -> None:
    """Narrow all brackets, from `places` on, in rounds that all formats share."""
    while np.isfinite(places).any():
        _look(known, places, inputs, choices)
        places = known.inner()


def _settle_rows(known: _Brackets, inputs: Inputs, choices: Choices, longest: set[int]) -> None:
    """Narrow all brackets with the queries that lose an entry at their upper ends, which become fewer, and `longest`.

    A sum is lost where no term is: all keys take part.
    """
    rows, keys = list(range(len(inputs.q))), set(range(len(inputs.k)))
    while known.wide.any():
        some = _taken(inputs, set(rows), keys)
        if len(rows) > _FEW:
            failing = _failing(np.where(known.wide, known.ends()[..., 1], np.nan), some, choices)
            rows = sorted(longest.union(rows[at] for at in failing))
            some = _taken(inputs, set(rows), keys)
        _look(known, known.inner(), some, choices)


def _look(known: _Brackets, places: NDArray[np.float64], inputs: Inputs, choices: Choices) -> None:
    """Learn what becomes of the stages at `places`, followed no further than it is asked for."""
    formats, stages, _ = np.nonzero(np.isfinite(places))
    pairs, same = np.unique(np.stack([formats, places[np.isfinite(places)]]), axis=1, return_inverse=True)
    deep = np.zeros(pairs.shape[1], dtype=bool)
    np.logical_or.at(deep, same, _FAR[stages])
    for far in (False, True):
        formats, scales = pairs[0, deep == far].astype(int), pairs[1, deep == far]
        if len(scales):
            known.learn(formats, scales, _loses([STORED[f] for f in formats], scales, inputs, choices, far=far))


def _failing(places: NDArray[np.float64], inputs: Inputs, choices: Choices) -> set[int]:
    """The queries of which stages beyond the vectors lose an entry at `places`, [formats, stages]."""
    formats, stages = np.nonzero(np.isfinite(places) & _FAR)
    if not len(formats):
        return set()
    scales = torch.from_numpy(places[formats, stages])[:, None]
    held = follow(inputs, scales, choices, [STORED[f] for f in formats], until="weight")
    rows = []
    for at, stage in enumerate(STAGES[min(int(s), _WEIGHT)] for s in stages):
        lost = held[stage].lost[at, 0]
        seen = lost & inputs.visible if stage in OVER_KEYS and inputs.visible is not None else lost
        rows.append(seen.any(-1))
    return set(torch.stack(rows).any(0).nonzero().flatten().tolist())


def _loses(
    words: Sequence[StoredWord], scales: NDArray[np.float64], inputs: Inputs, choices: Choices, *, far: bool
) -> NDArray[np.float64]:
    """Whether each stage loses an entry, for pairs of format and weight scale: [pairs, stages].

    Only `far` goes beyond the vectors that enter the product. Values do not grow with the weight scale: a weighted one
    is lost where a weight of its row is.
    """
    held = follow(inputs, torch.from_numpy(scales)[:, None], choices, words, until="weight" if far else "k_entering")
    loses = np.zeros((len(words), len(STAGES)))
    for stage, of_stage in held.items():
        lost = of_stage.beyond.numpy() | ~np.isfinite(of_stage.values.numpy())
        if stage in OVER_KEYS and inputs.visible is not None:
            lost = lost & inputs.visible.numpy()
        loses[:, STAGES.index(stage)] = lost.any((1, 2, 3))
    if not far:
        loses[:, _FAR] = np.nan
    loses[:, -1] = loses[:, _WEIGHT]
    return loses


def _lost_in(counted: Tally) -> NDArray[np.float64]:
    """What `_loses` finds, from counts: [formats · scales, stages]."""
    lost = (counted.n_lost > 0).swapaxes(1, 2).reshape(-1, len(STAGES)).astype(float)
    lost[:, -1] = lost[:, _WEIGHT]
    return lost


def _longest(truth: Mapping[StageWord, Tensor], choices: Choices) -> tuple[set[int], set[int]]:
    """The queries and keys that are lost first, given all stages exactly."""
    places = dict[str, set[int]]()
    for name in ("q", "k"):
        x = truth[STAGE_OF[name, "stored"]][0]
        places[name] = {int(x.abs().amax(-1).argmax())}
        if STAGE_OF[name, "sum_of_squares"] in truth:
            squares = truth[STAGE_OF[name, "sum_of_squares"]][0, :, 0]
            places[name] |= {int(squares.argmax()), int(squares.argmin())}
        if NORMS[choices.variant].centred:
            places[name].add(int(x.sum(-1).abs().argmax()))
    return places["q"], places["k"]


def _largest(
    truth: Mapping[StageWord, Tensor], inputs: Inputs, longest: tuple[set[int], set[int]]
) -> tuple[set[int], set[int]]:
    """The queries and keys that form the logits that are lost first, and the `longest` ones."""
    sums = (truth["q_entering"][0, :, None] * truth["k_entering"][0]).cumsum(-1)  # one may be lost on the way
    highest, lowest, last = sums.amax(-1), sums.amin(-1), sums[..., -1]
    hidden = torch.zeros_like(last, dtype=torch.bool) if inputs.visible is None else ~inputs.visible
    furthest = torch.maximum(highest, -lowest).masked_fill(hidden, 0)
    best = torch.cat(
        [x.flatten().topk(min(_TOP, x.numel())).indices for x in (highest, furthest)]
    )  # +∞ under a mask, too
    rows, columns = (best // len(inputs.k)).tolist(), (best % len(inputs.k)).tolist()
    most, least = last.masked_fill(hidden, -torch.inf), last.masked_fill(hidden, torch.inf)
    widest = int((most.amax(-1) - least.amin(-1)).argmax())  # the maximum is subtracted from all
    rows += [widest, int(lowest.masked_fill(hidden, -torch.inf).amax(-1).argmin())]  # a row of −∞ has no weights
    columns.append(int(least[widest].argmin()))
    columns += highest.masked_fill(hidden, -torch.inf)[rows].argmax(-1).tolist()
    return longest[0].union(rows), longest[1].union(columns)


def _taken(inputs: Inputs, rows: set[int], columns: set[int]) -> Inputs:
    """Those queries and keys alone."""
    queries, keys = sorted(rows), sorted(columns)
    visible = None if inputs.visible is None else inputs.visible[queries][:, keys]
    return Inputs(inputs.q[queries], inputs.k[keys], inputs.v[keys], visible)


def _near(exceeding: NDArray[np.float64]) -> NDArray[np.float64]:
    """Both sides of where the exact values become too large, [formats, stages, 2].

    Stored q and k are lost there, what is computed from them within some roundings of it.
    """
    digits = np.array([ALL_FORMATS[word].mantissa_bits for word in STORED])
    width = np.where([stage.endswith("stored") for stage in STAGES], _PRECISION / 3, 2.0 ** -digits[:, None])
    sides = np.stack([exceeding * (1 - width), exceeding * (1 + width)], -1)
    return np.where((sides > LOWEST) & (sides < HIGHEST), sides, np.nan)


def _everywhere(scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """These scales for each format and stage."""
    return np.broadcast_to(scales, (len(STORED), len(STAGES), scales.shape[-1]))


def _exist(choices: Choices) -> NDArray[np.bool_]:
    """Which stages there are."""
    measures = NORMS[choices.variant].entrywise is None
    return np.array([measures or stage not in IN_NORM for stage in STAGES])
