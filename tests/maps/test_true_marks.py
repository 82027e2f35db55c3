"""Every mark of a map is where its words say: cells of states that are drawn, each read off the lab's own result.

Each is worked out from the lab's result by a way of its own, not from the columns of the map.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final

import numpy as np
import pytest

from qkdemo.attention.inputs import Recipe, draw
from qkdemo.dials import declarations
from qkdemo.labs import arrows, cache, cost, drift, epsilon, formats, placement, rope, sphere
from qkdemo.labs.formats.stages.kinds import STAGES, STORED
from qkdemo.labs.registry import LABS
from tests.labs.told import states

Truth = Callable[[Any, str], bool | None]  # None: what is told of this side is not worked out here
SMALL: Final[Mapping[str, float]] = {"n_keys": 16, "d_head": 32, "n_heads": 4, "grid": 24}
MANY: Final = 6


def _another(exactly: Any) -> bool:
    """Whether a weight of the cache is another one, be it small: by its logarithm."""
    seen = exactly.fresh_weights > 0
    return bool((np.abs(np.log(exactly.cached_weights[seen] / exactly.fresh_weights[seen])) > 1e-9).any())


def _apart(exactly: Any) -> bool:
    """Whether logits, weights or the output are others."""
    logits, outputs = exactly.relative_score_error, exactly.relative_output_error
    return not max(logits, exactly.largest_weight_difference, outputs) < 1e-6


def _drift(state: Any, role: str) -> tuple[Any, int]:
    found = drift.run(state, [state.scale])
    return (found.plain if role == "plain" else found.twin), 0


def _bounded(state: Any, role: str) -> bool:
    """A bound is one only if it is a number, and so is a logit within 1 % of it."""
    side, at = _drift(state, role)
    return math.isfinite(side.bound) and bool(abs(side.max_abs_logit[at] / side.bound - 1) <= 0.01)


def _float8(state: Any, role: str) -> bool | None:
    """Without a norm q and k grow with the scale; e4m3 holds nothing from 464 on, half a step above its largest."""
    if role == "norm" and state.variant not in ("none", "softcap"):
        return None
    base = draw(Recipe(**{field.name: getattr(state, field.name) for field in fields(Recipe)}))
    return bool(max(float(x.abs().max()) for x in base) * state.scale >= 464)


def _of_arrows(state: Any, role: str) -> Any:
    found = arrows.run(state, [state.scale])
    return (found.plain if role == "plain" else found.twin).shares[0]


def _lost(state: Any, role: str) -> float:
    result = formats.run(state)
    side = result.sides[0 if role == "plain" else 1].tally
    at = STORED.index(state.storage), STAGES.index(state.stage), 0
    return float(side.n_lost[at] / side.n[at]) if side.n[at] else math.nan


TRUTHS: Final[Mapping[tuple[str, str], Truth]] = {
    ("drift", "decided"): lambda state, role: _drift(state, role)[0].entropy_fraction[0] < 0.1,
    ("drift", "bounded"): _bounded,
    ("drift", "float16"): lambda state, role: _drift(state.but(format="float16"), role)[0].raw_lost[0] > 0,
    ("drift", "float8"): _float8,
    ("drift", "undefined"): lambda state, role: _drift(state, role)[0].undefined_rows[0] > 0,
    ("arrows", "alone"): lambda state, role: np.nan_to_num(_of_arrows(state, role)).max() >= 0.99,
    ("arrows", "undefined"): lambda state, role: bool(np.isnan(_of_arrows(state, role)).any()),
    ("epsilon", "shortened"): lambda state, role: (
        epsilon.run(state).share[epsilon.run(state).rule, epsilon.run(state).at] < 0.9
    ),
    ("formats", "first_lost"): lambda state, role: _lost(state, role) > 0,
    ("formats", "all_lost"): lambda state, role: _lost(state, role) == 1,
    ("sphere", "half_decided"): lambda state, role: (
        (sphere.run(state).plain if role == "plain" else sphere.run(state).twin).decided >= 0.5
    ),
    ("cache", "another_function"): lambda state, role: _another(cache.run(state.but(format="float64"))),
    ("cost", "noticed"): lambda state, role: (
        next(part for part in cost.run(state).parts if part.part == ("softcap" if role == "left" else "rms")).share
        >= 0.01
    ),
    ("placement", "another_function"): lambda state, role: _apart(placement.run(state.but(format="float64"))),
    ("rope", "above_simple_bound"): lambda state, role: (
        (rope.run(state).norm_rotary if role == "left" else rope.run(state).rotary_norm).largest[rope.run(state).at]
        > rope.run(state).bound_naive * (1 + 1e-9)
    ),
}


EDGES: Final = {
    # plain attention overflows, and has no bound; an entry is too large for float8; logits overflow below their bound
    "drift": [
        drift.Settings(format="float16", scale=1000),
        drift.Settings(scale=300),
        drift.Settings(
            variant="full_width", format="float16", gamma=10, d_head=256, n_heads=4, head_spread=16, alignment=0.99
        ),
    ],
    # the same logits: v has a norm, and the weights have one
    "placement": [placement.PRESETS["values_too"], placement.PRESETS["after_softmax"]],
}


def test_every_mark_has_a_truth() -> None:
    marks = {(name, mark) for name, lab in LABS.items() if lab.plane for mark in lab.plane.marks}
    assert marks == TRUTHS.keys()


@pytest.mark.parametrize("name", sorted({name for name, _ in TRUTHS}))
def test_a_mark_is_where_its_words_say(name: str) -> None:
    plane = LABS[name].plane
    assert plane is not None
    dial, draw = plane.x.partition(":")[0], random.Random(3)
    for state in [*EDGES.get(name, []), *states(LABS[name].settings, MANY, SMALL)]:
        kind = next(each for each in declarations(type(state)) if each.name == dial)
        value = (
            getattr(state, dial)
            if state in EDGES.get(name, [])
            else draw.choice([getattr(state, dial), *kind.kind.grid()])
        )
        with np.errstate(all="ignore"):
            cell = state.but(**{dial: value})
            columns = plane.read(state, dial, [value])
            for role, side in columns.items():
                for mark, rule in plane.marks.items():
                    truth = TRUTHS[name, mark](cell, role)
                    assert truth is None or bool(rule(side)[0]) == bool(truth), (mark, role, cell)
