"""What happens to attention when the weights that make q and k grow?

The same base q and k are multiplied by a weight scale. Plain scaled dot-product attention stands beside
a normalised variant. Drag the scale: the plain logits grow with its square, softmax hands everything to
one key, and the slope through which a head could still learn vanishes. The normalised twin stays.

* `Settings`, `PRESETS`: the dials, and named states of them;
* `run(settings)`: both sides over a sweep of the weight scale; `on(settings, inputs)`: on q and k of somebody's own;
* `sharpness(settings)`: the same measures against the variant's own dial, at the current scale;
* `findings`, `explain`, `rows`: the result in words and as a table; `snippet`: as a PyTorch program.
"""

import math
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Annotated, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.inputs import Inputs, Recipe
from qkdemo.attention.measures import attend
from qkdemo.attention.norms import ALPHA, Number
from qkdemo.attention.variants import SETS, VARIANTS, DialWord, Parameters, VariantWord, variants_with
from qkdemo.dials import NO_DIAL, Choice, Dial, Dials, Switch, Value, declarations, preferred_numbers
from qkdemo.floats.devices import DeviceWord, available_devices
from qkdemo.floats.formats import FORMATS, FormatWord
from qkdemo.labs.drift.scale_sweep import Side, sweep
from qkdemo.labs.drift.state import (
    State,
    blocks,
    once,
    scores_at,
    stops,
    stops_per_decade,
    visible_keys,
    whatever_is_shown,
)

_WIDTHS: Final = tuple(float(2**n) for n in range(2, 9))
_COUNTS: Final = tuple(float(2**n) for n in range(1, 9))


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials of the drift lab; by default the seed table: one head, 16 keys, width 64, l2 with g = 10."""

    scale: Annotated[float, Dial(0.01, 1000, log=True, sign="×")] = 8.0
    variant: Annotated[VariantWord, Choice()] = "l2"
    gain: Annotated[float, Dial(0.01, 100, log=True, only_for=("variant", variants_with("gain")))] = 10.0
    gamma: Annotated[float, Dial(0.1, 10, log=True, also="gain", only_for=("variant", variants_with("gamma")))] = 1.0
    alpha: Annotated[float, Dial(0.01, 10, log=True, only_for=("variant", variants_with("alpha")))] = ALPHA
    temperature: Annotated[float, Dial(0.01, 10, log=True, only_for=("variant", variants_with("temperature")))] = 0.1
    softcap: Annotated[float, Dial(1, 1000, log=True, only_for=("variant", variants_with("softcap")))] = 50.0
    d_head: Annotated[int, Dial(4, 256, log=True, stops=_WIDTHS)] = 64
    n_keys: Annotated[int, Dial(2, 256, log=True, stops=_COUNTS)] = 16
    format: Annotated[FormatWord, Choice()] = "float64"
    causal: Annotated[bool, Switch()] = False
    alignment: Annotated[float, Dial(0, 0.99, 0.01)] = 0.0
    mean: Annotated[float, Dial(0, 3, 0.1, more=True, use="of_heads")] = 0.0
    n_heads: Annotated[int, Dial(1, 4, more=True)] = 1
    head_spread: Annotated[float, Dial(1, 16, 0.5, more=True)] = 1.0
    norm_in_format: Annotated[bool, Switch(more=True)] = False
    query: Annotated[int, Dial(0, 255, below="n_keys", more=True)] = 5
    key: Annotated[int, Dial(0, 255, below="n_keys", more=True)] = 12
    head: Annotated[int, Dial(0, 3, below="n_heads", more=True)] = 0
    seed: Annotated[int, Dial(0, 9999, more=True)] = 0
    device: Annotated[DeviceWord, Choice(more=True, available=available_devices)] = "cpu"
    own: Annotated[Inputs | None, NO_DIAL] = None  # q and k that somebody brought


# Dials of what is drawn, at values that leave q and k as they are; sizes are those of q.
_AS_BROUGHT: Final[Mapping[str, Value]] = {"alignment": 0.0, "mean": 0.0, "head_spread": 1.0, "seed": 0}
DRAWN: Final = ("n_heads", "n_keys", "d_head", *_AS_BROUGHT)


def on(settings: Settings, inputs: Inputs) -> Settings:
    """The same settings on q and k that somebody brought. Raises SettingsError for sizes that no dial allows."""
    sizes = dict(zip(DRAWN, inputs.q.shape, strict=False))
    return settings.but(own=inputs, **sizes, **_AS_BROUGHT)


PRESETS: Final[dict[str, Settings]] = {
    "seed_table": Settings(),
    "fresh": Settings(scale=1),
    "long_training": Settings(scale=16),
    "scale_one": Settings(scale=1, variant="rms", gamma=4, d_head=256, n_keys=128),
    "half_precision": Settings(scale=400, format="float16"),
    "silent_zeros": Settings(scale=400, variant="rms", format="float16", norm_in_format=True),
    "shifted": Settings(variant="layernorm", mean=2),
    "dynamic_tanh": Settings(variant="dyt", scale=16),
    "uneven_heads": Settings(variant="full_width", n_heads=4, head_spread=8),
}


@dataclass(frozen=True, eq=False)
class Result:
    """Plain attention and the chosen variant over the same scales."""

    settings: Settings
    scales: NDArray[np.float64]
    plain: Side
    twin: Side

    @property
    def at(self) -> int:
        """The index of the current weight scale in `scales`."""
        return int(np.argmin(np.abs(self.scales - self.settings.scale)))

    @property
    def shown(self) -> tuple[int, int, int]:
        """Head, query and key that are looked at closely: the dials, within what this state has."""
        return _shown(self.settings)

    @property
    def sides(self) -> tuple[Side, ...]:
        """Plain and twin; only one if the chosen variant is plain attention itself."""
        return (self.plain,) if self.settings.variant == "none" else (self.plain, self.twin)


@dataclass(frozen=True, eq=False)
class Sharpness:
    """The measures of the twin against its own dial, at the current scale, beside plain attention there."""

    dial: str  # name of the dial, and so of what `values` are
    values: NDArray[np.float64]
    bound: NDArray[np.float64]
    max_abs_logit: NDArray[np.float64]
    top_weight: NDArray[np.float64]
    entropy_fraction: NDArray[np.float64]
    softmax_slope: NDArray[np.float64]


def run(settings: Settings, scales: Sequence[float] | None = None) -> Result:
    """Both sides over `scales`: by default preferred numbers over the dial's range, and the current scale."""
    swept = sweep_scales(settings) if scales is None else tuple(scales)
    plain = settings.but(variant="none", norm_in_format=False)
    return Result(
        settings=settings,
        scales=np.array(swept),
        plain=sweep(state_of(plain), swept),
        twin=sweep(state_of(settings), swept),
    )


def sweep_scales(settings: Settings) -> tuple[float, ...]:
    """The weight scales that are computed for dragging, and the current one."""
    return tuple(sorted({*stops(_recipe(settings)), settings.scale}))


def sharpness(settings: Settings) -> Sharpness | None:
    """The twin's measures over its own dial's range, at the current scale; None if it has no such dial."""
    variant, state = VARIANTS[settings.variant], whatever_is_shown(state_of(settings))
    if variant.dial is None:
        return None
    kind = next(dial.kind for dial in declarations(Settings) if dial.name == variant.dial)
    assert isinstance(kind, Dial)
    swept, here = (
        preferred_numbers(kind.low, kind.high, stops_per_decade(state.recipe)),
        getattr(settings, variant.dial),
    )
    anywhere = _with(state, variant.dial, kind.low)  # so that another place of the dial sweeps nothing again
    columns, values = once(_over_dial, anywhere, settings.scale, variant.dial, swept), list(swept)
    if here not in swept:
        one, at = once(_over_dial, anywhere, settings.scale, variant.dial, (here,)), bisect(swept, here)
        columns = {name: np.insert(column, at, one[name]) for name, column in columns.items()}
        values.insert(at, here)
    bounds = [
        variant.bound(_with(state, variant.dial, value).parameters, settings.d_head, settings.n_heads)
        for value in values
    ]
    return Sharpness(dial=variant.dial, values=np.array(values), bound=np.array(bounds), **columns)


@lru_cache(maxsize=128)
def _over_dial(state: State, scale: float, dial: DialWord, values: tuple[float, ...]) -> dict[str, NDArray[np.float64]]:
    """The columns of `Sharpness` that are measured, at these values of the dial."""
    visible, at = visible_keys(state), torch.tensor([scale], dtype=torch.float64)
    like = torch.empty(0, dtype=FORMATS[state.format].working_dtype, device=state.runs_on)
    columns: dict[str, list[Tensor]] = {name: [] for name in _SHARPNESS_COLUMNS}
    for block in blocks(values, state.recipe):
        swept = _with(state, dial, block.to(like)[:, None, None, None]).parameters
        measures = attend(scores_at(state, at, swept).logits, visible)[1]
        for name, column in columns.items():
            column.append(getattr(measures, name).expand(len(block)))
    return {name: torch.cat(column).double().cpu().numpy() for name, column in columns.items()}


_SHARPNESS_COLUMNS: Final = ("max_abs_logit", "top_weight", "entropy_fraction", "softmax_slope")


def _with(state: State, dial: DialWord, value: Number) -> State:
    """`state` with that dial at another value."""
    return replace(state, parameters=replace(state.parameters, **dict.fromkeys(SETS[dial], value)))


def state_of(settings: Settings) -> State:
    """The twin's side of these settings; dials that it does not read leave no trace in it."""
    return State(
        variant=settings.variant,
        parameters=_parameters(settings),
        recipe=_recipe(settings),
        format=settings.format,
        norm_in_format=settings.norm_in_format,
        causal=settings.causal,
        shown=_shown(settings),
        device=settings.device,
        own=settings.own,
    )


def _recipe(settings: Settings) -> Recipe:
    return Recipe(**{field.name: getattr(settings, field.name) for field in fields(Recipe)})


def _shown(settings: Settings) -> tuple[int, int, int]:
    last = settings.n_keys - 1
    return min(settings.head, settings.n_heads - 1), min(settings.query, last), min(settings.key, last)


def _parameters(settings: Settings) -> Parameters:
    """What the variant reads, from its dials."""
    dials = VARIANTS[settings.variant].dials
    return Parameters(**{entry: getattr(settings, dial) for dial in dials for entry in SETS[dial]})


def report(settings: Settings) -> dict[str, list[dict[str, Value | None]]]:
    """What the command line prints: the table at the current weight scale."""
    return {"rows": rows(run(settings, [settings.scale]))}


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per scale and side, scale by scale. A missing bound is None."""
    return [
        {
            "scale": float(scale),
            "variant": side.variant,
            **{name: getattr(side, name)[at].item() for name in _ROW_COLUMNS},
            "bound": side.bound if math.isfinite(side.bound) else None,
        }
        for at, scale in enumerate(result.scales)
        for side in result.sides
    ]


def sharpness_rows(swept: Sharpness) -> list[dict[str, Value | None]]:
    """The table of `sharpness`: one row per value of the dial."""
    columns = [field.name for field in fields(swept) if field.name not in ("dial", "values")]
    return [
        {swept.dial: float(value), **{name: getattr(swept, name)[at].item() for name in columns}}
        for at, value in enumerate(swept.values)
    ]


_ROW_COLUMNS: Final = (
    *("max_abs_logit", "top_weight", "entropy", "entropy_fraction", "softmax_slope"),
    *("raw_lost", "logit_lost", "undefined_rows", "zeroed_rows"),
)
