"""Large states lie in files: exact, bounded, dropped if they are damaged, and never needed."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from qkdemo.runs.kept import parking
from qkdemo.runs.kept.parking import Parking, folder_beside
from qkdemo.runs.kept.record import Chunk, chunk_from_bytes, joined_chunks
from qkdemo.runs.kept.store import Store
from qkdemo.runs.plan import Plan, twins
from qkdemo.runs.trainers import Trainers
from qkdemo.runs.workers import keeper
from qkdemo.runs.workers.job import Hand, Job, train
from qkdemo.training.trainer import Trainer
from tests.runs.kept.test_store import FORK, PLAN, SMALL, same, whole

MANY = twins(SMALL, range(3))


@pytest.fixture
def lot(tmp_path: Path) -> Parking:
    return Parking(tmp_path / "states")


def after(plan: Plan, steps: int) -> Trainers:
    trained = Trainers(plan.legs[0].runs, maps=False)
    trained.advance(steps)
    return trained


def test_a_state_comes_back_exactly_row_by_row(lot: Parking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qkdemo.runs.trainers.at_once", lambda run: 2)  # it is written group by group
    trained = after(MANY, 3)
    assert lot.park(MANY, trained)
    found = lot.state(MANY, 40)
    assert found is not None
    assert found.step == 3
    for rows in ([0, 1, 2, 3, 4, 5], [4], [5, 0]):
        assert all(a.equal(b) for a, b in zip(found.rows(rows).tensors(), trained.rows(rows).tensors(), strict=True))


def test_nobody_goes_on_from_a_later_step_than_was_seen_and_one_file_a_plan_is_kept(lot: Parking) -> None:
    for steps in (3, 7):
        assert lot.park(MANY, after(MANY, steps))
    assert lot.state(MANY, 6) is None
    assert len(list(lot.folder.iterdir())) == 1
    lot.drop(MANY)
    assert lot.state(MANY, 40) is None


def test_a_fork_goes_on_from_where_its_trunk_was_parked(lot: Parking) -> None:
    assert lot.park(PLAN, after(PLAN, 20))
    found = lot.state(FORK, 20)
    assert found is not None
    assert found.step == 20


@pytest.mark.parametrize("damage", [lambda b: b[:-4], lambda b: b[:40] + b"\0\1\2\3" + b[44:], lambda b: b""])
def test_a_damaged_file_is_dropped(lot: Parking, damage: Any) -> None:
    assert lot.park(MANY, after(MANY, 3))
    (path,) = lot.folder.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert lot.state(MANY, 40) is None
    assert not path.exists()


def test_the_oldest_give_way_and_what_is_too_large_for_the_bounds_is_not_written(tmp_path: Path) -> None:
    plans = [twins(SMALL.but(seed=seed)) for seed in range(3)]
    size = sum(4 * tensor.numel() for tensor in after(PLAN, 1).state.tensors())
    lot = Parking(tmp_path, most_bytes=2 * size)
    for at, plan in enumerate(plans):
        assert lot.park(plan, after(plan, 1))
        (path,) = tmp_path.glob(f"{plan.name}-*")
        os.utime(path, (at, at))
    assert [lot.state(plan, 9) is not None for plan in plans] == [False, True, True]
    assert not Parking(tmp_path, most_bytes=size - 1).park(plans[0], after(plans[0], 1))


def test_a_full_disk_or_a_folder_that_cannot_be_made_is_done_without(
    tmp_path: Path, lot: Parking, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    assert not Parking(tmp_path / "file" / "states").park(MANY, after(MANY, 1))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(parking.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    assert not lot.park(MANY, after(MANY, 1))
    assert lot.state(MANY, 40) is None


@pytest.mark.parametrize(
    ("url", "folder"),
    [("sqlite:////var/lib/runs.sqlite", "/var/lib/runs.states"), ("postgresql://me@host/runs", None), ("no url", None)],
)
def test_they_lie_beside_the_store_or_in_the_users_cache(url: str, folder: str | None) -> None:
    found = folder_beside(url)
    assert (str(found) == folder) if folder else found.name == "states"


def test_a_run_whose_state_is_too_large_for_the_store_goes_on_where_it_was(
    tmp_path: Path, lot: Parking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "STATE_BYTES", 1)
    store, taken, step = Store(f"sqlite:///{tmp_path}/runs.sqlite"), list[int](), Trainer._one_step
    monkeypatch.setattr(Trainer, "_one_step", lambda trainer: taken.append(trainer.step) or step(trainer))
    chunks: list[Chunk] = []
    saved: list[bool] = []

    def emit(kind: str, told: dict[str, Any], data: tuple[bytes, ...]) -> None:
        if kind == "rows":
            chunks.append(chunk_from_bytes(MANY, told["first"], told["count"], *data))
        if kind == "rest":
            saved.append(told["saved"])

    for until, seen in ((17, 0), (40, 17)):
        train(Job(MANY, until, seen), store, Hand(), emit, lot)
    assert taken == list(range(40))  # none twice
    assert saved == [True, True]
    assert same(joined_chunks(MANY, chunks), whole(MANY))
    assert not list(lot.folder.iterdir())  # nobody goes on from the end of many seeds


def test_without_a_place_for_it_the_run_says_that_it_cannot_go_on_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[bool] = []
    train(
        Job(MANY, 5, 0), None, Hand(), lambda kind, told, data: saved.append(told["saved"]) if kind == "rest" else None
    )
    assert saved == [False]
