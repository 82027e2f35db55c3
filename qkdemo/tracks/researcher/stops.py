"""The researcher's track: definitions and bounds with their conditions, evidence and its limits.

Its order: what a norm bounds and under which conditions; what softmax does beyond; a recorded run; what a bound does
not guarantee; what other remedies act on; rounding and latent attention; what to try next, and what is known of models.
"""

from typing import Final

from qkdemo.labs import drift, epsilon, mla, models, placement, rope
from qkdemo.labs.training import lab as twins
from qkdemo.tracks.researcher import on_bounds as bounds
from qkdemo.tracks.researcher import on_practice as practice
from qkdemo.tracks.stop import Choose, Estimate, Stop

_SCALAR: Final = rope.Settings(gain_kind="scalar", gain_size=2, vectors="worst", position=1, distance=0)
_CROSSED: Final = rope.PRESETS["bound_counterexample"].but(position=1)
_BARE: Final = placement.Settings(
    left_norm="none", left_gain="none", left_order="none", right_gain="none", right_order="none"
)
STOPS: Final = (
    Stop(
        name="bound",
        lab=rope,
        state=_SCALAR,
        ask=Choose(("root", "once", "twice", "square")),
        evidence=bounds.bound,
        points=(9, 10, 11),
        focus="norm.largest",
    ),
    Stop(
        name="pair",
        lab=rope,
        start=_CROSSED.but(gain_kind="none"),
        state=_CROSSED,
        ask=Estimate(5, 1000, "norm.largest"),
        evidence=bounds.pair,
        points=(11, 23),
        focus="norm.largest",
    ),
    Stop(
        name="jacobian",
        lab=drift,
        start=practice.FRESH,
        state=practice.FRESH.but(scale=16),
        ask=Estimate(1e-8, 0.1, "plain.softmax_slope", within=3),
        evidence=practice.jacobian,
        points=(4, 5),
        focus="plain.softmax_slope",
    ),
    Stop(
        name="course",
        lab=twins,
        state=twins.Settings(),
        ask=Choose(("spike", "divergence", "non_finite")),
        evidence=practice.course,
        points=(2, 5, 7, 8, 34),
        focus="plain.loss",
    ),
    Stop(
        name="floor",
        lab=drift,
        state=bounds.FEW,
        ask=Choose(("half", "hundredth", "hundred_thousandth", "zero")),
        evidence=bounds.floor,
        points=(32,),
        focus="norm.entropy_fraction",
    ),
    Stop(
        name="spectral",
        lab=placement,
        state=_BARE,
        ask=Choose(("reached", "half", "fifteenth", "thousandth")),
        evidence=bounds.spectral,
        points=(2, 20),
    ),
    Stop(
        name="remedies",
        lab=drift,
        start=practice.FRESH.but(variant="rms"),
        state=practice.FRESH.but(variant="rms", scale=10),
        ask=Choose(("same", "times", "square")),
        evidence=practice.remedies,
        points=(16, 19, 20),
        focus="norm.max_abs_logit",
    ),
    Stop(
        name="rate",
        lab=epsilon,
        state=epsilon.Settings(size=10),
        ask=Choose(("same", "tenth", "hundredth")),
        evidence=practice.rate,
        points=(8, 13, 35),
        focus="inside.slope",
    ),
    Stop(
        name="rounding",
        lab=placement,
        state=placement.PRESETS["cast_order"],
        ask=Choose(("millionth", "half_percent", "tenth")),
        evidence=practice.rounding,
        points=(6, 25),
        focus="pair.logits",
    ),
    Stop(
        name="latent",
        lab=mla,
        state=mla.Settings(),
        ask=Choose(("same", "fifth", "double", "forty")),
        evidence=practice.latent,
        points=(26, 27),
        focus="memory.absorbed",
    ),
    Stop(
        name="context",
        lab=drift,
        start=bounds.FEW,
        state=bounds.FEW.but(n_keys=256),
        ask=Estimate(0.004, 1, "norm.top_weight"),
        evidence=bounds.context,
        points=(10, 15),
        focus="norm.top_weight",
    ),
    Stop(
        name="table",
        lab=models,
        state=models.Settings(),
        ask=Choose(("all", "half", "tenth")),
        evidence=practice.table,
        points=(33,),
    ),
)
