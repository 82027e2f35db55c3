"""The table behind the formats exhibit: every text and number that follows the weight scale.

* `formats_table(settings)`: one row per weight scale of the sweep, as the exhibit component takes it;
* `TILES`, `COUNTED`: which columns stand for which stages and counts.

Here the lab's counts become texts and colour codes; `formats_view` says where they stand.
"""

import math
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.charts.columns import codes, vectors
from qkdemo.charts.panels import Tick
from qkdemo.labs.formats.entry_texts import entry_texts, ladder_texts
from qkdemo.labs.formats.lab import Result, Settings, Side, Sweep, run, sweep
from qkdemo.labs.formats.stages.error_counts import Tally
from qkdemo.labs.formats.stages.kinds import STAGES, STORED, MaskWord, StageWord, StoredWord
from qkdemo.labs.formats.words import fate, leaked, onset
from qkdemo.messages import in_each_language, say
from qkdemo.notation import written

COUNTED: Final = ("n_inf", "n_nan", "n_overflow", "n_zero", "n_merged")
TILES: Final[dict[str, tuple[StageWord, ...]]] = {
    "entering": ("q_entering", "k_entering"),
    "raw_product": ("raw_product",),
    "scaled": ("scaled",),
    "weight": ("weight",),
}
_ROLES: Final = ("plain", "norm")
_FATES: Final = ("none", "all_nan", "n_nan", "n_inf", "n_overflow", "n_lost", "n_zero", "n_merged")  # of a stage
PALEST: Final = 0.2  # of the colour, for the least size that is not zero
_TONES: Final = "033333210"  # how loud each of them is, and none of them


@in_each_language(64)
def formats_table(settings: Settings) -> pa.Table:
    """One row per weight scale of the sweep."""
    result, swept = run(settings), sweep(settings)
    texts, sides = [f"×{written(scale)}" for scale in swept.scales], (swept.plain, swept.twin)
    return pa.table(
        {
            "scale": np.array(swept.scales),
            "scale.text": texts,
            "finding": _findings(result.sides, sides, settings.storage, settings.mask, swept.scales),
            "heat": vectors(_heat_codes(result, swept)),
            **_grid_columns("plain", swept.plain),
            **_grid_columns("norm", swept.twin),
            **_count_columns(swept.plain, swept.twin, settings.stage),
            **_tile_columns(swept.plain, swept.twin, STORED.index(settings.storage)),
            **_ladder_columns(result, swept),
        }
    )


@in_each_language(64)
def _findings(
    sides: tuple[Side, Side],
    counted: tuple[Tally, Tally],
    storage: StoredWord,
    mask: MaskWord,
    scales: tuple[float, ...],
) -> list[str]:
    """Which stage of the chosen format fails first, from where on, and what becomes of the twin, at each scale."""
    f = STORED.index(storage)
    pairs = [
        [_said(which, side, fate(of_side, f, at), scale) + _leaks(which, leaked(of_side, f, at, mask))]
        for at, scale in enumerate(scales)
        for which, side, of_side in zip(("plain", "twin"), sides, counted, strict=True)
    ]
    return [" ".join(plain + twin) for plain, twin in zip(pairs[::2], pairs[1::2], strict=True)]


def _said(which: str, side: Side, found: tuple[str, dict[str, object]], scale: float) -> str:
    """What the headline says of one side at one scale."""
    key, values = found
    values |= {"side": say(f"variant.{side.variant}.short"), "scale": written(scale)}
    if key == "lost":
        first = float(side.first_loss[STORED.index(values["format"]), int(str(values["s"]))])
        if scale >= first:
            key, values = "lost_since", values | {"since": onset(first)}
    return say(f"formats.finding.{which}.{key}", **values)


def _leaks(which: str, leak: dict[str, object] | None) -> str:
    return f" {say(f'formats.finding.{which}.leaked', **leak)}" if leak else ""


@in_each_language(64)
def _grid_columns(role: str, counted: Tally) -> dict[str, list[str]]:
    """Per format: the texts of its stages, joined, and their tones."""
    lost = counted.n_lost > 0
    worst = np.select(  # what is told of a stage, in the order of _FATES
        [
            counted.n == 0,
            lost & (counted.n_nan == counted.n),
            lost & (counted.n_nan == counted.n_lost),
            lost & (counted.n_inf == counted.n_lost),
            lost & (counted.n_nan + counted.n_inf == 0),
            lost,  # of several kinds
            counted.n_zero > 0,
            counted.n_merged > 0,
        ],
        range(len(_FATES)),
        len(_FATES),
    ).swapaxes(1, 2)
    numbers = [counted.n, *[counted.n_lost] * 5, counted.n_zero, counted.n_merged, counted.n]
    number = np.choose(worst, [x.swapaxes(1, 2) for x in numbers])
    fates, counts, errors = worst.tolist(), number.tolist(), counted.max_rel_error.swapaxes(1, 2).tolist()
    columns: dict[str, list[str]] = {}
    for f, word in enumerate(STORED):
        rows = zip(fates[f], counts[f], errors[f], strict=True)
        columns[f"grid.{word}.{role}"] = ["\t".join(map(_cell, *row)) for row in rows]
        columns[f"tone.{word}.{role}"] = ["".join(_TONES[fate] for fate in row) for row in fates[f]]
    return columns


def _cell(fate: int, n: int, error: float) -> str:
    """The worst that happened to one stage; the largest error where nothing did."""
    return _fate_text(fate, n) if fate < len(_FATES) else _short(f"{error:.0e}")


@in_each_language(10_000)
def _fate_text(fate: int, n: int) -> str:
    return say(f"formats.cell.{_FATES[fate]}", n=n)


@in_each_language(10_000)
def _short(error: str) -> str:
    """An error, given with one digit, for the eye."""
    return _error(float(error), 1)


def _error(x: float, digits: int) -> str:
    return say("formats.cell.none") if math.isnan(x) else written(x, digits)


@in_each_language(64)
def _count_columns(plain: Tally, twin: Tally, stage: StageWord) -> dict[str, Any]:
    """Everything that is counted of one stage, and the share that is lost."""
    s = STAGES.index(stage)
    columns: dict[str, Any] = {}
    for role, counted in zip(_ROLES, (plain, twin), strict=True):
        for f, word in enumerate(STORED):
            n = counted.n[f, s]
            known = n > 0
            for name in COUNTED:
                found = getattr(counted, name)[f, s].tolist()
                columns[f"{name}.{word}.{role}"] = [
                    str(x) if some else say("formats.cell.none") for x, some in zip(found, known, strict=True)
                ]
            errors = counted.max_rel_error[f, s].tolist()
            columns[f"max_rel_error.{word}.{role}"] = [_error(x, 2) for x in errors]
            with np.errstate(invalid="ignore"):
                columns[f"lost.{word}.{role}"] = counted.n_lost[f, s] / n
                columns[f"worn.{word}.{role}"] = (counted.n_zero[f, s] + counted.n_merged[f, s]) / n
    return columns


@in_each_language(64)
def _tile_columns(plain: Tally, twin: Tally, f: int) -> dict[str, list[str]]:
    columns = {}
    for role, counted in zip(_ROLES, (plain, twin), strict=True):
        for name, stages in TILES.items():
            places = [STAGES.index(stage) for stage in stages]
            lost, of = (x[f, places].sum(0).tolist() for x in (counted.n_lost, counted.n))
            pairs = zip(lost, of, strict=True)
            columns[f"tile.{name}.{role}"] = [say("formats.of", part=lost, n=n) for lost, n in pairs]
    return columns


def _heat_codes(result: Result, swept: Sweep) -> NDArray[np.uint8]:
    """Sizes on a logarithmic scale over the whole sweep: from a fifth of the colour to all of it; zero is none."""
    sizes, usual = _sizes(result, swept)
    shares = np.where(np.isfinite(sizes), 0.0, np.nan)
    if usual.any():
        exponents = np.log(sizes, where=usual, out=np.zeros_like(sizes))
        low, high = exponents[usual].min(), exponents[usual].max()
        shares = np.where(usual, PALEST + (1 - PALEST) * (exponents - low) / ((high - low) or 1), shares)
    return codes(np.where(result.shown.hidden, -1, shares**2))


def heat_ramp(result: Result, swept: Sweep) -> list[Tick]:
    """What the colours of the heat map stand for: zero, and the least and the largest size of the sweep."""
    sizes, usual = _sizes(result, swept)
    ends = (sizes[usual].min(), sizes[usual].max()) if usual.any() else ()
    return [
        (0.0, "0"),
        *((part, written(float(size), 2)) for part, size in zip((PALEST, 1.0), dict.fromkeys(ends), strict=False)),
    ]


def _sizes(result: Result, swept: Sweep) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Sizes of the shown entries, and which have a place on a logarithmic scale."""
    sizes = np.abs(swept.values)
    return sizes, np.isfinite(sizes) & (sizes > 0) & ~result.shown.hidden


def _ladder_columns(result: Result, swept: Sweep) -> dict[str, list[str]]:
    """The shown entry's exact value in each of the formats, at each scale, and what the pipeline holds of it."""
    row, column = result.shown.row, result.shown.column
    exact = swept.exact[:, row, column].tolist()
    pairs = zip(exact, swept.values[:, row, column].tolist(), strict=True)
    texts = [entry_texts(x, held) | ladder_texts(x, result.settings.fp8_cast) for x, held in pairs]
    return {name: [of_scale[name] for of_scale in texts] for name in texts[0]}
