"""Two pipelines compared: only the gains move along the sweep, and errors are what their formula says."""

import dataclasses

import pytest
import torch

from qkdemo.blocks import Recipe, draw_block
from qkdemo.comparisons import difference, differing, spread_to, sweep
from qkdemo.mistakes import MISTAKES, ROUNDING, known_as, mistakes_over, pair_of
from qkdemo.pipeline import Pipeline, trace

SMALL = Recipe(d_model=32, n_heads=2, n_kv_heads=2, d_head=8, n_keys=6, token_spread=2, mean=0.3)
GAIN_ALONE = {"rotary_first", "q_gain_on_k", "gain_not_permuted"}


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("gains", ["unit", "tied", "untied"])
@pytest.mark.parametrize("spread", [0.0, 0.3, 0.95])
def test_a_block_spread_anew_is_the_block_that_is_drawn_with_that_spread(
    gains: str, spread: float, stored: bool
) -> None:
    recipe = dataclasses.replace(SMALL, gains=gains, offset_stored=stored)  # type: ignore[arg-type]
    drawn = draw_block(dataclasses.replace(recipe, gain_spread=spread))
    moved = spread_to(recipe, spread)
    for field in dataclasses.fields(drawn):
        one, two = getattr(drawn, field.name), getattr(moved, field.name)
        assert torch.allclose(one, two, rtol=0, atol=1e-15) if isinstance(one, torch.Tensor) else one == two


def test_errors_are_relative_to_the_left_side() -> None:
    block = draw_block(SMALL)
    left, right = trace(Pipeline(), block), trace(Pipeline(scale="one"), block)
    apart = difference(left, right)
    assert apart.raw == 0
    assert apart.logits == pytest.approx(8**0.5 - 1, rel=1e-12)
    assert apart.weight == (right.weights - left.weights).abs().max().item()


def test_a_sweep_holds_what_single_passes_give() -> None:
    pair = (Pipeline(), Pipeline(order="rotary_norm"))
    swept = sweep(pair, SMALL, (0.0, 0.5), head=1)
    block = draw_block(dataclasses.replace(SMALL, gain_spread=0.5))
    left, right = (trace(words, block) for words in pair)
    assert swept.differences[1].logits == pytest.approx(difference(left, right).logits, rel=1e-12)
    assert swept.weights[1][1] == pytest.approx(right.weights[1].numpy(), rel=1e-12)
    assert swept.logits[0][1] == pytest.approx(left.logits[1].numpy(), rel=1e-12)
    assert swept.differences[0].logits < ROUNDING  # without a gain the orders are one function


def test_what_concerns_a_gain_vanishes_with_unit_gains_and_grows_with_their_spread() -> None:
    found = mistakes_over(SMALL, (0.0, 0.2, 0.8))
    assert list(found) == list(MISTAKES)
    assert {name for name, column in found.items() if column[0].logits < ROUNDING} == GAIN_ALONE
    for name in GAIN_ALONE:
        assert found[name][0].logits < found[name][1].logits < found[name][2].logits


@pytest.mark.parametrize("name", MISTAKES)
def test_a_known_mistake_is_recognised_and_nothing_else_is(name: str) -> None:
    left, right = pair_of(name)
    assert known_as(left, right) == name
    assert known_as(right, right) == ""
    assert differing(left, right)
