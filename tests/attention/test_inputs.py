"""The base draw: NumPy's own numbers, then exactly what the recipe says."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.attention.inputs import Recipe, draw

RECIPES = st.builds(
    Recipe,
    n_heads=st.integers(1, 4),
    n_keys=st.integers(2, 6),
    d_head=st.integers(4, 9),
    seed=st.integers(0, 9999),
    alignment=st.floats(0, 0.99),
    mean=st.floats(0, 3),
    head_spread=st.floats(1, 16),
)


def test_the_default_draw_is_numpys_first_two_thousand_normals_q_then_k() -> None:
    numbers = np.random.default_rng(0).standard_normal(2048)
    q, k = draw(Recipe())
    assert q.shape == k.shape == (1, 16, 64)
    assert q.dtype == k.dtype == torch.float64
    np.testing.assert_array_equal(torch.stack([q, k]).flatten().numpy(), numbers)
    assert q[0, 0, :3].tolist() == pytest.approx([0.12573022, -0.13210486, 0.64042265], abs=1e-8)  # pinned


@given(RECIPES)
def test_a_recipe_is_drawn_as_it_says(recipe: Recipe) -> None:
    generator = np.random.default_rng(recipe.seed)
    base = [generator.standard_normal((recipe.n_heads, recipe.n_keys, recipe.d_head)) for _ in range(2)]
    q, k = draw(recipe)
    for head in range(recipe.n_heads):
        part = 0 if recipe.n_heads == 1 else head / (recipe.n_heads - 1) - 0.5
        size = math.exp(part * math.log(recipe.head_spread))
        mixed = recipe.alignment * base[0][head] + math.sqrt(1 - recipe.alignment**2) * base[1][head]
        np.testing.assert_allclose(q[head].numpy(), (base[0][head] + recipe.mean) * size, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(k[head].numpy(), (mixed + recipe.mean) * size, rtol=1e-12, atol=1e-14)


@given(RECIPES)
def test_the_same_recipe_draws_the_same_and_another_seed_does_not(recipe: Recipe) -> None:
    (q, k), (again_q, again_k) = draw(recipe), draw(recipe)
    assert torch.equal(q, again_q)
    assert torch.equal(k, again_k)
    other = Recipe(**{**vars(recipe), "seed": recipe.seed + 1})
    assert not torch.equal(q, draw(other)[0])


@pytest.mark.parametrize("n_heads", [2, 3, 4])
def test_the_largest_head_is_the_spread_times_the_smallest_in_even_steps(n_heads: int) -> None:
    wide, even = (draw(Recipe(n_heads=n_heads, head_spread=spread))[0] for spread in (8.0, 1.0))
    sizes = (wide / even)[:, 0, 0]
    assert (sizes[-1] / sizes[0]).item() == pytest.approx(8, rel=1e-12)
    assert torch.diff(sizes.log()).tolist() == pytest.approx([math.log(8) / (n_heads - 1)] * (n_heads - 1), rel=1e-12)
    assert sizes.prod().item() == pytest.approx(1, rel=1e-12)  # their geometric mean stays


def test_a_spread_without_other_heads_changes_nothing() -> None:
    assert torch.equal(draw(Recipe(head_spread=16.0))[0], draw(Recipe())[0])


def test_alignment_turns_keys_towards_their_queries_at_the_same_length() -> None:
    """The mean cosine of q_j and k_j is the alignment itself; 5 %: 64 pairs of width 256."""
    for alignment in (0.0, 0.3, 0.9):
        q, k = draw(Recipe(n_keys=64, d_head=256, alignment=alignment))
        cosines = torch.cosine_similarity(q, k, dim=-1)
        assert cosines.mean().item() == pytest.approx(alignment, abs=0.03)
        assert k.square().mean().item() == pytest.approx(1, rel=0.05)
    q, k = draw(Recipe(alignment=1.0))
    assert torch.equal(q, k)


def test_the_draw_is_standard_normal() -> None:
    q, k = draw(Recipe(n_keys=64, d_head=256, seed=3))
    for x in (q, k):
        assert x.mean().item() == pytest.approx(0, abs=4 / 128)  # four standard errors
        assert x.std().item() == pytest.approx(1, rel=0.03)
    assert (q * k).mean().item() == pytest.approx(0, abs=4 / 128)
