"""A formats result as tables: counts of every stage, first failures, the shown stage over the scale, the ladder."""

import math
from dataclasses import asdict, fields

import torch

from qkdemo.dials import Value
from qkdemo.floats.devices import DeviceWord, available_devices
from qkdemo.labs.formats.lab import Result, Settings, choices_of, inputs_of, ladder, recipe_of, run, sweep, variants_of
from qkdemo.labs.formats.stages.device_matmul import native_counts
from qkdemo.labs.formats.stages.error_counts import Tally
from qkdemo.labs.formats.stages.kinds import STAGES, STORED
from qkdemo.messages import say


def report(settings: Settings) -> dict[str, list[dict[str, Value | None]]]:
    """What the command line prints: counts of every stage at this weight scale, then the first failures."""
    result = run(settings)
    return {"rows": rows(result), "first_failure": first_failures(result)}


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per format, variant and stage. No error is known (None) where no entry is left.

    With a CUDA device, its own float16 matmul follows as one more format.
    """
    emulated = [
        {"format": word, "variant": side.variant, "stage": stage, **_counts(side.tally, f, s)}
        for f, word in enumerate(STORED)
        for side in result.sides
        for s, stage in enumerate(STAGES)
        if side.tally.n[f, s, 0]
    ]
    return emulated + (native_rows(result.settings, "cuda") if "cuda" in available_devices() else [])


def native_rows(settings: Settings, device: DeviceWord) -> list[dict[str, Value | None]]:
    """The raw products that `device` itself computes in float16: one row per variant, as in `rows`."""
    inputs, scale = inputs_of(recipe_of(settings), settings.causal), torch.tensor([settings.scale], dtype=torch.float64)
    found = []
    for variant in variants_of(settings):
        counts = native_counts(inputs, scale, choices_of(settings, variant), device)
        row = {name: count[0, 0].item() for name, count in counts.items()}
        error = None if math.isnan(row["max_rel_error"]) else row["max_rel_error"]
        named = {"format": say(f"formats.native.{device}"), "variant": variant, "stage": "raw_product"}
        found.append(named | row | {"n_leaked": 0, "max_rel_error": error})
    return found


def _counts(counted: Tally, f: int, s: int, at: int = 0) -> dict[str, Value | None]:
    found = {field.name: getattr(counted, field.name)[f, s, at].item() for field in fields(counted)}
    return found | {"max_rel_error": None if math.isnan(found["max_rel_error"]) else found["max_rel_error"]}


def first_failures(result: Result) -> list[dict[str, Value | None]]:
    """The weight scale from which on each stage loses entries, and from which its exact values would be too large."""
    return [
        {
            "format": word,
            "variant": side.variant,
            "stage": stage,
            "scale": _finite(side.first_loss[f, s]),
            "exact_scale": _finite(side.first_exceeding[f, s]),
        }
        for f, word in enumerate(STORED)
        for side in result.sides
        for s, stage in enumerate(STAGES)
        if not math.isnan(side.first_loss[f, s])
    ]


def sweep_rows(settings: Settings) -> list[dict[str, Value | None]]:
    """The table of the shown stage over the weight scale: one row per scale, format and variant."""
    swept, s = sweep(settings), STAGES.index(settings.stage)
    return [
        {"scale": scale, "format": word, "variant": variant, "stage": settings.stage, **_counts(counted, f, s, at)}
        for at, scale in enumerate(swept.scales)
        for f, word in enumerate(STORED)
        for variant, counted in zip(variants_of(settings), (swept.plain, swept.twin), strict=True)
        if counted.n[f, s, at]
    ]


def ladder_rows(result: Result) -> list[dict[str, Value]]:
    """The table of the shown entry's exact value: one row per format."""
    return [asdict(each) for each in ladder(result.shown.exact_value, result.settings.fp8_cast)]


def _finite(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None
