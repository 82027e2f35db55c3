"""Loss over learning rates: which runs it takes, where its wall stands, and what is said of it."""

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qkdemo.labs.learning_rates.command import BASE
from qkdemo.labs.learning_rates.lab import (
    PRESETS,
    Result,
    Settings,
    around,
    order,
    plans_of,
    point_rows,
    rates_of,
    result_of,
    run_rows,
    seeds_of,
    seen_of,
    words_of,
)
from qkdemo.labs.learning_rates.max_stable_lr import Curve, Wall, how_far, seed_walls, wall_of
from qkdemo.labs.learning_rates.sensitivity import Point
from qkdemo.labs.learning_rates.view import _HEADS, Own, own_of, picked, rates_exhibit, words_of_own
from qkdemo.labs.learning_rates.words import explain, finding
from qkdemo.labs.training.lab import Settings as Run
from qkdemo.labs.training.lab import plan_of
from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.runs.kept.record import Chunk
from qkdemo.runs.workers.live import Live
from qkdemo.training.outcome import ends_of
from qkdemo.training.settings import identity
from qkdemo.training.telemetry import CURVES
from tests.strategies import settings_of

RATES = (0.001, 0.01, 0.1, 0.3)


def curve_of(word: Any, *means: float) -> Curve:
    return Curve(word, tuple(Point(r, (m,), 2.9) for r, m in zip(RATES, means, strict=True)), ((),) * 4)


def result_with(plain: Curve, twin: Curve) -> Result:
    return Result(Settings(n_rates=4, lowest_rate=0.001, highest_rate=0.3), RATES, (plain, twin))


def telemetry_of(settings: Settings, losses: list[list[float]]) -> list[Any]:
    """Telemetry of every plan: a constant loss per run, after a first step at 2.8."""
    found = []
    for plan, row in zip(plans_of(settings), losses, strict=True):
        curves = np.ones((settings.steps, plan.width, len(CURVES)), np.float32)
        curves[:, :, CURVES.index("loss")] = row
        curves[0, :, CURVES.index("loss")] = 2.8
        found.append(curves)
    return found


@given(settings_of(Settings))
@example(Settings(lowest_rate=0.01, highest_rate=0.03, n_rates=17))
def test_rates_rise_from_the_lowest_to_the_highest_and_are_as_many_as_asked_for(settings: Settings) -> None:
    rates = rates_of(settings)
    assert len(rates) == settings.n_rates
    assert (rates[0], rates[-1]) == (settings.lowest_rate, settings.highest_rate)
    assert list(rates) == sorted(set(rates))  # none twice
    assert seen_of(settings)["learning_rate"] in rates


@given(st.integers(2, 40))
def test_every_rate_is_trained_once_and_both_ends_first(n: int) -> None:
    assert sorted(order(n)) == list(range(n))
    assert order(n)[:2] == [0, n - 1]


def test_plain_attention_comes_first_and_no_remedy_twice() -> None:
    assert words_of(Settings(second="rms", third="l2")) == ("none", "rms", "l2")
    assert words_of(Settings(variant="none")) == ("none",)


def test_a_dial_that_only_another_remedy_has_stays_at_its_default() -> None:
    """As the help of the dial says: it is not on the page, though a link or another page may have set it."""
    told = Settings(variant="rms", second="softcap", third="layernorm", softcap=20, gamma=3)
    runs = {run.variant: run for run in plans_of(told)[0].legs[0].runs}
    assert runs["softcap"].softcap == Settings().softcap
    assert runs["rms"].gamma == runs["layernorm"].gamma == 3
    assert runs["none"].gamma == 1


def test_the_runs_are_those_of_the_command_line() -> None:
    settings = Settings()
    run = plans_of(settings)[4].legs[0].runs[5]
    alone = BASE.but(variant="rms", seed=2, learning_rate=rates_of(settings)[4])
    assert identity(run) == identity(alone)


def test_seeds_stay_in_the_dials_range() -> None:
    assert seeds_of(Settings(seed=9999, n_seeds=3)) == (9997, 9998, 9999)


def test_the_wall_stands_between_the_last_rate_that_is_solved_and_the_next_one() -> None:
    """A line through both losses would find a rate in between, as near to the first as the second loss is high."""
    assert wall_of(curve_of("none", 2, 0, 0, 0.2), Settings()) == Wall(0.1, 0.3)
    assert wall_of(curve_of("none", 2, 0, 0, 2.9), Settings()) == Wall(0.1, 0.3)
    assert wall_of(curve_of("none", 2, 0, 0, 0), Settings()) == Wall(0.3, None)


def test_a_curve_that_dips_again_beyond_its_wall_is_not_read_past_it() -> None:
    assert wall_of(curve_of("none", 0, 1, 0.01, 2), Settings()) == Wall(0.001, 0.01)


def test_without_a_solved_rate_or_a_known_floor_there_is_no_wall() -> None:
    assert wall_of(curve_of("none", 2, 1, 1, 2), Settings()) is None
    assert wall_of(curve_of("none", 2, 0, 0, 2), Settings(task="text")) is None


def test_of_a_task_whose_least_loss_nobody_knows_no_curve_is_said_to_fail() -> None:
    """Nothing is called solved there, so “solves it at none of these rates” would say nothing of the runs."""
    settings = Settings(task="text", n_rates=4, lowest_rate=0.001, highest_rate=0.3, n_seeds=1)
    result = result_of(settings, telemetry_of(settings, [[2.0] * plan.width for plan in plans_of(settings)]))
    assert "at none of these rates" not in finding(result)
    assert "2 nats with plain attention and 2 with RMSNorm" in finding(result)
    assert not [sentence for sentence in explain(result) if "solved the task" in sentence]


@pytest.mark.parametrize(
    ("plain", "twin", "words"),
    [
        (
            (2, 0, 0.2, 2),
            (2, 0, 0, 0.2),
            "of 0.01, and not at 0.1; RMSNorm up to 0.1, and not at 0.3 (this model and task).",
        ),
        (
            (2, 0, 0, 1),
            (2, 0, 0, 1),
            "both solve the task up to a learning rate of 0.1, and not at 0.3, the next one tried",
        ),
        (
            (2, 0, 0, 0.2),
            (2, 0, 0.2, 1),
            "up to a learning rate of 0.1, and not at 0.3; RMSNorm only up to 0.01, and not at 0.1",
        ),
        ((2, 0, 0, 1), (2, 0, 0, 0), "RMSNorm still at 0.3, the highest rate tried"),
        ((2, 0, 0, 0), (2, 0, 0, 1), "Plain attention solves the task still at a learning rate of 0.3"),
        ((2, 0, 0, 0), (2, 0, 0, 0), "Plain attention and RMSNorm both solve"),
        ((2, 1, 1.5, 2), (2, 1.25, 1.5, 2), "losses are 1 and 1.25 nats"),
        (
            (2, 1, 1, 2),
            (2, 0, 0, 1),
            "plain attention solves the task at none of these rates; RMSNorm up to 0.1, and not at 0.3",
        ),
        ((2, 1, 1, 2), (2, 0, 0, 0), "none of these rates; RMSNorm still at 0.3"),
        ((2, 0, 0, 1), (2, 1, 1, 2), "RMSNorm at none of these rates"),
        ((2, 0, 0, 0), (2, 1, 1, 2), "RMSNorm at none of these rates"),
    ],
)
def test_the_headline_says_what_the_walls_are(plain: Any, twin: Any, words: str) -> None:
    assert words in finding(result_with(curve_of("none", *plain), curve_of("rms", *twin)))


def seeds_curve(word: Any, *losses: tuple[float, ...]) -> Curve:
    return Curve(word, tuple(Point(r, some, 2.9) for r, some in zip(RATES, losses, strict=True)), ((),) * 4)


def test_the_table_says_from_where_to_where_single_seeds_are_solved() -> None:
    plain = seeds_curve("none", (2, 2), (0, 0), (0, 1), (1, 2))  # the mean is not solved where the first seed still is
    twin = seeds_curve("rms", (2, 2), (0, 0), (0, 0), (0.2, 1))
    assert seed_walls(plain, Settings()) == (Wall(0.1, 0.3), Wall(0.01, 0.1))
    assert how_far(plain, Settings()) == "0.01, not at 0.1 (by seed: 0.01 to 0.1)"
    assert how_far(twin, Settings()) == "0.1, not at 0.3 (each seed alone: 0.1)"
    assert how_far(curve_of("none", 2, 0, 0, 2), Settings()) == "0.1, not at 0.3"


def test_a_seed_that_is_never_or_always_solved_has_an_end_in_words() -> None:
    plain = seeds_curve("none", (2, 2, 2), (0, 0.05, 0.12), (0, 2, 2), (0, 2, 2))
    assert how_far(plain, Settings()) == "0.01, not at 0.1 (by seed: none to 0.3 or more)"
    assert how_far(curve_of("none", 2, 0, 0, 0), Settings()) == "0.3 or more"


@given(
    st.integers(1, 5).flatmap(lambda n: st.lists(st.tuples(*[st.floats(0, 3)] * n), min_size=4, max_size=4)),
)
def test_no_seed_alone_ends_before_all_of_them_do_and_the_mean_not_before_the_first(losses: Any) -> None:
    curve = seeds_curve("none", *losses)
    wall = wall_of(curve, Settings())
    if wall is not None:
        assert min(0.0 if one is None else one.last_solved for one in seed_walls(curve, Settings())) <= wall.last_solved


SMALL = Settings(n_rates=3, n_seeds=2, steps=100)


def test_points_outcomes_and_rows_come_from_the_telemetry() -> None:
    losses = [[0.0, 0.2, 0.0, 0.0], [0, 0, 0, 0], [2.9, math.nan, 0.05, 2.7]]
    result = result_of(SMALL, telemetry_of(SMALL, losses))
    rows = point_rows(result)
    assert [row["variant"] for row in rows] == ["none"] * 3 + ["rms"] * 3
    assert rows[0]["mean_final_loss"] == pytest.approx(0.1)
    assert (rows[0]["lowest"], rows[0]["highest"]) == pytest.approx((0, 0.2))
    assert rows[2]["mean_final_loss"] == pytest.approx(2.8)  # above its first, and not finite: both count as that
    assert (rows[2]["failed"], rows[2]["non_finite"], rows[2]["diverged"]) == (2, 1, 0)
    assert [(row["seed"], row["outcome"]) for row in run_rows(result)][-2:] == [(0, "solved"), (1, "failed")]
    said = " ".join(explain(result))
    assert "Of 6 runs with plain attention 3 solved the task, 1 did so partly, and 2 failed: " in said
    assert (
        "failed: 1 ended near chance or above it, 1 became non-finite. In 0 of all 6 the loss rose on the way" in said
    )
    assert "plain attention 0.729 (0.025 of it from rates below its best, 0.7 from rates above)" in said


def test_every_run_of_a_finished_sweep_has_an_end_and_all_ends_add_up_to_all_runs() -> None:
    losses = [[1.9, 2.77, 0.05, 0.6], [0, 0, 0, 0], [2.9, math.nan, 0.05, 2.7]]
    result = result_of(SMALL, telemetry_of(SMALL, losses))
    for curve in result.curves:
        ends = ends_of(curve.all_outcomes)
        assert sum(ends.values()) == len(curve.all_outcomes) == 6
    table = rates_exhibit(result, None)[1]["panels"][-1]
    columns = {say(f"rates.head.{name}"): at for at, name in enumerate(_HEADS, 1)}
    for row in table["rows"]:
        cells = {head: row[at]["text"] for head, at in columns.items()}
        counts = [int(cells[head]) for head in ("solved", "partly", "failed")]
        assert sum(counts) == 6
        how = [int(number) for number in re.findall(r"\d+", cells["how those failed"])]
        assert sum(how) == counts[2]
    assert table["rows"][0][columns["how those failed"]]["text"] == (
        "2 ended near chance or above it, 1 ended at most half-way down, 1 became non-finite"
    )
    assert [row["end"] for row in run_rows(result)][:2] == ["slow", "chance"]


def test_a_loss_that_is_small_is_written_as_a_small_number_and_not_as_zero() -> None:
    settings = SMALL.but(n_rates=3)
    result = result_of(settings, telemetry_of(settings, [[1e-5, 4.2e-5, 0.25, 0.5]] * 3))
    table, _ = rates_exhibit(result, None)
    assert table["plain.range.text"][0].as_py() == "1·10⁻⁵ to 4·10⁻⁵"
    assert table["plain.loss.text"][0].as_py() == written(2.6e-5, 3)
    assert table["norm.range.text"][0].as_py() == "0.25 to 0.5"


def test_ends_of_a_range_that_are_written_alike_are_written_once() -> None:
    settings = SMALL.but(n_rates=3)
    result = result_of(settings, telemetry_of(settings, [[2.0e-3, 2.2e-3, 2.76, 2.79]] * 3))
    table, _ = rates_exhibit(result, None)
    assert table["plain.range.text"][0].as_py() == "about 2·10⁻³"
    assert table["norm.range.text"][0].as_py() == "about 2.8"
    one = SMALL.but(n_seeds=1)
    table, _ = rates_exhibit(result_of(one, telemetry_of(one, [[2.768, 0.1]] * 3)), None)
    assert table["plain.range.text"][0].as_py() == table["plain.loss.text"][0].as_py() == "2.77"


def finished(rate: float) -> Live:
    """A run of the training page at that rate, finished."""
    plan = plan_of(Run(schedule="constant", learning_rate=rate, steps=20))
    curves = np.ones((20, plan.width, len(CURVES)), np.float32)
    chunk = Chunk(1, curves, np.empty((0, 2, *plan.map_shape), np.uint8), ())
    return Live(plan, "", 1, state="finished", chunks=[chunk])


def test_a_run_at_a_rate_beyond_the_curves_is_neither_drawn_nor_spoken_of() -> None:
    settings = Settings()
    found = [own_of(finished(rate), settings) for rate in (0.0009, 0.001, 0.3, 0.31)]
    assert [one is not None for one in found] == [False, True, True, False]


def test_a_marked_loss_above_the_frame_is_said_to_lie_higher() -> None:
    _, view = rates_exhibit(result_of(SMALL, telemetry_of(SMALL, [[0.5] * 4] * 3)), None)
    (_, top) = view["panels"][0]["y"]["domain"]
    for loss, said in ((top * 0.99, False), (top * 1.01, True), (math.nan, False)):
        words = words_of_own(Own(0.05, "cosine", "rms", (loss, 0.1), (100.0, 10.0)), SMALL)
        assert (say("rates.own.edge") in words) == said


def test_what_is_not_trained_yet_is_said_drawn_as_a_gap_and_counted_nowhere() -> None:
    trained = telemetry_of(SMALL, [[0.0] * 4] * 3)
    result = result_of(SMALL, [trained[0], None, trained[2]])
    assert finding(result) == "2 of 3 learning rates are trained so far."
    assert len(point_rows(result)) == 4
    assert "LR sensitivity" not in " ".join(explain(result))
    table, _ = rates_exhibit(result, None)
    assert np.isnan(table["plain.loss"].to_numpy()).tolist() == [False, True, False]
    assert table["plain.loss.text"].to_pylist()[1] == say("rates.unknown")


def test_of_one_seed_no_plural_is_said() -> None:
    settings = SMALL.but(n_seeds=1)
    trained = telemetry_of(settings, [[0.0] * plan.width for plan in plans_of(settings)])
    for done, runs in ((1, "one run"), (2, "2 runs")):
        first = [curves if at < done else None for at, curves in enumerate(trained)]
        panels = rates_exhibit(result_of(settings, first), None)[1]["panels"]
        assert panels[0]["subtitle"] == "nats; one seed"
        assert panels[-1]["title"] == f"What became of {runs} of each"


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("done", [0, 1, 3])
def test_every_preset_can_be_drawn_at_every_stage(name: str, done: int) -> None:
    import json  # noqa: PLC0415

    settings = PRESETS[name].but(steps=40)
    count = len(plans_of(settings))
    losses = [[0.5] * plan.width for plan in plans_of(settings)]
    trained = [curves if at < done else None for at, curves in enumerate(telemetry_of(settings, losses))]
    result = result_of(settings, trained)
    own = Own(0.05, "ramp", "rms", (math.nan, 0.1), (100.0, 10.0))
    table, view = rates_exhibit(result, own)
    text = json.dumps(view, allow_nan=False)
    assert table.num_rows == count
    assert "{" not in "".join(explain(result))
    assert len(text) < 20_000
    assert [point["role"] for point in view["panels"][0]["points"]] == ["norm"]  # NaN is no point


def test_a_click_sets_the_nearest_rate_and_a_crafted_one_nothing() -> None:
    assert picked(Settings(), {"dial": 0.07}) == {"learning_rate": 0.072}
    assert picked(Settings(), {"dial": 1e9}) == {}
    assert picked(Settings(), {"query": 1, "key": 2}) == {}


def test_a_ramp_stands_among_curves_of_the_default_schedule() -> None:
    from qkdemo.training.settings import Settings as Run  # noqa: PLC0415

    assert around(Run()).schedule == "cosine"
    found = around(Run(schedule="constant", warmup=7, steps=60, batch=16))
    assert (found.schedule, found.warmup, found.steps, found.batch) == ("constant", 7, 60, 16)


@pytest.mark.parametrize("rate", [1e-5, 5e-4, 0.001, 0.3, 0.5, 3.0])
def test_the_curves_among_which_a_run_stands_reach_as_far_as_its_rate(rate: float) -> None:
    from qkdemo.training.settings import Settings as Run  # noqa: PLC0415

    found = around(Run(schedule="constant", learning_rate=rate, steps=20))
    assert own_of(finished(rate), found) is not None
    assert (found.lowest_rate, found.highest_rate) == (min(rate, 0.001), max(rate, 0.3))
