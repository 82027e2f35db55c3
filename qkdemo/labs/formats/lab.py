"""Where exactly does a number format lose attention: which stage, which entry, at which weight scale?

Attention is followed from the stored q and k to the weighted values, each stage held in the format that a
kernel would hold it in, for five formats at once; a normalised twin goes the same way. Raise the weight scale:
in float16 the raw products are the first to overflow, and the scale that follows comes too late for them. Then
let the kernel scale earlier, keep its product in float32, or store in bfloat16: what is lost now?

* `Settings`, `PRESETS`: the dials, and named states of them;
* `run(settings)`: what became of the entries of every stage, and from which weight scale on they are lost;
* `sweep(settings)`: what becomes of them, and the entries of the shown stage, at every position of the weight scale;
* `ladder(value, cast)`: where one value sits in each of the formats;
* `explain`, `report`: the result in words and as a table; `snippet`: as a PyTorch program.
"""

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Annotated, Final, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from qkdemo.attention.inputs import Recipe
from qkdemo.attention.norms import ALPHA, NORMS, LearnedWord, NormaliserWord, NormWord, norms_with
from qkdemo.dials import Choice, Dial, Dials, Switch, preferred_numbers
from qkdemo.floats.formats import ALL_FORMATS
from qkdemo.floats.layout import Rung, rung
from qkdemo.labs.formats.stages.error_counts import Tally, tally
from qkdemo.labs.formats.stages.exact import exactly
from qkdemo.labs.formats.stages.kinds import (
    IN_NORM,
    OVER_KEYS,
    STAGE_OF,
    STORED,
    CastWord,
    Choices,
    Fp8ScaleWord,
    Inputs,
    MaskWord,
    PlacementWord,
    RoleWord,
    StageWord,
    StoredWord,
    drawn,
)
from qkdemo.labs.formats.stages.overflow_thresholds import first_exceeding, first_losses
from qkdemo.labs.formats.stages.rounded import follow

ShownWord: TypeAlias = Literal["plain", "normalised"]

SHOWN: Final = 32  # rows and columns of the drawn matrix: all of them, but for wider heads
_WIDTHS: Final = tuple(float(2**n) for n in range(2, 8))
_STOPS: Final = preferred_numbers(0.01, 1000, 10)  # weight scales of the dial and of a sweep
_MANY: Final = 2048  # entries of q
_COUNTS: Final = tuple(float(2**n) for n in range(1, 6))


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials of the formats lab; by default weight scale 400 in float16, all of it stored as PyTorch would."""

    scale: Annotated[float, Dial(0.01, 1000, log=True, stops=_STOPS, sign="×")] = 400.0
    storage: Annotated[StoredWord, Choice()] = "float16"
    stage: Annotated[StageWord, Choice()] = "raw_product"
    side: Annotated[ShownWord, Choice()] = "plain"
    variant: Annotated[NormaliserWord, Choice()] = "l2"
    gain: Annotated[float, Dial(0.01, 100, log=True, only_for=("variant", norms_with("gain")))] = 10.0
    gamma: Annotated[float, Dial(0.1, 10, log=True, also="gain", only_for=("variant", norms_with("gamma")))] = 1.0
    alpha: Annotated[float, Dial(0.01, 10, log=True, only_for=("variant", norms_with("alpha")))] = ALPHA
    norm_in_format: Annotated[bool, Switch()] = False
    accumulator: Annotated[RoleWord, Choice(more=True)] = "float32"
    product_format: Annotated[RoleWord, Choice(more=True)] = "stored"
    softmax_format: Annotated[RoleWord, Choice(more=True)] = "stored"
    placement: Annotated[PlacementWord, Choice(more=True)] = "after"
    max_subtraction: Annotated[bool, Switch(more=True)] = True
    causal: Annotated[bool, Switch(more=True)] = False
    mask: Annotated[MaskWord, Choice(more=True, only_for=("causal", (True,)))] = "-inf"
    fp8_cast: Annotated[CastWord, Choice(more=True)] = "overflow"
    fp8_scale: Annotated[Fp8ScaleWord, Choice(more=True)] = "one"
    fp8_cache: Annotated[bool, Switch(more=True)] = False
    d_head: Annotated[int, Dial(4, 128, log=True, stops=_WIDTHS, more=True)] = 64
    n_keys: Annotated[int, Dial(2, 32, log=True, stops=_COUNTS, more=True)] = 16
    query: Annotated[int, Dial(0, 31, below="n_keys", more=True)] = 5
    key: Annotated[int, Dial(0, 31, below="n_keys", more=True, use="column")] = 9
    seed: Annotated[int, Dial(0, 9999, more=True)] = 0


PRESETS: Final[dict[str, Settings]] = {
    "try_400": Settings(),
    "textbook_fp16": Settings(scale=100),
    "fused_kernel": Settings(
        scale=100, product_format="float32", softmax_format="float32", placement="in_accumulator", stage="scaled"
    ),
    "bf16_training": Settings(
        scale=16, storage="bfloat16", softmax_format="float32", variant="rms", causal=True, n_keys=32, stage="scaled"
    ),
    "fp8_keys": Settings(
        scale=200, storage="float8_e4m3fn", variant="rms", product_format="float32", softmax_format="float32"
    ).but(fp8_cast="saturate", fp8_cache=True, stage="k_entering"),
}


@dataclass(frozen=True, eq=False)
class Side:
    """Plain attention or its twin. Arrays are [formats, stages], in the order of `STORED` and `STAGES`."""

    variant: NormWord
    tally: Tally  # at the current weight scale, one entry long on its last axis
    first_loss: NDArray[np.float64]  # weight scale; ∞: never, NaN: no such stage
    first_exceeding: NDArray[np.float64]  # the same for the exact values alone, whatever came before


@dataclass(frozen=True, eq=False)
class Shown:
    """The entries of the stage that is looked at closely."""

    stage: StageWord
    variant: NormWord  # that of the twin for a stage inside the norm, whatever the dial says
    storage: StoredWord
    values: NDArray[np.float64]  # [≤32, ≤32], as held
    exact: NDArray[np.float64]
    hidden: NDArray[np.bool_]  # behind the causal mask
    row: int
    column: int

    @property
    def value(self) -> float:
        """The chosen entry, as held."""
        return float(self.values[self.row, self.column])

    @property
    def exact_value(self) -> float:
        """The chosen entry in float64."""
        return float(self.exact[self.row, self.column])


@dataclass(frozen=True, eq=False)
class Result:
    """Both sides, and the matrix of one stage."""

    settings: Settings
    plain: Side
    twin: Side
    shown: Shown

    @property
    def sides(self) -> tuple[Side, Side]:
        """Plain, twin."""
        return self.plain, self.twin


def run(settings: Settings) -> Result:
    """Both sides at the current weight scale, and the weight scales from which on they lose entries."""
    plain, twin = (
        _side(recipe_of(settings), settings.causal, choices_of(settings, variant), settings.scale)
        for variant in variants_of(settings)
    )
    return Result(settings, plain, twin, _shown(settings))


@dataclass(frozen=True, eq=False)
class Sweep:
    """Preferred numbers of the weight scale and the current one, ascending, and what is found at each."""

    scales: tuple[float, ...]
    plain: Tally
    twin: Tally
    values: NDArray[np.float64]  # [scales, ≤32, ≤32], entries of the shown stage as held
    exact: NDArray[np.float64]


def sweep(settings: Settings) -> Sweep:
    """Both sides and the shown stage over the weight scale."""
    scales = tuple(sorted({*_swept(recipe_of(settings)), settings.scale}))
    plain, twin = (_tallies(settings, choices_of(settings, variant)) for variant in variants_of(settings))
    return Sweep(scales, plain, twin, *_shown_over(settings, scales))


def recipe_of(settings: Settings) -> Recipe:
    """The draw of these settings."""
    return Recipe(n_keys=settings.n_keys, d_head=settings.d_head, seed=settings.seed)


def choices_of(settings: Settings, variant: NormWord) -> Choices:
    """What one side depends on; dials that it does not read leave no trace in it."""
    given = {field.name: getattr(settings, field.name) for field in fields(Choices) if field.name != "variant"}
    unused = ["mask"] if not settings.causal else []
    unused += [dial for dial in get_args(LearnedWord) if dial not in NORMS[variant].learns]
    unused += ["norm_in_format"] if variant == "none" else []
    return Choices(variant=variant, **{name: value for name, value in given.items() if name not in unused})


def variants_of(settings: Settings) -> tuple[NormWord, NormWord]:
    """Of plain attention and of its twin."""
    return "none", settings.variant


def _swept(recipe: Recipe) -> tuple[float, ...]:
    """The weight scales that are computed for dragging: fewer where one scale costs more."""
    return _STOPS if recipe.n_keys * recipe.d_head <= _MANY else preferred_numbers(_STOPS[0], _STOPS[-1], 5)


@lru_cache(maxsize=256)
def _side(recipe: Recipe, causal: bool, choices: Choices, scale: float) -> Side:  # noqa: FBT001
    stops = _swept(recipe)
    if scale in stops:
        counted, here = _at_stops(recipe, causal, choices), stops.index(scale)
        one = Tally(**{field.name: getattr(counted, field.name)[..., here : here + 1] for field in fields(Tally)})
    else:
        one = tally(inputs_of(recipe, causal), torch.tensor([scale], dtype=torch.float64), choices)
    return Side(choices.variant, one, *_beginnings(recipe, causal, choices))


@lru_cache(maxsize=256)
def _beginnings(recipe: Recipe, causal: bool, choices: Choices) -> tuple[NDArray[np.float64], ...]:  # noqa: FBT001
    inputs, counted = inputs_of(recipe, causal), _at_stops(recipe, causal, choices)
    return first_losses(inputs, choices, _swept(recipe), counted), first_exceeding(inputs, choices)


def _tallies(settings: Settings, choices: Choices) -> Tally:
    """The counts over the sweep, with those of the current scale put between them if it is none of its stops."""
    recipe = recipe_of(settings)
    stops = _swept(recipe)
    counted = _at_stops(recipe, settings.causal, choices)
    if settings.scale in stops:
        return counted
    at = sum(stop < settings.scale for stop in stops)
    one = _side(recipe, settings.causal, choices, settings.scale).tally
    both = ((field.name, getattr(counted, field.name), getattr(one, field.name)) for field in fields(Tally))
    return Tally(**{name: np.insert(many, at, single[..., 0], axis=2) for name, many, single in both})


@lru_cache(maxsize=64)
def _at_stops(recipe: Recipe, causal: bool, choices: Choices) -> Tally:  # noqa: FBT001
    return tally(inputs_of(recipe, causal), torch.tensor(_swept(recipe), dtype=torch.float64), choices)


@lru_cache(maxsize=64)
def _entries(
    recipe: Recipe,
    causal: bool,  # noqa: FBT001
    choices: Choices,
    storage: StoredWord,
    stage: StageWord,
    scales: tuple[float, ...],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Entries of one stage as held, and exactly, [scales, ≤32, ≤32]."""
    inputs, at = inputs_of(recipe, causal), torch.tensor(scales, dtype=torch.float64)
    held = follow(inputs, at[None], choices, [storage], until=stage)[stage].values[0]
    exact = exactly(inputs, at, choices)[stage]
    return held[:, :SHOWN, :SHOWN].numpy().copy(), exact[:, :SHOWN, :SHOWN].numpy().copy()


@lru_cache(maxsize=64)
def inputs_of(recipe: Recipe, causal: bool) -> Inputs:  # noqa: FBT001
    """What the stages start from."""
    return drawn(recipe, causal=causal)


def _shown_stage(settings: Settings) -> StageWord:
    """The stage that is looked at; where the norm measures no size, the vectors that it hands on."""
    if settings.stage in IN_NORM and NORMS[settings.variant].entrywise is not None:
        return STAGE_OF[settings.stage[0], "entering"]
    return settings.stage


def _shown_variant(settings: Settings) -> NormWord:
    """That of the twin for a stage inside the norm, whatever the dial says."""
    return settings.variant if settings.side == "normalised" or settings.stage in IN_NORM else "none"


def _shown_over(settings: Settings, scales: tuple[float, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    choices = choices_of(settings, _shown_variant(settings))
    return _entries(recipe_of(settings), settings.causal, choices, settings.storage, _shown_stage(settings), scales)


def _shown(settings: Settings) -> Shown:
    values, exact = _shown_over(settings, (settings.scale,))
    inputs = inputs_of(recipe_of(settings), settings.causal)
    hidden = np.zeros(values.shape[1:], dtype=bool)
    if inputs.visible is not None and settings.stage in OVER_KEYS:
        hidden = ~inputs.visible.numpy()
    return Shown(
        stage=_shown_stage(settings),
        variant=_shown_variant(settings),
        storage=settings.storage,
        values=values[0],
        exact=exact[0],
        hidden=hidden,
        row=min(settings.query, values.shape[1] - 1),
        column=min(settings.key, values.shape[2] - 1),
    )


def ladder(value: float, cast: CastWord) -> list[Rung]:
    """Where `value` sits in each of the formats, under that rule for casts to 8 bits."""
    return [rung(value, ALL_FORMATS[word], saturate=cast == "saturate") for word in STORED]
