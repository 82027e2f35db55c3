"""The known mistakes in porting QK norm: what a port changes, and how far that puts its logits off.

* `MISTAKES`: word → what is read otherwise on the left or on the right of a port that is right;
* `pair_of(mistake)`, `known_as(left, right)`: the two pipelines of a mistake, and back;
* `possible(left)`: which of them a port of other weights can make;
* `mistakes(recipe)`: every one of them on a block, over several draws;
* `explain_mistakes(found)`, `headlines(...)`, `vanishing(...)`: them in words;
* `mistakes_over(recipe, spreads)`: their errors while the spread of the gains grows; `with_one_more(...)`: at one
  more spread.
"""

import dataclasses
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.norms import SIZED
from qkdemo.attention.pipeline import Pipeline, PipelineScores, trace
from qkdemo.charts.columns import gap
from qkdemo.labs.placement.comparisons import Difference, difference, most_moved, over_spreads, relative
from qkdemo.labs.placement.diagnosis import diagnose
from qkdemo.messages import say
from qkdemo.notation import written

DRAWS: Final = 8  # draws of the block over which a mistake's spread is taken
ROUNDING: Final = 1e-12  # relative difference that float64 alone makes here
SEEDS: Final = 10_000
AS_WRITTEN: Final = Pipeline(gain="channel")
# Ordered by how much they hurt.
MISTAKES: Final[Mapping[str, Mapping[str, Any]]] = {
    "full_width": {"right_place": "full_width"},
    "norm_skipped": {"right_norm": "none"},
    "layernorm_for_rms": {"right_norm": "layernorm"},
    "rotary_first": {"right_order": "rotary_norm"},
    "q_gain_on_k": {"right_key_gain": "of_q"},
    "gain_not_permuted": {"right_layout": "interleaved", "right_conversion": "weights"},
    "l2_scale_kept": {"right_norm": "l2"},
    "one_plus_as_gamma": {"left_stored": "one_plus"},
    "gamma_as_one_plus": {"right_stored": "one_plus"},
    "scale_one": {"right_scale": "one"},
}
_UNEVEN: Final = {"head_spread": 4.0, "token_spread": 4.0, "mean": 1.0, "offset": 1000}


@dataclass(frozen=True)
class Mistake:
    """One known mistake on this block: the current draw, and its spread over `DRAWS` draws."""

    mistake: str
    relative_score_error: float
    lowest: float
    median: float
    highest: float
    largest_weight_difference: float
    with_unit_gains: float  # the same error, were all gains 1
    with_uneven_inputs: float  # and with heads and tokens of unequal size, a mean, far from position 0
    diagnosis: str  # what the pattern alone would say


@lru_cache(maxsize=16)
def mistakes(recipe: BlockRecipe) -> tuple[Mistake, ...]:
    """Every known mistake on blocks like this one, in float64. What the checkpoint stores is the mistake's own."""
    found = []
    for name in MISTAKES:
        left, right = pair_of(name)
        read = dataclasses.replace(recipe, offset_stored=left.stored == "one_plus")
        draws = [dataclasses.replace(read, seed=(read.seed + at) % SEEDS) for at in range(DRAWS)]
        apart = [_apart(left, right, draw) for draw in draws]
        errors = [one.logits for one in apart]
        block = draw_block(read)
        found.append(
            Mistake(
                mistake=name,
                relative_score_error=errors[0],
                lowest=min(errors),
                median=median(errors),
                highest=max(errors),
                largest_weight_difference=apart[0].weight,
                with_unit_gains=_apart(left, right, dataclasses.replace(read, gains="unit")).logits,
                with_uneven_inputs=_apart(left, right, dataclasses.replace(read, **_UNEVEN)).logits,  # type: ignore[arg-type]
                diagnosis=diagnose(left, block, trace(right, block).logits).cause,
            )
        )
    return tuple(found)


_Curve: TypeAlias = NDArray[np.float64]  # one entry per spread


@dataclass(frozen=True, eq=False)
class Curves:
    """What every known mistake does at every spread of the gains."""

    spreads: tuple[float, ...]
    logits: dict[str, _Curve]  # relative error of the logits, by mistake
    weight: dict[str, _Curve]  # the most that one attention weight moves


@lru_cache(maxsize=32)
def mistakes_over(recipe: BlockRecipe, spreads: tuple[float, ...]) -> Curves:
    """Every known mistake on the block of `recipe`, its gains spread by each of `spreads`."""
    logits, weight = ({name: np.empty(len(spreads)) for name in MISTAKES} for _ in range(2))
    for at in range(len(spreads)):  # one by one, and into arrays that are there already: less memory is held at once
        run = slice(at, at + 1)
        lefts: dict[tuple[Pipeline, BlockRecipe], PipelineScores] = {}  # which most mistakes share
        for name in MISTAKES:
            written_for, port = pair_of(name)
            read = dataclasses.replace(recipe, offset_stored=written_for.stored == "one_plus")
            left = lefts.get((written_for, read)) or over_spreads(written_for, read, spreads[run])
            lefts[written_for, read], right = left, over_spreads(port, read, spreads[run])
            seen = left.seen(left.logits), right.seen(right.logits)
            logits[name][run] = relative(*seen, (-3, -2, -1))
            weight[name][run] = most_moved(left, right)
    return Curves(spreads, logits, weight)


@lru_cache(maxsize=32)
def with_one_more(curves: Curves, recipe: BlockRecipe, spread: float) -> Curves:
    """`curves`, and one more spread among theirs."""
    at, more = bisect(curves.spreads, spread), mistakes_over(recipe, (spread,))
    logits, weight = (
        {name: np.insert(column, at, others[name][0]) for name, column in columns.items()}
        for columns, others in ((curves.logits, more.logits), (curves.weight, more.weight))
    )
    return Curves((*curves.spreads[:at], spread, *curves.spreads[at:]), logits, weight)


@lru_cache(maxsize=256)
def pair_of(mistake: str, of: Pipeline = AS_WRITTEN) -> tuple[Pipeline, Pipeline]:
    """The pipeline that the checkpoint was written for, `of`, and the port that makes the mistake.

    >>> [side.stored for side in pair_of("one_plus_as_gamma", Pipeline(stored="one_plus"))]
    ['one_plus', 'gamma']
    """
    own, port = (
        {name.removeprefix(side): word for name, word in MISTAKES[mistake].items() if name.startswith(side)}
        for side in ("left_", "right_")
    )
    usual = {name: getattr(AS_WRITTEN, name) for name in own}
    return of.but(**own), of.but(**usual | port)


def known_as(left: Pipeline, right: Pipeline) -> str:
    """The word of the known mistake that these two are, or an empty one."""
    return next((name for name in MISTAKES if pair_of(name) == (left, right)), "")


def possible(left: Pipeline) -> list[str]:
    """The mistakes whose names are true of a port of these weights: what is read otherwise has to be there.

    >>> possible(Pipeline(norm="l2", gain="none", order="none", scale="learned"))
    ['full_width', 'norm_skipped']
    """
    return [name for name in MISTAKES if _NEEDS[name](left)]


_ON_HEADS: Final = ("per_head", "in_product")
_NEEDS: Final[Mapping[str, Callable[[Pipeline], bool]]] = {
    "full_width": lambda left: left.place in _ON_HEADS and left.norm in SIZED,
    "norm_skipped": lambda left: left.norm != "none",
    "layernorm_for_rms": lambda left: left.norm == "rms",
    "rotary_first": lambda left: (
        left.order == "norm_rotary" and left.norm != "none" and left.place in (*_ON_HEADS, "full_width")
    ),
    "q_gain_on_k": lambda left: "k" in left.multiplied and left.key_gain == "own",
    "gain_not_permuted": lambda left: (
        left.layout == "half_split"
        and left.conversion == "none"
        and left.order != "none"
        and bool(left.multiplied)
        and left.gain in ("channel", "head_channel")
    ),
    "l2_scale_kept": lambda left: left.norm == "rms" and left.scale == "inverse_root",
    "one_plus_as_gamma": lambda left: bool(left.multiplied),
    "gamma_as_one_plus": lambda left: left.stored == "gamma" and bool(left.multiplied),
    "scale_one": lambda left: left.scale == "inverse_root",
}


def explain_mistakes(found: tuple[Mistake, ...]) -> list[str]:
    """One sentence per mistake, in their order, and what unit gains would have hidden."""
    sentences = [
        say(
            f"mistake.{mistake.mistake}",
            error=gap(mistake.relative_score_error, ROUNDING, 3),
            lowest=gap(mistake.lowest, ROUNDING, 3),
            highest=gap(mistake.highest, ROUNDING, 3),
            weight=gap(mistake.largest_weight_difference, ROUNDING, 3),
        )
        for mistake in found
    ]
    hidden = [mistake for mistake in found if mistake.with_unit_gains < ROUNDING]
    return [*sentences, say("placement.hidden", hidden=len(hidden), all=len(found))]


def headlines(curves: Curves, gains: Sequence[str]) -> list[str]:
    """How many mistakes leave a trace at each spread of the gains, which `gains` says in words."""
    found = []
    for at, words in enumerate(gains):
        errors = [column[at].item() for column in curves.logits.values()]
        hidden = sum(error < ROUNDING for error in errors)
        values = {"least": written(100 * min(errors), 2), "most": written(100 * max(errors), 3)}
        word = "some" if hidden else "all"
        found.append(say(f"placement.finding.{word}", hidden=hidden, all=len(errors), gains=words, **values))
    return found


def vanishing(curves: Curves) -> str:
    """Which mistakes leave no trace at the first spread of the gains. Over one head the full width is no mistake."""
    hidden = [name for name, column in curves.logits.items() if column[0] < ROUNDING]
    key = "placement.vanishing_with_one_head" if "full_width" in hidden else "placement.vanishing"
    names = ", ".join(say(f"mistake_name.{name}") for name in hidden)
    return say(key, names=names, hidden=len(hidden), all=len(curves.logits))


def _apart(left: Pipeline, right: Pipeline, recipe: BlockRecipe) -> Difference:
    block = draw_block(recipe)
    return difference(trace(left, block), trace(right, block))
