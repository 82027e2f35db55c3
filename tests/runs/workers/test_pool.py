"""Worker processes: stop stops, pause holds, what goes on is exact, a killed worker is replaced, and a hall queues."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from qkdemo.messages import say
from qkdemo.runs.kept.record import after, chunk_to_bytes, cut
from qkdemo.runs.kept.store import Store
from qkdemo.runs.plan import Plan, twins
from qkdemo.runs.workers.job import Hand, Job, train
from qkdemo.runs.workers.live import Live
from qkdemo.runs.workers.pool import Pool, PoolError
from qkdemo.runs.workers.worker import read_frame
from qkdemo.training.trainer import Trainer
from tests.runs.kept.test_store import FORK, PLAN, SMALL, same, whole

pytestmark = pytest.mark.one_rounding

PATIENCE_S = 120.0  # a busy machine starts a worker slowly


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('pool')}/runs.sqlite"


@pytest.fixture(scope="module")
def pool(url: str) -> Iterator[Pool]:
    """One pool of one worker for all tests: starting a worker takes seconds."""
    pool = Pool(Store(url))
    yield pool
    pool.close()


@pytest.fixture
def fresh(request: pytest.FixtureRequest) -> Any:
    """A plan that no other test has."""
    seed = 100 + crc32(request.node.name.encode()) % 9000
    return lambda **dials: twins(SMALL.but(**{"seed": seed} | dials))


def until(happened: Callable[[], Any]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < give_up, "it never happened"
        time.sleep(0.005)


def rests(live: Live, state: str) -> None:
    until(lambda: live.state == state)


@pytest.fixture
def without_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Pool]]:
    """Another server's pool, which starts nothing."""
    monkeypatch.setattr("qkdemo.runs.workers.process.WorkerProcess.start", lambda self: None)
    pools: list[Pool] = []

    def opened(url: str) -> Pool:
        pools.append(Pool(Store(url)))
        return pools[-1]

    yield opened
    for pool in pools:
        pool.close()


def let_go(pool: Pool) -> None:
    """Until no worker is busy."""
    until(lambda: not any(worker.live or worker.leaving for worker in pool._shop.workers))


def test_a_run_is_made_in_a_process_of_its_own_and_recorded(pool: Pool, url: str) -> None:
    live = pool.start(PLAN, "a", pace=math.inf)
    rests(live, "finished")
    assert same(live.chunk, whole(PLAN))
    record = Store(url).read(PLAN)
    assert record is not None
    assert same(record.chunk, live.chunk)
    assert os.getpid() not in pool.processes


def test_a_pause_holds_and_going_on_is_exact(pool: Pool, fresh: Any) -> None:
    plan = fresh()
    live = pool.start(plan, "a", pace=100)
    until(lambda: live.steps >= 5)
    pool.pause(live, "a")
    held = live.steps
    pool.step(live, "a")
    until(lambda: live.state == "paused")
    assert live.steps == held + 1
    pool.start(plan, "a", pace=math.inf)
    pool.set_pace(live, "a", math.inf)
    rests(live, "finished")
    assert same(live.chunk, whole(plan))


def test_stop_leaves_nothing_running_and_the_curve_stands(pool: Pool, fresh: Any) -> None:
    live = pool.start(fresh(steps=3000), "a", pace=math.inf)
    until(lambda: live.steps > 0)
    pool.stop(live, "a")
    stood = live.steps
    let_go(pool)
    assert live.state == "stopped"
    assert live.steps == stood


def test_a_fork_is_exact_whatever_was_recorded_before(pool: Pool) -> None:
    live = pool.start(FORK, "a", pace=math.inf)
    assert live.steps in (0, 20)  # its trunk may have been recorded by an earlier test
    rests(live, "finished")
    assert same(live.chunk, whole(FORK))


def test_a_killed_worker_is_replaced_and_the_run_goes_on_exactly(pool: Pool, fresh: Any) -> None:
    plan = fresh()
    live = pool.start(plan, "a", pace=50)
    until(lambda: live.steps >= 8)
    (process,) = pool.processes
    os.kill(process, signal.SIGKILL)
    until(lambda: live.notice)
    assert "died after step" in live.notice
    pool.set_pace(live, "a", math.inf)
    rests(live, "finished")
    assert pool.processes != [process]
    assert same(live.chunk, whole(plan))


def test_a_worker_that_is_stopped_is_replaced_and_the_run_goes_on_exactly(
    pool: Pool, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qkdemo.runs.workers.workshop.SILENT_S", 5.0)
    plan = fresh()
    live = pool.start(plan, "a", pace=50)
    until(lambda: live.steps >= 8)
    (process,) = pool.processes
    os.kill(process, signal.SIGSTOP)
    until(lambda: live.notice)
    assert "stopped answering after step" in live.notice
    pool.set_pace(live, "a", math.inf)
    rests(live, "finished")
    assert pool.processes != [process]
    assert same(live.chunk, whole(plan))


def test_a_run_that_gave_way_goes_on_exactly_where_it_was(pool: Pool, fresh: Any) -> None:
    plan = fresh(steps=1000)
    live = pool.start(plan, "a", pace=math.inf)
    until(lambda: live.steps >= 8)
    with pool._lock:
        pool._shop._give_way(pool._shop.workers[0])
    assert live.state == "queued"
    rests(live, "finished")
    assert live.turns == 1
    assert same(live.chunk, whole(plan))


def test_the_same_request_shares_a_run_and_only_who_asked_first_has_its_controls(pool: Pool, fresh: Any) -> None:
    live = pool.start(fresh(steps=3000), "a", pace=20)
    assert pool.start(live.plan, "b") is live
    for command in (pool.pause, pool.stop, pool.step):
        command(live, "b")
    pool.set_pace(live, "b", 1.0)
    assert live.state in ("queued", "going")
    assert live.pace == 20
    pool.leave("a")
    assert live.state in ("queued", "going")  # b still wants it
    assert pool.owns(live, "b")
    pool.leave("b")
    rests(live, "stopped")


def test_a_run_that_somebody_let_rest_is_only_shown_to_others_until_that_one_is_gone(
    pool: Pool, fresh: Any, monkeypatch: Any
) -> None:
    live = pool.start(fresh(steps=3000), "a", pace=20)
    pool.watch(live, 1, "a")
    until(lambda: live.steps > 0)
    pool.pause(live, "a")
    assert pool.start(live.plan, "b") is live
    assert live.state == "paused"
    monkeypatch.setattr("qkdemo.runs.workers.pool._ABSENT_S", 0.0)
    assert not pool.owns(live, "b")  # a watches
    pool.watch(live, -1, "a")
    until(lambda: pool.owns(live, "b"))
    pool.start(live.plan, "b")
    assert live.state in ("queued", "going")
    assert live.owner == "b"
    pool.stop(live, "b")


def test_a_visitor_has_one_run_and_others_wait_in_line(pool: Pool, fresh: Any) -> None:
    first = pool.start(fresh(steps=3000, n_layers=4, n_keys=64, batch=32), "a", pace=20)  # not soon done
    second = pool.start(fresh(steps=2020), "b", pace=20)
    third = pool.start(fresh(steps=2040), "c", pace=20)
    until(lambda: first.steps > 0)  # whoever had the worker before has let go of it
    assert [pool.status(live).position for live in (second, third)] == [1, 2]
    assert pool.status(third).wait_s > pool.status(second).wait_s > 0
    assert pool.status(first).hurried  # others wait
    told = third.version
    until(lambda: third.version > told)  # who waits hears how it stands, though nothing of theirs happens
    mine = pool.start(fresh(steps=2060), "a")
    assert first.state == "stopped"
    assert first.notice == say("live.left")  # and its own page says why
    until(lambda: second.state == "going")
    for visitor in "bca":
        pool.leave(visitor)
    assert {live.state for live in (first, second, third, mine)} == {"stopped"}


def test_a_line_that_is_too_long_is_refused_in_a_sentence(pool: Pool, fresh: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("qkdemo.runs.workers.line.LONGEST", 0)
    with pytest.raises(PoolError, match="already wait"):
        pool.start(fresh(), "z")


def test_a_record_is_found_again_by_its_name_by_another_pool(pool: Pool, url: str, without_workers: Any) -> None:
    live = pool.start(PLAN, "a", pace=math.inf)
    rests(live, "finished")
    idle = without_workers(url)
    found = idle.live(PLAN.name)
    assert found is not None
    assert found.state == "finished"
    assert found.recorded is not None
    assert same(found.chunk, live.chunk)
    assert idle.live("0" * 24) is None


def test_a_run_whose_server_died_says_so_and_one_that_was_stopped_does_not(
    tmp_path: Path, fresh: Any, monkeypatch: pytest.MonkeyPatch, without_workers: Any
) -> None:
    monkeypatch.undo()  # this pool has a worker
    url = f"sqlite:///{tmp_path}/runs.sqlite"
    pool = Pool(Store(url))
    stopped = pool.start(fresh(steps=3000), "a", pace=50)
    until(lambda: stopped.steps > 2)
    pool.stop(stopped, "a")
    broken = pool.start(fresh(steps=2980), "a", pace=50)
    until(lambda: broken.steps > 2)
    (process,) = (worker.process for worker in pool._shop.workers)
    pool.close()  # the worker's input ends, as if its server had been killed
    assert process is not None
    process.wait(PATIENCE_S)
    monkeypatch.setattr("qkdemo.runs.workers.process.WorkerProcess.start", lambda self: None)
    monkeypatch.setattr("qkdemo.runs.kept.store._LIVELY_S", 1e9)
    idle = without_workers(url)
    still = idle.live(broken.plan.name)
    assert still is not None
    assert still.notice == ""  # another server may be training it
    monkeypatch.setattr("qkdemo.runs.kept.store._LIVELY_S", 0.0)
    idle._recall.lives.clear()
    found, other = idle.live(broken.plan.name), idle.live(stopped.plan.name)
    assert found is not None
    assert other is not None
    assert found.steps >= broken.steps  # all that was shown
    assert found.notice == say("live.broken_off", step=found.steps)
    assert other.notice == ""
    monkeypatch.setattr(idle._shop, "hand_out", lambda: None)
    for notice in (found.notice, ""):  # said as long as it goes on, and not again after a rest
        idle._shop.enqueue(found, 3000)
        assert found.notice == notice


def test_the_time_left_does_not_count_what_a_worker_takes_to_begin(url: str, without_workers: Any) -> None:
    idle, chunk = without_workers(url), whole(PLAN)
    (worker,) = idle._shop.workers
    live = worker.live = Live(PLAN, owner="a", generation=1, pace=math.inf, touched=time.monotonic() - 1000)
    for first in (1, 3):
        rows = cut(after(chunk, first - 1), first + 1)
        idle._shop._on_rows(live, {"first": first, "count": 2}, list(chunk_to_bytes(rows)))
    assert live.steps == 4
    assert live.step_s is not None
    assert live.step_s < 100


def test_again_trains_it_again_and_the_record_stays(pool: Pool, url: str) -> None:
    rests(pool.start(PLAN, "a", pace=math.inf), "finished")
    live = pool.start(PLAN, "a", pace=math.inf, again=True)
    assert live.steps < PLAN.steps
    rests(live, "finished")
    record = Store(url).read(PLAN)
    assert record is not None
    assert record.ending == "finished"
    assert same(record.chunk, live.chunk)


def test_a_plan_that_cannot_be_trained_is_given_up_with_the_reason_and_the_worker_lives(
    pool: Pool, fresh: Any, monkeypatch: Any
) -> None:
    (process,) = pool.processes
    with monkeypatch.context() as patched:
        patched.setattr(Plan, "to_json", lambda plan: '{"legs": 5}')
        live = pool.start(fresh(), "a", pace=math.inf)
        rests(live, "lost")
    assert live.notice.startswith("The run cannot be trained here: ")
    rests(pool.start(fresh(steps=60), "a", pace=math.inf), "finished")
    assert pool.processes == [process]


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\x05", b"\0\0\0\x02{]", b'\0\0\0\x0d{"sizes":[9]}ab'])
def test_a_frame_that_breaks_off_is_the_end(data: bytes) -> None:
    assert read_frame(BytesIO(data).read) is None


def test_a_worker_ends_with_its_server(url: str, tmp_path: Path) -> None:
    code = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-m', 'qkdemo.runs.workers.worker'], "
    code += "stdin=subprocess.PIPE, stdout=sys.stdout.fileno()); print(p.pid, flush=True); sys.stdin.read()"

    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": str(root), "QKDEMO_STORE": f"sqlite:///{tmp_path}/r.sqlite"}
    server = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, env=environment
    )
    assert server.stdout
    server.stdout.readline()
    server.kill()
    said, _ = server.communicate(timeout=PATIENCE_S)  # ends when the last process that writes to it does
    assert b'"ready"' in said


def test_a_stop_is_heeded_after_the_step_that_is_under_way(monkeypatch: pytest.MonkeyPatch, fresh: Any) -> None:
    monkeypatch.setattr("qkdemo.runs.workers.job.FRAME_S", 1e9)  # a frame in which everything fits
    hand, taken = Hand(), list[int]()
    step = Trainer._one_step

    def counted(trainer: Trainer) -> Any:
        taken.append(1)
        if len(taken) == 3:
            hand.stop()
        return step(trainer)

    monkeypatch.setattr(Trainer, "_one_step", counted)
    train(Job(fresh(), until=30, after=0), None, hand, lambda kind, told, data: None)
    assert len(taken) == 3


# ---- runs one after another


def test_a_series_is_trained_in_its_order_and_what_is_finished_is_passed_over(pool: Pool, fresh: Any) -> None:
    plans = [fresh(learning_rate=rate) for rate in (0.1, 0.2, 0.3)]
    rests(pool.start(plans[1], "a", pace=math.inf), "finished")
    touched = pool.look(plans[1]).generation  # type: ignore[union-attr]
    pool.start_all([plans[2], plans[1], plans[0]], "s")
    begun: list[str] = []

    def all_done() -> bool:
        for plan in plans:
            live = pool.look(plan)
            if live is not None and live.steps and plan.name not in begun:
                begun.append(plan.name)
        return all((live := pool.look(plan)) is not None and live.state == "finished" for plan in plans)

    until(all_done)
    assert begun == [plans[1].name, plans[2].name, plans[0].name]
    assert pool.look(plans[1]).generation == touched  # type: ignore[union-attr]
    assert same(pool.look(plans[0]).chunk, whole(plans[0]))  # type: ignore[union-attr]


def test_leaving_ends_a_series_at_once_and_so_does_another_run(pool: Pool, fresh: Any) -> None:
    plans = [fresh(learning_rate=rate, steps=3000) for rate in (0.1, 0.2)]
    for ends in (lambda: pool.leave("s"), lambda: pool.start(fresh(learning_rate=0.3), "s", pace=math.inf)):
        pool.start_all(plans, "s")
        live = pool.look(plans[0])
        assert live is not None
        until(lambda live=live: live.steps > 0)
        ends()
        assert live.state == "stopped"
        let_go(pool)
        assert pool.look(plans[1]) is None


def test_two_who_want_the_same_series_share_its_runs_and_one_may_leave(pool: Pool, fresh: Any) -> None:
    plans = [fresh(learning_rate=rate, steps=600) for rate in (0.1, 0.2)]
    for visitor in ("s", "t"):
        pool.start_all(plans, visitor)
    live = pool.look(plans[0])
    assert live is not None
    pool.leave("s")
    assert live.state in ("queued", "going")
    until(lambda: (last := pool.look(plans[1])) is not None and last.state == "finished")
