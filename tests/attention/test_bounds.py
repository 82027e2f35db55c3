import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qkdemo.attention.bounds import largest_weight, least_entropy

BOUNDS = st.floats(0, 12)


def weights_of(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    terms = np.exp(logits - logits.max(-1, keepdims=True))
    weights: NDArray[np.float64] = terms / terms.sum(-1, keepdims=True)
    return weights


def entropy_of(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    entropy: NDArray[np.float64] = -(weights * np.log(weights)).sum(-1)
    return entropy


@given(BOUNDS, st.integers(1, 9))
def test_the_least_entropy_is_that_of_the_best_corner_of_all(bound: float, n_keys: int) -> None:
    corners = np.array(list(itertools.product([-bound, bound], repeat=n_keys)))
    least = entropy_of(weights_of(corners)).min()
    assert least_entropy(bound, n_keys) == pytest.approx(least, rel=1e-9, abs=1e-13)


@given(BOUNDS, st.integers(2, 40), st.integers(0, 10_000))
def test_no_row_of_bounded_logits_goes_below_it(bound: float, n_keys: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sharpened = bound * np.sign(rows := rng.uniform(-1, 1, (50, n_keys))) * np.abs(rows) ** rng.uniform(0, 1)
    weights = weights_of(sharpened)
    assert entropy_of(weights).min() >= least_entropy(bound, n_keys) * (1 - 1e-9) - 1e-13
    assert weights.max() <= largest_weight(bound, n_keys) * (1 + 1e-12)


def test_several_high_keys_are_least_where_the_bound_is_small() -> None:
    one_high = math.log1p(ratio := 15 * math.exp(-0.6)) + 0.6 * ratio / (1 + ratio)
    assert least_entropy(0.3, 16) < one_high - 1e-3


@given(st.integers(1, 300))
def test_without_room_attention_is_uniform(n_keys: int) -> None:
    assert least_entropy(0, n_keys) == pytest.approx(math.log(n_keys), abs=1e-12)
    assert largest_weight(0, n_keys) == pytest.approx(1 / n_keys)


@given(st.floats(0, 400), st.floats(0, 400), st.integers(2, 500))
def test_more_room_or_fewer_keys_allow_less_entropy(one: float, other: float, n_keys: int) -> None:
    small, large = sorted((one, other))
    assert least_entropy(large, n_keys) <= least_entropy(small, n_keys) + 1e-12
    assert least_entropy(small, n_keys) <= least_entropy(small, n_keys + 1) + 1e-12


@pytest.mark.parametrize(
    ("d_head", "n_keys", "nats", "weight"),
    [
        (64, 16, 2.870e-5, 0.9999983),
        (64, 2048, 3.915e-3, 0.99977),
        (64, 131072, 0.2472, 0.98546),
        (128, 16, 5.279e-8, 0.9999999978),
        (128, 131072, 4.613e-4, 0.99998),
    ],
)
def test_unit_gain_guarantees_next_to_nothing(d_head: int, n_keys: int, nats: float, weight: float) -> None:
    """Numbers of a separate calculation; a claim and a stop quote them."""
    assert least_entropy(math.sqrt(d_head), n_keys) == pytest.approx(nats, rel=5e-4)
    assert 1 - largest_weight(math.sqrt(d_head), n_keys) == pytest.approx(1 - weight, rel=0.1)


@pytest.mark.parametrize(("bound", "n_keys"), [(-1e-9, 4), (math.nan, 4), (1.0, 0)])
def test_what_is_no_bound_and_no_row_is_refused(bound: float, n_keys: int) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        least_entropy(bound, n_keys)
    with pytest.raises(ValueError, match="must be at least"):
        largest_weight(bound, n_keys)
