"""Claims about number formats and what can still become NaN; three share the formats lab's numbers."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Final

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.pipeline import Pipeline, trace
from qkdemo.labs import epsilon, formats
from qkdemo.labs.formats.claims import claims
from qkdemo.labs.formats.stages.kinds import STAGES, STORED, StageWord, StoredWord
from qkdemo.notation import written
from qkdemo.tracks.claims.verdict import claim
from qkdemo.tracks.stop import Evidence, Read, only

_VALUES_GROW: Final = 100.0


def _exp(found: formats.Result) -> Evidence:
    numbers = _numbers("exp")
    largest = float(abs(found.shown.values).max())
    lost = _count(found.plain, "n_lost", "bfloat16", "exp")
    logits = formats.run(found.settings.but(stage="scaled")).shown.values.max()
    return Evidence(
        only(true=lost > 0, false=lost == 0 and 50 < logits < numbers["largest_bfloat16"]),
        {name: written(x) for name, x in numbers.items()}
        | {"fifty": "50", "far": "512", "logit": written(logits), "exp": written(largest, 2), "lost": str(lost)},
    )


def _row_maximum(found: formats.Result) -> Evidence:
    numbers = _numbers("max_subtraction")
    undefined = _count(found.plain, "n_nan", "float16", "max_subtracted")
    no_slope, merged = numbers["slope_at_100"] == 0, numbers["stored_512"] == numbers["stored_513"]
    return Evidence(
        only(true=not no_slope and undefined == 0, false=no_slope and merged and undefined > 0),
        {name: written(x) for name, x in numbers.items()}
        | {"gap": "100", "small_gap": "16", "one": "512", "other": "513"}
        | {"undefined": str(undefined), "n": str(_count(found.plain, "n", "float16", "max_subtracted"))},
    )


def _scaled(found: formats.Result) -> Evidence:
    numbers = _numbers("scaled")
    still = _count(found.plain, "n_inf", "float16", "scaled")
    return Evidence(
        only(true=still == 0, false=still == numbers["still"] > 0 and numbers["exact"] > 0 and numbers["one_hot"] > 0),
        {name: written(x) for name, x in numbers.items()},
    )


def _no_nan(found: formats.Result) -> Evidence:
    """Non-numbers that the norm did not make, one that it makes itself, and what passes it by."""
    stored = _count(found.twin, "n_nan", "float8_e4m3fn", "q_stored")
    weights = _count(found.twin, "n_nan", "float8_e4m3fn", "weight")
    n = _count(found.twin, "n", "float8_e4m3fn", "weight")
    zero = epsilon.run(epsilon.PRESETS["without_epsilon"])
    at_zero = float(zero.zero_output[zero.rule])
    block, pipeline = draw_block(BlockRecipe()), Pipeline()
    larger = dataclasses.replace(block, w_v=_VALUES_GROW * block.w_v)
    growth = float(trace(pipeline, larger).output.norm() / trace(pipeline, block).output.norm())
    return Evidence(
        only(true=stored > 0 and weights == n and math.isnan(at_zero) and growth > 1, false=weights == 0),
        {
            "stored": str(stored),
            "stored_k": str(_count(found.twin, "n_nan", "float8_e4m3fn", "k_stored")),
            "entries": written(_count(found.twin, "n", "float8_e4m3fn", "q_stored")),
            "n": str(n),
            "at_zero": written(at_zero),
            "values": written(_VALUES_GROW),
            "growth": written(growth),
        },
    )


def _half_precision(found: formats.Result) -> Evidence:
    """Scores lost in both half formats, and in float16 where the product is kept in float32."""
    kept = formats.run(found.settings.but(product_format="float32", softmax_format="float32"))
    lost = _count(found.plain, "n_lost", "float16", "raw_product")
    other = _count(found.plain, "n_lost", "bfloat16", "raw_product")
    none = _count(kept.plain, "n_lost", "float16", "raw_product")
    return Evidence(
        only(true=lost > 0 < other, false=lost == 0, depends=lost > 0 == other == none),
        {
            "float16": str(lost),
            "bfloat16": str(other),
            "kept": str(none),
            "n": str(_count(found.plain, "n", "float16", "raw_product")),
            "far": "512",
            "step": written(_numbers("exp")["step_at_512"]),
        },
    )


def _numbers(word: str) -> Mapping[str, float]:
    return next(made.numbers for made in claims() if made.word == word)


def _count(side: formats.Side, what: str, format: StoredWord, stage: StageWord) -> int:
    return int(getattr(side.tally, what)[STORED.index(format), STAGES.index(stage), 0])


_FORMATS: Final = formats.Settings()
_FP8: Final = _FORMATS.but(scale=200, storage="float8_e4m3fn", variant="rms", side="normalised", stage="q_stored")
STOPS: Final = (
    claim(
        "bfloat16_exp",
        formats.LAB,
        _FORMATS.but(scale=5, storage="bfloat16", max_subtraction=False, stage="exp"),
        _exp,
        (6,),
        {"lost": Read(column="n_overflow.bfloat16.plain")},
    ),
    claim(
        "row_maximum",
        formats.LAB,
        _FORMATS.but(stage="max_subtracted"),
        _row_maximum,
        (6, 17),
        {"undefined": Read(column="n_nan.float16.plain")},
    ),
    claim(
        "scaled_float16",
        formats.LAB,
        _FORMATS.but(stage="scaled"),
        _scaled,
        (6,),
        {
            "still": Read(column="n_inf.float16.plain"),
            "raw": Read(column="n_inf.float16.plain", turns={"stage": "raw_product"}),
            "one_hot": Read(column="n_zero.float32.plain", turns={"stage": "weight"}),
        },
    ),
    claim(
        "half_precision",
        formats.LAB,
        _FORMATS.but(scale=400, stage="raw_product"),
        _half_precision,
        (6,),
        {
            "float16": Read(column="n_overflow.float16.plain"),
            "bfloat16": Read(column="n_overflow.bfloat16.plain"),
            "kept": Read(column="n_overflow.float16.plain", turns={"product_format": "float32"}),
        },
    ),
    claim(
        "no_nan",
        formats.LAB,
        _FP8,
        _no_nan,
        (6, 31),
        {
            "stored": Read(column="n_nan.float8_e4m3fn.norm"),
            "n": Read(column="n_nan.float8_e4m3fn.norm", turns={"stage": "weight"}),
        },
    ),
)
