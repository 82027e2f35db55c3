"""What became of a run: events by their labels, growth with an interval that holds, causes only if they came first."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.diagnose.curves.causes import run
from qkdemo.diagnose.curves.growth import growth, slope
from qkdemo.diagnose.curves.loss import loss_events
from qkdemo.diagnose.findings.examine import examine
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.readers.columns import Log
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.readers.logs import read_logs
from qkdemo.diagnose.samples import SAMPLES
from tests.diagnose.forty_runs import HEALTHY, ILL, diagnosed

NONE, LOST = math.nan, math.inf
STEPS = np.arange(200.0)
RNG = np.random.default_rng(0)
FALLING = 3 * np.exp(-STEPS / 60) + 0.3 + 0.01 * RNG.standard_normal(200)


def log(**columns: Any) -> Log:
    arrays = {name: np.asarray(column, dtype=float) for name, column in columns.items()}
    return Log(run="run", kind="csv", step=np.arange(len(next(iter(arrays.values()))), dtype=float), columns=arrays)


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


def test_the_interval_of_a_slope_holds_its_truth_nineteen_times_in_twenty() -> None:
    x, held = np.arange(60.0), 0
    for seed in range(200):
        _, low, high = slope(x, 0.02 * x + 0.3 * np.random.default_rng(seed).standard_normal(60))
        held += low <= 0.02 <= high
    assert 0.9 <= held / 200 <= 0.99


def test_rows_that_vary_together_widen_the_interval_of_a_slope() -> None:
    """It holds its truth in nine of ten draws; counted as independent they hold it in two of three."""
    x, held = np.arange(120.0), 0
    for seed in range(100):
        noise = np.random.default_rng(seed).standard_normal(170)
        for at in range(1, len(noise)):
            noise[at] += 0.6 * noise[at - 1]
        _, low, high = slope(x, 0.02 * x + noise[50:])
        held += low <= 0.02 <= high
    assert 0.82 <= held / 100 <= 0.99


def test_the_interval_of_the_example_is_about_that_of_a_bootstrap_of_blocks() -> None:
    name, make = SAMPLES["log"]
    (example,) = read_logs(make(), name)
    x, y = (column[100:] for column in (example.step, np.log(example.columns["max_logit"])))  # the later two thirds
    rate, low, high = slope(x, y)
    rest, dice, block = y - rate * x, np.random.default_rng(0), 15
    redrawn = []
    for _ in range(200):
        starts = dice.integers(0, len(x) - block + 1, size=math.ceil(len(x) / block))
        blocks = np.concatenate([rest[at : at + block] for at in starts])[: len(x)]
        redrawn.append(slope(x, rate * x + blocks)[0])
    least, most = np.quantile(redrawn, (0.025, 0.975))
    assert (high - low) / (most - least) == pytest.approx(1, abs=0.3)


def test_growth_says_when_a_limit_will_be_reached() -> None:
    found = growth(STEPS, 2 * np.exp(STEPS / 100))
    assert found is not None
    assert found.rate == pytest.approx(0.01)
    assert found.large_at == pytest.approx(100 * math.log(50), rel=0.02)
    assert found.limit_at == pytest.approx(100 * math.log(65504 / 2), rel=0.02)
    assert found.grows
    still = growth(STEPS, 5 + 0.1 * RNG.standard_normal(200))
    assert still is not None
    assert not still.grows
    assert still.large_at is None


@pytest.mark.parametrize(("share", "by"), [(1.0, "norms"), (0.5, "both"), (0.0, "alignment")])
def test_growth_is_put_down_to_norms_or_alignment(share: float, by: str) -> None:
    logit, length = np.exp(STEPS / 50), np.exp(share * STEPS / 100)
    found = growth(STEPS, logit, length, length)
    assert found is not None
    assert found.by == by


LOST_LATE = np.where(STEPS < 150, FALLING, 3.2)
GROWN = np.exp(STEPS / 20)  # 100 at step 92, 1800 at 150


def test_logits_are_blamed_only_if_they_were_large_before_the_loss_moved() -> None:
    first = run(log(loss=LOST_LATE, max_logit=GROWN))
    assert first.causes[0].key == "attention_max_logit"
    assert first.causes[0].numbers["since"] == 93
    assert first.causes[0].numbers["step"] == 150
    calm = run(log(loss=LOST_LATE, max_logit=10 + 0.1 * RNG.standard_normal(200)))
    assert calm.causes[0].key == "not_attention"
    after = run(log(loss=LOST_LATE, max_logit=np.where(STEPS < 160, 10, 5000)))
    assert after.causes[0].key == "not_attention"


def test_large_logits_that_had_passed_long_before_the_loss_moved_are_not_blamed() -> None:
    once = np.where((STEPS > 20) & (STEPS < 40), 300.0, 8.0)
    found = run(log(loss=LOST_LATE, max_logit=once)).causes[0]
    assert found.key == "logits_passed"
    assert (found.numbers["last_large"], found.numbers["logit"], found.numbers["step"]) == (39, 8, 150)
    again = run(log(loss=LOST_LATE, max_logit=np.where(STEPS > 120, 900.0, once))).causes[0]
    assert (again.key, again.numbers["since"], again.numbers["logit"]) == ("attention_max_logit", 121, 900)
    briefly = run(log(loss=LOST_LATE, max_logit=np.where((STEPS > 120) & (STEPS % 3 > 0), 900.0, once))).causes[0]
    assert (briefly.key, briefly.numbers["since"]) == ("attention_max_logit", 121)  # a gap of a row is none


def test_an_entropy_that_was_low_long_before_the_loss_moved_is_not_blamed() -> None:
    once = np.where((STEPS > 20) & (STEPS < 40), 0.01, 0.7)
    assert run(log(loss=LOST_LATE, entropy=once)).causes[0].key == "entropy_alone"
    assert run(log(loss=LOST_LATE, entropy=once, max_logit=np.full(200, 8.0))).causes[0].key == "not_attention"


def test_logits_that_are_logged_rarely_count_and_those_of_a_column_that_ended_do_not() -> None:
    rarely = np.where(STEPS % 40 == 0, GROWN, NONE)
    assert run(log(loss=LOST_LATE, max_logit=rarely)).causes[0].key == "attention_max_logit"
    ended = np.where(STEPS < 100, GROWN, NONE)
    assert run(log(loss=LOST_LATE, max_logit=ended)).causes[0].key == "cannot_tell"


def test_what_shows_in_the_same_row_of_a_log_did_not_come_first() -> None:
    jumped = np.where(STEPS < 150, 10, 5000)
    found = run(log(loss=LOST_LATE, max_logit=jumped)).causes[0]
    assert (found.key, found.numbers["since"], found.numbers["step"]) == ("together_max_logit", 150, 150)
    gone = np.where(STEPS < 150, 0.7, 0.01)
    assert run(log(loss=LOST_LATE, entropy=gone)).causes[0].key == "together_entropy"
    earlier = np.where(STEPS < 149, 0.7, 0.01)
    assert run(log(loss=LOST_LATE, max_logit=jumped, entropy=earlier)).causes[0].key == "attention_entropy"
    (said,) = (
        finding
        for finding in of_logs([run(log(loss=LOST_LATE, max_logit=jumped))], "a").findings
        if finding.level == "bad"
    )
    assert "does not tell which came first" in said.sentence
    assert "logits came before" not in said.sentence


def test_an_entropy_that_is_gone_is_enough() -> None:
    found = run(log(loss=LOST_LATE, attn_entropy=np.where(STEPS < 100, 0.7, 0.01)))
    assert found.causes[0].key == "attention_entropy"


def test_without_logits_nobody_can_tell() -> None:
    assert run(log(loss=LOST_LATE)).causes[0].key == "cannot_tell"


def test_a_gradient_that_overflows_beside_a_finite_loss_is_no_matter_of_logits() -> None:
    found = run(log(loss=FALLING, grad_norm=np.where(STEPS < 100, 1.0, LOST), max_logit=np.full(200, 8.0)))
    assert found.causes[0].key == "gradient_overflow"
    assert found.events == ()


@pytest.mark.parametrize("since", [0, 100])
@pytest.mark.parametrize("prefix", ["", "train/"])
def test_a_loss_that_the_trainer_may_have_left_out_is_not_said_to_be_finite(prefix: str, since: int) -> None:
    """Its log has a mean of the others in the place of a loss that is lost, or 0."""
    for loss in (FALLING, np.where(since > STEPS, FALLING, 0.0)):
        columns = {"loss": loss, "grad_norm": np.where(since > STEPS, 1.0, LOST)}
        columns |= {"learning_rate": np.full(200, 1e-4), "epoch": STEPS / 100}
        found = run(log(**{f"{prefix}{name}": column for name, column in columns.items()}))
        keys = {cause.key for cause in found.causes} - {"healthy", "few_losses"}
        assert keys == ({"gradient_or_loss"} if loss is FALLING else {"loss_zeros", "cannot_tell"})
        assert [event.start for event in found.events] == ([] if loss is FALLING else [since])


def test_a_loss_that_ends_before_the_log_does_is_not_called_well() -> None:
    """As pandas writes a run whose loss is NaN from step 150 on."""
    rate = np.full(200, 1e-4)
    found = run(log(loss=np.where(STEPS < 150, FALLING, np.nan), lr=rate))
    assert not found.healthy
    assert (found.causes[0].key, found.causes[0].numbers) == ("loss_ends", {"step": 149.0, "until": 199.0})
    assert run(log(loss=np.where(STEPS < 197, FALLING, np.nan), lr=rate)).healthy
    assert run(log(loss=np.where(STEPS % 10 == 0, FALLING, np.nan), lr=rate)).healthy


@pytest.mark.parametrize("beside", ["", "tokens_per_s", "val_loss"])
def test_a_loss_that_ends_before_any_column_or_step_is_not_called_well(beside: str) -> None:
    """Whatever the column is, and if rows hold nothing but their step; not, if it counts other steps, as samples."""
    found = read_logs(table(lost_from=150, rows=200, beside=beside), "a.csv")
    assert (run(found[0]).causes[0].key, run(found[0]).causes[0].numbers["until"]) == ("loss_ends", 199)
    (late,) = read_logs(table(lost_from=197, rows=200, beside=beside), "a.csv")
    assert [(cause.key, cause.numbers) for cause in run(late).causes] == [
        ("cells_empty", {"loss": 3.0}),
        ("healthy", {}),
    ]
    sparse = np.where((STEPS % 10 == 0) & (STEPS < 195), FALLING, np.nan)
    assert run(log(loss=sparse, tokens=STEPS)).healthy
    other = np.where((STEPS < 150) & (STEPS % 2 == 0), FALLING, np.nan)
    assert run(log(**{"loss": other, "loss vs samples": np.where(STEPS % 2 == 1, 1.0, np.nan)})).healthy


def table(*, lost_from: int, rows: int, beside: str) -> bytes:
    """CSV as pandas writes it, with a loss that is NaN from a row on."""
    cells = [
        ",".join([str(at), "" if at >= lost_from else str(FALLING[at]), *["1.5"] * bool(beside)]) for at in range(rows)
    ]
    return "\n".join([",".join(["step", "loss", *filter(None, [beside])]), *cells]).encode()


def test_a_chart_of_a_run_that_is_longer_says_nothing_of_the_end_of_another() -> None:
    rows = [f"{at},{FALLING[at]},,,{FALLING[at] if at < 100 else ''},," for at in range(200)]
    edges = [f"{run} - loss{edge}" for run in "ab" for edge in ("", "__MIN", "__MAX")]
    logs = read_logs("\n".join([",".join(["Step", *edges]), *rows]).encode(), "a.csv")
    assert [(len(each.step), run(each).healthy) for each in logs] == [(200, True), (100, True)]


def test_updates_that_jumped_first_are_named() -> None:
    updates = np.where(STEPS == 145, 9.0, 1.0)
    found = run(log(loss=LOST_LATE, update_norm=updates, max_logit=np.full(200, 8.0)))
    assert found.causes[0].key == "updates"
    assert found.causes[0].numbers["times"] == 9


def test_a_healthy_run_is_healthy_and_one_on_its_way_is_warned() -> None:
    assert run(log(loss=FALLING, max_logit=8 + 0.1 * RNG.standard_normal(200))).healthy
    on_its_way = run(log(loss=FALLING, max_logit=5 * np.exp(STEPS / 80)))
    assert on_its_way.causes[0].key == "growing_logits"
    assert run(log(loss=FALLING, max_logit=GROWN)).causes[0].key == "large_logits"


def test_a_wrong_guess_of_a_column_can_be_corrected() -> None:
    found = run(log(loss=FALLING, mine=GROWN), {"max_logit": "mine"})
    assert found.causes[0].key == "large_logits"


FLAT = 2.8 + 0.02 * RNG.standard_normal(200)
BOUNCING = 2.8 + 0.05 * RNG.standard_exponential(200)


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
    loss = course + 0.02 * RNG.standard_normal(200)
    assert run(log(loss=loss, max_logit=np.full(200, 300.0))).causes[0].key == "attention_max_logit"
    calm = run(log(loss=loss, max_logit=np.full(200, 6.0)))
    assert (calm.causes[0].key, calm.events[0].kind) == ("not_attention", "divergence")


def test_a_rise_in_which_a_log_ends_is_not_called_a_divergence() -> None:
    found = run(log(loss=np.where(STEPS < 190, FALLING, 3.0), max_logit=np.full(200, 8.0)))
    assert [event.kind for event in found.events] == ["rise"]
    assert found.causes[0].key == "unsettled"
    same = np.where((STEPS == 100) | (STEPS >= 195), 1.2, FALLING)
    assert run(log(loss=same, max_logit=np.full(200, 8.0))).causes[0].key == "small_spikes"


def test_large_logits_with_one_hot_attention_are_said_before_the_loss_has_an_event() -> None:
    entropy = np.linspace(0.9, 0.05, 200)
    assert run(log(loss=FALLING, max_logit=GROWN, entropy=entropy)).causes[0].key == "nearly_one_hot"


def test_entropy_alone_that_is_not_gone_decides_nothing() -> None:
    assert run(log(loss=LOST_LATE, entropy=np.full(200, 0.3))).causes[0].key == "entropy_alone"


def test_a_loss_that_rose_at_once_and_is_back_is_no_small_spike() -> None:
    """Of 4.4 to 25 within ten steps. Back where it began it has learnt nothing; further down it has."""
    back = 4.3 + 0.03 * RNG.standard_normal(200) + 21 * np.exp(-STEPS / 15) * (1 - np.exp(-STEPS / 2))
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


@pytest.mark.parametrize(("name", "seeds"), [("plain, ramp", 1), ("RMSNorm, ramp", 1)])
def test_runs_of_the_training_lab_are_told_apart(name: str, seeds: int) -> None:
    """Two of the forty; `python -m tests.diagnose.forty_runs` does them all."""
    settings, right = ILL[name] if name in ILL else (HEALTHY[name], ("healthy", "small_spikes"))
    assert all(result.causes[0].key in right for result in diagnosed(settings, seeds))


def test_a_low_entropy_counts_though_no_logit_is_large() -> None:
    found = run(log(loss=FLAT, max_logit=np.full(200, 60.0), entropy=np.full(200, 0.02)))
    assert found.causes[0].key == "stuck_one_hot"


def test_a_limit_that_was_passed_once_and_left_again_is_ahead() -> None:
    logit = 20 * np.exp(STEPS / 150)
    logit[5] = 150.0
    (cause,) = (cause for cause in run(log(loss=FALLING, max_logit=logit)).causes if cause.key == "growing_logits")
    assert cause.numbers["large_at"] == pytest.approx(150 * math.log(5), rel=0.05)


@pytest.mark.parametrize("name", ["cross_entropy", "train/CrossEntropyLoss", "cross-entropy"])
def test_a_cross_entropy_is_not_that_of_attention(name: str) -> None:
    assert "entropy" not in run(log(loss=FALLING, **{name: FALLING})).roles
    assert run(log(loss=FALLING, **{"attn/entropy": FALLING / 4})).roles["entropy"] == "attn/entropy"


def test_what_was_logged_only_after_the_loss_rose_tells_nothing_of_before() -> None:
    loss, late = FALLING.copy(), np.where(STEPS < 150, NONE, 0.3)
    loss[140:] = 3.0
    assert run(log(loss=loss, max_logit=late, entropy=late)).causes[0].key == "cannot_tell"


def test_that_an_entropy_is_read_as_a_share_is_said_where_its_name_does_not_say_so() -> None:
    for name, said in (("entropy", True), ("entropy_fraction", False)):
        report = of_logs([run(log(loss=FLAT, **{name: np.full(200, 0.02)}))], "x")
        assert ("entropy_share" in [finding.key for finding in report.findings]) == said


def test_a_column_that_the_log_does_not_have_is_said_with_those_it_has() -> None:
    data = b"\n".join(b'{"step": %d, "loss": 1.0}' % step for step in range(30))
    with pytest.raises(
        InputError, match=r"In log.jsonl no column of numbers is read as xx\. Beside the steps these are read: loss\."
    ):
        examine(data, "log.jsonl", columns={"loss": "xx"})


def test_the_name_of_a_run_stands_apart_from_what_is_said_of_it() -> None:
    logs = [log(loss=np.linspace(5, 1, 40)), log(loss=np.linspace(5, 2, 40))]
    report = of_logs([run(each) for each in logs], "runs.csv")
    assert all(finding.sentence.startswith("run: ") for finding in report.findings)


@pytest.mark.parametrize("name", ["eval_loss", "eval/loss", "val_loss", "dev/loss"])
def test_a_loss_of_an_evaluation_alone_does_not_tell_what_became_of_the_training(name: str) -> None:
    assert run(log(**{name: FALLING}, lr=np.full(200, 0.1))).causes[0].key == "no_loss"
    assert run(log(**{name: FALLING}, max_logit=np.full(200, 8.0))).causes[0].key == "logits_alone"
    both = run(log(**{name: FALLING, "loss": LOST_LATE}, max_logit=np.full(200, 8.0)))
    assert both.roles["loss"] == "loss"
    assert run(log(**{name: FALLING}), {"loss": name}).causes[0].key == "healthy"  # where one asks for it


def said(**columns: Any) -> dict[str, str]:
    report = of_logs([run(log(**columns))], "a")
    return {finding.key: f"{finding.sentence} {finding.advice}" for finding in report.findings}


def test_updates_that_jumped_after_logits_were_large_did_not_come_first() -> None:
    updates = np.where(STEPS == 145, 9.0, 1.0)
    found = said(loss=LOST_LATE, update_norm=updates, max_logit=GROWN)
    assert "The updates jumped, too: at step 145" in found["updates"]
    assert "Large logits came before that" in found["attention_max_logit"]
    alone = said(loss=LOST_LATE, update_norm=updates, max_logit=np.full(200, 8.0))
    assert "The updates jumped first: at step 145" in alone["updates"]


def test_logits_that_were_large_from_the_first_row_on_are_said_to_be() -> None:
    found = said(loss=LOST_LATE, max_logit=np.full(200, 300.0))["attention_max_logit"]
    assert "already in the first row that holds it, at step 0, and the loss did this only at step 150" in found
    assert "values before that" not in found
    grown = said(loss=LOST_LATE, max_logit=GROWN)["attention_max_logit"]
    assert "100 or more at step 93, and in none of its last values before that, at most five." in grown
    passed = said(loss=LOST_LATE, max_logit=np.where((STEPS > 40) & (STEPS < 50), 300.0, GROWN))["attention_max_logit"]
    assert "at step 93, and in none of the five values before that; it had been so earlier, first at step 41." in passed
    gone = said(loss=LOST_LATE, entropy=np.full(200, 0.01))["attention_entropy"]
    assert "already in the first row that holds it, at step 0" in gone


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


@pytest.mark.parametrize("columns", [{}, {"max_logit": 9.0}, {"max_logit": 900.0}])
def test_of_a_log_that_begins_late_no_learning_is_asked(columns: dict[str, float]) -> None:
    late = np.linspace(2.50, 2.44, 200) + 0.02 * RNG.standard_normal(200)
    told = said(loss=late, **{name: np.full(200, x) for name, x in columns.items()})
    (found,) = (words for key, words in told.items() if key.startswith("stuck"))
    assert "may have come near what can be learnt" in found or "If the model was new at the start" in found
    assert "hardly fell" not in found


def test_an_entropy_that_may_be_another_is_said_to_be_read_so_also_of_a_loss_that_is_stuck() -> None:
    found = said(loss=FLAT, token_entropy=np.full(200, 0.6))
    assert {"stuck_calm", "entropy_share"} <= found.keys()
    assert "entropy_share" not in said(loss=FLAT, max_logit=np.full(200, 9.0))


def test_updates_jumped_too_where_any_measure_of_attention_was_bad_before() -> None:
    """The entropy is gone at 50, the updates jump at 140, the logits are large from 145 on, the loss moves at 150."""
    found = said(
        loss=LOST_LATE,
        max_logit=np.where(STEPS < 145, 60.0, 150.0),
        entropy=np.where(STEPS < 50, 0.6, 0.03),
        update_norm=np.where(STEPS == 140, 9.0, 1.0),
    )
    assert "jumped, too" in found["updates"]
    assert "Start again from before step 50" in found["attention_max_logit"]


@pytest.mark.parametrize("largest", [99.994, 99.996, 99.99999])
@pytest.mark.parametrize("before", [99.0, 130.0])
def test_a_logit_just_below_100_is_not_written_as_100(largest: float, before: float) -> None:
    """No sentence says that the largest was 100, and that none reached 100."""
    logits = np.where(STEPS < 60, before, largest)
    loss = FALLING + np.where(STEPS >= 120, 3.0, 0)
    finding = of_logs([run(log(loss=loss, max_logit=logits))], "x").findings[0]
    assert finding.key == ("logits_passed" if before > 100 else "not_attention")
    told = float(str(finding.values["logit"]))
    assert told == pytest.approx(largest, rel=1e-4)
    assert told < 100
    assert told >= largest or before < 100  # said to be at most


def test_large_logits_of_a_few_rows_are_told() -> None:
    logits = np.full(200, NONE)
    logits[::50] = 500.0
    keys = {finding.key for finding in of_logs([run(log(loss=FALLING, max_logit=logits))], "x").findings}
    assert "large_logits" in keys
    assert "healthy" not in keys


def test_the_step_at_which_a_logit_gets_large_is_told_from_the_last_of_the_log() -> None:
    found = Log(
        run="run",
        kind="csv",
        step=10_000_000 + 5 * STEPS,
        columns={"loss": FALLING, "max_logit": 60 * np.exp(0.002 * STEPS)},
    )
    (growing,) = (x for x in of_logs([run(found)], "x").findings if x.key == "growing_logits")
    assert "at about step 1.00013·10⁷." in growing.sentence  # not 1·10⁷, where the log begins: ln(100/60)/0.0004 on


@pytest.mark.parametrize("watched", [True, False])
def test_that_the_worst_layer_or_head_is_looked_at_is_said(watched: bool) -> None:
    """One head in four is nearly one-hot from the first step on, as in many models that are well."""
    rows: list[dict[str, Any]] = [
        {"step": at, "layer": "a", "head": head, "max_logit": 20.0, "entropy_fraction": 0.03 if head == 2 else 0.7}
        for at in range(60)
        for head in range(4)
    ]
    if not watched:
        rows = [
            {"step": at, **{f"attn/head{head}/entropy": 0.03 if head == 2 else 0.7 for head in range(4)}}
            for at in range(60)
        ]
    rows += [{"step": at, "loss": 3.0 - at / 20 + 2 * (at > 40)} for at in range(60)]
    report = examine("\n".join(map(json.dumps, rows)).encode(), "x.jsonl")
    assert {"attention_entropy", "worst_of_each"} <= {finding.key for finding in report.findings}
    (entropy,) = (finding.sentence for finding in report.findings if finding.key == "attention_entropy")
    assert "A low entropy of attention, in its worst layer or head, came before that" in entropy


def test_a_column_that_the_reader_named_is_not_doubted() -> None:
    found = log(**{"loss": FALLING, "logits/max": 5 + STEPS / 100})
    for given_, doubted in ((None, True), ({"max_logit": "logits/max"}, False), ({"loss": "loss"}, True)):
        keys = [finding.key for finding in of_logs([run(found, given_)], "x").findings]
        assert ("logit_read" in keys) is doubted


@pytest.mark.parametrize("since", [0, 100])
def test_a_loss_that_is_0_at_once_is_taken_for_lost(since: int) -> None:
    """As the Trainer before transformers 4.38 logs it, without the norm of the gradient."""
    zeros = np.where(since > STEPS, FALLING, 0.0)
    found = run(log(loss=zeros, learning_rate=np.full(200, 1e-4), epoch=STEPS / 100))
    assert [(cause.key, cause.numbers["step"]) for cause in found.causes] == [
        ("loss_zeros", since),
        ("cannot_tell", since),
    ]
    said = [finding.sentence for finding in of_logs([found], "a").findings]
    assert all(sentence.startswith(f"From step {since} on every logged loss is exactly 0.") for sentence in said[:2])
    assert not any("the loss is not finite" in sentence for sentence in said)
    if since:
        large = run(log(loss=zeros, max_logit=GROWN))
        assert [cause.key for cause in large.causes[:2]] == ["loss_zeros", "attention_max_logit"]


def test_a_loss_that_falls_to_0_by_and_by_or_is_back_is_not_taken_for_lost() -> None:
    learnt = np.round(3 * np.exp(-STEPS / 10), 4)
    assert (learnt[-80:] == 0).all()
    assert run(log(loss=learnt)).healthy
    assert run(log(loss=np.where(STEPS == 100, 0.0, FALLING))).healthy


def test_a_loss_of_two_decimals_that_falls_below_its_last_is_not_taken_for_lost() -> None:
    """As pytorch/examples prints it: 0.12, 0.03, 0.02, 0.01 and 0.00."""
    learnt = np.where(STEPS < 60, np.round(np.maximum(6 * np.exp(-STEPS / 8), 0.01), 2), 0.0)
    assert learnt[59] == 0.01
    assert run(log(loss=learnt)).healthy
    lost = run(log(loss=np.where(STEPS < 60, np.round(FALLING, 2), 0.0)))
    assert lost.causes[0].key == "loss_zeros"


def test_a_gradient_that_a_loss_scaler_leaves_out_is_no_alarm() -> None:
    """In the first steps while it finds its scale, and once in two thousand; lost more often, or to the end, it is."""
    for lost in (STEPS < 4, STEPS == 120, (STEPS < 4) | (STEPS == 120)):
        found = run(log(loss=FALLING, grad_norm=np.where(lost, LOST, 1.0)))
        assert found.healthy
        assert (found.causes[-1].key, found.causes[-1].numbers) == ("gradient_passed", {"step": STEPS[lost][-1]})
    for lost in (STEPS > 194, (STEPS % 20 == 0) & (STEPS > 30) & (STEPS < 180)):
        found = run(log(loss=FALLING, grad_norm=np.where(lost, LOST, 1.0)))
        assert found.causes[0].key == "gradient_overflow"
    gone = run(log(loss=np.where(STEPS > 150, LOST, FALLING), grad_norm=np.where(STEPS < 4, LOST, 1.0)))
    assert [(cause.key, cause.numbers["step"]) for cause in gone.causes] == [
        ("cannot_tell", 151),
        ("gradient_passed", 3),
    ]


def test_the_loss_of_a_policy_is_judged_by_whether_it_is_finite_alone() -> None:
    """As GRPO logs it: near 0, or rising with the divergence from the model it began with."""
    for loss in (np.zeros(200), 1e-3 * RNG.standard_normal(200), np.maximum(0, 4e-5 * STEPS)):
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


@pytest.mark.parametrize("role", ["loss", "grad_norm"])
def test_of_several_columns_the_one_that_was_looked_at_is_said(role: str) -> None:
    short = np.where(STEPS < 5, 1.0, NONE)  # too few values to be looked at
    both = {f"baseline_{role}": FALLING[::-1], f"qk_{role}": FALLING, f"end_of_all_{role}": short}
    found = {finding.key: finding for finding in of_logs([run(log(**both))], "a").findings}
    name = "the loss" if role == "loss" else "the norm of the gradient"
    assert found["of_several"].sentence == (
        f"Of several columns that may be {name}, qk_{role} was looked at. The others (baseline_{role}) were not."
    )
    for results in ([run(log(**both), {role: f"qk_{role}"})], [run(log(**{role: FALLING, "eval_loss": FALLING}))]):
        assert "of_several" not in {finding.key for finding in of_logs(results, "a").findings}


def test_a_perplexity_is_no_loss_that_was_left_out() -> None:
    """As Megatron prints it beside its loss."""
    found = of_logs([run(log(**{"lm loss": FALLING, "lm loss ppl": np.exp(FALLING)}))], "a").findings
    assert "of_several" not in {finding.key for finding in found}


def test_a_step_of_an_event_is_written_with_every_digit() -> None:
    late = Log("run", "csv", STEPS * 1111 + 1, {"loss": LOST_LATE})
    event = of_logs([run(late)], "a").tables["events"][0]
    row = int(run(late).events[0].start)
    assert str(event["from"]) == str(row * 1111 + 1)


def test_columns_of_layers_are_not_several_columns() -> None:
    names = [f"layers.{layer}.max_logit" for layer in range(3)]
    text = "\n".join(json.dumps({"step": s, "loss": 2.0, **dict.fromkeys(names, 8.0)}) for s in range(30))
    assert "of_several" not in {finding.key for finding in examine(text.encode(), "a.jsonl").findings}


def test_of_a_long_log_every_spike_is_found() -> None:
    """How long that takes is measured in `tests.benchmarks.bench_log`."""
    rows = np.arange(20_000)
    loss = 2.5 + 8 * np.exp(-rows / 2500) + 0.03 * RNG.standard_normal(20_000) + 4 * (rows % 24 == 0)
    assert len(run(log(loss=loss)).events) > 800


def test_a_rate_is_0_only_if_that_of_every_group_is() -> None:
    """As Lightning's LearningRateMonitor logs them, beside their momentum; unless the reader names one of them."""
    groups = {"lr-AdamW/pg1": np.zeros(200), "lr-AdamW/pg2": np.full(200, 1e-3)}
    momentum = {"lr-AdamW/pg1-momentum": np.full(200, 0.9), "lr-AdamW/pg1-weight_decay": np.full(200, 0.1)}
    still = np.full(200, 2.8)
    assert run(log(loss=still, **groups)).causes[0].key == "stuck"
    at_rest = log(loss=still, **{**groups, "lr-AdamW/pg2": np.zeros(200)}, **momentum)
    assert run(at_rest).causes[0].key == "stuck_at_rest"
    assert run(log(loss=still, **groups), {"lr": "lr-AdamW/pg1"}).causes[0].key == "stuck_at_rest"


SURE = np.where(STEPS < 100, 0.02 * STEPS, 14.0)


@pytest.mark.parametrize(
    ("beside", "key"),
    [
        ({"rewards/margins": SURE, "rewards/accuracies": np.ones(200)}, "margin_zeros"),
        ({"mean_reward": SURE, "margin": SURE}, "margin_zeros"),
        ({"rewards/chosen": SURE, "rewards/rejected": -SURE}, "margin_zeros"),  # what margin there is, is not logged
        ({"rewards/margins": np.where(STEPS < 100, 1.0, LOST)}, "loss_zeros"),
        ({"rewards/margins": np.where(STEPS < 100, 1.0, 0.5)}, "loss_zeros"),
        ({"reward_model/loss": SURE, "margin_of_safety": SURE}, "loss_zeros"),
    ],
)
def test_a_loss_of_preferred_answers_comes_to_0_as_their_margin_grows(beside: dict[str, Any], key: str) -> None:
    """As DPO logs it in four decimals: no mean of −log σ(margin), or of a hinge, is 0 where the margin's is below 1."""
    found = run(log(loss=np.where(STEPS < 100, 0.7 - 0.005 * STEPS, 0.0), **beside))
    assert (found.causes[0].key, found.causes[0].numbers) == (key, {"step": 100.0})
    assert bool(found.events) is (key == "loss_zeros")
    if key == "margin_zeros":
        (finding,) = of_logs([found], "a").findings
        assert "margin" in finding.sentence
        assert "margin" in finding.advice
        assert "label" not in finding.sentence + finding.advice


def test_a_loss_beside_a_lost_gradient_is_said_to_be_what_is_logged() -> None:
    found = said(loss=FALLING, grad_norm=np.where(STEPS < 100, 1.0, LOST))["gradient_overflow"]
    assert found.startswith(
        "At step 100 the norm of the gradient is not finite, and the logged loss is finite. From then"
    )
    assert "If that is the whole loss, the backward pass overflowed there," in found
    assert "A loss of one process, or of one micro-batch, can be finite beside others that are not." in found


def lost_gradient(*rows: int, since: int, **beside: Any) -> str:
    """What is said of a gradient that is lost in these rows, and from one on."""
    norm = np.where(np.isin(STEPS, rows) | (since <= STEPS), LOST, 1.0)
    return next(words for key, words in said(grad_norm=norm, **beside).items() if key.startswith("gradient"))


@pytest.mark.parametrize("trainer", [False, True])
def test_of_a_gradient_that_is_lost_for_good_the_step_at_which_that_begins_is_named(trainer: bool) -> None:
    """A scaler of float16 leaves out step 3, and at step 150 the run is lost."""
    beside = {"learning_rate": np.full(200, 1e-4), "epoch": STEPS / 200} if trainer else {}
    words = lost_gradient(3, since=150, loss=FALLING, **beside)
    assert words.startswith(
        "At step 150 the norm of the gradient is not finite, and the logged loss is finite. From then"
    )
    assert (
        "From then on no logged norm is finite. "
        "Before that it was not finite in 1 row that was looked at, first at step 3. " in words
    )
    assert ("Trainer" in words) is trainer
    loss_too = lost_gradient(3, since=150, loss=np.where(STEPS > 151, LOST, FALLING), **beside)
    assert loss_too.startswith("At step 150 the norm")
    often = lost_gradient(*range(40, 120, 5), since=200, loss=FALLING, **beside)
    assert often.startswith("At step 40 the norm")
    assert "finite. That is so in 16 rows that were looked at, the last at step 115. " in often
    alone = lost_gradient(since=199, loss=FALLING, **beside)
    assert "the logged loss is finite. If" in alone


def test_a_gradient_that_passed_is_no_cause_of_a_loss_that_is_lost_long_after() -> None:
    words = lost_gradient(3, since=150, loss=np.where(STEPS >= 150, LOST, FALLING))
    assert words.startswith(
        "At step 3 a logged norm of the gradient is not finite for the last time before the loss is lost, at"
    )
    assert "Between these steps every logged one is finite, and so is every logged loss of the training." in words


def test_of_a_loss_that_is_finite_again_it_is_said_and_when_it_is_lost_for_good() -> None:
    again = "At step 3 the loss is not finite. Later it is finite again; what it did then was not looked at. "
    once = np.where(STEPS == 3, LOST, FALLING)
    assert said(loss=once)["cannot_tell"].startswith(f"{again}The log holds")
    lost = said(loss=np.where(STEPS >= 150, LOST, once))["cannot_tell"]
    assert lost.startswith(f"{again}From step 150 on no logged loss is finite. The log holds")
    assert "again" not in said(loss=np.where(STEPS >= 150, LOST, FALLING))["cannot_tell"]


@pytest.mark.parametrize("earlier", [[100], [*range(100, 110)], [180], [*range(180, 190)]])
def test_of_zeros_that_last_the_first_is_named_and_none_that_came_before(earlier: list[int]) -> None:
    zeros = np.where(np.isin(STEPS, earlier) | (STEPS >= 194), 0.0, FALLING)
    found = run(log(loss=zeros)).causes[0]
    assert (found.key, found.numbers) == ("loss_zeros", {"step": 194.0})


@pytest.mark.parametrize("beside", [True, False])
def test_a_loss_that_is_missing_in_the_middle_of_a_log_is_not_called_well(beside: bool) -> None:
    """As pandas writes one that is NaN from step 80 to 119: rows with a rate, or with nothing but their step."""
    cells = [f"{at},{'' if 80 <= at < 120 else FALLING[at]},{'0.1' * beside}" for at in range(200)]
    (table_,) = read_logs("\n".join(["step,loss,lr", *cells]).encode(), "a.csv")
    (cause,) = run(table_).causes[:1]
    assert (cause.key, cause.numbers) == ("loss_gap", {"step": 79.0, "back": 120.0})
    (finding,) = of_logs([run(table_)], "a").findings
    assert finding.level == "watch"
    assert finding.sentence.startswith("Between step 79 and step 120 the log holds no loss")


@pytest.mark.parametrize("every", ["tenth", "wider", "doubling", "drawn", "sampled"])
def test_a_loss_that_is_logged_rarely_or_in_any_rows_has_no_gap(every: str) -> None:
    rows = {
        "tenth": STEPS % 10 == 0,
        "wider": (STEPS < 10) | (STEPS % 20 == 0),  # each of the first steps, then every twentieth
        "doubling": np.isin(STEPS, 2 ** np.arange(8)),
        "drawn": np.random.default_rng(1).random(200) < 0.3,
        "sampled": (STEPS < 80) | (STEPS >= 120),
    }[every]
    one = log(loss=np.where(rows, FALLING, NONE), lr=np.full(200, 0.1))
    found = run(replace(one, sampled=every == "sampled"))
    assert "loss_gap" not in [cause.key for cause in found.causes]


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


def test_the_policys_loss_is_looked_at_before_the_critics() -> None:
    """As TRL's PPOTrainer logs both, and what it called them before."""
    for policy, critic in (("loss/policy_avg", "loss/value_avg"), ("ppo/loss/policy", "ppo/loss/value")):
        beside = {critic: FALLING, "objective/rlhf_reward": STEPS / 200}
        found = run(log(**{policy: np.zeros(200)}, **beside))
        assert (found.roles["loss"], [cause.key for cause in found.causes]) == (policy, ["policy_loss"])
        lost = run(log(**{policy: np.where(STEPS > 150, LOST, 0.0)}, **beside))
        assert (lost.healthy, lost.causes[0].numbers["step"]) == (False, 151)


@pytest.mark.parametrize(
    "name", ["ppo/mean_non_score_reward", "objective/non_score_reward", "rollout/ep_rew_mean", "charts/episodic_return"]
)
def test_other_names_of_rewards_tell_a_loss_of_reinforcement_learning_too(name: str) -> None:
    assert [cause.key for cause in run(log(loss=FALLING[::-1], **{name: STEPS})).causes] == ["policy_loss"]


def test_a_policys_loss_is_told_by_its_own_name_where_no_reward_is_logged() -> None:
    found = run(log(**{"losses/policy_loss": FALLING[::-1], "losses/value_loss": FALLING}))
    assert [cause.key for cause in found.causes if cause.key != "of_several"] == ["policy_loss"]
    named = run(log(**{"losses/policy_loss": FALLING[::-1]}), {"loss": "losses/policy_loss"})
    assert "policy_loss" not in [cause.key for cause in named.causes]


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


def test_evaluations_that_come_more_often_than_losses_are_no_end() -> None:
    """As the Trainer logs every 500th step, and evaluates every 50th: 990 steps hold one loss, and none is lost."""
    history: list[dict[str, Any]] = [{"step": step, "eval_loss": 2.5} for step in range(50, 991, 50)]
    history.insert(10, {"step": 500, "loss": 2.4})
    (log,) = read_logs(json.dumps({"log_history": history}).encode(), "trainer_state.json")
    assert "loss_ends" not in {cause.key for cause in run(log).causes}
    history += [{"step": step, "eval_loss": 2.5} for step in range(1000, 4001, 50)]
    (log,) = read_logs(json.dumps({"log_history": history}).encode(), "trainer_state.json")
    assert "loss_ends" in {cause.key for cause in run(log).causes}
