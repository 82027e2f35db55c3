"""The beginner's track, in words and pictures: from arrows of any length to one dial, and what that does not solve."""

from typing import Final

from qkdemo.labs import arrows, drift, sphere
from qkdemo.labs import training as twins
from qkdemo.tracks.beginner import answers
from qkdemo.tracks.beginner.answers import ARROWS, BLUNT, FRESH, HALF, SHORT_QUERY
from qkdemo.tracks.stop import Choose, Estimate, Read, Stop, in_slots

_FIRST: Final = {"scale": 1.0}
_SLOTS: Final = (
    *(
        "arms",
        "growth",
        "winner",
        "stuck",
        "overflow",
        "fix",
        "dial",
        "root",
    ),
    *(
        "live",
        "confidence",
        "remember",
        "sphere",
    ),
)
STOPS: Final = in_slots(
    _SLOTS,
    Stop(
        name="arms",
        lab=arrows.LAB,
        start=ARROWS,
        state=ARROWS.but(scale=2),
        ask=Choose(("nothing", "lead", "swap", "even")),
        evidence=answers.arms,
        points=(1, 13),
        reads={
            "before": Read(column="plain.row", turns=_FIRST, times=100),
            "after": Read(column="plain.row", times=100),
            "twin_before": Read(column="norm.row", turns=_FIRST, times=100),
            "twin_after": Read(column="norm.row", times=100),
        },
    ),
    Stop(
        name="growth",
        lab=drift.LAB,
        start=FRESH,
        state=FRESH.but(scale=8),
        ask=Choose(("same", "times", "twice", "square")),
        evidence=answers.growth,
        points=(1, 2),
        reads={
            "before": Read(column="plain.max_abs_logit", turns=_FIRST),
            "after": Read(column="plain.max_abs_logit"),
        },
    ),
    Stop(
        name="root",
        lab=drift.LAB,
        start=FRESH,
        state=FRESH.but(scale=8, d_head=256),
        ask=Choose(("half", "same", "double")),
        evidence=answers.root,
        points=(16,),
        reads={
            "start": Read(column="plain.max_abs_logit", turns=_FIRST),
            "end": Read(column="plain.max_abs_logit"),
        },
    ),
    Stop(
        name="winner",
        lab=drift.LAB,
        start=FRESH,
        state=FRESH.but(scale=4),
        ask=Estimate(0.001, 1, "plain.entropy_fraction"),
        evidence=answers.winner,
        points=(3,),
        reads={
            "width": Read(column="plain.entropy_fraction"),
            "fresh": Read(column="plain.entropy_fraction", turns=_FIRST),
            "top": Read(column="plain.top_weight", times=100),
            "top_fresh": Read(column="plain.top_weight", turns=_FIRST, times=100),
        },
    ),
    Stop(
        name="stuck",
        lab=drift.LAB,
        start=FRESH,
        state=FRESH.but(scale=16),
        ask=Choose(("thousands", "ten", "same", "more")),
        evidence=answers.stuck,
        points=(4,),
        reads={
            "slope": Read(column="plain.softmax_slope"),
            "fresh": Read(column="plain.softmax_slope", turns=_FIRST),
        },
    ),
    Stop(
        name="fix",
        lab=drift.LAB,
        start=FRESH,
        state=FRESH.but(scale=16),
        ask=Choose(("prefers", "even", "collapses")),
        evidence=answers.fix,
        points=(9, 13, 14),
        reads={
            "top": Read(column="norm.top_weight", times=100),
            "fresh": Read(column="norm.entropy_fraction", turns=_FIRST, times=100),
            "width": Read(column="norm.entropy_fraction", times=100),
            "plain": Read(column="plain.entropy_fraction", times=100),
        },
    ),
    Stop(
        name="overflow",
        lab=drift.LAB,
        start=HALF.but(scale=8),
        state=HALF.but(scale=400),
        ask=Choose(("capped", "fewer", "nothing")),
        evidence=answers.overflow,
        points=(6,),
        reads={
            "lost": Read(column="plain.raw_lost", times=FRESH.n_keys**2),
            "first": Read(column="plain.raw_lost", of="place"),
            "bfloat_lost": Read(column="plain.raw_lost", turns={"format": "bfloat16"}, times=FRESH.n_keys**2),
            "wide_lost": Read(column="plain.raw_lost", turns={"format": "float32"}, times=FRESH.n_keys**2),
            "bfloat_top": Read(column="plain.top_weight", turns={"format": "bfloat16"}, times=100),
            "twin": Read(column="norm.entropy_fraction", times=100),
        },
    ),
    Stop(
        name="dial",
        lab=drift.LAB,
        start=FRESH,
        state=FRESH.but(scale=100, gain=40),
        ask=Choose(("nothing", "drifts", "stays")),
        evidence=answers.dial,
        points=(15,),
        reads={
            "lower": Read(column="norm.top_weight", turns={"scale": 1.0, "gain": FRESH.gain}, times=100),
            "top": Read(column="norm.top_weight", times=100),
            "logit": Read(column="norm.max_abs_logit"),
            "bound": Read(column="bound"),
            "plain": Read(column="plain.max_abs_logit"),
        },
    ),
    Stop(
        name="sphere",
        lab=sphere.LAB,
        start=BLUNT,
        state=BLUNT.but(gain=50),
        ask=Choose(("wander", "stay", "mix")),
        evidence=answers.territory,
        points=(13, 15),
        reads={
            "before": Read(column="norm.decided", turns={"gain": BLUNT.gain}, times=100),
            "after": Read(column="norm.decided", times=100),
        },
    ),
    Stop(
        name="live",
        lab=twins.LAB,
        state=twins.Settings(),
        ask=Choose(("both", "plain", "twin", "neither")),
        evidence=answers.live,
        points=(2, 7, 8),
        reads={
            "loss": Read(column="plain.loss", of="last"),
            "twin_loss": Read(column="norm.loss", of="last"),
            "since": Read(column="plain.loss", of="place"),
            "logit": Read(column="plain.max_abs_logit", of="largest"),
            "twin_logit": Read(column="norm.max_abs_logit", of="largest"),
        },
    ),
    Stop(
        name="confidence",
        lab=drift.LAB,
        start=SHORT_QUERY,
        state=SHORT_QUERY.but(query=59),
        ask=Choose(("more", "less", "same")),
        evidence=answers.confidence,
        points=(29, 30, 33),
        reads={
            "plain_long": Read(column="plain.row", times=100),
            "twin_long": Read(column="norm.row", times=100),
            "plain_short": Read(column="plain.row", turns={"query": SHORT_QUERY.query}, times=100),
            "twin_short": Read(column="norm.row", turns={"query": SHORT_QUERY.query}, times=100),
        },
    ),
    Stop(
        name="remember",
        lab=drift.LAB,
        start=FRESH.but(scale=8),
        state=FRESH.but(scale=1000),
        ask=Choose(("ceiling", "even", "divided")),
        evidence=answers.remember,
        points=(9, 13, 14, 15, 16),
        reads={
            "plain": Read(column="plain.max_abs_logit"),
            "twin": Read(column="norm.max_abs_logit", of="largest"),
            "bound": Read(column="bound"),
        },
    ),
)
