"""Pages that have a chart to explore: it is there, says what it shows, and a click filters."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import streamlit as st

from qkdemo.labs import learning_rates, models
from qkdemo.labs.cost import Settings, measure
from qkdemo.labs.training.lab import Settings as Training
from qkdemo.labs.training.lab import plan_of
from qkdemo.messages import say
from qkdemo.runs.plan import twins
from qkdemo.training.settings import Settings as Run
from qkdemo.training.telemetry import CURVES
from qkdemo.web import explored
from tests.runs.plans import trained_curves
from tests.web.visit import visit

Chart = tuple[list[dict[str, Any]], Mapping[str, Any], str]


@pytest.fixture
def charts(monkeypatch: pytest.MonkeyPatch) -> list[Chart]:
    """What is drawn, instead of on a page: table, spec and words."""
    found: list[Chart] = []

    def draw(table: Any, spec: Mapping[str, Any], **more: Any) -> None:
        found.append((table.to_pylist(), spec, more["alt"]))

    monkeypatch.setattr(st, "vega_lite_chart", draw)
    return found


def test_many_seeds_have_a_dot_for_every_run_whose_loss_is_a_number(charts: list[Chart]) -> None:
    plan = twins(Run(steps=20, n_keys=8, n_layers=1, n_heads=1, d_head=8), (0, 1, 2))
    explored.seeds_explored(plan, trained_curves(plan))
    ((rows, spec, words),) = charts
    assert len(rows) == 6
    assert [row["name"] for row in rows[:2]] == ["plain", "RMSNorm"]
    assert spec["layer"][0]["encoding"]["x"]["title"] == "final loss of a run, nats"
    assert [row["said"] for row in rows[:2]] == [say("training.panel.seed", seed=0)] * 2
    assert {row["shape"] for row in rows} <= {say(f"rates.head.{word}") for word in ("solved", "partly", "failed")}
    assert words


def test_a_dot_of_seeds_that_were_forked_is_named_by_what_its_run_became(charts: list[Chart]) -> None:
    sizes = {"steps": 20, "n_keys": 8, "n_layers": 1, "n_heads": 1, "d_head": 8}
    plan = plan_of(Training(**sizes, fork="norm_on", fork_at=5), (0, 1))
    explored.seeds_explored(plan, np.full((plan.steps, 4, len(CURVES)), 2.0, np.float32))
    ((rows, spec, _),) = charts
    names = ["plain, then RMSNorm", "RMSNorm"]
    assert [row["name"] for row in rows] == names * 2
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == names


def test_measured_cost_has_a_dot_for_every_round_of_every_way(charts: list[Chart]) -> None:
    ticks = iter(range(10_000))
    measured = measure(Settings(n_keys=16, repeats=3), clock=lambda: float(next(ticks)))
    explored.times_explored(measured)
    ((rows, _, words),) = charts
    assert len(rows) == 3 * len(measured.times)
    assert {row["x"] for row in rows} == {ms for times in measured.times for ms in times.each_ms}
    assert "ms" in words


def test_a_matrix_counts_every_row_once_and_says_so(charts: list[Chart]) -> None:
    result = models.run(models.Settings(normed="yes"))
    explored.counts_explored(result)
    ((rows, _, words),) = charts
    assert sum(row["count"] for row in rows) == len(result.models)
    for row in rows:
        assert f"{row['up']}, {row['across']}: {row['count']}" in words
        narrowed = {name: row[name] for name in ("norm", "place", "order")}
        assert len(models.run(models.Settings(normed="yes", **narrowed)).models) == row["count"]
    assert sum(row["first"] for row in rows) == len({row["norm"] for row in rows})


def test_a_class_before_and_after_has_a_point_for_each_that_was_asked(charts: list[Chart]) -> None:
    lines = [{"pre": 0.25, "post": 0.75}, {"pre": None, "post": 1.0}]
    explored.changes_explored(lines, ["one", "two"], ("before", "after"), "words")
    ((rows, _, _),) = charts
    assert [(row["name"], row["when"], row["share"]) for row in rows] == [
        ("one", "before", 0.25),
        ("one", "after", 0.75),
        ("two", "after", 1.0),
    ]


def test_models_have_their_counts_and_a_chart_has_its_table() -> None:
    app = visit("models", {})
    assert not app.get("vega_lite_chart")
    app.segmented_control(key="models:takeaway").set_value(say("explored.counts_tab")).run()
    assert not app.exception
    assert len(app.get("vega_lite_chart")) == 1
    assert [each.label for each in app.expander if each.label == say("explored.table")] != []


def test_a_click_in_the_matrix_filters_by_all_three_words_and_a_second_one_takes_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turned: list[Mapping[str, Any]] = []
    monkeypatch.setattr(explored, "turn", lambda cls, prefix, values: turned.append(values))
    words = {"norm": "l2", "place": "per_head", "order": "no_rotary"}
    monkeypatch.setattr(st, "session_state", {"explored:counts": {"selection": {explored.explored.PICK: [words]}}})
    explored._filter(models.Settings())
    explored._filter(models.Settings(norm="l2", place="per_head", order="no_rotary"))
    assert turned == [words, dict.fromkeys(words, "any")]


def test_learning_rates_have_a_point_with_its_spread_for_every_rate_and_curve(charts: list[Chart]) -> None:
    grid = {"n_rates": 3, "n_seeds": 2, "steps": 20, "n_keys": 8, "n_layers": 1, "n_heads": 1, "d_head": 8}
    result = learning_rates.LAB.run(learning_rates.Settings(**grid))
    explored.losses_explored(result)
    ((rows, _, words),) = charts
    assert len(rows) == 3 * 2
    assert all(row["low"] <= row["mean"] <= row["high"] for row in rows)
    assert {row["x"] for row in rows} == {*result.rates}
    assert words
