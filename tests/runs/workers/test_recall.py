"""A store that is away or locked: it is asked again, the page says so, and what is recorded is shown as recorded."""

import math
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qkdemo.runs.kept import database
from qkdemo.runs.kept.record import cut
from qkdemo.runs.kept.store import Store, StoreError
from qkdemo.runs.trainers import Course
from qkdemo.runs.workers import recall
from qkdemo.runs.workers.job import Hand, Job, train
from qkdemo.runs.workers.keeper import Keeper
from qkdemo.runs.workers.live import Live
from qkdemo.runs.workers.recall import RETRY_S, Recall
from tests.runs.kept.test_store import FORK, PLAN, same, told, whole
from tests.runs.workers.test_turns import Clock, Shop


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store in which PLAN is recorded to its end."""
    store = Store(f"sqlite:///{tmp_path}/runs.sqlite")
    told(PLAN, store, PLAN.steps)
    store.close()
    return tmp_path / "runs.sqlite"


@pytest.fixture
def locked(file: Path) -> Iterator[Callable[[str], None]]:
    """Another process has the store: `writing` keeps others from writing, `alone` from reading as well."""
    other = sqlite3.connect(file, isolation_level=None)

    def locks(how: str) -> None:
        if how == "alone":
            other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("CREATE TABLE IF NOT EXISTS other (x)")
        if how == "alone":
            other.execute("COMMIT")

    yield locks
    other.close()


def patient(file: Path) -> Store:
    return Store(f"sqlite:///{file}", later=True, patience_s=0.01)


def opened(monkeypatch: pytest.MonkeyPatch, file: Path) -> Shop:
    """A server whose store may be away, and whose workers are the test's."""
    monkeypatch.setattr(database, "_AWAY_S", 0.0)
    return Shop(monkeypatch, patient(file), 1)


def test_what_is_recorded_in_a_store_that_another_process_writes_to_is_shown_as_recorded(
    file: Path, locked: Callable[[str], None]
) -> None:
    locked("writing")
    found = Recall(patient(file))
    live = found.read(PLAN)
    assert live.state == "finished"
    assert live.recorded is not None
    assert same(live.chunk, whole(PLAN))
    fork = found.read(FORK)  # for which the store would have to make room
    assert fork.steps == 20
    assert same(fork.chunk, cut(whole(FORK), 20))
    assert found.why == ""


def test_a_store_that_is_locked_at_the_start_is_asked_again_and_what_it_has_is_shown(
    file: Path, locked: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    shop = opened(monkeypatch, file)
    live = shop.pool.start(PLAN, "a", pace=math.inf)
    shop.pool.watch(live, 1, "a")
    assert live.unread
    assert live.state == "going"  # nobody waits for a store that may never come
    assert "Recorded runs cannot be shown at present." in shop.pool.status(live).notice
    assert "database is locked" in shop.pool.status(live).notice
    shop.passes(2 * RETRY_S)
    assert live.steps == 0
    other.close()
    shop.passes(2 * RETRY_S)
    assert live.state == "finished"
    assert live.recorded is not None
    assert same(live.chunk, whole(PLAN))
    assert shop.pool.status(live).notice == ""
    assert shop.orders[-1] == (0, "stop")  # what the worker did meanwhile is needed no more
    assert shop.pool.away == ""
    shop.pool.close()


def test_a_store_that_was_away_at_the_start_is_found_when_it_comes(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "away"
    gone.write_text("not a folder yet")
    shop = opened(monkeypatch, gone / "runs.sqlite")
    assert shop.pool.look(PLAN) is None
    assert shop.pool.live(PLAN.name) is None
    assert "cannot be opened" in shop.pool.away
    gone.unlink()
    gone.mkdir()
    for path in tmp_path.glob("runs.sqlite*"):
        path.rename(gone / path.name)
    shop.passes(2 * RETRY_S)
    assert shop.pool.away == ""
    live = shop.pool.look(PLAN)
    assert live is not None
    assert live.state == "finished"
    shop.pool.close()


def test_nobody_waits_twice_for_a_store_that_does_not_answer(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    store, clock = patient(file), Clock()

    def fails(*_: Any) -> None:
        asked.append(1)
        raise StoreError("It is locked.")

    monkeypatch.setattr(store, "read", fails)
    found = Recall(store, clock)
    for _ in range(20):
        assert found.read(PLAN).unread
    assert len(asked) == 1
    clock.now += RETRY_S
    found.read(PLAN)
    assert len(asked) == 2
    assert found.why == "It is locked."


def test_a_run_that_could_not_be_read_and_went_on_further_than_its_record_keeps_what_it_has(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = opened(monkeypatch, file)
    recorded = shop.pool._recall.record(PLAN)
    assert recorded is not None
    short = type(recorded)(PLAN, cut(recorded.chunk, 5), "stopped", recorded.engine, recorded.touched)
    live = Live(PLAN, owner="a", generation=1, unread=True, chunks=[cut(whole(PLAN), 9)])
    shop.pool._recall.remember(live)
    monkeypatch.setattr(shop.pool._recall, "record", lambda plan: short)
    shop.pool.tick()
    assert live.steps == 9
    assert not live.unread
    shop.pool.close()


def test_a_run_that_goes_on_takes_up_what_the_store_had_of_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = opened(monkeypatch, file)
    recorded = shop.pool._recall.record(PLAN)
    assert recorded is not None
    short = type(recorded)(PLAN, cut(recorded.chunk, 25), "stopped", recorded.engine, recorded.touched)
    with monkeypatch.context() as broken:
        broken.setattr(shop.pool._recall, "record", lambda plan: (_ for _ in ()).throw(StoreError("locked")))
        live = shop.pool.start(PLAN, "a", pace=math.inf)
        shop.pool.watch(live, 1, "a")
        shop.steps(live, 3)
    monkeypatch.setattr(shop.pool._recall, "record", lambda plan: short)
    shop.pool.tick()
    assert live.steps == 25
    assert live.state == "queued"  # until the worker has let go of it
    shop.rests()
    assert live.state == "going"
    shop.steps(live, 15)
    assert same(live.chunk, whole(PLAN))
    shop.pool.close()


# ---- memory


def test_runs_at_rest_that_nobody_watches_are_dropped_from_memory_by_their_size(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = Live(PLAN, owner="", generation=0, chunks=[whole(PLAN)]).size
    monkeypatch.setattr(recall, "KEPT_BYTES", 3 * size)
    found = Recall(None)
    lives = [Live(PLAN.__class__(PLAN.legs, 40 + at), "", at, chunks=[whole(PLAN)]) for at in range(6)]
    lives[0].watchers = 1
    lives[1].state = "going"
    for live in lives:
        found.remember(live)
    assert [live.plan.name in found.lives for live in lives] == [True, True, False, False, False, True]


def test_what_is_said_of_a_run_is_kept_with_it_and_formed_anew_when_it_went_on() -> None:
    formed: list[int] = []
    live = Live(PLAN, owner="", generation=0, chunks=[cut(whole(PLAN), 5)])

    def said() -> int:
        formed.append(live.steps)
        return live.steps

    assert [live.once("words", said), live.once("words", said)] == [5, 5]
    live.chunks = [whole(PLAN)]
    assert live.once("words", said) == 40
    assert formed == [5, 40]


# ---- the worker's side


class Moody(Store):
    """A store that takes nothing while it is told so."""

    fails = False

    def append(self, *given: Any) -> None:
        if self.fails:
            raise StoreError("The store of runs cannot be written: database is locked.")
        super().append(*given)


def test_what_a_store_missed_is_written_as_soon_as_it_takes_it_and_the_page_says_both(tmp_path: Path) -> None:
    store, clock, said = Moody(f"sqlite:///{tmp_path}/runs.sqlite"), Clock(), list[str]()
    keeper, course = Keeper(PLAN, store, None, lambda kind, told, data: said.append(kind), clock), Course(PLAN, None)
    for at in range(8):
        store.fails = 2 <= at < 5
        keeper.keep(course.advance(5, lambda: True), course)
        clock.now += 2.0
    assert said == ["unkept", "kept"]
    record = store.read(PLAN)
    assert record is not None
    assert same(record.chunk, whole(PLAN))


def test_a_job_in_a_locked_store_goes_on_and_the_next_one_records_it_all(
    file: Path, tmp_path: Path, locked: Callable[[str], None]
) -> None:
    fresh = Store(f"sqlite:///{tmp_path}/fresh.sqlite", patience_s=0.01)
    other = sqlite3.connect(tmp_path / "fresh.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    said: list[str] = []
    train(Job(PLAN, 25, 0), fresh, Hand(), lambda kind, told, data: said.append(kind))
    assert [kind for kind in said if kind != "rows"] == ["unkept", "rest"]
    other.close()
    said.clear()
    train(Job(PLAN, 40, 25), fresh, Hand(), lambda kind, told, data: said.append(kind))
    assert "unkept" not in said
    record = fresh.read(PLAN)
    assert record is not None
    assert same(record.chunk, whole(PLAN))
