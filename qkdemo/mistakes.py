"""The known mistakes in porting QK norm: what a port changes, and how far that puts its logits off.

* `MISTAKES`: word → what is read otherwise on the left or on the right of a port that is right;
* `pair_of(mistake)`, `known_as(left, right)`: the two pipelines of a mistake, and back;
* `mistakes(recipe)`: every one of them on a block, over several draws;
* `explain_mistakes(found)`: them in words;
* `mistakes_over(recipe, spreads)`: their errors while the spread of the gains grows.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Any, Final

from qkdemo.blocks import Block, Recipe, draw_block
from qkdemo.comparisons import Difference, difference, spread_to
from qkdemo.misfit import diagnose
from qkdemo.notation import written
from qkdemo.pipeline import Pipeline, Trace, trace
from qkdemo.strings import say

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
def mistakes(recipe: Recipe) -> tuple[Mistake, ...]:
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


@lru_cache(maxsize=32)
def mistakes_over(recipe: Recipe, spreads: tuple[float, ...]) -> dict[str, tuple[Difference, ...]]:
    """Every known mistake on the block of `recipe`, its gains spread by each of `spreads`."""
    found: dict[str, list[Difference]] = {name: [] for name in MISTAKES}
    for spread in spreads:
        expected: dict[Pipeline, tuple[Block, Trace]] = {}  # most mistakes share their left side
        for name, column in found.items():
            left, right = pair_of(name)
            if left not in expected:
                block = spread_to(dataclasses.replace(recipe, offset_stored=left.stored == "one_plus"), spread)
                expected[left] = block, trace(left, block)
            block, reference = expected[left]
            column.append(difference(reference, trace(right, block)))
    return {name: tuple(column) for name, column in found.items()}


def pair_of(mistake: str) -> tuple[Pipeline, Pipeline]:
    """The pipeline that the checkpoint was written for, and the port that makes the mistake."""
    changes = MISTAKES[mistake]
    left, right = (
        AS_WRITTEN.but(**{name.removeprefix(side): word for name, word in changes.items() if name.startswith(side)})
        for side in ("left_", "right_")
    )
    return left, right


def known_as(left: Pipeline, right: Pipeline) -> str:
    """The word of the known mistake that these two are, or an empty one."""
    return next((name for name in MISTAKES if pair_of(name) == (left, right)), "")


def explain_mistakes(found: tuple[Mistake, ...]) -> list[str]:
    """One sentence per mistake, in their order, and what unit gains would have hidden."""
    sentences = [
        say(
            f"mistake.{mistake.mistake}",
            error=written(mistake.relative_score_error, 3),
            lowest=written(mistake.lowest, 3),
            highest=written(mistake.highest, 3),
            weight=written(mistake.largest_weight_difference, 3),
        )
        for mistake in found
    ]
    hidden = [mistake for mistake in found if mistake.with_unit_gains < ROUNDING < mistake.relative_score_error]
    return [*sentences, say("placement.hidden", hidden=len(hidden), all=len(found))]


def _apart(left: Pipeline, right: Pipeline, recipe: Recipe) -> Difference:
    block = draw_block(recipe)
    return difference(trace(left, block), trace(right, block))
