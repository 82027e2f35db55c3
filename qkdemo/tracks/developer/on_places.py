"""What the developer's stops on where a norm stands read off their labs: its place, its code, a cache, a codebase."""

import math
from typing import Final

import numpy as np

from qkdemo.facts.models import MODELS
from qkdemo.floats.formats import noise
from qkdemo.labs import cache, models, placement, sphere
from qkdemo.messages import say
from qkdemo.notation import below, written
from qkdemo.tracks.developer.on_norms import SAME
from qkdemo.tracks.stop import Evidence, closest, only

AS_WRITTEN: Final = placement.Settings(right_order="norm_rotary")
UNEVEN: Final = AS_WRITTEN.but(head_spread=8, gains="unit", head=3)  # the largest head
TOKENS: Final = AS_WRITTEN.but(token_spread=4)
FRESH_GAINS: Final = AS_WRITTEN.but(gains="unit")
_SEEN: Final = 1e-3  # largest weight difference from which on somebody could notice


def place(found: placement.Result) -> Evidence:
    """Whether a norm over the input bounds the logits of the largest head."""
    settings = found.settings
    bound = math.sqrt(settings.d_head)
    largest, left = (side.logits[settings.head].abs().max().item() for side in (found.right, found.left))
    same = found.relative_score_error < SAME
    full, skipped = (
        placement.run(UNEVEN.but(**change)).right.logits[settings.head].abs().max().item() for change in ELSEWHERE
    )
    every = models.run(models.Settings(kind="model"))
    usual = models.run(models.Settings(kind="model", place="per_head", order="norm_rotary"))
    wide = models.run(models.Settings(kind="model", place="full_width"))
    numbers = {
        "bound": written(bound),
        "left": written(left),
        "right": written(largest),
        "skipped": written(skipped),
        "full": written(full),
        "usual": str(len(usual.models)),
        "wide": str(len(wide.models)),
        "all": str(len(every.models)),
    }
    answer = only(same=same, within=not same and largest <= bound, over=largest > bound)
    return Evidence(answer, numbers, {model.model: model.link for model in wide.models})


ELSEWHERE: Final[tuple[dict[str, str], ...]] = (
    {"right_place": "full_width"},
    {"right_place": "per_head", "right_norm": "none"},
)


def values(found: placement.Result) -> Evidence:
    """What changes when v is normalised, too."""
    moved = found.relative_score_error > SAME, found.largest_weight_difference > SAME
    output = found.relative_output_error
    even = placement.run(found.settings.but(token_spread=1))
    answer = only(
        logits=moved[0],
        weights=not moved[0] and moved[1],
        output=not any(moved) and output > SAME,
        nothing=not any(moved) and output <= SAME,
    )
    normalised = [model.model for model in MODELS if model.kind == "model" and model.qk_norm == "yes" and model.values]
    numbers = {"output": written(100 * output, 2), "even": written(100 * even.relative_output_error, 2)}
    return Evidence(answer, numbers | {"normalised_values": ", ".join(normalised)})


def really(found: placement.Result) -> Evidence:
    """How wrong the logits are where a norm is configured and not called."""
    error = found.relative_score_error
    uneven = placement.run(found.settings.but(head_spread=4, token_spread=4))
    of_q = found.right.q.norm(dim=-1)
    numbers = {
        "error": written(100 * error, 3),
        "weight": written(found.largest_weight_difference, 2),
        "length": written(found.left.q.norm(dim=-1).mean().item()),
        "short": written(of_q.min().item(), 3),
        "long": written(of_q.max().item(), 3),
        "uneven": written(100 * uneven.relative_score_error, 2),
        "cause": say(f"mistake_name.{found.verdict.cause}"),
    }
    return Evidence(closest(error, {"rounding": 1e-6, "tenth": 0.1, "several": 3}), numbers)


def again(found: cache.Result) -> Evidence:
    """Which decoded token is the first to show that cached keys are normalised again."""
    unit = cache.run(found.settings.but(gains="unit"))
    worst = float(found.weight_error.max())
    wrong = found.from_step is not None and worst > _SEEN
    answer = only(
        nothing=not wrong and found.label != "rounding",
        rounding=not wrong and found.label == "rounding",
        first=wrong and found.from_step == 0,
        second=wrong and found.from_step != 0,
    )
    numbers = {
        "step": str(found.from_step),
        "at_step": written(found.weight_error[found.from_step or 0], 2),
        "worst": written(worst, 2),
        "last": written(100 * found.logit_error[-1], 2),
        "unit": below(float(unit.weight_error.max()), noise("float32")),
    }
    return Evidence(answer, numbers)


def codebase(found: models.Result) -> Evidence:
    """Which code has this contract, and what each way of getting it wrong costs."""
    those = {model.id for model in found.models}
    forgotten, doubled, unpermuted = (
        placement.run(placement.PRESETS[name]).relative_score_error
        for name in ("one_plus_as_gamma", "gamma_as_one_plus", "gain_not_permuted")
    )
    every = models.run(models.Settings(kind="model"))
    without = models.run(models.Settings(kind="model", normed="no"))
    numbers = {
        "names": ", ".join(model.model for model in found.models if model.kind == "model"),
        "rows": str(len(found.models)),
        "forgotten": written(100 * forgotten, 2),
        "doubled": written(100 * doubled, 2),
        "unpermuted": written(100 * unpermuted, 2),
        "without": str(len(without.models)),
        "all": str(len(every.models)),
    }
    return Evidence(only(**{word: known in those for word, known in _KNOWN.items()}), numbers)


_KNOWN: Final = {
    "qwen": "qwen3-dense-transformers",
    "olmo": "olmo-2-transformers",
    "llama": "llama-4-text-transformers",
    "gemma": "gemma-3-transformers",
}


def territory(found: sphere.Result) -> Evidence:
    """How much of the sphere the longest key has, with its length and without."""
    lengths = np.linalg.norm(found.keys, axis=-1)
    longest, shortest = int(lengths.argmax()), int(lengths.argmin())
    plain, twin = (side.territory(longest) for side in (found.plain, found.twin))
    answer = only(fewer=plain < 0.9 * twin, as_many=0.9 * twin <= plain <= 1.1 * twin, more=plain > 1.1 * twin)
    numbers = {
        "key": str(longest),
        "ratio": written(float(lengths[longest] / lengths[shortest]), 2),
        "plain": sphere.whole_percent(plain),
        "twin": sphere.whole_percent(twin),
        "short": str(shortest),
        "short_plain": sphere.whole_percent(found.plain.territory(shortest)),
        "short_twin": sphere.whole_percent(found.twin.territory(shortest)),
        "clear_from": written(sphere.DECIDED),
        "clear": sphere.whole_percent(found.twin.decided),
        "clearer": sphere.whole_percent(sphere.run(found.settings.but(gain=50)).twin.decided),
    }
    return Evidence(answer, numbers)
