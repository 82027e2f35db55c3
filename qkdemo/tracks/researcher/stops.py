"""The researcher's track: definitions and bounds with their conditions, evidence and its limits.

Its order: what a norm bounds and under which conditions; what softmax does beyond; a recorded run; what a bound does
not guarantee; what other remedies act on; rounding and latent attention; what to try next, and what is known of models.
"""

from typing import Final

from qkdemo.labs import drift, epsilon, mla, models, placement, rope, sphere
from qkdemo.labs import training as twins
from qkdemo.tracks.researcher import on_bounds as bounds
from qkdemo.tracks.researcher import on_practice as practice
from qkdemo.tracks.stop import Choose, Estimate, Read, Stop, in_slots

_SCALAR: Final = rope.Settings(gain_kind="scalar", gain_size=2, vectors="worst", position=1, distance=0)
_CROSSED: Final = rope.PRESETS["bound_counterexample"].but(position=1)
_BARE: Final = placement.Settings(
    left_norm="none", left_gain="none", left_order="none", right_gain="none", right_order="none"
)
_WIDE: Final = sphere.Settings(gain=20)
_SLOTS: Final = (
    *(
        "bound",
        "pair",
        "jacobian",
        "course",
        "floor",
        "spectral",
        "remedies",
        "rate",
    ),
    *(
        "rounding",
        "latent",
        "context",
        "table",
        "capped",
        "border",
    ),
)
STOPS: Final = in_slots(
    _SLOTS,
    Stop(
        name="bound",
        lab=rope.LAB,
        state=_SCALAR,
        ask=Choose(("root", "once", "twice", "square")),
        evidence=bounds.bound,
        points=(9, 10, 11),
        reads={
            "reached": Read(column="left.largest"),
            "bound": Read(column="bound.naive"),
            "drawn": Read(column="left.largest", turns={"vectors": "random"}),
        },
    ),
    Stop(
        name="pair",
        lab=rope.LAB,
        start=_CROSSED.but(gain_kind="none"),
        state=_CROSSED,
        ask=Estimate(5, 1000, "left.largest"),
        evidence=bounds.pair,
        points=(11, 23),
        reads={
            "reached": Read(column="left.largest"),
            "naive": Read(column="bound.naive"),
            "pairwise": Read(column="bound.pairwise"),
        },
    ),
    Stop(
        name="jacobian",
        lab=drift.LAB,
        start=practice.FRESH,
        state=practice.FRESH.but(scale=16),
        ask=Estimate(1e-8, 0.1, "plain.softmax_slope", within=3),
        evidence=practice.jacobian,
        points=(4, 5),
        reads={
            "slope": Read(column="plain.softmax_slope"),
            "fresh": Read(column="plain.softmax_slope", turns={"scale": 1.0}),
            "gone": Read(column="plain.softmax_slope", turns={"scale": 400.0}),
            "twin": Read(column="norm.softmax_slope"),
        },
    ),
    Stop(
        name="course",
        lab=twins.LAB,
        state=twins.Settings(),
        ask=Choose(("divergence", "spike", "non_finite")),
        evidence=practice.course,
        points=(2, 5, 7, 8, 34),
        reads={
            "lost": Read(column="plain.loss", of="place"),
            "at": Read(column="plain.max_abs_logit", of="place"),
        },
    ),
    Stop(
        name="floor",
        lab=drift.LAB,
        state=bounds.FEW,
        ask=Choose(("zero", "hundred_thousandth", "hundredth", "half")),
        evidence=bounds.floor,
        points=(32,),
        reads={
            "measured": Read(column="norm.entropy_fraction", times=100),
            "share": Read(column="norm.entropy_fraction", of="level", times=100),
        },
    ),
    Stop(
        name="border",
        lab=sphere.LAB,
        start=_WIDE,
        state=_WIDE.but(gain=40),
        ask=Choose(("quarter", "half", "root", "same")),
        evidence=bounds.border,
        points=(10, 14, 15),
        reads={
            "before": Read(column="norm.undecided", turns={"gain": _WIDE.gain}, times=100),
            "after": Read(column="norm.undecided", times=100),
        },
    ),
    Stop(
        name="spectral",
        lab=placement.LAB,
        state=_BARE,
        ask=Choose(("reached", "half", "fifteenth", "thousandth")),
        evidence=bounds.spectral,
        points=(2, 20),
        reads={"largest": Read(column="left.largest.text"), "twin": Read(column="right.largest.text")},
    ),
    Stop(
        name="remedies",
        lab=drift.LAB,
        start=practice.FRESH.but(variant="rms"),
        state=practice.FRESH.but(variant="rms", scale=10),
        ask=Choose(("same", "times", "square")),
        evidence=practice.remedies,
        points=(16, 20),
        reads={
            "fresh": Read(column="plain.max_abs_logit", turns={"scale": 1.0}),
            "grown": Read(column="plain.max_abs_logit"),
            "normed": Read(column="norm.max_abs_logit"),
        },
    ),
    Stop(
        name="capped",
        lab=drift.LAB,
        state=practice.FRESH.but(variant="softcap", scale=10),
        ask=Choose(("half", "tenth", "thousandth", "ten_thousandth")),
        evidence=practice.capped,
        points=(19, 20),
        reads={"before": Read(column="plain.max_abs_logit"), "capped": Read(column="norm.max_abs_logit")},
    ),
    Stop(
        name="rate",
        lab=epsilon.LAB,
        state=epsilon.Settings(size=10),
        ask=Choose(("same", "tenth", "hundredth")),
        evidence=practice.rate,
        points=(8, 13, 35),
        reads={
            "before": Read(column="inside.slope", turns={"size": 1.0}),
            "after": Read(column="inside.slope"),
        },
    ),
    Stop(
        name="rounding",
        lab=placement.LAB,
        state=placement.PRESETS["cast_order"],
        ask=Choose(("millionth", "half_percent", "tenth")),
        evidence=practice.rounding,
        points=(6, 25),
        reads={"error": Read(column="pair.logits", times=100)},
    ),
    Stop(
        name="latent",
        lab=mla.LAB,
        state=mla.Settings(),
        ask=Choose(("forty", "double", "fifth", "same")),
        evidence=practice.latent,
        points=(26, 27),
        reads={
            "with_norm": Read(column="cache.text.absorbed"),
            "without_norm": Read(column="cache.text.without_norm"),
            "with_keys": Read(column="cache.text.full_keys"),
        },
    ),
    Stop(
        name="context",
        lab=drift.LAB,
        start=bounds.FEW,
        state=bounds.FEW.but(n_keys=256),
        ask=Estimate(0.004, 1, "norm.top_weight"),
        evidence=bounds.context,
        points=(10, 15),
        reads={
            "top": Read(column="norm.top_weight"),
            "before": Read(column="norm.top_weight", turns={"n_keys": bounds.FEW.n_keys}),
            "raised": Read(column="norm.top_weight", turns={"variant": "l2", "gain": 16.0}),
        },
    ),
    Stop(
        name="table",
        lab=models.LAB,
        state=models.Settings(verified="conformance"),
        ask=Choose(("tenth", "half", "all")),
        evidence=practice.table,
        points=(33,),
        reads={"held": Read(column="model"), "rows": Read(column="model", turns={"verified": "any"})},
    ),
)
