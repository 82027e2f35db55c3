"""What training takes is known before, bounded for every legal state, and the bounds change no number."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from qkdemo.labs.learning_rates import lab as rates
from qkdemo.labs.training import lab as training
from qkdemo.runs import budget, trainers
from qkdemo.runs.batches import price_of, together
from qkdemo.runs.budget import (
    GROUP_BYTES,
    PLAN_BYTES,
    at_once,
    by_seeds,
    free_memory,
    is_dear,
    joined_curves,
    plan_bytes,
    price,
    seconds_of,
    step_bytes,
)
from qkdemo.runs.durations import duration
from qkdemo.runs.plan import Plan, forked_at, twins
from qkdemo.runs.train_to_end import train_whole
from qkdemo.runs.trainers import Trainers
from qkdemo.training.settings import Settings
from qkdemo.training.trainer import State, Trainer
from tests.runs.kept.test_store import PLAN, SLOWER, SMALL, same, whole
from tests.strategies import settings_of

LARGEST: dict[str, Any] = {"steps": 3000, "n_layers": 4, "n_heads": 4, "d_head": 64, "n_keys": 64, "batch": 32}
ISSUE = rates.Settings(n_rates=17, n_seeds=10, **LARGEST)
FOUR_CURVES = ISSUE.but(second="sigma_reparam", third="ngpt")
TWENTY_SEEDS = training.plan_of(training.Settings(**LARGEST), tuple(range(20)))


def largest_parts() -> list[Plan]:
    whole = [*rates.plans_of(ISSUE)[:1], *rates.plans_of(FOUR_CURVES)[:1], TWENTY_SEEDS]
    return [part.plan for plan in whole for part in by_seeds(plan)]


# ---- bounds


@given(settings_of(rates.Settings))
@hypothesis_settings(max_examples=15)
def test_no_legal_sweep_has_a_plan_that_holds_more_than_its_share(settings: rates.Settings) -> None:
    for parts in rates.parts_of(settings):
        assert max(plan_bytes(part.plan) for part in parts) <= PLAN_BYTES


def test_the_largest_legal_states_are_trained_in_groups_of_seeds() -> None:
    assert max(plan_bytes(plan) for plan in largest_parts()) <= PLAN_BYTES
    assert [len(by_seeds(plan)) > 1 for plan in (rates.plans_of(ISSUE)[0], TWENTY_SEEDS)] == [True, True]
    for plan in (*rates.plans_of(ISSUE)[:1], TWENTY_SEEDS):
        parts = by_seeds(plan)
        assert sorted(column for part in parts for column in part.columns) == list(range(plan.width))
        seeds = [{run.seed for run in part.plan.legs[0].runs} for part in parts]
        assert len(set.union(*seeds)) == sum(map(len, seeds))  # no seed in two of them
        sizes = [part.plan.width for part in parts]
        assert max(sizes) - min(sizes) <= max(sizes) / 2


@pytest.mark.parametrize("name", [*rates.PRESETS])
def test_what_is_small_enough_keeps_its_plan_and_its_record(name: str) -> None:
    for plan, parts in zip(rates.plans_of(rates.PRESETS[name]), rates.parts_of(rates.PRESETS[name]), strict=True):
        assert [part.plan for part in parts] == [plan]
    assert [part.plan.name for part in by_seeds(twins(SMALL, range(20)))] == [twins(SMALL, range(20)).name]


def test_as_many_runs_take_a_step_together_as_there_is_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Settings(**LARGEST)
    assert at_once(run, 10 * step_bytes(run)) == 10
    assert at_once(run, 0) == 1
    monkeypatch.setattr(budget, "free_memory", lambda: 80 * step_bytes(run))
    assert at_once(run) == max(1, GROUP_BYTES // step_bytes(run))
    small = Settings()
    monkeypatch.setattr(budget, "free_memory", lambda: 80 * step_bytes(small))
    assert at_once(small) == 10
    assert {len(batch) for batch in together([small.but(seed=seed) for seed in range(20)])} == {10}


MEASURED = """
from pathlib import Path
import torch
torch.set_num_threads(1)
from qkdemo.runs.batches import keep_freed_memory
from qkdemo.runs.workers.job import Hand, Job, train
from tests.runs.test_budget import largest_parts
from qkdemo.runs.budget import plan_bytes
keep_freed_memory()
plan = max(largest_parts(), key=plan_bytes)
def peak():  # in bytes; of this program alone, where ru_maxrss begins at what the one that started it had
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
before = peak()
train(Job(plan, 1, 0), None, Hand(), lambda *frame: None)
print(plan_bytes(plan), peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there /proc says it")
def test_the_largest_legal_state_takes_no_more_memory_than_was_said() -> None:
    root = Path(__file__).parents[2]
    said, taken = map(
        int,
        subprocess.run(
            [sys.executable, "-c", MEASURED],
            stdout=subprocess.PIPE,
            check=True,
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root)},
        ).stdout.split(),
    )
    assert said <= PLAN_BYTES
    assert taken <= 1.2 * said
    assert taken >= said / 3  # and what is said is no excuse


# ---- the numbers stay


def in_groups(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(trainers, "at_once", lambda run: size)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_runs_that_take_turns_within_a_step_have_the_same_numbers(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    in_groups(monkeypatch, size)
    fork = forked_at(PLAN, 20, [SLOWER, SLOWER], more=15)
    for plan in (PLAN, fork, twins(SMALL, (3, 4))):
        monkeypatch.setattr(trainers, "at_once", lambda run: 100)
        together = train_whole(plan)
        in_groups(monkeypatch, size)
        assert same(train_whole(plan), together)


def test_a_group_goes_on_from_its_own_rows_of_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    in_groups(monkeypatch, 2)
    runs = [SMALL.but(seed=seed, variant=word) for seed in range(2) for word in ("none", "rms")] + [SMALL.but(seed=9)]
    apart, together = Trainers(runs, maps=False), Trainer(runs, maps=False)
    for trained in (apart, together):
        trained.advance(3)
    assert [list(group) for group in apart.groups] == [[0, 1], [2, 3], [4]]
    assert all(a.equal(b) for a, b in zip(apart.state.tensors(), together.state.tensors(), strict=True))
    again = Trainers(runs, apart.state, maps=False)
    assert again.step == 3
    assert np.array_equal(again.advance(2).loss, together.advance(2).loss)
    mixed = apart.rows([4, 0, 3])
    assert all(a.equal(b[[4, 0, 3]]) for a, b in zip(mixed.tensors(), apart.state.tensors(), strict=True))
    assert isinstance(mixed, State)


def test_a_stop_is_heeded_between_steps_and_every_group_is_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    in_groups(monkeypatch, 1)
    beats: list[int] = []
    read = Trainers(PLAN.legs[0].runs).advance(10, lambda: len(beats) < 4, lambda: beats.append(1))
    assert len(read) == 2
    assert len(beats) == 4


def test_parts_that_are_trained_apart_make_the_same_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = rates.plans_of(rates.Settings(**{name: getattr(SMALL, name) for name in SMALL.as_dict()}, n_seeds=3))[0]
    monkeypatch.setattr(budget, "PLAN_BYTES", 1)
    parts = by_seeds(plan)
    assert [part.columns for part in parts] == [(0, 3), (1, 4), (2, 5)]
    curves = joined_curves(parts, [train_whole(part.plan).curves for part in parts])
    assert np.array_equal(curves, whole(plan).curves)
    forked = forked_at(twins(SMALL, (1, 2)), 20, [SLOWER, SLOWER], more=15, beside=False)
    apart = by_seeds(forked)
    assert len(apart) == 2
    curves = joined_curves(apart, [train_whole(part.plan).curves for part in apart])
    assert np.array_equal(curves, whole(forked).curves)


# ---- what it costs, in words


def test_what_opens_by_a_link_alone_is_no_more_than_two_minutes_of_computing() -> None:
    for sweep in rates.PRESETS.values():
        assert not is_dear(rates.plans_of(sweep))
    for run in training.PRESETS.values():
        assert not is_dear([training.plan_of(run)])
    assert is_dear([part.plan for parts in rates.parts_of(ISSUE) for part in parts])
    assert is_dear([training.plan_of(training.Settings(**LARGEST))])


def test_more_of_anything_costs_more() -> None:
    costs = [seconds_of(plan) for plan in (PLAN, twins(SMALL.but(steps=80)), twins(SMALL.but(steps=80), range(3)))]
    assert costs == sorted(costs)
    assert costs[1] == pytest.approx(2 * costs[0])
    larger = [step_bytes(SMALL.but(**more)) for more in ({}, {"batch": 32}, {"n_keys": 64}, {"d_head": 64})]
    assert min(larger) == larger[0]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "1 s"),
        (8.4, "8 s"),
        (119, "119 s"),
        (2746, "46 min"),
        (7199, "120 min"),
        (9000, "2.5 h"),
        (380000, "4.4 days"),
    ],
)
def test_how_long_is_said_in_a_unit_that_one_can_picture(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_the_price_is_said_in_time_and_memory() -> None:
    assert price(2746, 512 << 20) == "about 46 min of computing and up to 537 MB of memory"
    assert price(2, 4 << 30) == "about 2 s of computing and up to 4.3 GB of memory"
    assert price_of([SMALL, SMALL.but(seed=1)]).startswith("about 1 s of computing and up to ")


def test_some_memory_is_free_here() -> None:
    assert 1 << 20 < free_memory() < 1 << 50
