"""The recorded runs that come with the app: whole, small, of the pages' own settings, and what the engine gives."""

import json
import logging
import zipfile
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qkdemo.labs.learning_rates import lab as rates
from qkdemo.labs.training import lab as training
from qkdemo.runs.kept import shipped as module
from qkdemo.runs.kept.record import Chunk
from qkdemo.runs.kept.shipped import FILE, SHADE, Shipped, shipped, write
from qkdemo.runs.kept.store import Record
from qkdemo.runs.plan import Plan, forked_at, outcomes
from qkdemo.runs.train_to_end import train_whole
from qkdemo.runs.trainers import Course
from qkdemo.runs.workers import recall
from qkdemo.runs.workers.recall import Recall
from qkdemo.training.outcome import LAST_STEPS
from qkdemo.training.settings import ENGINE
from qkdemo.training.telemetry import CURVES
from tests.runs.kept.test_store import PLAN, whole
from tests.shipped import EVERY_STEP, LAST, MAPS, plans, shaped

PLANS = [pytest.param(plan, maps, id=f"{plan.width}-{plan.steps}-{plan.name[:4]}") for plan, maps in plans().items()]
LARGEST_KIB = 700
FIRST = 15  # steps that another processor takes with the same numbers, but for what training makes of rounding
AT_ONCE = 5  # of these, before a hot run makes much of it
SHARP = training.plan_of(training.PRESETS["sharp"])  # the one that is trained fastest


def record_of(plan: Plan) -> Record:
    found = shipped().record(plan)
    assert found is not None
    return found


@lru_cache(maxsize=1)
def sharp() -> Chunk:
    return train_whole(SHARP)


# ---- what is in the file


def test_what_the_pages_open_with_is_shipped_and_nothing_else() -> None:
    opened = [training.plan_of(training.Settings()), *rates.plans_of(rates.Settings())]
    assert {plan.name for plan in opened} <= set(shipped().names)
    assert set(shipped().names) == {plan.name for plan in plans()}
    assert FILE.stat().st_size <= LARGEST_KIB * 1024


@pytest.mark.parametrize(("plan", "maps"), PLANS)
def test_a_shipped_run_is_whole(plan: Plan, maps: int) -> None:
    record = record_of(plan)
    assert record.finished
    assert record.shipped
    assert record.engine == ENGINE
    assert record.plan == shipped().plan(plan.name) == plan
    assert record.chunk.curves.shape == (plan.steps, plan.width, len(CURVES))
    mapped = record.chunk.mapped
    assert 0.9 * maps <= len(mapped) <= maps
    assert mapped[:1] == ((1,) if maps else ())
    assert mapped[-1:] == ((plan.steps,) if maps else ())
    assert all(early < late for early, late in pairwise(mapped))
    assert record.chunk.maps.shape == (len(mapped), plan.width, *plan.map_shape)
    width = len(plan.legs[-1].runs)
    last = record.chunk.curves[-LAST_STEPS:, :width]
    kept = CURVES if maps else (*EVERY_STEP, *LAST)
    assert np.isfinite(last[..., [CURVES.index(name) for name in kept]]).all()


def test_a_sweep_keeps_what_its_page_reads_and_says_the_same_of_it() -> None:
    settings = rates.Settings(n_keys=8, d_head=8, n_layers=1, n_heads=1, batch=2, steps=40, n_rates=3, n_seeds=2)
    whole_runs = [train_whole(plan) for plan in rates.plans_of(settings)]
    kept = [shaped(chunk, 0).curves for chunk in whole_runs]
    assert np.isnan(kept[0]).any()
    full, less = (rates.result_of(settings, curves) for curves in ([run.curves for run in whole_runs], kept))
    assert rates.point_rows(full) == rates.point_rows(less)
    assert rates.run_rows(full) == rates.run_rows(less)


# ---- it is what the engine gives


@pytest.mark.parametrize(("plan", "maps"), PLANS)
def test_the_first_steps_are_those_of_the_engine(plan: Plan, maps: int) -> None:
    course = Course(plan, None)
    taken = course.advance(FIRST, lambda: True).curves
    kept = record_of(plan).chunk.curves[: len(taken)]
    there = ~np.isnan(kept)
    assert there.any(axis=(0, 1)).sum() == (len(CURVES) if maps else len(EVERY_STEP))
    assert np.allclose(kept[there], taken[there], rtol=5e-2, atol=1e-5)
    assert np.allclose(kept[:AT_ONCE][there[:AT_ONCE]], taken[:AT_ONCE][there[:AT_ONCE]], rtol=2e-3, atol=1e-5)


def test_one_that_is_trained_again_ends_as_the_shipped_one_did() -> None:
    kept, trained = record_of(SHARP).chunk, shaped(sharp(), MAPS)
    assert [one.outcome for one in outcomes(SHARP, kept.curves)] == [
        one.outcome for one in outcomes(SHARP, trained.curves)
    ]
    assert kept.mapped == trained.mapped
    early = [step for step in kept.mapped if step <= FIRST]
    assert early
    assert np.allclose(kept.maps[: len(early)], trained.maps[: len(early)], atol=SHADE)  # within a shade
    loss = CURVES.index("loss")
    assert np.allclose(kept.curves[:100, :, loss], trained.curves[:100, :, loss], rtol=0.05, atol=0.01)


# ---- the file itself


def test_curves_come_back_exactly_and_maps_within_half_a_shade(tmp_path: Path) -> None:
    chunk = whole(PLAN)
    curves = chunk.curves.copy()
    curves[3, 0, :4] = [np.inf, -np.inf, np.nan, -0.0]
    write(tmp_path / "runs.zip", {PLAN: replace(chunk, curves=curves)})
    record = Shipped(tmp_path / "runs.zip").record(PLAN)
    assert record is not None
    assert record.chunk.curves.tobytes() == curves.tobytes()
    assert record.chunk.mapped == chunk.mapped
    assert np.abs(record.chunk.maps.astype(int) - chunk.maps.astype(int)).max() <= SHADE // 2


def test_a_record_is_read_once_and_nobody_can_write_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "runs.zip", {PLAN: whole(PLAN)})
    kept = Shipped(tmp_path / "runs.zip")
    monkeypatch.setattr(recall, "shipped", lambda: kept)
    lives = [Recall(None).shipped(PLAN) for _ in range(2)]
    again = Recall(None)
    assert again.shipped(PLAN) is again.shipped(PLAN)
    arrays = [live.chunks[0].curves for live in lives if live is not None]
    assert len(arrays) == 2
    assert arrays[0] is arrays[1]
    with pytest.raises(ValueError, match="read-only"):
        arrays[0][0] = 1
    with pytest.raises(ValueError, match="read-only"):
        record_of(SHARP).chunk.maps[0] = 1


def other_index(path: Path, **changes: Any) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    index = json.loads(parts["index.json"]) | changes
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (parts | {"index.json": json.dumps(index).encode()}).items():
            archive.writestr(name, data)


@pytest.mark.parametrize("changes", [{"engine": "1"}, {"format": 0}, {"plans": [1]}, {"recorded": "yesterday"}])
def test_one_that_does_not_fit_is_not_used_and_the_log_says_so(
    changes: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "runs.zip", {PLAN: whole(PLAN)})
    assert Shipped(tmp_path / "runs.zip").record(PLAN) is not None
    assert caplog.messages == []
    other_index(tmp_path / "runs.zip", **changes)
    with caplog.at_level(logging.WARNING, module.__name__):
        found = Shipped(tmp_path / "runs.zip")
    assert found.record(PLAN) is None
    assert found.plan(PLAN.name) is None
    (said,) = caplog.messages
    assert "runs.zip" in said
    assert "Pages train instead of showing them." in said


def test_a_damaged_one_is_not_used_and_neither_is_one_that_is_not_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "runs.zip"
    write(path, {PLAN: whole(PLAN)})
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo(f"{PLAN.name}.curves").header_offset + 200
    data = bytearray(path.read_bytes())
    data[at : at + 40] = bytes(byte ^ 0xFF for byte in data[at : at + 40])
    path.write_bytes(data)
    assert Shipped(path).record(PLAN) is None
    assert Shipped(tmp_path / "none.zip").record(PLAN) is None
    assert len(caplog.messages) == 2


def test_a_fork_of_a_shipped_run_has_its_steps_up_to_there(monkeypatch: pytest.MonkeyPatch) -> None:
    fork = forked_at(SHARP, 120, [{"learning_rate": 0.003}])
    live = Recall(None).read(fork)
    assert (live.steps, live.state, live.shipped) == (120, "stopped", False)
    assert np.array_equal(live.chunk.curves[:, :2], record_of(SHARP).chunk.curves[:120])
    assert np.isnan(live.chunk.curves[:, 2:]).all()
