"""The record of runs: whole after every crash, exact when it is read, one for equal requests."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy
import torch

from qkdemo.training.settings import ENGINE, Settings, identity
from qkdemo.training.store import Store, StoreError, name_of
from qkdemo.training.telemetry import ARRAYS, Telemetry, joined
from qkdemo.training.trainer import Trainer, forked

ROOT = Path(__file__).parents[2]
RUN = Settings(n_keys=8, d_head=8, batch=1, n_layers=1, steps=20)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'runs.sqlite'}"


@pytest.fixture
def store(url: str) -> Store:
    seconds: Iterator[int] = count()
    return Store(url, now=lambda: NOON + timedelta(seconds=next(seconds)))


def equal(a: Telemetry | None, b: Telemetry) -> bool:
    return (
        a is not None
        and a.first_step == b.first_step
        and all(
            np.array_equal(getattr(a, name), getattr(b, name)) and getattr(a, name).dtype == getattr(b, name).dtype
            for name in ARRAYS
        )
    )


def recorded(store: Store, run: Settings, *chunks: int) -> tuple[str, Telemetry]:
    """A run trained and recorded in chunks; its name and all that was read off it."""
    name, trainer, parts = store.begin(run).name, Trainer([run]), []
    for steps in chunks:
        parts.append(trainer.advance(steps))
        store.append(name, parts[-1], trainer.state)
    return name, joined(parts)


def test_what_is_read_is_what_was_recorded(store: Store, url: str) -> None:
    name, telemetry = recorded(store, RUN, 3, 1, 4)
    for reader in (store, Store(url)):
        assert equal(reader.read(name), telemetry)
        later = reader.read(name, after=2)
        assert later is not None
        assert (later.first_step, len(later)) == (3, 6)
        assert np.array_equal(later.loss, telemetry.loss[2:])
        assert reader.read(name, after=8) is None


def test_a_record_says_what_is_known_of_a_run(store: Store) -> None:
    name, _ = recorded(store, RUN, 2)
    store.finish(name, "finished")
    found = store.find(name)
    assert found is not None
    assert (found.name, found.settings, found.engine) == (identity(RUN), RUN, ENGINE)
    assert (found.parent, found.forked_at, found.status, found.last_step) == (None, 0, "finished", 2)
    assert found.begun == NOON
    assert found.changed > found.begun
    assert store.find("nobody") is None


def test_equal_requests_meet_in_one_record(store: Store, url: str) -> None:
    name, telemetry = recorded(store, RUN, 2)
    again = Store(url).begin(RUN.but(softcap=3))  # idle: the same run
    assert (again.name, again.last_step, again.begun) == (name, 2, NOON)
    assert equal(store.read(name), telemetry)
    assert store.begin(RUN.but(seed=1)).name != name


def test_a_run_goes_on_from_its_record_as_if_it_had_never_stopped(store: Store) -> None:
    name, before = recorded(store, RUN, 4)
    state = store.state(name)
    assert state is not None
    resumed = Trainer([RUN], state)
    store.append(name, resumed.advance(3), resumed.state)
    whole = Trainer([RUN])
    telemetry = whole.advance(7)
    assert equal(store.read(name), telemetry)
    found = store.state(name)
    assert found is not None
    assert all(map(torch.equal, found.tensors(), whole.state.tensors()))
    assert store.state("nobody") is None
    assert len(before) == 4


@pytest.mark.parametrize("first", [1, 2, 4, 5])
def test_steps_that_do_not_follow_are_refused_and_change_nothing(store: Store, first: int) -> None:
    name, telemetry = recorded(store, RUN, 2)
    state = store.state(name)
    trainer = Trainer([RUN])
    read = trainer.advance(1)
    arrays: dict[str, Any] = {array: getattr(read, array) for array in ARRAYS}
    with pytest.raises(StoreError, match=f"Step {first} does not follow what is recorded of run {name}"):
        store.append(name, Telemetry(first_step=first, **arrays), trainer.state)
    assert equal(store.read(name), telemetry)
    after = store.state(name)
    assert state is not None
    assert after is not None
    assert all(map(torch.equal, after.tensors(), state.tensors()))


def test_a_fork_has_a_name_of_its_own_and_begins_where_it_left(store: Store) -> None:
    name, _ = recorded(store, RUN, 3)
    state = store.state(name)
    assert state is not None
    plain = forked(RUN, variant="none")
    fork = store.begin(plain, parent=name, forked_at=3)
    assert (fork.parent, fork.forked_at, fork.last_step) == (name, 3, 3)
    names = {fork.name, name_of(plain), name_of(plain, name, 2), name_of(plain, "other", 3), name}
    assert len(names) == 5
    trainer = Trainer([plain], state)
    store.append(fork.name, trainer.advance(2), trainer.state)
    read = store.read(fork.name)
    assert read is not None
    assert (read.first_step, len(read)) == (4, 2)


def test_runs_that_were_not_ended_are_found_oldest_first(store: Store) -> None:
    names = [store.begin(RUN.but(seed=seed)).name for seed in (5, 2, 9)]
    store.finish(names[1], "stopped")
    assert store.running() == [names[0], names[2]]


def test_a_run_whose_dials_are_gone_is_no_longer_told(store: Store, url: str) -> None:
    name, _ = recorded(store, RUN, 1)
    with sqlalchemy.create_engine(url).begin() as connection:
        connection.execute(sqlalchemy.text("""UPDATE runs SET settings = '{"speed": "3"}'"""))
    assert store.find(name) is None


def test_a_full_disk_is_said_and_costs_nothing_that_was_recorded(store: Store, url: str) -> None:
    name, telemetry = recorded(store, RUN, 2)
    trainer = Trainer([RUN], store.state(name))

    @sqlalchemy.event.listens_for(store._engine, "begin")
    def fill(connection: sqlalchemy.Connection) -> None:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StoreError, match=r"database or disk is full\. What it held before is untouched"):
        store.append(name, trainer.advance(2), trainer.state)
    for reader in (store, Store(url)):
        assert equal(reader.read(name), telemetry)
        found = reader.find(name)
        assert found is not None
        assert found.last_step == 2


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("not a database " * 100)
    with pytest.raises(StoreError, match="file is not a database"):
        Store(f"sqlite:///{tmp_path / 'notes'}")


WRITER = """
import sys
import torch
torch.set_num_threads(1)
from tests.training.test_store import RUN
from qkdemo.training.store import Store
from qkdemo.training.trainer import Trainer

store, trainer = Store(sys.argv[1]), Trainer([RUN])
name = store.begin(RUN).name
while True:
    read = trainer.advance(1)
    store.append(name, read, trainer.state)
    print(trainer.step, flush=True)
"""


def test_a_writer_that_is_killed_leaves_whole_steps_and_none_that_it_told_of_is_missing(url: str) -> None:
    command = [sys.executable, "-c", WRITER, url]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = 0
        for line in writer.stdout:
            told = int(line)
            if told == 12:
                writer.kill()
                break
        told = max([told, *(int(line) for line in writer.stdout)])
    store = Store(url)
    (name,) = store.running()
    found, read, state = store.find(name), store.read(name), store.state(name)
    assert found is not None
    assert read is not None
    assert state is not None
    assert found.last_step == len(read) == state.step >= told >= 12
    assert equal(read, Trainer([RUN]).advance(len(read)))
