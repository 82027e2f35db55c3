"""The developer's track: the table, three lines of PyTorch, where they go, the usual mistakes, and what to log."""

from typing import Final

from qkdemo.labs import cache, drift, formats, models, placement, sphere
from qkdemo.labs import training as twins
from qkdemo.tracks.developer import on_logs as logs
from qkdemo.tracks.developer import on_norms as norms
from qkdemo.tracks.developer import on_places as places
from qkdemo.tracks.developer import on_runs as runs
from qkdemo.tracks.developer.on_norms import ALIGNED, HEADS, SEED_TABLE, TABLE
from qkdemo.tracks.developer.on_places import ELSEWHERE, FRESH_GAINS, TOKENS, UNEVEN
from qkdemo.tracks.stop import Choose, Estimate, Read, Stop, in_slots

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
        evidence=norms.table,
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
        start=SEED_TABLE.but(n_heads=HEADS, scale=1),
        state=SEED_TABLE.but(n_heads=HEADS),
        ask=Choose(("nothing", "root", "axis", "order")),
        evidence=norms.lines,
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
        evidence=norms.rms,
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
        evidence=places.place,
        points=(9, 12, 18, 22),
        reads={
            "left": Read(column="left.largest.text"),
            "right": Read(column="right.largest.text"),
            "skipped": Read(column="right.largest.text", turns=ELSEWHERE[1]),
            "full": Read(column="right.largest.text", turns=ELSEWHERE[0]),
        },
    ),
    Stop(
        name="small_g",
        lab=drift.LAB,
        start=ALIGNED,
        state=ALIGNED.but(gain=1.25),
        ask=Estimate(0.05, 1, "norm.top_weight"),
        evidence=norms.small_g,
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
        evidence=places.territory,
        points=(1, 13),
        reads={
            "plain": Read(column="plain.territory", entry=4, times=100),
            "twin": Read(column="norm.territory", entry=4, times=100),
            "short_plain": Read(column="plain.territory", entry=1, times=100),
            "short_twin": Read(column="norm.territory", entry=1, times=100),
        },
    ),
    Stop(
        name="values",
        lab=placement.LAB,
        state=TOKENS.but(right_on="qkv"),
        ask=Choose(("logits", "weights", "output", "nothing")),
        evidence=places.values,
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
        evidence=norms.half,
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
        evidence=places.really,
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
        evidence=runs.log,
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
        evidence=logs.case,
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
        evidence=runs.calm,
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
        evidence=places.again,
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
        evidence=places.codebase,
        points=(28, 33),
        reads={"rows": Read(column="model")},
    ),
)
