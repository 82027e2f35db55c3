"""The weight scale from which on each stage loses entries, bisected.

* `first_losses(inputs, choices)`: from which it loses some at every larger one;
* `first_exceeding(inputs, choices)`: from which its exact values would be too large, whatever came before.

Both are arrays over [formats, stages], in the order of `STORED` and `STAGES`. Hidden keys are no entries.

**How.** Losses are known at some weight scales, or looked up there, which leaves a bracket for every format and
stage. All brackets are narrowed together, in rounds. Most logits are first lost where the largest one is: that is
sought with the few vectors that form it, and then it is looked whether it holds for all.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

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
_POINTS: Final = 7  # weight scales tried at once within a bracket: each round makes it eight times as narrow
_TOP: Final = 2  # logits
_FEW: Final = 15  # the same for a few vectors
_WEIGHT: Final = STAGES.index("weight")
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
    exceeding = first_exceeding(inputs, choices)
    edges = [_first_edges(exceeding[f], ALL_FORMATS[word].mantissa_bits) for f, word in enumerate(STORED)]
    few = [_Search(word, edges[f], _FEW) for f, word in enumerate(STORED)]
    _settle(few, _largest(inputs, choices), choices)
    searches = []
    for f, word in enumerate(STORED):
        near = np.unique(np.concatenate([_COARSE, few[f].brackets().ravel()]))
        search = _Search(word, near, _POINTS)
        if counted is not None:
            search.learn(np.array(scales), _lost_in(counted, f))
            search.ask(near)
        searches.append(search)
    _settle(searches, inputs, choices)
    found = np.stack([search.first() for search in searches])
    return np.where(_exist(choices), found, np.nan)


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


class _Search:
    """What is known of one format: whether each stage loses entries, at the weight scales looked at so far."""

    def __init__(self, word: StoredWord, edges: NDArray[np.float64], points: int) -> None:
        self.word, self.wanted, self._points = word, edges, points
        self._scales, self._lost = np.empty(0), np.empty((0, len(STAGES)), dtype=bool)  # ascending

    def learn(self, scales: NDArray[np.float64], lost: NDArray[np.bool_]) -> None:
        """Take in whether each stage loses entries at `scales`, [scales, stages]."""
        self._scales, first = np.unique(np.concatenate([self._scales, scales]), return_index=True)
        self._lost = np.concatenate([self._lost, lost])[first]
        at = np.arange(len(self._scales))[:, None]
        self._safe = np.where(self._lost, -1, at).max(0)  # the place of each stage's last safe scale, −1 if none is
        self.wanted = np.empty(0)

    def brackets(self) -> NDArray[np.float64]:
        """The last safe scale of a stage and the next one, for all stages that have both: [brackets, 2]."""
        places = np.unique(self._safe)
        places = places[(places >= 0) & (places < len(self._scales) - 1)]
        ends: NDArray[np.float64] = self._scales[np.stack([places, places + 1], axis=-1)]
        return ends

    def narrow(self) -> None:
        """Ask for scales within the brackets that are still too wide."""
        low, high = self.brackets().T
        wide = high > low * (1 + _PRECISION)
        low, high = low[wide, None], high[wide, None]
        self.wanted = (low * (high / low) ** (np.arange(1, self._points + 1) / (self._points + 1))).ravel()

    def ask(self, edges: NDArray[np.float64]) -> None:
        """Ask for those of `edges` that lie beyond all that is known, or within a bracket."""
        low, high = self.brackets().T[..., None]
        inside = ((low < edges) & (edges < high)).any(0)
        self.wanted = edges[inside | (edges > self._scales[-1])]

    def first(self) -> NDArray[np.float64]:
        """The first losses, one per stage."""
        last = len(self._scales) - 1
        high = self._scales[np.minimum(self._safe + 1, last)]
        return np.select([self._safe < 0, self._safe == last], [LOWEST, np.inf], high)


def _settle(searches: Sequence[_Search], inputs: Inputs, choices: Choices) -> None:
    """Narrow all brackets, in rounds that all formats share."""
    while any(len(search.wanted) for search in searches):
        _look(searches, inputs, choices)
        for search in searches:
            search.narrow()


def _look(searches: Sequence[_Search], inputs: Inputs, choices: Choices) -> None:
    """Look up what the searches want to know."""
    words = [search.word for search in searches for _ in search.wanted]
    lost = _loses(words, np.concatenate([search.wanted for search in searches]), inputs, choices)
    for search in searches:
        own, lost = lost[: len(search.wanted)], lost[len(search.wanted) :]
        search.learn(search.wanted, own)


def _loses(
    words: Sequence[StoredWord], scales: NDArray[np.float64], inputs: Inputs, choices: Choices
) -> NDArray[np.bool_]:
    """Whether each stage loses an entry, for pairs of format and weight scale: [pairs, stages].

    Values do not grow with the weight scale: a weighted one is lost where a weight of its row is.
    """
    held = follow(inputs, torch.from_numpy(scales)[:, None], choices, words, until="weight")
    loses = np.zeros((len(words), len(STAGES)), dtype=bool)
    for stage, of_stage in held.items():
        lost = of_stage.beyond.numpy() | ~np.isfinite(of_stage.values.numpy())
        if stage in OVER_KEYS and inputs.visible is not None:
            lost = lost & inputs.visible.numpy()
        loses[:, STAGES.index(stage)] = lost.any((1, 2, 3))
    loses[:, -1] = loses[:, _WEIGHT]
    return loses


def _lost_in(counted: Tally, f: int) -> NDArray[np.bool_]:
    """What `_loses` finds in one format, from counts."""
    lost: NDArray[np.bool_] = (counted.n_lost[f] > 0).T
    lost[:, -1] = lost[:, _WEIGHT]
    return lost


def _largest(inputs: Inputs, choices: Choices) -> Inputs:
    """The vectors that reach furthest, and those that form the logits that are lost first."""
    truth = exactly(inputs, torch.ones(1, dtype=torch.float64), choices)
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
    for places, name in ((rows, "q"), (columns, "k")):
        x = truth[STAGE_OF[name, "stored"]][0]
        places.append(int(x.abs().amax(-1).argmax()))
        if STAGE_OF[name, "sum_of_squares"] in truth:
            squares = truth[STAGE_OF[name, "sum_of_squares"]][0, :, 0]
            places += [int(squares.argmax()), int(squares.argmin())]
        if NORMS[choices.variant].centred:
            places.append(int(x.sum(-1).abs().argmax()))
    rows, columns = sorted(set(rows)), sorted(set(columns))
    visible = None if inputs.visible is None else inputs.visible[rows][:, columns]
    return Inputs(inputs.q[rows], inputs.k[columns], inputs.v[columns], visible)


def _first_edges(exceeding: NDArray[np.float64], mantissa_bits: int) -> NDArray[np.float64]:
    """Where one format is looked at first: evenly, and on both sides of where the exact values become too large.

    Stored q and k are lost there, what is computed from them within some roundings of it.
    """
    near = {stage: exceeding[STAGES.index(stage)] for stage in _DEGREE}
    width = {stage: _PRECISION / 3 if stage.endswith("stored") else 2.0**-mantissa_bits for stage in near}
    beside = [near[stage] * (1 + sign * width[stage]) for stage in near for sign in (-1, 1)]
    return np.unique(np.clip(np.concatenate([_COARSE, beside]), LOWEST, HIGHEST))


def _exist(choices: Choices) -> NDArray[np.bool_]:
    """Which stages there are."""
    measures = NORMS[choices.variant].entrywise is None
    return np.array([measures or stage not in IN_NORM for stage in STAGES])
