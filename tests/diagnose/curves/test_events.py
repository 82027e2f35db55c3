"""Events of a loss by their labels: spikes, rises, what is lost; noise makes none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.diagnose.curves.causes import run
from qkdemo.diagnose.curves.loss import loss_events
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.readers.columns import Log
from tests.diagnose.curves.courses import FALLING, LOST, LOST_LATE, NONE, STEPS, log, noise, said


@pytest.mark.parametrize(
    ("loss", "events"),
    [
        ([1.7, 11.46, 11.75, 11.5, 11.48], [("divergence", 1, 4)]),
        ([4.25, LOST, LOST], [("non_finite", 1, 2)]),
        ([2.5, 2.45, 2.9, 2.44, 2.41], [("spike", 2, 3)]),
        ([0.899, 0.88], []),
        ([2.5, NONE, 2.45, NONE, 2.9, 2.44, 2.41], [("spike", 4, 5)]),
        ([1.0, 1.0, 1.0], []),
        ([LOST, LOST], [("non_finite", 0, 1)]),
    ],
)
def test_events_are_those_that_people_reported(loss: list[float], events: list[tuple[str, int, int]]) -> None:
    assert [(event.kind, event.start, event.stop) for event in loss_events(np.array(loss))] == events


def test_a_slow_rise_without_a_jump_is_a_divergence_and_noise_is_none() -> None:
    assert loss_events(FALLING) == ()
    rising = FALLING + np.where(STEPS > 120, (STEPS - 120) * 0.01, 0)
    (event,) = loss_events(rising)
    assert event.kind == "divergence"
    assert 90 < event.start < 150


@given(seed=st.integers(0, 200), noise=st.floats(0.001, 0.2))
def test_noise_alone_rarely_makes_an_event(seed: int, noise: float) -> None:
    quiet = 2 + noise * np.random.default_rng(seed).standard_normal(100)
    assert not any(event.kind != "spike" for event in loss_events(quiet))


def test_a_rise_in_which_a_log_ends_is_not_called_a_divergence() -> None:
    found = run(log(loss=np.where(STEPS < 190, FALLING, 3.0), max_logit=np.full(200, 8.0)))
    assert [event.kind for event in found.events] == ["rise"]
    assert found.causes[0].key == "unsettled"
    same = np.where((STEPS == 100) | (STEPS >= 195), 1.2, FALLING)
    assert run(log(loss=same, max_logit=np.full(200, 8.0))).causes[0].key == "small_spikes"


def test_a_loss_that_rose_at_once_and_is_back_is_no_small_spike() -> None:
    """Of 4.4 to 25 within ten steps. Back where it began it has learnt nothing; further down it has."""
    back = 4.3 + 0.03 * noise(3) + 21 * np.exp(-STEPS / 15) * (1 - np.exp(-STEPS / 2))
    assert run(log(loss=back, max_logit=np.full(200, 6.0))).causes[0].key in ("stuck_calm", "stuck_rate")
    found = run(log(loss=back - 3 * (1 - np.exp(-STEPS / 50)), max_logit=np.full(200, 6.0))).causes[0]
    assert found.key == "high_start"
    assert found.numbers["first"] < 5
    assert found.numbers["most"] > 15


def test_small_spikes_that_pass_are_no_alarm() -> None:
    spiky = np.where(np.isin(STEPS, (100, 140)), FALLING + 0.6, FALLING)
    found = run(log(loss=spiky, max_logit=np.full(200, 8.0)))
    assert found.causes[0].key == "small_spikes"
    tall = np.where(STEPS == 140, 2.5, FALLING)
    assert run(log(loss=tall, max_logit=np.full(200, 8.0))).causes[0].key == "one_batch"


def test_no_new_start_is_advised_for_a_spike_that_recovers() -> None:
    spike = np.where((STEPS >= 100) & (STEPS < 104), 9.0, FALLING)
    jumped = np.where(STEPS < 100, 10.0, 5000.0)
    found = said(loss=spike, max_logit=jumped)["together_max_logit"]
    assert "if it happens again, use a norm of q and k" in found
    assert "start again" not in found
    came_first = said(loss=spike, max_logit=np.where(STEPS < 90, 10.0, 5000.0))["attention_max_logit"]
    assert " If it happens again, start from before step 90" in came_first
    assert (
        "start again from before step 150"
        in said(loss=LOST_LATE, max_logit=np.where(STEPS < 150, 10, 5000))["together_max_logit"]
    )


def test_the_loss_of_a_policy_is_judged_by_whether_it_is_finite_alone() -> None:
    """As GRPO logs it: near 0, or rising with the divergence from the model it began with."""
    for loss in (np.zeros(200), 1e-3 * noise(3), np.maximum(0, 4e-5 * STEPS)):
        found = run(log(loss=loss, reward=STEPS / 200))
        assert (found.healthy, [cause.key for cause in found.causes]) == (True, ["policy_loss"])
        assert run(log(loss=loss, reward=STEPS / 200), {"loss": "loss"}).causes[0].key != "policy_loss"
    lost = run(log(loss=np.where(STEPS > 150, LOST, 0.0), reward=STEPS / 200))
    assert (lost.causes[0].key, lost.causes[0].numbers["step"]) == ("cannot_tell", 151)
    for labelled in (["rewards/chosen"], ["mean_reward", "margin"]):  # as DPO, and as a reward model, whose loss falls
        beside = dict.fromkeys(labelled, STEPS / 200)
        assert [cause.key for cause in run(log(loss=FALLING, **beside)).causes] == ["healthy"]


@pytest.mark.parametrize("spread", [10, 20])
def test_single_rows_as_high_as_batches_of_one_text_may_be_are_rarely_an_alarm(spread: int) -> None:
    """Losses of single texts are skewed: of their rises each of these twenty logs was called ill."""
    rows, alarms = np.arange(2000), 0
    for seed in range(20):
        noise = np.random.default_rng(seed).gamma(spread, 1 / spread, 2000)
        found = run(log(loss=2 * (1 + np.exp(-rows / 300)) * noise, max_logit=np.full(2000, 8.0)))
        alarms += found.causes[0].key not in ("healthy", "small_spikes", "noisy_spikes")
    assert alarms <= 3


def test_a_step_of_an_event_is_written_with_every_digit() -> None:
    late = Log("run", "csv", STEPS * 1111 + 1, {"loss": LOST_LATE})
    event = of_logs([run(late)], "a").tables["events"][0]
    row = int(run(late).events[0].start)
    assert str(event["from"]) == str(row * 1111 + 1)


def test_of_a_long_log_every_spike_is_found() -> None:
    """How long that takes is measured in `tests.benchmarks.bench_log`."""
    rows = np.arange(20_000)
    loss = 2.5 + 8 * np.exp(-rows / 2500) + 0.03 * noise(3, 20_000) + 4 * (rows % 24 == 0)
    assert len(run(log(loss=loss)).events) > 800


def test_of_a_rise_of_many_rows_no_single_batch_is_spoken_of() -> None:
    for rows, what, batch in (
        (1, "a spike at step 100, and recovers.", "Look at the batches of that row;"),
        (40, "a spike from step 100 on, and has recovered by step 140.", "Look at the batches from that step on;"),
    ):
        rise = np.where((STEPS >= 100) & (100 + rows > STEPS), FALLING + 9, FALLING)
        words = said(loss=rise, max_logit=np.full(200, 8.0))["one_batch"]
        assert what in words
        assert batch in words
    for since, batch in ((199, "at the batches of that row."), (190, "at the batches from that step on.")):
        words = said(loss=np.where(since > STEPS, FALLING, FALLING + 3), max_logit=np.full(200, 8.0))["unsettled"]
        assert words.endswith(f"look at the updates and {batch}")
