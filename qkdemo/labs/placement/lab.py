"""What does each choice that hides in the words QK norm change, and by how much?

Two pipelines read the same checkpoint: the left one is the one it was written for, the right one is a port of
it. Every tensor fits either way, so nothing complains. Change one choice on the right, or click a known
mistake, and read how far raw scores, logits, attention weights and the output move. Then set the gains to
unit: most of the mistakes all but disappear, which is why tests with fresh weights do not find them.

* `Settings`, `PRESETS`: the dials, and the known mistakes among other named states;
* `run(settings)`: both pipelines, their differences, and the cause that the pattern of the error points to;
* `over_spreads(settings)`, `mistakes_over_spreads(settings)`: the errors while the spread of the gains grows;
* `mistakes_of(settings)`: every known mistake on this block, over several draws;
* `findings`, `explain`, `rows`, `spread_rows`, `mistake_rows`, `report`, `snippet`: the result in words, as tables and
  as a PyTorch program.
"""

import dataclasses
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.attention.blocks import Block, BlockRecipe, GainsWord, dividing, draw_block
from qkdemo.attention.norms import ALPHA, NormWord, norms_with
from qkdemo.attention.pipeline import (
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
    ScaleWord,
    StoredWord,
    Trace,
    trace,
)
from qkdemo.attention.places import PlaceWord
from qkdemo.attention.rotary import LayoutWord, RotatedWord, other_layout
from qkdemo.dials import Choice, Dial, Dials, Switch
from qkdemo.floats.formats import FORMATS, FormatWord, Rounding, exact, rounded
from qkdemo.labs.placement.comparisons import Difference, Sweep, difference, sweep
from qkdemo.labs.placement.diagnosis import Verdict, diagnose
from qkdemo.labs.placement.mistakes import (
    MISTAKES,
    Curves,
    Mistake,
    mistakes,
    mistakes_over,
    with_one_more,
)

_SPREADS: Final = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95)  # that are computed for dragging
_COUNTS: Final = (1.0, 2.0, 4.0, 8.0)
_WIDTHS: Final = (8.0, 16.0, 32.0, 64.0, 128.0)
_OF_RECIPE: Final = frozenset(field.name for field in dataclasses.fields(BlockRecipe))
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
_Rotated: TypeAlias = Annotated[RotatedWord, _more]
_Conversion: TypeAlias = Annotated[ConversionWord, _more]
_Scale: TypeAlias = Annotated[ScaleWord, Choice()]
_Cap: TypeAlias = Annotated[CapWord, _more]
_Grouping: TypeAlias = Annotated[GroupingWord, _more]


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials: the block, then fifteen choices for each of the two pipelines."""

    compare: Annotated[Literal["two", "all_mistakes"], Choice()] = "two"
    gains: Annotated[GainsWord, Choice()] = "untied"
    gain_spread: Annotated[float, Dial(0, 0.95, 0.05)] = 0.5
    head_spread: Annotated[float, Dial(1, 16, 0.5)] = 1.0
    token_spread: Annotated[float, Dial(1, 16, 0.5)] = 1.0
    mean: Annotated[float, Dial(0, 3, 0.1, use="of_heads")] = 0.0
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
    left_rotated: _Rotated = "all"
    left_conversion: _Conversion = "none"
    left_cap: _Cap = "none"
    left_grouping: _Grouping = "repeat"
    right_on: _On = "qk"
    right_key_gain: _KeyGain = "own"
    right_cast: _Cast = "cast_first"
    right_bias: _Bias = "none"
    right_layout: _Layout = "half_split"
    right_rotated: _Rotated = "all"
    right_conversion: _Conversion = "none"
    right_cap: _Cap = "none"
    right_grouping: _Grouping = "repeat"
    d_model: Annotated[int, Dial(8, 512, log=True, stops=(8, 16, 32, 64, 128, 256, 512), more=True)] = 256
    n_heads: Annotated[int, Dial(1, 8, log=True, stops=_COUNTS, more=True)] = 4
    n_kv_heads: Annotated[int, Dial(1, 8, log=True, stops=_COUNTS, more=True, divides="n_heads")] = 4
    d_head: Annotated[int, Dial(8, 128, log=True, stops=_WIDTHS, more=True)] = 64
    n_keys: Annotated[int, Dial(2, 64, log=True, stops=(2, 4, 8, 16, 32, 64), more=True)] = 32
    gain: Annotated[float, Dial(0.01, 100, log=True, more=True, use="scale")] = 10.0
    softcap: Annotated[float, Dial(1, 1000, log=True, more=True)] = 50.0
    alpha: Annotated[float, Dial(0.01, 10, log=True, more=True)] = ALPHA
    causal: Annotated[bool, Switch(more=True)] = False
    format: Annotated[FormatWord, _more] = "float64"
    query: Annotated[int, Dial(0, 63, below="n_keys", more=True)] = 20
    key: Annotated[int, Dial(0, 63, below="n_keys", more=True)] = 9
    head: Annotated[int, Dial(0, 7, below="n_heads", more=True)] = 0
    seed: Annotated[int, Dial(0, 9999, more=True)] = 0

    @property
    def shown(self) -> tuple[int, int, int]:
        """Head, query and key that are looked at closely: the dials, within what this state has."""
        return (
            min(self.head, self.n_heads - 1),
            min(self.query, self.n_keys - 1),
            min(self.key, self.n_keys - 1),
        )


_GEMMA_2_SCALE: Final = 0.0833  # 1/√144, at a head width of 128: its configuration’s query_pre_attn_scalar
_AS_WRITTEN: Final = Settings(right_order="norm_rotary")
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
    "scale_of_gemma_2": _AS_WRITTEN.but(
        left_norm="none", left_gain="none", left_scale="learned", left_cap="softcap", gain=_GEMMA_2_SCALE
    ).but(right_norm="none", right_gain="none", right_cap="softcap", d_head=128),
}


@dataclass(frozen=True, eq=False)
class Result:
    """Both pipelines over one block. Errors are relative: ‖right − left‖ / ‖left‖, Frobenius, over visible pairs."""

    settings: Settings
    left: Trace
    right: Trace
    relative_raw_error: float
    relative_score_error: float  # of the logits
    largest_weight_difference: float
    relative_output_error: float
    by_query: NDArray[np.float64]  # [positions] relative error of a query's logits, all heads
    verdict: Verdict  # what the pattern of the error points to


@lru_cache(maxsize=64)
def run(settings: Settings) -> Result:
    """Both pipelines on the block of these settings, in the number format chosen."""
    block = block_of(settings)
    left_words, right_words = pair_of(settings)
    store = _store(settings.format)
    left, right = (trace(words, block, store=store) for words in (left_words, right_words))
    apart = difference(left, right)
    observed = right if settings.format == "float64" else trace(right_words, block)
    logits = left.seen(left.logits).double()
    gap = right.seen(right.logits).double() - logits
    return Result(
        settings=settings,
        left=left,
        right=right,
        relative_raw_error=apart.raw,
        relative_score_error=apart.logits,
        largest_weight_difference=apart.weight,
        relative_output_error=apart.output,
        by_query=(gap.norm(dim=(0, 2)) / logits.norm(dim=(0, 2))).numpy(),
        verdict=diagnose(left_words, block, observed.logits),
    )


@cache
def _store(format: FormatWord) -> Rounding:
    """One for all, so that what was computed with it is found again."""
    return exact if format == "float64" else partial(rounded, format=FORMATS[format])


def over_spreads(settings: Settings) -> Sweep:
    """Both pipelines while the spread of the gains grows."""
    return swept_in(settings, settings.format)


def swept_in(settings: Settings, format: FormatWord) -> Sweep:
    """The sweep in a number format."""
    recipe = dataclasses.replace(recipe_of(settings), gain_spread=0.0)
    return sweep(pair_of(settings), recipe, spreads_of(settings), settings.shown[0], _store(format))


def mistakes_over_spreads(settings: Settings) -> Curves:
    """Every known mistake on blocks like this one, at the spreads of `over_spreads`."""
    recipe = dataclasses.replace(_plain_recipe(settings), gain_spread=0.0)
    curves = mistakes_over(recipe, _SPREADS)
    return curves if settings.gain_spread in _SPREADS else with_one_more(curves, recipe, settings.gain_spread)


def mistakes_of(settings: Settings) -> tuple[Mistake, ...]:
    """Every known mistake on blocks like this one, over several draws."""
    return mistakes(_plain_recipe(settings))


def spreads_of(settings: Settings) -> tuple[float, ...]:
    """The spreads of the gains that are computed, ascending."""
    return tuple(sorted({*_SPREADS, settings.gain_spread}))


def apart_at_the_dial(settings: Settings) -> Difference:
    """How far the sides are apart at the spread of the dial."""
    return over_spreads(settings).differences[spreads_of(settings).index(settings.gain_spread)]


def alike(settings: Settings) -> Settings:
    """One of all settings that differ only in a spread of the gains which is computed anyway."""
    return settings.but(gain_spread=0) if settings.gain_spread in _SPREADS else settings


def _plain_recipe(settings: Settings) -> BlockRecipe:
    """The block, whatever the two pipelines are; no known mistake reads the learned scale or a cap."""
    names = ("offset_stored", "learned_scale", "softcap", "layout", "rotated")
    return dataclasses.replace(recipe_of(settings), **{name: getattr(BlockRecipe(), name) for name in names})


def pipeline_of(settings: Settings, side: str) -> Pipeline:
    """The pipeline of the left or the right side; a dial that its norm does not read leaves no trace in it."""
    words = {name: getattr(settings, f"{side}_{name}") for name in CHOICES}
    return Pipeline(**words, alpha=settings.alpha if words["norm"] in norms_with("alpha") else ALPHA)


def pair_of(settings: Settings) -> tuple[Pipeline, Pipeline]:
    """The left and the right pipeline."""
    return pipeline_of(settings, "left"), pipeline_of(settings, "right")


def recipe_of(settings: Settings) -> BlockRecipe:
    """What the block depends on. The checkpoint stores what the left side reads, or the right one if it alone does."""
    alike = {name: getattr(settings, name) for name in Settings.__dataclass_fields__ if name in _OF_RECIPE}
    left, right = pair_of(settings)
    stored = (left if left.multiplied or not right.multiplied else right).stored
    heads, less_one = dividing(settings.n_heads, settings.n_kv_heads), stored == "one_plus"
    own = {"n_kv_heads": heads, "offset_stored": less_one, "learned_scale": settings.gain}
    return BlockRecipe(**alike | own | (_pairs(settings) if settings.gains == "tied" else {}))


def _pairs(settings: Settings) -> dict[str, str]:
    """The rotary pairs of the checkpoint, which the left side reads; without rotary there, the right one's."""
    left, right = pair_of(settings)
    reader = right if left.order == "none" else left
    carried = reader.conversion == "weights_and_gain"  # its gains are stored in the other layout
    return {"layout": other_layout(reader.layout) if carried else reader.layout, "rotated": reader.rotated}


def block_of(settings: Settings) -> Block:
    """The block that both sides read."""
    return draw_block(recipe_of(settings))
