"""The developer's track: the table, three lines of PyTorch, where they go, the usual mistakes, and what to log."""

import math
from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from qkdemo.attention.bounds import largest_weight
from qkdemo.attention.inputs import Recipe, draw
from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.facts.models import MODELS
from qkdemo.floats.formats import noise
from qkdemo.labs import cache, cost, drift, formats, models, placement, sphere
from qkdemo.labs import training as twins
from qkdemo.labs.formats.stages.error_counts import tally
from qkdemo.labs.formats.stages.kinds import STAGES, STORED, drawn
from qkdemo.messages import say
from qkdemo.notation import below, written
from qkdemo.runs.plan import outcomes
from qkdemo.tracks.developer.on_logs import case
from qkdemo.tracks.stop import Choose, Estimate, Evidence, Read, Stop, closest, in_slots, only
from qkdemo.training.outcome import LAST_STEPS
from qkdemo.training.telemetry import CURVES

TABLE: Final = (1, 2, 4, 8, 16)
SEED_TABLE: Final = drift.Settings()
ALIGNED: Final = SEED_TABLE.but(alignment=0.99)
AS_WRITTEN: Final = placement.Settings(right_order="norm_rotary")
UNEVEN: Final = AS_WRITTEN.but(head_spread=8, gains="unit", head=3)  # the largest head
TOKENS: Final = AS_WRITTEN.but(token_spread=4)
FRESH_GAINS: Final = AS_WRITTEN.but(gains="unit")
_SAME: Final = 1e-9  # relative difference up to which float64 says that two ways are one function
_TRUSTED: Final = 0.1  # relative error of an attention weight
_DEFAULT_AXIS: Final = 1  # of torch.nn.functional.normalize
_HEADS: Final = 4
_MANY_KEYS: Final = 128
_SEEN: Final = 1e-3  # largest weight difference from which on somebody could notice


def _table(found: drift.Result) -> Evidence:
    rows = drift.run(found.settings, TABLE).plain
    numbers = {
        f"{name}_{scale}": written(value, digits)
        for name, digits in (("max_abs_logit", 4), ("entropy", 3))
        for scale, value in zip(
            TABLE, 100 * rows.entropy_fraction if name == "entropy" else rows.max_abs_logit, strict=True
        )
    }
    slopes = rows.softmax_slope
    twin = {
        "twin": written(found.twin.max_abs_logit[found.at]),
        "twin_entropy": written(100 * found.twin.entropy_fraction[found.at], 3),
    }
    numbers |= {"fall": written(slopes[0] / slopes[-1], 2)} | twin
    return Evidence(float(found.plain.max_abs_logit[found.at]), numbers)


def _lines(found: drift.Result) -> Evidence:
    """What `torch.nn.functional.normalize` makes of [batch, heads, positions, d_head] without its `dim`."""
    settings = found.settings

    def made(axis: int, heads: int = _HEADS, keys: int = settings.n_keys) -> tuple[Tensor, Tensor]:
        """The largest logit, and the lengths of q."""
        drawn = draw(Recipe(n_heads=heads, n_keys=keys, d_head=settings.d_head, seed=settings.seed))
        q, k = (normalize(settings.scale * x[None], dim=axis) for x in drawn)
        return (settings.gain * q @ k.mT).abs().max(), q.norm(dim=-1)

    (right, _), (wrong, lengths) = made(-1), made(_DEFAULT_AXIS)
    alone, hidden = made(_DEFAULT_AXIS, heads=1)[0], made(-2, keys=_MANY_KEYS)[0]
    q, k = draw(Recipe(n_heads=_HEADS, n_keys=settings.n_keys, d_head=settings.d_head, seed=settings.seed))
    own = scores(q, k, VARIANTS["l2"], Parameters(g=settings.gain))
    assert hidden < settings.gain < wrong < alone
    answer = only(
        nothing=math.isclose(wrong, right, rel_tol=_SAME),
        axis=math.isclose(right, own.logits.abs().max(), rel_tol=_SAME) and wrong > settings.gain,
    )
    return Evidence(
        answer,
        {
            "right": written(right.item()),
            "wrong": written(wrong.item()),
            "alone": written(alone.item()),
            "hidden": written(hidden.item()),
            "short": written(lengths.min().item(), 3),
            "long": written(lengths.max().item(), 3),
            "heads": str(_HEADS),
            "many": str(_MANY_KEYS),
        },
    )


def _rms(found: drift.Result) -> Evidence:
    """What bounds the logits of RMSNorm, with unit gain and with another."""
    d = found.settings.d_head
    root, bound = math.sqrt(d), found.twin.bound
    gained = drift.run(found.settings.but(gamma=2), [found.settings.scale]).twin
    every = [model for model in MODELS if model.kind == "model" and model.qk_norm == "yes"]
    assert found.twin.max_abs_logit[found.at] <= bound
    return Evidence(
        closest(bound, {"one": 1, "root": root, "width": d, "square": d * d}),
        {
            "one": written(1),
            "root": written(root),
            "width": written(d),
            "square": written(d * d),
            "largest": written(found.twin.max_abs_logit[found.at]),
            "gained": written(gained.bound),
            "users": str(sum(model.norm == "rms" for model in every)),
            "normed": str(len(every)),
        },
    )


def _place(found: placement.Result) -> Evidence:
    settings = found.settings
    bound = math.sqrt(settings.d_head)
    largest, left = (side.logits[settings.head].abs().max().item() for side in (found.right, found.left))
    same = found.relative_score_error < _SAME
    full, skipped = (
        placement.run(UNEVEN.but(**change)).right.logits[settings.head].abs().max().item() for change in _ELSEWHERE
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


_ELSEWHERE: Final[tuple[dict[str, str], ...]] = (
    {"right_place": "full_width"},
    {"right_place": "per_head", "right_norm": "none"},
)


def _small_g(found: drift.Result) -> Evidence:
    settings, twin, at = found.settings, found.twin, found.at
    usual, large = (drift.run(settings.but(gain=gain), [settings.scale]).twin for gain in (ALIGNED.gain, 100))
    top = float(twin.top_weight[at])
    n = settings.n_keys
    numbers = {
        "top": written(100 * top, 3),
        "usual": written(100 * usual.top_weight[0], 3),
        "effective": written(ALIGNED.gain / math.sqrt(settings.d_head)),
        "start_g": written(math.log2(n * n - n), 3),
        "most": written(100 * largest_weight(settings.gain, n), 3),
        "slope": written(twin.softmax_slope[at], 2),
        "large_slope": written(large.softmax_slope[0], 2),
    }
    return Evidence(top, numbers)


def _values(found: placement.Result) -> Evidence:
    moved = found.relative_score_error > _SAME, found.largest_weight_difference > _SAME
    output = found.relative_output_error
    even = placement.run(found.settings.but(token_spread=1))
    answer = only(
        logits=moved[0],
        weights=not moved[0] and moved[1],
        output=not any(moved) and output > _SAME,
        nothing=not any(moved) and output <= _SAME,
    )
    normalised = [model.model for model in MODELS if model.kind == "model" and model.qk_norm == "yes" and model.values]
    numbers = {"output": written(100 * output, 2), "even": written(100 * even.relative_output_error, 2)}
    return Evidence(answer, numbers | {"normalised_values": ", ".join(normalised)})


def _half(found: formats.Result) -> Evidence:
    settings = found.settings
    tried = {
        word: _weights(settings.but(**change), plain=word in ("maximum", "early")) for word, change in _TRIED.items()
    }
    lost = {word: found[0] for word, found in tried.items()}
    bf16 = _weights(settings.but(storage="bfloat16"), plain=True)
    unsafe, safe = (_weights(settings.but(scale=8, max_subtraction=on), plain=True) for on in (False, True))
    raw = STORED.index(settings.storage), STAGES.index("raw_product")
    numbers = {
        "lost": written(found.plain.tally.n_lost[*raw, 0]),
        "of": written(found.plain.tally.n[*raw, 0]),
        "first": written(found.plain.first_loss[raw]),
        "nan": written(lost["maximum"]),
        "early": written(lost["early"]),
        "inside": written(tried["inside"][2]),
        "error": written(100 * tried["outside"][1], 2),
        "bf16": written(bf16[0]),
        "bf16_zero": written(bf16[3]),
        "unsafe": written(unsafe[0]),
        "safe": written(safe[0]),
    }
    trusted = {word: lost == 0 and error < _TRUSTED for word, (lost, error, *_) in tried.items()}
    return Evidence(only(**trusted), numbers)


_TRIED: Final[dict[str, dict[str, object]]] = {
    "maximum": {"max_subtraction": True},
    "early": {"placement": "on_q"},
    "inside": {"norm_in_format": True},
    "outside": {"norm_in_format": False},
}


def _weights(settings: formats.Settings, *, plain: bool) -> tuple[int, float, int, int]:
    """Of the attention weights in the chosen format: lost ones, largest relative error; q entries and weights at 0."""
    choices = formats.choices_of(settings, "none" if plain else settings.variant)
    inputs = drawn(formats.recipe_of(settings), causal=settings.causal)
    counted = tally(inputs, torch.tensor([settings.scale], dtype=torch.float64), choices)
    f, weight, q = STORED.index(settings.storage), STAGES.index("weight"), STAGES.index("q_entering")
    zeros = int(counted.n_zero[f, q, 0]), int(counted.n_zero[f, weight, 0])
    return int(counted.n_lost[f, weight, 0]), float(counted.max_rel_error[f, weight, 0]), *zeros


def _really(found: placement.Result) -> Evidence:
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


def _log(found: twins.Result) -> Evidence:
    plain, twin = outcomes(found.plan, found.curves)
    large, ahead = plain.first_step_logit_over_100, plain.warned
    assert large is not None
    assert ahead is not None
    gradients = found.curves[large - 1 : plain.lost_at, :2, CURVES.index("gradient_norm")].max(0)
    numbers = {
        "large": str(large),
        "lost": str(plain.lost_at),
        "ahead": str(ahead),
        "jump": written(float(gradients[0]), 1),
        "twin_jump": written(float(gradients[1]), 1),
        "slope": written(plain.final_softmax_slope, 1),
        "twin_slope": written(twin.final_softmax_slope, 1),
        "last": str(LAST_STEPS),
        "clip": written(found.plan.legs[0].runs[0].grad_clip),
    }
    answer = only(after=ahead <= 0, once=0 < ahead < 10, ten=10 <= ahead < 50, hundred=ahead >= 50)
    return Evidence(answer, numbers)


def _calm(found: twins.Result) -> Evidence:
    plain, twin = outcomes(found.plan, found.curves)
    gap = plain.final_loss - twin.final_loss
    share = next(part.share for part in cost.run(cost.Settings()).parts if part.part == "rms")
    numbers = {
        "rate": written(found.plan.legs[0].runs[0].learning_rate),
        "loss": written(max(plain.final_loss, twin.final_loss), 1),
        "last": str(LAST_STEPS),
        "logit": written(plain.max_abs_logit, 2),
        "twin_logit": written(twin.max_abs_logit, 2),
        "cost": written(100 * share, 2),
    }
    apart = abs(gap) > 0.01  # nats
    return Evidence(only(better=apart and gap > 0, same=not apart, worse=apart and gap < 0), numbers)


def _again(found: cache.Result) -> Evidence:
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


def _codebase(found: models.Result) -> Evidence:
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


def _territory(found: sphere.Result) -> Evidence:
    lengths = np.linalg.norm(found.keys, axis=-1)
    longest, shortest = int(lengths.argmax()), int(lengths.argmin())
    plain, twin = (side.territory(longest) for side in (found.plain, found.twin))
    answer = only(fewer=plain < 0.9 * twin, as_many=0.9 * twin <= plain <= 1.1 * twin, more=plain > 1.1 * twin)
    numbers = {
        "key": str(longest),
        "ratio": written(float(lengths[longest] / lengths[shortest]), 2),
        "plain": written(100 * plain, 3),
        "twin": written(100 * twin, 3),
        "short": str(shortest),
        "short_plain": written(100 * found.plain.territory(shortest), 3),
        "short_twin": written(100 * found.twin.territory(shortest), 3),
    }
    return Evidence(answer, numbers)


_SLOTS: Final = (
    *(
        "table",
        "lines",
        "place",
        "small_g",
        "values",
        "half",
        "really",
        "log",
    ),
    *(
        "calm",
        "again",
        "codebase",
        "rms",
        "territory",
        "case",
    ),
)
STOPS: Final = in_slots(
    _SLOTS,
    Stop(
        name="table",
        lab=drift.LAB,
        start=SEED_TABLE.but(scale=4),
        state=SEED_TABLE.but(scale=16),
        ask=Estimate(10, 10_000, "plain.max_abs_logit"),
        evidence=_table,
        points=(2, 3, 4),
        reads={
            **{f"max_abs_logit_{x}": Read(column="plain.max_abs_logit", turns={"scale": float(x)}) for x in TABLE},
            **{
                f"entropy_{x}": Read(column="plain.entropy_fraction", turns={"scale": float(x)}, times=100)
                for x in TABLE
            },
            "twin": Read(column="norm.max_abs_logit"),
            "twin_entropy": Read(column="norm.entropy_fraction", times=100),
        },
    ),
    Stop(
        name="lines",
        lab=drift.LAB,
        start=SEED_TABLE.but(n_heads=_HEADS, scale=1),
        state=SEED_TABLE.but(n_heads=_HEADS),
        ask=Choose(("nothing", "root", "axis", "order")),
        evidence=_lines,
        points=(9, 10),
        reads={
            "right": Read(column="norm.max_abs_logit"),
            "wrong": Read(column="norm.max_abs_logit", of="level"),
        },
    ),
    Stop(
        name="rms",
        lab=drift.LAB,
        state=SEED_TABLE.but(variant="rms"),
        ask=Choose(("one", "root", "width", "square")),
        evidence=_rms,
        points=(9, 11),
        reads={
            "largest": Read(column="norm.max_abs_logit"),
            "root": Read(column="bound"),
            "gained": Read(column="bound", turns={"gamma": 2.0}),
        },
    ),
    Stop(
        name="place",
        lab=placement.LAB,
        state=UNEVEN.but(right_place="input"),
        ask=Choose(("same", "within", "over")),
        evidence=_place,
        points=(9, 12, 18, 22),
        reads={
            "left": Read(column="left.largest.text"),
            "right": Read(column="right.largest.text"),
            "skipped": Read(column="right.largest.text", turns=_ELSEWHERE[1]),
            "full": Read(column="right.largest.text", turns=_ELSEWHERE[0]),
        },
    ),
    Stop(
        name="small_g",
        lab=drift.LAB,
        start=ALIGNED,
        state=ALIGNED.but(gain=1.25),
        ask=Estimate(0.05, 1, "norm.top_weight"),
        evidence=_small_g,
        points=(10, 15, 16),
        reads={
            "top": Read(column="norm.top_weight", times=100),
            "usual": Read(column="norm.top_weight", turns={"gain": ALIGNED.gain}, times=100),
            "most": Read(column="norm.top_weight", of="level", times=100),
            "slope": Read(column="norm.softmax_slope"),
            "large_slope": Read(column="norm.softmax_slope", turns={"gain": 100.0}),
        },
    ),
    Stop(
        name="territory",
        lab=sphere.LAB,
        state=sphere.Settings(scale=4),
        ask=Choose(("fewer", "as_many", "more")),
        evidence=_territory,
        points=(1, 13),
    ),
    Stop(
        name="values",
        lab=placement.LAB,
        state=TOKENS.but(right_on="qkv"),
        ask=Choose(("logits", "weights", "output", "nothing")),
        evidence=_values,
        points=(21,),
        reads={
            "output": Read(column="pair.output", times=100),
            "even": Read(column="pair.output", turns={"token_spread": 1.0}, times=100),
        },
    ),
    Stop(
        name="half",
        lab=formats.LAB,
        state=formats.Settings(scale=400, stage="weight"),
        ask=Choose(("maximum", "early", "inside", "outside")),
        evidence=_half,
        points=(6, 17),
        reads={
            "nan": Read(column="n_nan.float16.plain"),
            "error": Read(column="max_rel_error.float16.norm", times=100),
            "early": Read(column="n_nan.float16.plain", turns={"placement": "on_q"}),
            "bf16_zero": Read(column="n_zero.bfloat16.plain"),
            "lost": Read(column="n_overflow.float16.plain", turns={"stage": "raw_product"}),
        },
    ),
    Stop(
        name="really",
        lab=placement.LAB,
        state=FRESH_GAINS.but(right_norm="none"),
        ask=Choose(("rounding", "tenth", "several")),
        evidence=_really,
        points=(9, 13),
        reads={
            "error": Read(column="pair.logits", times=100),
            "weight": Read(column="pair.weight"),
            "uneven": Read(column="pair.logits", turns={"head_spread": 4.0, "token_spread": 4.0}, times=100),
        },
    ),
    Stop(
        name="log",
        lab=twins.LAB,
        state=twins.Settings(),
        ask=Choose(("after", "once", "ten", "hundred")),
        evidence=_log,
        points=(5, 34),
        reads={
            "large": Read(column="plain.max_abs_logit", of="place"),
            "lost": Read(column="plain.loss", of="place"),
        },
    ),
    Stop(
        name="case",
        lab=twins.LAB,
        state=twins.Settings(),
        ask=Choose(("attention", "rate", "overflow", "cannot")),
        evidence=case,
        points=(34,),
        reads={
            "since": Read(column="plain.max_abs_logit", of="place"),
            "step": Read(column="plain.loss", of="place"),
        },
    ),
    Stop(
        name="calm",
        lab=twins.LAB,
        state=twins.PRESETS["gentle"],
        ask=Choose(("better", "same", "worse")),
        evidence=_calm,
        points=(30, 34, 35),
        reads={
            "loss": Read(column="plain.loss", of="level"),
            "logit": Read(column="plain.max_abs_logit", of="largest"),
            "twin_logit": Read(column="norm.max_abs_logit", of="largest"),
        },
    ),
    Stop(
        name="again",
        lab=cache.LAB,
        state=cache.Settings(way="normed_again"),
        ask=Choose(("nothing", "second", "rounding", "first")),
        evidence=_again,
        points=(26,),
        reads={
            "at_step": Read(column="error.normed_again", turns={"step": 1}),
            "worst": Read(column="error.normed_again", of="largest"),
        },
    ),
    Stop(
        name="codebase",
        lab=models.LAB,
        state=models.Settings(norm="rms", place="per_head", stored="one_plus", order="norm_rotary"),
        ask=Choose(("qwen", "olmo", "gemma", "llama")),
        evidence=_codebase,
        points=(28, 33),
        reads={"rows": Read(column="model")},
    ),
)
