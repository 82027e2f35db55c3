"""What is shown closely, the weight scale and a variant's own dial sweep nothing again: logits are counted."""

import dataclasses
import math

import numpy as np
import pytest

from qkdemo.attention.variants import Scores
from qkdemo.labs.drift import Settings, run, scale_sweep, sharpness, state_of, sweep_scales
from qkdemo.labs.drift import lab as drift_lab
from qkdemo.labs.drift.scale_sweep import _bracketed, _measured, sweep
from qkdemo.labs.drift.state import stops, whatever_is_shown
from tests.labs.drift.test_scale_sweep import per_scale

START = Settings(variant="rms", n_heads=2, n_keys=64, d_head=4, head=0, query=3, key=5, format="float16")
TURNED = {"head": 1, "query": 60, "key": 0, "scale": 7.77, "gamma": 3.33}
ROW, SIDE = START.n_keys, START.n_heads * START.n_keys**2


@pytest.fixture
def formed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many logits each call forms from here on."""
    for cached in (scale_sweep._side, scale_sweep._measured, scale_sweep._firsts, drift_lab._over_dial):
        cached.cache_clear()
    counts: list[int] = []
    form = scale_sweep.scores_at

    def counted(*given: object, **named: object) -> Scores:
        made = form(*given, **named)  # type: ignore[arg-type]
        counts.append(made.logits.numel())
        return made

    for module in (scale_sweep, drift_lab):
        monkeypatch.setattr(module, "scores_at", counted)
    return counts


@pytest.mark.parametrize("dial", ["head", "query", "key"])
@pytest.mark.parametrize("variant", ["rms", "full_width"])
def test_another_head_query_or_key_is_looked_at_without_a_sweep(formed: list[int], variant: str, dial: str) -> None:
    start = START.but(variant=variant)
    run(start), sharpness(start)
    swept = sum(formed)
    formed.clear()
    turned = start.but(**{dial: TURNED[dial]})
    run(turned), sharpness(turned)
    rows = 2 * len(sweep_scales(start)) * ROW  # one query of each side
    assert 0 < sum(formed) <= rows * (start.n_heads if variant == "full_width" else 1) < swept / 20


def test_a_scale_between_two_of_the_sweep_is_computed_alone(formed: list[int]) -> None:
    run(START)
    formed.clear()
    turned = START.but(scale=TURNED["scale"])
    assert turned.scale not in stops(state_of(turned).recipe)
    run(turned)
    assert sum(formed) <= 2 * (SIDE + len(sweep_scales(turned)) * ROW)


def test_another_place_of_the_variants_own_dial_is_computed_alone(formed: list[int]) -> None:
    sharpness(START)
    formed.clear()
    turned = sharpness(START.but(gamma=TURNED["gamma"]))
    assert sum(formed) == SIDE
    assert turned is not None
    assert list(turned.values) == sorted(turned.values)
    assert TURNED["gamma"] in turned.values


@pytest.mark.parametrize("format", ["float64", "float16"])
def test_a_side_is_the_same_wherever_one_of_its_scales_was_put_in(format: str) -> None:
    state = state_of(START.but(format=format, causal=True, variant="none"))
    scales = tuple(sorted({*stops(state.recipe), 61.0}))
    put_in, at_once = sweep(state, scales), sweep(state, (*scales, 1001.0))
    for name in per_scale(put_in):
        found, expected = getattr(put_in, name), getattr(at_once, name)[:-1]
        close = 1e-12 if format == "float64" else 2e-3  # a sum in another order may round to another number
        np.testing.assert_allclose(found, expected, rtol=close, atol=1e-7, err_msg=name)
    for name in ("first_raw_loss", "first_logit_loss"):
        assert getattr(put_in, name) == pytest.approx(getattr(at_once, name), rel=2e-6)
    assert put_in.first_raw_loss == math.inf or put_in.first_raw_loss < 1000


def test_a_first_loss_that_a_scale_contradicts_is_sought_again() -> None:
    state = whatever_is_shown(state_of(START.but(variant="none")))
    found = sweep(state, stops(state.recipe)).first_raw_loss
    scales = tuple(sorted({*stops(state.recipe), found * 1.001}))
    arrays = _measured(state, scales)
    assert _bracketed((found, found), state, scales, arrays) == (found, found)
    for wrong in (found * 1.002, found / 2, math.inf):
        assert _bracketed((wrong, wrong), state, scales, arrays) == pytest.approx((found, found), rel=2e-6)


def test_what_is_swept_does_not_know_what_is_shown() -> None:
    state = state_of(START)
    assert whatever_is_shown(state) == whatever_is_shown(dataclasses.replace(state, shown=(1, 2, 3)))
