"""The standalone program trains the same runs: every remedy, task, schedule and fork, against the engine."""

import csv
import io
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest

from qkdemo.labs.learning_rates.lab import Settings as Sweep
from qkdemo.labs.learning_rates.lab import plans_of
from qkdemo.labs.training.lab import Settings, plan_of
from qkdemo.labs.training.view import table_rows
from qkdemo.messages import say
from qkdemo.runs import program_parts
from qkdemo.runs.plan import Plan
from qkdemo.runs.program import AGREES, TOLERANCE, courses_of, program_of, sweep_program
from qkdemo.training.outcome import outcome_of
from qkdemo.training.remedies import REMEDIES
from qkdemo.training.tasks import LESSON_STEPS, TASKS, batch_of
from qkdemo.training.telemetry import CURVES
from qkdemo.training.trainer import Trainer
from tests.runs.kept.test_store import whole

SMALL: dict[str, Any] = {"n_layers": 2, "n_heads": 2, "d_head": 8, "n_keys": 12, "batch": 4, "steps": 20}
NAMES = [name for name in CURVES if not name.startswith("spectral")]


def output_of(program: str) -> list[dict[str, str]]:
    """What the program prints, run in this process: importing torch again takes seconds."""
    text = io.StringIO()
    with redirect_stdout(text):
        exec(compile(program, "program.py", "exec"), {"__name__": "__main__"})
    return list(csv.DictReader(io.StringIO(text.getvalue())))


def columns(rows: Sequence[dict[str, str]], run: int) -> dict[str, Any]:
    mine = [row for row in rows if row["run"] == str(run)]
    return {name: np.array([float(row[name]) for row in mine]) for name in CURVES}


def agrees(plan: Plan) -> None:
    rows = output_of(program_of(plan))
    curves = whole(plan).curves
    steps = min(plan.steps, 50)
    for run in range(len(plan.legs[-1].runs)):
        found = columns(rows, run)
        for at, name in enumerate(CURVES):
            engine = curves[:steps, run, at]
            if run >= 2:  # what stands beside a fork: its row held something else, or nothing, before
                engine = np.where(np.arange(steps) < plan.legs[-1].after, found[name][:steps], engine)
            if name == "loss":
                assert found[name][:steps] == pytest.approx(engine, abs=TOLERANCE / 10)
            else:
                looser = 0.01 if name.startswith("spectral") else 1e-3
                assert found[name][:steps] == pytest.approx(engine, rel=looser, abs=1e-5)


@pytest.mark.parametrize("variant", REMEDIES)
def test_every_remedy_is_trained_as_the_engine_trains_it(variant: Any) -> None:
    agrees(plan_of(Settings(**SMALL, variant=variant, schedule="constant", learning_rate=0.02, warmup=5, seed=3)))


@pytest.mark.parametrize("variant", ["rms", "qk_clip", "quack", "qk_lr", "sigma_reparam", "ngpt"])
def test_so_is_one_key_head_for_all(variant: Any) -> None:
    shared = {"shared_keys": True, "clip_threshold": 1.0, "schedule": "constant", "learning_rate": 0.02}
    agrees(plan_of(Settings(**SMALL, variant=variant, **shared)))


@pytest.mark.parametrize("step", [LESSON_STEPS, LESSON_STEPS + 1])
def test_the_words_are_those_of_the_engine_in_the_lesson_and_after_it(step: int) -> None:
    space: dict[str, Any] = {"np": np}
    exec(program_parts.TASKS["words"], space)
    symbols, counted = space["draw"](np.random.default_rng((3, 1, step)), 16, 33, step)
    batch = batch_of(TASKS["words"], 32, 16, 3, step)
    assert np.array_equal(symbols[:, :-1], batch.tokens)
    assert np.array_equal(symbols[:, 1:], batch.targets)
    assert np.array_equal(counted[:, :-1], batch.counted)
    assert len({*symbols[:, 0]}) > (2 if step > LESSON_STEPS else 1)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_gives_the_same_batches(task: Any) -> None:
    agrees(plan_of(Settings(**SMALL | {"steps": 20, "n_layers": 1}, task=task, learning_rate=0.05)))


@pytest.mark.parametrize(
    "dials",
    [
        {"schedule": "cosine", "warmup": 7, "learning_rate": 0.02, "weight_decay": 0.3},
        {"schedule": "ramp", "grad_clip": 0.0, "z_loss": 0.01, "beta1": 0.7, "beta2": 0.999, "learning_rate": 0.02},
        {"schedule": "constant", "warmup": 0, "qk_start": 3.0, "gamma": 2.0, "learning_rate": 0.002, "grad_clip": 0.1},
        {"variant": "cosine", "temperature": 0.5, "n_heads": 1, "learning_rate": 0.02},
        {"variant": "softcap", "softcap": 2.0, "qk_start": 3.0, "learning_rate": 0.005},
    ],
)
def test_so_does_every_other_dial(dials: dict[str, Any]) -> None:
    agrees(plan_of(Settings(**SMALL | dials)))


@pytest.mark.parametrize("variant", ["rms", "l2", "sigma_reparam", "ngpt", "quack", "qk_clip"])
def test_a_fork_is_retraced_from_the_beginning(variant: Any) -> None:
    forked = {"fork": "norm_on", "fork_at": 8, "variant": variant, "learning_rate": 0.02, "gamma": 1.5}
    agrees(plan_of(Settings(**SMALL, **forked)))


def test_a_fork_of_a_fork_is_retraced_too() -> None:
    first = {"fork": "rate", "fork_at": 8, "fork_rate": 0.01, "learning_rate": 0.02}
    plan = plan_of(Settings(**SMALL, **first, fork_2="qk_rate", fork_2_at=14))
    assert [len(course) for course in courses_of(plan)] == [3, 2, 2, 2]
    agrees(plan)


def test_the_default_run_agrees_to_the_stated_tolerance_before_it_learns() -> None:
    plan = plan_of(Settings())
    program = program_of(plan).replace("STEPS = 300", f"STEPS = {AGREES}")
    assert f"to {TOLERANCE:g} nats over the first {AGREES}" in program
    rows = output_of(program)
    engine = Trainer(plan.legs[0].runs, maps=False).advance(AGREES)
    for run in (0, 1):
        assert columns(rows, run)["loss"] == pytest.approx(engine.loss[:, run], abs=TOLERANCE)


def test_the_program_prints_the_columns_of_the_table_in_its_order_seeds_included() -> None:
    plan = plan_of(Settings(**SMALL | {"steps": 20, "n_layers": 1}), seeds=(3, 4))
    rows, table = output_of(program_of(plan)), table_rows(plan, whole(plan).curves)
    assert list(rows[0]) == list(table[0])
    assert {(row["run"], row["variant"], row["seed"]) for row in rows} == {
        (str(row["run"]), row["variant"], str(row["seed"])) for row in table
    }


def test_a_sweep_prints_every_runs_final_loss() -> None:
    settings = Sweep(**SMALL, n_rates=3, n_seeds=2, highest_rate=0.03)
    rows = output_of(sweep_program(plans_of(settings)))
    assert len(rows) == 12
    run = plans_of(settings)[2].legs[0].runs[3]
    found = next(row for row in rows if (row["variant"], row["seed"], row["learning_rate"]) == ("rms", "1", "0.03"))
    outcome = outcome_of(run, Trainer([run], maps=False).advance(settings.steps))
    assert float(found["final_loss"]) == pytest.approx(outcome.final_loss, abs=TOLERANCE)
    assert float(found["max_abs_logit"]) == pytest.approx(outcome.max_abs_logit, rel=1e-3)


def test_nobody_is_promised_that_a_run_near_the_limit_ends_alike() -> None:
    settings = Sweep(**SMALL, n_rates=3, n_seeds=2, highest_rate=0.03)
    for program in (program_of(plan_of(Settings(**SMALL))), sweep_program(plans_of(settings))):
        assert "rounding decides how a run ends" in " ".join(program.split())
    for key in ("takeaway.code_help_training", "takeaway.code_help_sensitivity", "training.seeds.rounding"):
        assert "rounding decides how a" in say(key)
        assert "agree in kind" not in say(key)
        assert "sooner at high rates" in say(key) or "first 20" not in say(key)
        assert "story stays the same" not in say(key)


def test_the_program_stands_alone_and_is_short() -> None:
    program = program_of(plan_of(Settings(**SMALL)))
    assert "qkdemo" not in program
    assert len(program.splitlines()) < 220
    assert max(map(len, program.splitlines())) <= 240  # a run's dials may be long
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd="/", timeout=120
    )
    assert len(done.stdout.splitlines()) == 1 + 2 * SMALL["steps"]
