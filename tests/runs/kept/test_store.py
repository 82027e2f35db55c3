"""What is recorded is whole after any accident, exact, bounded, and refused in a sentence where it cannot be."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sql

from qkdemo.dials import SettingsError
from qkdemo.messages import say
from qkdemo.runs.kept.record import (
    Chunk,
    after,
    chunk_from_bytes,
    chunk_of,
    chunk_to_bytes,
    cut,
    joined_chunks,
    state_from_bytes,
    state_to_bytes,
)
from qkdemo.runs.kept.store import Store, StoreError, default_url
from qkdemo.runs.plan import Leg, Plan, forked_at, twins
from qkdemo.runs.workers.job import Hand, Job, train
from qkdemo.runs.workers.recall import Recall
from qkdemo.training.settings import Settings
from qkdemo.training.trainer import Trainer

ROOT = Path(__file__).parents[3]
SMALL = Settings(n_layers=1, n_heads=1, d_head=8, n_keys=8, batch=2, steps=40)
PLAN = twins(SMALL)
SLOWER: dict[str, Any] = {"schedule": "constant", "warmup": 0, "learning_rate": 0.003}
FORK = forked_at(PLAN, 20, [SLOWER, SLOWER], more=15)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(f"sqlite:///{tmp_path}/runs.sqlite")


def told(plan: Plan, store: Store | None, until: int, after: int = 0) -> list[tuple[str, Any]]:
    """What a job emits, rows as chunks."""
    said: list[tuple[str, Any]] = []

    def emit(kind: str, head: dict[str, Any], data: tuple[bytes, ...]) -> None:
        said.append((kind, chunk_from_bytes(plan, head["first"], head["count"], *data) if kind == "rows" else head))

    train(Job(plan, until, after), store, Hand(), emit)
    return said


def rows(plan: Plan, said: list[tuple[str, Any]]) -> Chunk:
    return joined_chunks(plan, [chunk for kind, chunk in said if kind == "rows"])


def same(one: Chunk, other: Chunk) -> bool:
    alike = np.array_equal(one.curves, other.curves, equal_nan=True) and np.array_equal(one.maps, other.maps)
    return alike and one.first == other.first


@cache
def whole(plan: Plan) -> Chunk:
    """The record of `plan`, trained in one go without a store."""
    return rows(plan, told(plan, None, plan.steps))


def filled(store: Store) -> None:
    """From now on the database takes no page more."""

    def limit(connection: Any, _: Any) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")

    store.engine.dispose()
    sql.event.listen(store.engine, "connect", limit)


# ---- plans


def test_equal_runs_have_one_name_and_any_other_dial_another() -> None:
    assert twins(SMALL.but(softcap=7.0)).name == PLAN.name  # idle: no softcap here
    others = [twins(SMALL.but(seed=1)), twins(SMALL.but(steps=60)), twins(SMALL, [0]), FORK]
    assert len({PLAN.name, *(plan.name for plan in others)}) == 5


def test_a_plan_is_read_back_from_its_text() -> None:
    for plan in (PLAN, FORK, twins(SMALL, range(3))):
        assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"legs": [], "steps": 5, "maps": true}',
        PLAN.to_json().replace('"steps": 40, "maps"', '"steps": 99999, "maps"'),
        PLAN.to_json().replace('"batch": 2', '"batch": 1e9'),
        PLAN.to_json().replace('"batch"', '"bitch"'),
        FORK.to_json().replace("[20, [0, 1, 0, 1]", "[20, [0, 1, 0, 2]"),
        FORK.to_json().replace("[20, [0, 1, 0, 1]", "[60, [0, 1, 0, 1]"),
    ],
)
def test_a_text_that_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  of which SettingsError is one
        Plan.from_json(text)


def test_a_leg_goes_on_from_a_run_there_is() -> None:
    with pytest.raises(ValueError, match="from nowhere"):
        Plan((Leg(0, (0, 2), (SMALL, SMALL)),), 40)


def test_a_fork_cannot_change_what_begins_another_run() -> None:
    with pytest.raises(SettingsError, match="seed"):
        forked_at(PLAN, 20, [{"seed": 3}])


def test_the_trunk_of_a_fork_is_the_plan_it_left() -> None:
    assert FORK.trunk == PLAN
    assert PLAN.trunk is None


# ---- exactness


def test_the_record_is_what_a_trainer_reads(store: Store) -> None:
    told(PLAN, store, PLAN.steps)
    record = store.read(PLAN)
    assert record is not None
    assert record.finished
    assert record.ending == "finished"
    assert same(record.chunk, chunk_of(PLAN, Trainer(PLAN.legs[0].runs).advance(PLAN.steps)))


def test_codes_are_the_root_of_the_weights_and_only_visible_pairs_are_kept() -> None:
    telemetry = Trainer(PLAN.legs[0].runs).advance(1)
    code = chunk_of(PLAN, telemetry).maps[0, 1, 0, 0]
    weight = telemetry.maps[0, 1, 0, 0].astype(float)
    expected = [round(250 * weight[query, key] ** 0.5) for query in range(8) for key in range(query + 1)]
    assert code.tolist() == expected


def test_a_run_that_rested_goes_on_as_if_it_had_not(store: Store) -> None:
    first = rows(PLAN, told(PLAN, store, 17))
    rest = rows(PLAN, told(PLAN, store, PLAN.steps, after=17))
    assert rest.first == 18
    assert same(joined_chunks(PLAN, [first, rest]), whole(PLAN))


def test_many_runs_that_are_finished_leave_their_last_state_alone(store: Store) -> None:
    many, one = twins(SMALL, seeds=(1, 2)), twins(SMALL.but(seed=3))
    for plan in (many, one):
        for until in (30, plan.steps):  # it rests once, so that there is a state before the last
            told(plan, store, until)
        at_rest = store.state(plan, plan.steps)
        assert at_rest is not None
        assert at_rest.step == plan.steps
        assert (store.state(plan, plan.steps - 1) is not None) == plan.maps
    with store.engine.connect() as db:
        recorded = sql.text("select size from runs where name = :name")
        held = sql.text(
            "select (select sum(length(state)) from states where name = :name)"
            " + (select sum(length(curves) + length(maps)) from chunks where name = :name)"
        )
        sizes = [db.scalar(query, {"name": many.name}) for query in (recorded, held)]
    assert sizes[0] == sizes[1]


def test_a_run_without_a_store_goes_on_exactly_too() -> None:
    assert rows(PLAN, told(PLAN, None, PLAN.steps, after=33)).first == 34
    assert same(rows(PLAN, told(PLAN, None, PLAN.steps, after=33)), after(whole(PLAN), 33))


def test_a_fork_has_its_trunks_steps_and_goes_on_from_its_state(store: Store) -> None:
    told(PLAN, store, 30)
    store.begin(FORK)
    begun = store.read(FORK)
    assert begun is not None
    assert begun.chunk.last == 20
    told(FORK, store, FORK.steps, after=20)
    record = store.read(FORK)
    assert record is not None
    assert same(record.chunk, whole(FORK))


def test_the_runs_beside_a_fork_are_the_original_ones() -> None:
    original, fork = whole(PLAN).curves, whole(FORK).curves
    assert np.array_equal(fork[20:35, 2:], original[20:35])
    assert not np.array_equal(fork[20:35, :2], original[20:35])
    assert np.isnan(fork[:20, 2:]).all()


def test_a_fork_of_a_run_that_nobody_recorded_is_trained_from_its_beginning(store: Store) -> None:
    told(FORK, store, FORK.steps)
    record = store.read(FORK)
    assert record is not None
    assert same(record.chunk, whole(FORK))


def test_a_state_survives_its_bytes_exactly() -> None:
    trainer = Trainer(PLAN.legs[0].runs)
    trainer.advance(3)
    back = state_from_bytes(state_to_bytes(trainer.state))
    assert back.step == 3
    assert all(a.equal(b) for a, b in zip(back.tensors(), trainer.state.tensors(), strict=True))


# ---- accidents


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b[:40], lambda b: b"{}\n" + b])
def test_damaged_bytes_are_refused(damage: Any) -> None:
    chunk = chunk_of(PLAN, Trainer(PLAN.legs[0].runs).advance(2))
    curves, maps = chunk_to_bytes(chunk)
    with pytest.raises(ValueError):  # noqa: PT011  numpy's words
        chunk_from_bytes(PLAN, 1, 2, damage(curves), maps)
    with pytest.raises(ValueError):  # noqa: PT011
        state_from_bytes(damage(state_to_bytes(Trainer(PLAN.legs[0].runs).state)))


def test_maps_that_unpack_to_more_than_there_can_be_are_refused() -> None:
    curves, maps = chunk_to_bytes(chunk_of(PLAN, Trainer(PLAN.legs[0].runs).advance(2)))
    more = chunk_to_bytes(chunk_of(PLAN, Trainer(PLAN.legs[0].runs).advance(9)))[1]
    with pytest.raises(ValueError):  # noqa: PT011
        chunk_from_bytes(PLAN, 1, 2, curves, more)
    assert len(chunk_from_bytes(PLAN, 1, 2, curves, maps).curves) == 2


def test_a_record_ends_before_the_first_chunk_that_is_missing(store: Store) -> None:
    chunk = whole(PLAN)
    store.begin(PLAN)
    store.append(PLAN, cut(chunk, 10))
    store.append(PLAN, after(cut(chunk, 30), 20))
    record = store.read(PLAN)
    assert record is not None
    assert record.chunk.last == 10


def altered(store: Store, table: str, column: str, key: int, count: int = 40) -> None:
    """`count` bytes in the middle of one value become others, as a disk may do it."""
    step = "first" if table == "chunks" else "step"
    with store.engine.begin() as db:
        where = f"where {step} = {key}"
        data = db.scalar(sql.text(f"select {column} from {table} {where}"))
        at = len(data) // 2 - count // 2
        other = bytes(byte ^ 0x15 for byte in data[at : at + count])
        put = sql.text(f"update {table} set {column} = :it {where}")
        db.execute(put, {"it": data[:at] + other + data[at + count :]})


def in_tens(store: Store) -> None:
    """The record of PLAN in chunks of ten steps, a state after each."""
    store.begin(PLAN)
    trainer = Trainer(PLAN.legs[0].runs)
    for _ in range(4):
        store.append(PLAN, chunk_of(PLAN, trainer.advance(10)), state_to_bytes(trainer.state))
    store.end(PLAN, "finished")


@pytest.mark.parametrize("column", ["curves", "maps"])
def test_altered_bytes_end_the_record_as_a_missing_chunk_does_and_going_on_mends_it(store: Store, column: str) -> None:
    in_tens(store)
    altered(store, "chunks", column, 21)
    record = store.read(PLAN)
    assert record is not None
    assert record.damaged
    assert same(record.chunk, cut(whole(PLAN), 20))
    found = Recall(store).read(PLAN)
    assert found.notice == say("live.damaged", step=20)
    assert (found.state, found.steps) == ("stopped", 20)
    told(PLAN, store, PLAN.steps, after=20)
    mended = store.read(PLAN)
    assert mended is not None
    assert not mended.damaged
    assert same(mended.chunk, whole(PLAN))


def test_nobody_goes_on_from_a_state_whose_bytes_were_altered(store: Store) -> None:
    in_tens(store)
    altered(store, "states", "state", 40)
    state = store.state(PLAN, 40)
    assert state is not None
    assert state.step == 30


def test_a_chunk_that_was_copied_to_another_place_is_no_record_of_it(store: Store) -> None:
    in_tens(store)
    with store.engine.begin() as db:
        db.execute(sql.text("delete from chunks where first = 21"))
        db.execute(sql.text("update chunks set first = 21 where first = 31"))
    record = store.read(PLAN)
    assert record is not None
    assert record.chunk.last == 20


def test_what_was_recorded_before_there_were_checksums_still_plays(store: Store, tmp_path: Path) -> None:
    in_tens(store)
    store.close()
    with sqlite3.connect(tmp_path / "runs.sqlite") as db:
        for table in ("chunks", "states"):
            db.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
    later = Store(store.url)
    record = later.read(PLAN)
    assert record is not None
    assert record.finished
    assert same(record.chunk, whole(PLAN))
    assert later.state(PLAN, 40) is not None
    more = twins(SMALL.but(seed=5))
    told(more, later, more.steps)  # and what is new has them
    with sqlite3.connect(tmp_path / "runs.sqlite") as db:
        count = "SELECT count(*) FROM chunks WHERE name = ? AND checksum IS NULL"
        assert db.execute(count, (more.name,)).fetchone() == (0,)
        assert db.execute(count, (PLAN.name,)).fetchone() == (4,)


def test_a_full_store_takes_nothing_more_keeps_what_it_has_and_the_run_goes_on(store: Store) -> None:
    told(PLAN, store, 10)
    filled(store)
    said = told(PLAN, store, PLAN.steps, after=10)
    assert [kind for kind, _ in said if kind != "rows"] == ["unkept", "rest"]
    why = next(head["why"] for kind, head in said if kind == "unkept")
    assert why == "The store of runs cannot be written: database or disk is full."
    assert same(rows(PLAN, said), after(whole(PLAN), 10))
    record = store.read(PLAN)
    assert record is not None
    kept = record.chunk
    assert 10 <= kept.last < 40
    assert same(kept, cut(whole(PLAN), kept.last))


KILLED = """
import sys
from tests.runs.kept.test_store import PLAN
from qkdemo.runs.kept.store import Store
from qkdemo.runs.workers.job import Hand, Job, train

def emit(kind, head, data):
    if kind == "rows":
        print(head["first"] + head["count"] - 1, flush=True)

train(Job(PLAN, PLAN.steps, 0), Store(sys.argv[1]), Hand(200.0), emit)
"""


@pytest.mark.one_rounding
def test_a_process_killed_in_mid_run_leaves_every_step_it_told_of(store: Store, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, store.url],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout
    last = 0
    while last < 12:
        last = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    last = max([last, *(int(line) for line in process.stdout.read().split())])
    process.wait()
    record = store.read(PLAN)
    assert record is not None
    assert last <= record.chunk.last <= PLAN.steps
    assert same(record.chunk, cut(whole(PLAN), record.chunk.last))
    with sqlite3.connect(tmp_path / "runs.sqlite") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# ---- bounds and addresses


def test_the_oldest_runs_are_dropped_and_none_that_goes_on(store: Store) -> None:
    plans = [twins(SMALL.but(seed=seed)) for seed in range(4)]
    for plan in plans:
        store.begin(plan)
        store.append(plan, chunk_of(plan, Trainer(plan.legs[0].runs).advance(1)))
        if plan is not plans[0]:
            store.end(plan, "stopped")
        time.sleep(0.002)
    assert store.trim(most_runs=2) == 1
    assert [store.read(plan) is not None for plan in plans] == [True, False, True, True]
    assert store.trim(most_bytes=1) == 2
    assert [store.read(plan) is not None for plan in plans] == [True, False, False, False]
    with store.engine.connect() as db:
        assert db.scalar(sql.text("select count(*) from chunks")) == 1


def test_two_servers_may_begin_the_same_run(tmp_path: Path, store: Store) -> None:
    other = Store(store.url)
    store.begin(PLAN)
    other.begin(PLAN)
    assert store.plan(PLAN.name) == PLAN


@pytest.mark.parametrize("url", ["sqlite:////proc/none/runs.sqlite", "no url", "nothing://x", f"sqlite:///{__file__}"])
def test_a_store_that_cannot_be_opened_says_so(url: str) -> None:
    with pytest.raises(StoreError, match=r"^The store of runs at .* cannot be opened: .*\.$"):
        Store(url)


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(StoreError) as error:
        Store("nothing://me:secret@host/runs")
    assert "secret" not in str(error.value)


def test_the_environment_names_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QKDEMO_STORE", "sqlite:///here.sqlite")
    assert default_url() == "sqlite:///here.sqlite"
    monkeypatch.delenv("QKDEMO_STORE")
    assert default_url().endswith("runs-1.sqlite")


@pytest.mark.skipif(sys.platform == "win32", reason="modes")
def test_a_new_store_is_its_owners_alone_with_all_that_lies_beside_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = Store(f"sqlite:///{tmp_path}/new/runs.sqlite")
        store.begin(PLAN)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()}
    assert set(modes.values()) == {0o600}
    assert "runs.sqlite-wal" in modes


@pytest.mark.skipif(sys.platform == "win32", reason="modes")
def test_an_old_store_of_ours_becomes_private_and_one_that_somebody_named_keeps_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, file = f"sqlite:///{tmp_path}/runs.sqlite", tmp_path / "runs.sqlite"
    file.touch()
    file.chmod(0o640)
    monkeypatch.setenv("QKDEMO_STORE", url)
    Store(url).close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    monkeypatch.delenv("QKDEMO_STORE")
    Store(url).close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
