"""A loss that never falls, or ends above its start: whose fault it is."""

import numpy as np
import pytest

from qkdemo.diagnose.curves.causes import run
from tests.diagnose.curves.courses import BOUNCING, FALLING, FLAT, GROWN, LOST_LATE, STEPS, log, noise, said


def test_a_loss_that_never_falls_and_rests_is_attentions_fault_if_logits_were_large() -> None:
    assert run(log(loss=FLAT, max_logit=np.full(200, 900.0))).causes[0].key == "stuck_attention"
    assert run(log(loss=FLAT, max_logit=np.full(200, 9.0))).causes[0].key == "stuck_calm"
    assert run(log(loss=FLAT, entropy=np.full(200, 0.02))).causes[0].key == "stuck_one_hot"
    assert run(log(loss=FLAT)).causes[0].key == "stuck"
    assert run(log(loss=FALLING)).causes[0].key == "healthy"


def test_of_a_loss_that_moved_what_moved_it_is_asked_before_it_is_called_stuck() -> None:
    """2.8, then 2.58, and 2.95 at the end: it never fell by a tenth, nor rose by a tenth above its start."""
    moved = FLAT - 0.22 * ((STEPS > 60) & (STEPS < 150)) + 0.15 * (STEPS >= 150)
    found = run(log(loss=moved, max_logit=np.where(STEPS < 140, 9.0, 900.0)))
    assert (found.events[-1].kind, found.causes[0].key) == ("divergence", "attention_max_logit")


@pytest.mark.parametrize("column", [{"max_logit": 900.0, "else": 9.0}, {"entropy": 0.02, "else": 0.6}])
def test_attention_that_is_lost_late_is_no_reason_to_look_elsewhere(column: dict[str, float]) -> None:
    name, late = next(iter(column.items()))
    found = run(log(**{"loss": FLAT, name: np.where(STEPS < 150, column["else"], late)})).causes[0]
    assert found.key == "stuck_late"
    early = run(log(**{"loss": FLAT, name: np.where(STEPS > 50, column["else"], late)})).causes[0]
    assert early.key == "stuck_calm"


@pytest.mark.parametrize(("entropy", "told"), [(0.012, "nearly one-hot: the median"), (0.6, "was not one-hot")])
def test_whether_attention_is_one_hot_is_said_where_its_entropy_is_logged(entropy: float, told: str) -> None:
    large = {"loss": FLAT, "max_logit": np.full(200, 900.0)}
    assert "can be one-hot" in said(**large)["stuck_attention"]
    beside = said(**large, entropy=np.full(200, entropy))["stuck_attention"]
    assert told in beside
    assert "can be one-hot" not in beside


def test_a_rate_of_0_is_not_too_high() -> None:
    assert run(log(loss=BOUNCING, lr=np.zeros(200))).causes[0].key == "stuck_at_rest"
    assert run(log(loss=BOUNCING, lr=np.full(200, 1e-5))).causes[0].key == "stuck_rate"


def test_with_few_losses_no_rise_is_ruled_out() -> None:
    """2.44 at its lowest and 2.79 at the end, in 19 rows: nobody looks for a slow rise there."""
    loss, logit = [*np.linspace(3, 2.44, 10), *np.linspace(2.5, 2.79, 9)], np.geomspace(5, 900, 19)
    few = said(loss=loss, max_logit=logit)
    assert {"large_alone", "few_losses"} <= few.keys()
    assert "large_logits" not in few
    assert "19 finite values" in few["few_losses"]
    spiked = [4, 3, 2, 1.2, *[1.0] * 4, 1.4, *[1.0] * 6]
    assert {"small_spikes", "few_losses"} <= said(loss=spiked).keys()


def test_a_loss_that_only_bounces_upwards_has_long_steps_or_hard_batches_whatever_the_logits() -> None:
    for columns in ({}, {"max_logit": np.full(200, 900.0)}):
        found = run(log(loss=BOUNCING, **columns)).causes[0]
        assert found.key == "stuck_rate"
        assert found.numbers["times"] > 2


@pytest.mark.parametrize("seed", range(8))
def test_a_loss_that_bends_slowly_is_not_restless(seed: int) -> None:
    """Its highest values are its first, far above its median, and no step did that."""
    bowed = 2.8 + 0.08 * np.exp(-STEPS / 40) + 0.001 * np.random.default_rng(seed).standard_normal(200)
    assert run(log(loss=bowed)).causes[0].key == "stuck"
    assert run(log(loss=bowed[::-1])).causes[0].key == "stuck"


def test_a_loss_far_above_its_start_is_not_put_down_to_attention_alone() -> None:
    """A lost attention leaves a guess: the loss of LOST_LATE, 3.2, is not above the 3.3 of its start."""
    beyond = run(log(loss=np.where(STEPS < 150, FALLING, 9.0), max_logit=GROWN)).causes[0]
    assert beyond.key == "beyond_start"
    assert beyond.numbers["last"] == 9
    assert run(log(loss=LOST_LATE, max_logit=GROWN)).causes[0].key == "attention_max_logit"


@pytest.mark.parametrize("end", [4.7, 4.9])
def test_a_loss_that_ends_well_above_its_start_did_not_stand_still(end: float) -> None:
    """It never fell by a tenth, and does not rise by a quarter: 4, then 3.7, then as far as `end`."""
    course = np.interp(STEPS, [STEPS[0], STEPS[80], STEPS[120], STEPS[170], STEPS[-1]], [4, 3.7, 3.7, end, end])
    loss = course + 0.02 * noise(3)
    assert run(log(loss=loss, max_logit=np.full(200, 300.0))).causes[0].key == "attention_max_logit"
    calm = run(log(loss=loss, max_logit=np.full(200, 6.0)))
    assert (calm.causes[0].key, calm.events[0].kind) == ("not_attention", "divergence")


@pytest.mark.parametrize("columns", [{}, {"max_logit": 9.0}, {"max_logit": 900.0}])
def test_of_a_log_that_begins_late_no_learning_is_asked(columns: dict[str, float]) -> None:
    late = np.linspace(2.50, 2.44, 200) + 0.02 * noise(3)
    told = said(loss=late, **{name: np.full(200, x) for name, x in columns.items()})
    (found,) = (words for key, words in told.items() if key.startswith("stuck"))
    assert "may have come near what can be learnt" in found or "If the model was new at the start" in found
    assert "hardly fell" not in found


def test_an_entropy_that_may_be_another_is_said_to_be_read_so_also_of_a_loss_that_is_stuck() -> None:
    found = said(loss=FLAT, token_entropy=np.full(200, 0.6))
    assert {"stuck_calm", "entropy_share"} <= found.keys()
    assert "entropy_share" not in said(loss=FLAT, max_logit=np.full(200, 9.0))


def test_a_rate_is_0_only_if_that_of_every_group_is() -> None:
    """As Lightning's LearningRateMonitor logs them, beside their momentum; unless the reader names one of them."""
    groups = {"lr-AdamW/pg1": np.zeros(200), "lr-AdamW/pg2": np.full(200, 1e-3)}
    momentum = {"lr-AdamW/pg1-momentum": np.full(200, 0.9), "lr-AdamW/pg1-weight_decay": np.full(200, 0.1)}
    still = np.full(200, 2.8)
    assert run(log(loss=still, **groups)).causes[0].key == "stuck"
    at_rest = log(loss=still, **{**groups, "lr-AdamW/pg2": np.zeros(200)}, **momentum)
    assert run(at_rest).causes[0].key == "stuck_at_rest"
    assert run(log(loss=still, **groups), {"lr": "lr-AdamW/pg1"}).causes[0].key == "stuck_at_rest"


def test_large_logits_that_came_after_the_loss_stood_still_are_not_said_to_have_stopped_it() -> None:
    """As in runs with RMSNorm of q and k at a rate that is too high: smaller W_q and W_k would change nothing there."""
    still = 2.8 + 0.02 * np.random.default_rng(0).standard_normal(200)
    late = said(loss=still, max_logit=np.where(STEPS < 70, 9.0, 900.0), entropy_fraction=np.full(200, 0.4))
    words = late["stuck_attention"]
    assert (
        "(median 900), first at step 70. Just before that the loss was already about as low as at the end, so" in words
    )
    assert "try a lower learning rate, and normalise q and k if they are not normalised yet." in words
    soon = said(loss=still, max_logit=np.where(STEPS < 10, 9.0, 900.0))["stuck_attention"]
    assert "first at step 10. With logits" in soon
    first = said(loss=still, max_logit=np.full(200, 900.0))["stuck_attention"]
    assert "(median 900), already in the first row that holds it. With logits" in first
    assert "start from smaller W_q and W_k, or normalise q and k." in first
