"""What is read off a step equals what the labs' own measures and torch's linear algebra say."""

import math

import pytest
import torch
from torch import Tensor

from qkdemo.attention.inputs import causal_mask
from qkdemo.attention.measures import attend
from qkdemo.training.network.model import HIDDEN
from qkdemo.training.settings import Settings
from qkdemo.training.telemetry import joined, largest_by_head, largest_size, spectral_norm, spread_of
from qkdemo.training.trainer import Trainer

VISIBLE = causal_mask(6)


def hidden_logits(size: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of 2 runs, the same with the mask added, and the mask."""
    logits = size * torch.randn(2, 3, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    hidden = torch.zeros(6, 6).masked_fill(~VISIBLE, HIDDEN)
    return logits, logits + hidden, hidden


@pytest.mark.parametrize("size", [0.0, 1.0, 30.0, 1e4])
def test_entropy_slope_and_largest_logit_are_those_of_the_measures(size: float) -> None:
    logits, masked, hidden = hidden_logits(size)
    measures = attend(logits.flatten(1, 2), VISIBLE)[1]
    fraction, slope = spread_of(masked.softmax(-1))
    assert fraction.tolist() == pytest.approx(measures.entropy_fraction.tolist(), abs=1e-6)
    assert slope.tolist() == pytest.approx(measures.softmax_slope.tolist(), abs=1e-6)
    assert largest_size(masked, hidden).tolist() == pytest.approx(measures.max_abs_logit.tolist())


def test_the_largest_size_is_of_either_sign_and_never_of_a_hidden_key() -> None:
    logits, _, hidden = hidden_logits()
    logits[0, 0, 0, 3, 1] = -70
    logits[1, 2, 1, 0, 5] = 999  # hidden
    assert largest_size(logits + hidden, hidden).tolist()[0] == 70
    assert largest_size(logits + hidden, hidden).tolist()[1] < 10
    assert largest_by_head(logits + hidden)[0, 0].item() < 10  # signed


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_logit_that_is_not_finite_is_read_as_infinite(value: float) -> None:
    logits, _, hidden = hidden_logits()
    logits[1, 0, 0, 3, 1] = value
    sizes = largest_size(logits + hidden, hidden)
    assert sizes[0].isfinite()
    assert sizes[1].item() == math.inf


@pytest.mark.parametrize("size", [(4, 4), (8, 8), (32, 32), (8, 3), (3, 8)])
def test_the_spectral_norm_is_the_largest_singular_value(size: tuple[int, int]) -> None:
    matrices = torch.randn(20, *size, generator=torch.Generator().manual_seed(1))
    expected = torch.linalg.matrix_norm(matrices, 2)
    assert torch.all(spectral_norm(matrices) <= expected * (1 + 1e-5))
    assert spectral_norm(matrices).tolist() == pytest.approx(expected.tolist(), rel=5e-3)


def test_the_spectral_norm_holds_where_singular_values_are_equal_zero_large_or_small() -> None:
    assert spectral_norm(torch.eye(8)).item() == pytest.approx(1)
    assert spectral_norm(torch.zeros(2, 8, 8)).tolist() == [0, 0]
    row = torch.randn(8, 8, generator=torch.Generator().manual_seed(2))
    for scale in (1e-30, 1e-8, 1e8, 1e30):  # squares of the outer two vanish and overflow in float32
        expected = torch.linalg.matrix_norm((scale * row).double(), 2).item()
        assert spectral_norm(scale * row).item() == pytest.approx(expected, rel=5e-3)
    for bad in (torch.inf, torch.nan):
        spoilt = torch.stack([row, torch.where(row == row.max(), bad, row)])
        assert spectral_norm(spoilt).isnan().tolist() == [False, True]
    close = torch.diag(torch.linspace(0.99, 1, 32))  # the hardest: all within one per cent
    assert spectral_norm(close).item() == pytest.approx(1, rel=1e-2)


def test_parts_of_a_run_join_and_columns_can_be_taken() -> None:
    runs = [Settings(n_keys=8, d_head=8, batch=1, seed=seed) for seed in (0, 1)]
    trainer = Trainer(runs)
    parts = [trainer.advance(2), trainer.advance(3)]
    whole = joined(parts)
    assert (len(whole), whole.first_step, parts[1].first_step) == (5, 1, 3)
    assert (whole.loss[2:] == parts[1].loss).all()
    assert (whole.of_runs([1]).loss[:, 0] == whole.loss[:, 1]).all()
