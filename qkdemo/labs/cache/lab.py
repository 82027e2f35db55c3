"""What may a KV cache hold, so that decoding stays the function that a fresh pass computes?

Token by token a key is written to the cache and read again at every later step. It may be written raw and
finished on reading, half finished, or finished: all three are the same function. Normalising it again at every
read, with another head's gain, or turning it to the wrong position are not. A quantised cache adds an error of
its own, and a smaller one if the norm has evened the keys out before. Each way is held against recomputing
everything from scratch: exactly equal, equal to rounding, or wrong, by how much, and from which step on.

* `Settings`, `PRESETS`: the dials, and named states of them;
* `run(settings)`: one way of caching against a fresh pass, step by step; `every(settings)`: all of them;
* `findings`, `explain`, `rows`, `label_rows`, `report`: the result in words and as tables;
* `snippet(settings)`: the result as a standalone PyTorch program.
"""

import itertools
import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.blocks import Block, BlockRecipe, GainsWord, draw_block
from qkdemo.attention.norms import ALPHA, NORMS, SIZED, NormaliserWord, normalise, norms_with
from qkdemo.attention.variants import VARIANTS, Parameters
from qkdemo.dials import Choice, Dial, Dials, Value
from qkdemo.floats.formats import FORMATS, FormatWord, exact, noise, rounded
from qkdemo.labs.cache.decoding import Fresh, QuantWord, TurnWord, WayWord, channels_in_use, decode, fresh_pass

LabelWord: TypeAlias = Literal["exact", "rounding", "wrong", "undecided"]

SAME_FUNCTION: Final = 1e-9  # largest relative difference of a weight in float64 of two ways that are one function
_EPSILONS: Final = (1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5)
_LOOK: Final = {"step": 0, "head": 0, "key": 0}  # dials that only say where to look


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials of the cache lab; by default a cache that normalises its keys again at every read."""

    step: Annotated[int, Dial(0, 63, below="n_keys")] = 15
    way: Annotated[WayWord, Choice()] = "normed_again"
    quantised: Annotated[QuantWord, Choice()] = "none"
    order: Annotated[TurnWord, Choice()] = "norm_rotary"
    gains: Annotated[GainsWord, Choice()] = "untied"
    gain_spread: Annotated[float, Dial(0, 0.95, 0.05)] = 0.5
    head_spread: Annotated[float, Dial(1, 16, 0.5)] = 1.0
    n_keys: Annotated[int, Dial(1, 32, log=True, stops=(1, 2, 4, 8, 16, 32))] = 16
    format: Annotated[FormatWord, Choice(use="cached")] = "float32"
    n_heads: Annotated[int, Dial(1, 4, log=True, stops=(1, 2, 4), more=True)] = 4
    d_head: Annotated[int, Dial(4, 64, log=True, stops=(4, 8, 16, 32, 64), more=True)] = 32
    offset: Annotated[int, Dial(0, 5000, log=True, stops=(0, 1, 10, 100, 1000, 5000), more=True)] = 0
    norm: Annotated[NormaliserWord, Choice(more=True)] = "rms"
    epsilon: Annotated[float, Dial(1e-12, 1e-5, log=True, stops=_EPSILONS, more=True, only_for=("norm", SIZED))] = 1e-6
    alpha: Annotated[float, Dial(0.01, 10, log=True, more=True, only_for=("norm", norms_with("alpha")))] = ALPHA
    head: Annotated[int, Dial(0, 7, below="n_heads", more=True)] = 0
    key: Annotated[int, Dial(0, 63, below="n_keys", more=True, use="channels")] = 0
    seed: Annotated[int, Dial(0, 9999, more=True)] = 0


ERRORS: Final = ("weight_error", "logit_error", "key_error", "largest_weight_error", "last_logit_error")  # of tables
PRESETS: Final[dict[str, Settings]] = {
    "normed_at_every_read": Settings(),
    "finished": Settings(way="finished"),
    "half_finished_in_bfloat16": Settings(way="halfway", format="bfloat16"),
    "other_heads_gain": Settings(way="other_heads_gain"),
    "one_position_late": Settings(way="one_late"),
    "unit_gains_hide_it": Settings(gains="unit", epsilon=1e-12),
    "one_token": Settings(n_keys=1),
    "int8_before_the_norm": Settings(way="raw", quantised="int8_tensor", head_spread=16),
    "int8_after_the_norm": Settings(way="finished", quantised="int8_tensor", head_spread=16),
    "fp8_after_the_norm": Settings(way="finished", quantised="fp8_head"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """One way of caching against a fresh pass, over decoding steps; step t sees keys 0 to t.

    Errors and weights are of the format chosen, the label and the first wrong step of float64.
    """

    settings: Settings
    label: LabelWord
    from_step: int | None  # the first step whose weights are wrong, be they small; None if none is
    weight_error: NDArray[np.float64]  # [steps] largest difference of an attention weight
    logit_error: NDArray[np.float64]  # [steps] ‖difference‖ / ‖logits‖
    key_error: NDArray[np.float64]  # [steps] ‖difference‖ / ‖keys‖, of the keys that the step sees
    fresh_weights: NDArray[np.float64]  # [heads, steps, keys] 0 where hidden
    cached_weights: NDArray[np.float64]
    fresh_channels: NDArray[np.float64]  # [heads, steps, keys] over how many channels a key is spread
    cached_channels: NDArray[np.float64]
    bytes_per_token: int  # that a token's keys occupy, all heads; the scales of a quantised cache not counted

    @property
    def noise(self) -> float:
        """Below which an error is rounding; 0 where the cache is another function, and every digit counts."""
        return 0.0 if self.label == "wrong" else noise(self.settings.format)

    @property
    def shown(self) -> tuple[int, int, int]:
        """Step, head and key that are looked at closely: the dials, within what this state has."""
        settings, last = self.settings, self.settings.n_keys - 1
        return min(settings.step, last), min(settings.head, settings.n_heads - 1), min(settings.key, last)


def run(settings: Settings) -> Result:
    """Decoding with the cache against recomputing from scratch.

    Whether it is the same function is decided in float64, so that a narrow format hides no mistake; whether
    it is equal exactly or to rounding, in the format chosen. One key has weight 1 whatever its logit: with a
    single token nothing can be told.
    """
    return replace(_run(settings.but(**_LOOK)), settings=settings)


@lru_cache(maxsize=64)
def _run(settings: Settings) -> Result:
    norm = settings.norm, settings.epsilon, settings.alpha
    anew, truly = (_fresh(recipe_of(settings), settings.order, norm, word) for word in (settings.format, "float64"))
    seen = decode(anew, settings.way, settings.quantised)
    truth = seen if truly is anew else decode(truly, settings.way, settings.quantised)
    wrong = np.flatnonzero(truth.log_error.numpy() > SAME_FUNCTION)
    label: LabelWord = "exact" if seen.identical else "rounding"
    if wrong.size:
        label = "wrong"
    if settings.n_keys == 1:
        label = "undecided"
    width = 1 if settings.quantised != "none" else FORMATS[settings.format].dtype.itemsize
    shape = anew.weights.shape
    return Result(
        settings=settings,
        label=label,
        from_step=int(wrong[0]) if wrong.size else None,
        weight_error=seen.weight_error.double().numpy(),
        logit_error=seen.logit_error.double().numpy(),
        key_error=seen.key_error.double().numpy(),
        fresh_weights=anew.weights.double().numpy(),
        cached_weights=seen.weights.double().numpy(),
        fresh_channels=_channels(anew.keys, shape),
        cached_channels=_channels(seen.keys, shape),
        bytes_per_token=settings.n_heads * settings.d_head * width,
    )


@lru_cache(maxsize=8)
def _fresh(
    recipe: BlockRecipe, order: TurnWord, norm: tuple[NormaliserWord, float, float], format: FormatWord
) -> Fresh:
    store = exact if format == "float64" else partial(rounded, format=FORMATS[format])
    word, epsilon, alpha = norm
    normed = partial(normalise, norm=NORMS[word], epsilon=epsilon, alpha=alpha)
    return fresh_pass(_block(recipe), order, normed, divided_by(word, recipe.d_head), store)


def divided_by(word: NormaliserWord, d_head: int) -> float:
    """√d_head; for unit vectors 1/g, with the usual g."""
    factor = VARIANTS[word].factor(Parameters(), d_head)
    return 1 / float(factor) if "gain" in NORMS[word].learns else math.sqrt(d_head)


@lru_cache(maxsize=4)
def _block(recipe: BlockRecipe) -> Block:
    return draw_block(recipe)


def _channels(keys: Tensor, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """[heads, steps, keys], also of keys that are the same at every step."""
    found = channels_in_use(keys).double()
    found = found.movedim(0, 1) if found.ndim == 3 else found[:, None].expand(shape)
    array: NDArray[np.float64] = found.numpy()
    return array


def recipe_of(settings: Settings) -> BlockRecipe:
    """What the block depends on."""
    return BlockRecipe(
        d_model=settings.n_heads * settings.d_head,
        n_heads=settings.n_heads,
        n_kv_heads=settings.n_heads,
        d_head=settings.d_head,
        n_keys=settings.n_keys,
        gains=settings.gains,
        gain_spread=settings.gain_spread,
        head_spread=settings.head_spread,
        offset=settings.offset,
        seed=settings.seed,
    )


def every(settings: Settings) -> tuple[Result, ...]:
    """All ways of caching in all ways of storing, for this block."""
    combinations = itertools.product(get_args(WayWord), get_args(QuantWord))
    return tuple(run(settings.but(way=way, quantised=quantised)) for way, quantised in combinations)


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per decoding step."""
    columns = zip(result.weight_error, result.logit_error, result.key_error, strict=True)
    return [
        {
            "step": step,
            "keys": step + 1,
            "weight_error": weight.item(),
            "logit_error": logit.item(),
            "key_error": key.item(),
        }
        for step, (weight, logit, key) in enumerate(columns)
    ]


def label_rows(settings: Settings) -> list[dict[str, Value | None]]:
    """The table of labels: one row per way of caching and of storing."""
    return [
        {
            "way": result.settings.way,
            "quantised": result.settings.quantised,
            "label": result.label,
            "from_step": result.from_step,
            "largest_weight_error": float(result.weight_error.max()),
            "last_logit_error": float(result.logit_error[-1]),
        }
        for result in every(settings)
    ]


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: the label of every way of caching, then the current one step by step."""
    return {"ways": label_rows(settings), "rows": rows(run(settings))}
