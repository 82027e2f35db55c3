"""What does each choice that hides in the words QK norm change, and by how much?

Two pipelines read the same checkpoint: the left one is the one it was written for, the right one is a port of
it. Every tensor fits either way, so nothing complains. Change one choice on the right, or click a known
mistake, and read how far raw scores, logits, attention weights and the output move. Then set the gains to
unit: most of the mistakes all but disappear, which is why tests with fresh weights do not find them.

* `Settings`, `PRESETS`: the dials, and the known mistakes among other named states;
* `run(settings)`: both pipelines, their differences, and the cause that the pattern of the error points to;
* `mistakes(settings)`: every known mistake on this block, over several draws;
* `explain`, `rows`, `report`, `snippet`: the result in words, as tables and as a PyTorch program.
"""

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from statistics import median
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from qkdemo.blocks import Block, GainsWord, Recipe, dividing, draw_block
from qkdemo.facts.models import alike, closest
from qkdemo.misfit import Verdict, diagnose
from qkdemo.normalisers import NormWord
from qkdemo.notation import written
from qkdemo.numerics import FORMATS, FormatWord, exact, rounded
from qkdemo.pipeline import (
    CHOICES,
    BiasWord,
    CapWord,
    CastWord,
    ConversionWord,
    GainWord,
    GroupingWord,
    KeyGainWord,
    OnWord,
    OrderWord,
    Pipeline,
    PlaceWord,
    ScaleWord,
    StoredWord,
    Trace,
    trace,
)
from qkdemo.programs import placement_program
from qkdemo.rotary import LayoutWord
from qkdemo.settings import Choice, Dial, Dials, Switch, Value
from qkdemo.strings import say

DRAWS: Final = 8  # draws of the block over which a mistake's spread is taken
ROUNDING: Final = 1e-12  # relative difference that float64 alone makes here
_COUNTS: Final = (1.0, 2.0, 4.0, 8.0)
_WIDTHS: Final = (8.0, 16.0, 32.0, 64.0, 128.0)
_more: Final = Choice(more=True)

_Place: TypeAlias = Annotated[PlaceWord, Choice()]
_Norm: TypeAlias = Annotated[NormWord, Choice()]
_On: TypeAlias = Annotated[OnWord, _more]
_Gain: TypeAlias = Annotated[GainWord, Choice()]
_Stored: TypeAlias = Annotated[StoredWord, Choice()]
_KeyGain: TypeAlias = Annotated[KeyGainWord, _more]
_Cast: TypeAlias = Annotated[CastWord, _more]
_Bias: TypeAlias = Annotated[BiasWord, _more]
_Order: TypeAlias = Annotated[OrderWord, Choice()]
_Layout: TypeAlias = Annotated[LayoutWord, _more]
_Conversion: TypeAlias = Annotated[ConversionWord, _more]
_Scale: TypeAlias = Annotated[ScaleWord, Choice()]
_Cap: TypeAlias = Annotated[CapWord, _more]
_Grouping: TypeAlias = Annotated[GroupingWord, _more]


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials: the block, then fourteen choices for each of the two pipelines."""

    compare: Annotated[Literal["two", "all_mistakes"], Choice()] = "two"
    gains: Annotated[GainsWord, Choice()] = "untied"
    gain_spread: Annotated[float, Dial(0, 0.95, 0.05)] = 0.5
    head_spread: Annotated[float, Dial(1, 16, 0.5)] = 1.0
    token_spread: Annotated[float, Dial(1, 16, 0.5)] = 1.0
    mean: Annotated[float, Dial(0, 3, 0.1)] = 0.0
    offset: Annotated[int, Dial(0, 5000, log=True, stops=(0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000))] = 0
    left_place: _Place = "per_head"
    left_norm: _Norm = "rms"
    left_gain: _Gain = "channel"
    left_stored: _Stored = "gamma"
    left_order: _Order = "norm_rotary"
    left_scale: _Scale = "inverse_root"
    right_place: _Place = "per_head"
    right_norm: _Norm = "rms"
    right_gain: _Gain = "channel"
    right_stored: _Stored = "gamma"
    right_order: _Order = "rotary_norm"
    right_scale: _Scale = "inverse_root"
    left_on: _On = "qk"
    left_key_gain: _KeyGain = "own"
    left_cast: _Cast = "cast_first"
    left_bias: _Bias = "none"
    left_layout: _Layout = "half_split"
    left_conversion: _Conversion = "none"
    left_cap: _Cap = "none"
    left_grouping: _Grouping = "repeat"
    right_on: _On = "qk"
    right_key_gain: _KeyGain = "own"
    right_cast: _Cast = "cast_first"
    right_bias: _Bias = "none"
    right_layout: _Layout = "half_split"
    right_conversion: _Conversion = "none"
    right_cap: _Cap = "none"
    right_grouping: _Grouping = "repeat"
    d_model: Annotated[int, Dial(8, 512, log=True, stops=(8, 16, 32, 64, 128, 256, 512), more=True)] = 256
    n_heads: Annotated[int, Dial(1, 8, log=True, stops=_COUNTS, more=True)] = 4
    n_kv_heads: Annotated[int, Dial(1, 8, log=True, stops=_COUNTS, more=True)] = 4
    d_head: Annotated[int, Dial(8, 128, log=True, stops=_WIDTHS, more=True)] = 64
    n_keys: Annotated[int, Dial(2, 64, log=True, stops=(2, 4, 8, 16, 32, 64), more=True)] = 32
    gain: Annotated[float, Dial(0.1, 100, log=True, more=True)] = 10.0
    softcap: Annotated[float, Dial(1, 1000, log=True, more=True)] = 50.0
    causal: Annotated[bool, Switch(more=True)] = False
    format: Annotated[FormatWord, _more] = "float64"
    seed: Annotated[int, Dial(0, 9999, more=True)] = 0


_AS_WRITTEN: Final = Settings(right_order="norm_rotary")
# Ordered by how much they hurt. Each is what must be changed in a port that is right.
MISTAKES: Final[dict[str, dict[str, Any]]] = {
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
PRESETS: Final[dict[str, Settings]] = {
    "all_mistakes": _AS_WRITTEN.but(compare="all_mistakes"),
    **{name: _AS_WRITTEN.but(**changes) for name, changes in MISTAKES.items()},
    "before_projection": _AS_WRITTEN.but(right_place="input", token_spread=4),
    "inside_the_product": _AS_WRITTEN.but(right_place="in_product"),
    "after_softmax": _AS_WRITTEN.but(left_norm="none", right_norm="l2", right_place="weights"),
    "values_too": _AS_WRITTEN.but(right_on="qkv"),
    "gain_permuted": _AS_WRITTEN.but(right_layout="interleaved", right_conversion="weights_and_gain"),
    "wrong_layout": _AS_WRITTEN.but(right_layout="interleaved"),
    "heads_tiled": _AS_WRITTEN.but(right_grouping="tile", n_kv_heads=2),
    "hidden_by_unit_gains": _AS_WRITTEN.but(compare="all_mistakes", gains="unit"),
    "cast_order": _AS_WRITTEN.but(right_cast="gain_first", format="bfloat16"),
}


@dataclass(frozen=True, eq=False)
class Result:
    """Both pipelines over one block. Errors are relative: ‖right − left‖ / ‖left‖, Frobenius."""

    settings: Settings
    left: Trace
    right: Trace
    relative_raw_error: float
    relative_score_error: float  # of the logits
    largest_weight_difference: float
    relative_output_error: float
    by_query: NDArray[np.float64]  # [positions] relative error of a query's logits, all heads
    by_head: NDArray[np.float64]  # [n_heads]
    verdict: Verdict  # what the pattern of the error points to


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


@lru_cache(maxsize=64)
def run(settings: Settings) -> Result:
    """Both pipelines on the block of these settings, in the number format chosen."""
    block = block_of(settings)
    left_words, right_words = pipeline_of(settings, "left"), pipeline_of(settings, "right")
    store = exact if settings.format == "float64" else partial(rounded, format=FORMATS[settings.format])
    left, right = (trace(words, block, store=store) for words in (left_words, right_words))
    difference = (right.logits - left.logits).double()
    return Result(
        settings=settings,
        left=left,
        right=right,
        relative_raw_error=_relative(left.raw, right.raw),
        relative_score_error=_relative(left.logits, right.logits),
        largest_weight_difference=(right.weights - left.weights).abs().max().item(),
        relative_output_error=_relative(left.output, right.output),
        by_query=(difference.norm(dim=(0, 2)) / left.logits.double().norm(dim=(0, 2))).numpy(),
        by_head=(difference.norm(dim=(1, 2)) / left.logits.double().norm(dim=(1, 2))).numpy(),
        verdict=diagnose(left_words, block, trace(right_words, block).logits),
    )


@lru_cache(maxsize=16)
def mistakes(settings: Settings) -> tuple[Mistake, ...]:
    """Every known mistake on blocks like this one, in float64."""
    found = []
    for name, changes in MISTAKES.items():
        states = [_mistaken(settings, changes).but(seed=_draw_at(settings, at)) for at in range(DRAWS)]
        errors, weights = zip(*(_errors(state) for state in states), strict=True)
        block, left = block_of(states[0]), pipeline_of(states[0], "left")
        found.append(
            Mistake(
                mistake=name,
                relative_score_error=errors[0],
                lowest=min(errors),
                median=median(errors),
                highest=max(errors),
                largest_weight_difference=weights[0],
                with_unit_gains=_errors(states[0].but(gains="unit"))[0],
                with_uneven_inputs=_errors(states[0].but(**_UNEVEN))[0],
                diagnosis=diagnose(left, block, trace(pipeline_of(states[0], "right"), block).logits).cause,
            )
        )
    return tuple(found)


_UNEVEN: Final = {"head_spread": 4.0, "token_spread": 4.0, "mean": 1.0, "offset": 1000}


def _draw_at(settings: Settings, at: int) -> int:
    return (settings.seed + at) % 10000


def _mistaken(settings: Settings, changes: dict[str, Any]) -> Settings:
    """The block of `settings`, the pipelines of the known mistake."""
    return settings.but(**{name: getattr(_AS_WRITTEN, name) for name in _WORDS} | changes)


_WORDS: Final = tuple(f"{side}_{name}" for side in ("left", "right") for name in CHOICES)


def _errors(settings: Settings) -> tuple[float, float]:
    block = block_of(settings)
    left, right = (trace(pipeline_of(settings, side), block) for side in ("left", "right"))
    return _relative(left.logits, right.logits), (right.weights - left.weights).abs().max().item()


def _relative(left: torch.Tensor, right: torch.Tensor) -> float:
    return float((right - left).double().norm() / left.double().norm())


def pipeline_of(settings: Settings, side: str) -> Pipeline:
    """The pipeline of the left or the right side."""
    return Pipeline(**{name: getattr(settings, f"{side}_{name}") for name in CHOICES})


def recipe_of(settings: Settings) -> Recipe:
    """What the block depends on. The checkpoint stores what the left pipeline reads."""
    return Recipe(
        d_model=settings.d_model,
        n_heads=settings.n_heads,
        n_kv_heads=dividing(settings.n_heads, settings.n_kv_heads),
        d_head=settings.d_head,
        n_keys=settings.n_keys,
        gains=settings.gains,
        gain_spread=settings.gain_spread,
        offset_stored=settings.left_stored == "one_plus",
        mean=settings.mean,
        head_spread=settings.head_spread,
        token_spread=settings.token_spread,
        offset=settings.offset,
        learned_scale=settings.gain,
        softcap=settings.softcap,
        causal=settings.causal,
        seed=settings.seed,
    )


def block_of(settings: Settings) -> Block:
    """The block that both sides read."""
    return draw_block(recipe_of(settings))


def explain(result: Result) -> list[str]:
    """How far the sides are apart, then what the pattern of the error points to."""
    settings = result.settings
    numbers = {
        "score": written(result.relative_score_error, 3),
        "raw": written(result.relative_raw_error, 3),
        "weight": written(result.largest_weight_difference, 3),
        "output": written(result.relative_output_error, 3),
    }
    rounding = 16 * torch.finfo(FORMATS[settings.format].dtype).eps if settings.format != "float64" else ROUNDING
    state = "same" if result.relative_score_error < rounding else "rounding" if _only_format(result) else "apart"
    if state == "same" and result.relative_output_error > rounding:
        state = "only_output"
    sentences = [say(f"placement.{state}", format=settings.format, **numbers)]
    differing = [
        say(f"dial.right_{name}.label")
        for name in CHOICES
        if getattr(settings, f"left_{name}") != getattr(settings, f"right_{name}")
    ]
    if differing:
        sentences.append(say("placement.differs", names=", ".join(differing)))
    sentences += [f"{say(f'placement.{side}')} {_who(pipeline_of(settings, side))}" for side in ("left", "right")]
    verdict = result.verdict
    if verdict.cause != "same":
        values = {"ratio": written(verdict.ratio), "misfit": written(verdict.misfit, 2), "d": settings.d_head}
        sentences.append(say(f"cause.{verdict.cause}", **values))
        ends = {"first": written(verdict.first, 3), "last": written(verdict.last, 3), "offset": settings.offset}
        sentences.append(say("placement.by_position", last_position=settings.offset + settings.n_keys - 1, **ends))
    if state == "apart" and settings.gains == "unit":
        sentences.append(say("placement.unit_gains"))
    return sentences


def _who(pipeline: Pipeline) -> str:
    """Which models do exactly this; or the closest one, and in what it differs."""
    found = alike(pipeline)
    if found:
        return say("models.alike", names=", ".join(model.model for model in found))
    model, names = closest(pipeline)
    return say("models.closest", name=model.model, differing=", ".join(say(f"pipeline.{name}") for name in names))


def _only_format(result: Result) -> bool:
    """Whether the sides are the same function and the number format alone tells them apart."""
    return result.verdict.cause == "same"


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


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per query, and its share of the error."""
    settings = result.settings
    return [
        {"position": settings.offset + at, "relative_score_error": error.item()}
        for at, error in enumerate(result.by_query)
    ]


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: one row for the two pipelines, or one for every known mistake."""
    if settings.compare == "all_mistakes":
        return {"rows": [vars(mistake) for mistake in mistakes(settings)]}
    result = run(settings)
    numbers = ("relative_raw_error", "relative_score_error", "largest_weight_difference", "relative_output_error")
    verdict = {"diagnosis": result.verdict.cause, "ratio": _if_finite(result.verdict.ratio)}
    ends = {"first_query": result.verdict.first, "last_query": result.verdict.last}
    nearest = {f"closest_to_{side}": closest(pipeline_of(settings, side))[0].model for side in ("left", "right")}
    return {"rows": [{name: getattr(result, name) for name in numbers} | verdict | ends | nearest]}


def _if_finite(x: float) -> float | None:
    """`x`, or nothing: most errors have no ratio that is the same everywhere."""
    return x if math.isfinite(x) else None


def snippet(settings: Settings) -> str:
    """A standalone PyTorch program that prints the errors of this state."""
    sides = (pipeline_of(settings, "left"), pipeline_of(settings, "right"))
    return placement_program(recipe_of(settings), *sides, settings.format)
