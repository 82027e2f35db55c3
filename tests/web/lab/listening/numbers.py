"""What the columns of each lab's exhibits hold, in float64: `NUMBERS`; a new column of a picture needs a truth here.

Weights are formed again from the logits; the rest is read off the lab's result, which the lab's own tests hold.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from qkdemo.labs.cost.lab import sweep as sweep_of_lengths
from qkdemo.labs.drift import sharpness
from qkdemo.labs.drift.lab import state_of
from qkdemo.labs.drift.state import scores_at
from qkdemo.labs.epsilon.lab import RULE_WORDS
from qkdemo.labs.formats.lab import sweep as sweep_of_formats
from qkdemo.labs.formats.stages.kinds import STAGES, STORED
from qkdemo.labs.placement.lab import mistakes_over_spreads, over_spreads
from qkdemo.labs.placement.mistakes import ROUNDING
from qkdemo.labs.registry import LABS
from qkdemo.training.sentences import WORDS

Array: TypeAlias = NDArray[np.float64]
# Of a result and a column: a number or a list for each row of the table. −1 is hidden.
Holds: TypeAlias = Callable[[Any, str], Array]


def softmax(logits: Array) -> Array:
    with np.errstate(invalid="ignore"):
        terms = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(terms / terms.sum(-1, keepdims=True))


def hidden_above(weights: Array) -> Array:
    n = weights.shape[-1]
    return np.where(np.triu(np.ones((n, n), bool), 1), -1.0, weights)


def of_drift(result: Any, column: str) -> Array:
    role, _, name = column.partition(".")
    if column == "bound":
        return np.full(len(result.scales), result.twin.bound)
    side = result.plain if role == "plain" else result.twin
    match name:
        case "heat" | "row":
            return _drift_weights(result, role, whole=name == "heat")
        case "arm":
            return np.asarray(side.q_norm, np.float64)
        case _:
            return np.asarray(getattr(side, name), np.float64)


def _drift_weights(result: Any, role: str, *, whole: bool) -> Array:
    settings, (head, query, _) = result.settings, result.shown
    shown = settings if role == "norm" else settings.but(variant="none", norm_in_format=False)
    n = settings.n_keys
    found = np.full((len(result.scales), n, n) if whole else (len(result.scales), n), np.nan)
    for at, scale in enumerate(result.scales):
        logits = scores_at(state_of(shown), torch.tensor([scale], dtype=torch.float64)).logits[0, head].double().numpy()
        masked = np.where(np.triu(np.ones((n, n), bool), 1), -np.inf, logits) if settings.causal else logits
        weights = hidden_above(softmax(masked)) if settings.causal else softmax(masked)
        found[at] = weights if whole else np.where(weights[query] < 0, 0, weights[query])
    return found


def of_sharpness(result: Any, column: str) -> Array:
    swept = sharpness(result.settings)
    role, _, name = column.partition(".")
    if role == "plain":
        return np.full(len(swept.values), getattr(result.plain, name)[result.at])
    return np.asarray(getattr(swept, name or role))


def of_placement(result: Any, column: str) -> Array:
    settings = result.settings
    name, _, what = column.partition(".")
    swept = over_spreads(settings)
    if name == "pair":
        found = np.array([getattr(apart, what) for apart in swept.differences])
    elif what == "heat":
        found = swept.weights[("left", "right").index(name)]
    else:
        found = np.asarray(mistakes_over_spreads(settings).logits[name])
    return found if what == "heat" else np.where(found < ROUNDING, 0, found)


def of_rope(result: Any, column: str) -> Array:
    sides = {"left": result.norm_rotary, "right": result.rotary_norm}
    role, _, name = column.partition(".")
    if role == "bound":
        bound = result.bound_naive if name.startswith("naive") else result.bound_pairwise
        return np.full(1, -bound if name.endswith("−") else bound)
    return np.asarray(getattr(sides[role], name or "by_distance"))


def of_epsilon(result: Any, column: str) -> Array:
    rule, _, name = column.partition(".")
    return np.asarray(getattr(result, name)[RULE_WORDS.index(rule)])


def of_cache(result: Any, column: str) -> Array:
    name, _, what = column.partition(".")
    _, head, key = result.shown
    if name == "error":
        one = LABS["cache"].run(result.settings.but(way=what))
        return np.where(one.weight_error < one.noise, 0, one.weight_error)
    kind = "fresh" if name == "left" else "cached"
    if what == "row":
        return np.asarray(getattr(result, f"{kind}_weights")[head])
    seen = np.arange(result.settings.n_keys) >= key
    return np.where(seen, getattr(result, f"{kind}_channels")[head, :, key], np.nan)


def of_mla(result: Any, column: str) -> Array:
    name, _, word = column.partition(".")
    if name == "heat":
        logits = getattr(result, word).all[result.shown[0]]
        n = len(logits)
        weights = hidden_above(softmax(np.where(np.triu(np.ones((n, n), bool), 1), -np.inf, logits)))
        return np.broadcast_to(weights, (len(result.contexts), n, n))
    if name in ("flops", "memory"):
        costs = result.by_context[word]
        held = [each.flops if name == "flops" else (each.cache_bytes + each.formed_bytes) / 2**20 for each in costs]
        return np.array(held, np.float64)
    return np.asarray(getattr(result.alternatives, name)[word])


def of_cost(result: Any, column: str) -> Array:
    name, _, word = column.partition(".")
    parts = [next(part for part in each.parts if part.part == word) for each in sweep_of_lengths(result.settings)]
    return np.array([100 * part.share if name == "share" else part.bytes_moved / 2**20 for part in parts])


def of_words(result: Any, column: str) -> Array:
    side, _, name = column.partition(".")
    one, query = result.sides[side], result.settings.query
    if name == "weights":
        return np.asarray(one.weights)
    if name == "row":
        return np.asarray(one.weights[:, query])
    if name == "top":
        return np.asarray(one.weights[:, query].max(-1))
    return np.asarray(sum(one.shares[:, WORDS.index(word)] for word in result.may_follow))


def of_formats(result: Any, column: str) -> Array:
    name, word, role = column.split(".")
    swept = sweep_of_formats(result.settings)
    counted = swept.plain if role == "plain" else swept.twin
    f, s = STORED.index(word), STAGES.index(result.settings.stage)
    lost = counted.n_lost if name == "lost" else counted.n_zero + counted.n_merged
    with np.errstate(invalid="ignore"):
        return np.asarray(lost[f, s] / counted.n[f, s])


def of_arrows(result: Any, column: str) -> Array:
    return np.asarray((result.plain if column.startswith("plain") else result.twin).shares)


NUMBERS: Final[dict[str, Holds]] = {
    "drift": of_drift,
    "placement": of_placement,
    "rope": of_rope,
    "epsilon": of_epsilon,
    "cache": of_cache,
    "mla": of_mla,
    "cost": of_cost,
    "words": of_words,
    "formats": of_formats,
    "arrows": of_arrows,
}
