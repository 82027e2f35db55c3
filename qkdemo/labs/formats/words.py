"""What a number format does to attention, in words made from the counts.

* `fate(counted, f, at)`: the word for the worst that happens, and the numbers of its sentence;
* `leaked(counted, f, at, mask)`: hidden keys that get weight after all;
* `early(first_loss, counted, scales)`: where entries are lost below the scale from which on they always are;
* `fates_said(...)`, `beginnings_said(...)`: sentences about one side in one format;
* `native_said(rows)`: one about a device that multiplies itself;
* `onset(scale)`, `already(scale)`, `stage_name(stage)`: how a first failure and a stage are written.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.attention.norms import NormWord
from qkdemo.dials import Value
from qkdemo.floats.devices import available_devices
from qkdemo.floats.formats import ALL_FORMATS
from qkdemo.labs.formats.lab import Result, Side, sweep
from qkdemo.labs.formats.stages.error_counts import Tally
from qkdemo.labs.formats.stages.kinds import STAGES, STORED, MaskWord, StageWord, StoredWord
from qkdemo.labs.formats.stages.overflow_thresholds import LOWEST
from qkdemo.labs.formats.tables import native_rows
from qkdemo.messages import say
from qkdemo.notation import at_most, written

_ENTERING: Final = STAGES.index("q_entering")
_LARGE_ERROR: Final = 0.1  # relative, of a weight: beyond it attention is not carried whole


def fate(counted: Tally, f: int, at: int) -> tuple[str, dict[str, object]]:
    """The word for what happens to one side in one format, the worst first, and the numbers of its sentence."""
    weight, logit, total = (STAGES.index(stage) for stage in ("weight", "scaled", "sum"))
    values: dict[str, object] = {"format": STORED[f], "error": at_most(100 * counted.max_rel_error[f, weight, at], 2)}
    values |= {"weights": counted.n[f, weight, at], "logits": counted.n[f, logit, at], "rows": counted.n[f, total, at]}
    values |= {"vanished": counted.n_zero[f, weight, at], "merged": counted.n_merged[f, logit, at]}
    values |= {"undefined": counted.n_nan[f, total, at], "nan": counted.n_nan[f, weight, at]}
    for key, counts, stages in (
        ("lost", counted.n_lost, slice(None)),
        ("vanished", counted.n_zero, slice(weight, weight + 1)),
        ("flushed", counted.n_zero, slice(_ENTERING, None)),
        ("merged", counted.n_merged, slice(logit, logit + 1)),
        ("blurred", counted.n_merged, slice(_ENTERING, None)),
    ):
        shares = counts[f, stages, at] / np.maximum(counted.n[f, stages, at], 1)
        if shares.any():  # a loss is told where it comes first, what is only worn where it is worst
            s = range(len(STAGES))[stages][int(np.argmax(shares > 0 if key == "lost" else shares))]
            return key, values | {
                "s": s,
                "stage": stage_name(STAGES[s]),
                "part": counts[f, s, at],
                "of": counted.n[f, s, at],
            }
    if counted.n_leaked[f, weight, at]:  # what hidden keys get is no rounding
        return "visible", values
    return "off" if counted.max_rel_error[f, weight, at] > _LARGE_ERROR else "safe", values


def leaked(counted: Tally, f: int, at: int, mask: MaskWord) -> dict[str, object] | None:
    """How many hidden keys get a weight above zero, and the mask that is outweighed; None if none does."""
    found = counted.n_leaked[f, STAGES.index("weight"), at]
    return {"leaked": found, "mask": mask.replace("inf", "∞").replace("-", "−")} if found else None


def early(first_loss: NDArray[np.float64], counted: Tally, scales: tuple[float, ...]) -> NDArray[np.bool_]:
    """Whether a stage loses entries at a swept scale below the one from which it loses them on, [formats, stages]."""
    below: NDArray[np.bool_] = np.array(scales) < first_loss[..., None]
    return np.asarray((below & (counted.n_lost > 0)).any(-1))


def fates_said(variant: NormWord, counted: Tally, f: int, scale: float, mask: MaskWord) -> list[str]:
    """What happens to one side in one format at the one scale counted, and whether its mask leaks."""
    key, values = fate(counted, f, 0)
    if key == "lost" and (values["undefined"] or values["nan"]):  # ∞ / ∞ is no number either
        total = STAGES.index("sum")
        others = counted.n_inf[f, total, 0] + counted.n_zero[f, total, 0]  # ∞ / ∞ and 0 / 0 in further rows
        key = "undefined" if values["undefined"] and not others else "undefined_weights"
    key = "vanished_alone" if key == "vanished" and not values["merged"] else key
    values |= {"side": say(f"variant.{variant}.name"), "scale": written(scale)}
    leak = leaked(counted, f, 0, mask)
    return [say(f"formats.{key}", **values), *([say("formats.leaked", **values | leak)] if leak else [])]


def beginnings_said(
    variant: NormWord, format: StoredWord, first_loss: NDArray[np.float64], before: NDArray[np.bool_]
) -> str:
    """From which weight scales on stages lose entries, each with the first that it fells; and the first lost before."""
    found: dict[str, str] = {}
    for stage, first in zip(STAGES, first_loss.tolist(), strict=True):
        if math.isfinite(first):
            told = say(f"formats.begin{already(first)}", stage=stage_name(stage), scale=onset(first))
            found.setdefault(onset(first), told)
    listed = "; ".join(found.values())
    key = ("beginning" if listed else "never") + ("_early" if before.any() else "")
    sooner = stage_name(STAGES[int(np.argmax(before))])
    return say(f"formats.{key}", side=say(f"variant.{variant}.name"), format=format, listed=listed, early=sooner)


def native_said(rows: Sequence[Mapping[str, Value | None]]) -> str:
    """What a device's own float16 matmul loses, given its rows of plain attention and of the twin."""
    plain, twin = rows
    values = {"format": plain["format"], "plain": plain["n_lost"], "of": plain["n"], "twin": twin["n_lost"]}
    return say("formats.native.said", **values, side=say(f"variant.{twin['variant']}.name"))


def onset(scale: float) -> str:
    """How a first failure is written: 55.65, but 16 802, which four digits would move below what is safe."""
    return written(scale, 5 if 1e4 <= scale < 1e5 else 4)


def already(scale: float) -> str:
    """The end of a key of what begins there: with the smallest scale of all it may begin before."""
    return "_already" if scale <= LOWEST else ""


def stage_name(stage: StageWord) -> str:
    """What the page calls a stage."""
    return say(f"stage.{stage}.name")


def explain(result: Result) -> list[str]:
    """What the current scale shows: the chosen format, when it begins and by which rule, then the other formats."""
    settings = result.settings
    chosen, swept = STORED.index(settings.storage), sweep(settings)

    def fates(side: Side, f: int) -> list[str]:
        return fates_said(side.variant, side.tally, f, settings.scale, settings.mask)

    sentences = [sentence for side in result.sides for sentence in fates(side, chosen)]
    for side, counted in zip(result.sides, (swept.plain, swept.twin), strict=True):
        before = early(side.first_loss, counted, swept.scales)[chosen]
        sentences.append(beginnings_said(side.variant, settings.storage, side.first_loss[chosen], before))
    if "cuda" in available_devices():
        sentences.append(native_said(native_rows(settings, "cuda")))
    if ALL_FORMATS[settings.storage].is_narrow:
        sentences.append(say(f"formats.rule.{settings.fp8_cast}"))
    others = (f for f in range(len(STORED)) if f != chosen)
    return sentences + [sentence for f in others for sentence in fates(result.plain, f)]
