"""Two pipelines compared: only the gains move along the sweep, and errors are what their formula says."""

import dataclasses
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.attention.blocks import BlockRecipe, draw_block, spread_to
from qkdemo.attention.pipeline import CHOICES, Pipeline, trace
from qkdemo.labs.placement.comparisons import difference, differing, over_spreads, sweep
from qkdemo.labs.placement.mistakes import MISTAKES, ROUNDING, known_as, mistakes_over, pair_of, with_one_more

SMALL = BlockRecipe(d_model=32, n_heads=2, n_kv_heads=2, d_head=8, n_keys=6, token_spread=2, mean=0.3)
GROUPED = dataclasses.replace(SMALL, n_heads=4, causal=True)
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
    found = mistakes_over(SMALL, (0.0, 0.2, 0.8)).logits
    assert list(found) == list(MISTAKES)
    assert {name for name, column in found.items() if column[0] < ROUNDING} == GAIN_ALONE
    for name in GAIN_ALONE:
        assert found[name][0] < found[name][1] < found[name][2]


def test_one_more_spread_stands_among_the_others() -> None:
    grid, whole = (mistakes_over(SMALL, spreads) for spreads in ((0.0, 0.8), (0.0, 0.3, 0.8)))
    more = with_one_more(grid, SMALL, 0.3)
    assert more.spreads == (0.0, 0.3, 0.8)
    for name in MISTAKES:
        assert more.logits[name] == pytest.approx(whole.logits[name], rel=1e-12)
        assert more.weight[name] == pytest.approx(whole.weight[name], rel=1e-12)


@hypothesis.settings(max_examples=40)
@given(st.builds(Pipeline, **{name: st.sampled_from(words) for name, words in CHOICES.items()}))
def test_three_passes_tell_the_scores_at_every_spread(pipeline: Pipeline) -> None:
    """Raw scores are polynomials of degree two in the spread, whatever the pipeline."""
    spreads = (0.0, 0.35, 0.95)
    found = over_spreads(pipeline, GROUPED, spreads)
    for at, spread in enumerate(spreads):
        single = trace(pipeline, spread_to(GROUPED, spread))
        for name in ("raw", "logits", "weights", "output"):
            torch.testing.assert_close(getattr(found, name)[at], getattr(single, name), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("place", ["per_head", "full_width", "input", "in_product"])
def test_many_states_of_a_block_at_once_are_each_of_them_alone(place: Any) -> None:
    pipeline = Pipeline(place=place, gain="head_channel", bias="channel", grouping="tile", scale="learned")
    together = trace(pipeline, spread_to(GROUPED, (0.2, 0.7)))
    for at, spread in enumerate((0.2, 0.7)):
        alone = trace(pipeline, spread_to(GROUPED, spread))
        assert torch.equal(together.q[at], alone.q)
        torch.testing.assert_close(together.logits[at], alone.logits, rtol=1e-14, atol=1e-14)


def test_a_change_of_one_side_leaves_the_other_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[Pipeline] = []

    def counted(pipeline: Pipeline, *args: Any, **named: Any) -> Any:
        passed.append(pipeline)
        return trace(pipeline, *args, **named)

    monkeypatch.setattr("qkdemo.labs.placement.comparisons.trace", counted)
    recipe = dataclasses.replace(SMALL, seed=77)
    for right in (Pipeline(norm="l2"), Pipeline(norm="none"), Pipeline(norm="l2", scale="one")):
        sweep((Pipeline(), right), recipe, (0.0, 0.5), head=0)
    thrice = [norm for norm in ("rms", "l2", "none") for _ in range(3)]  # at three spreads; raw scores know no scale
    assert [pipeline.norm for pipeline in passed] == thrice


@pytest.mark.parametrize("name", MISTAKES)
def test_a_known_mistake_is_recognised_and_nothing_else_is(name: str) -> None:
    left, right = pair_of(name)
    assert known_as(left, right) == name
    assert known_as(right, right) == ""
    assert differing(left, right)
