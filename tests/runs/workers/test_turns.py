"""Turns, limits, and workers that hang: told by a clock that the test moves, to workers that are not there."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from qkdemo.messages import say
from qkdemo.runs import budget
from qkdemo.runs.kept.record import after, chunk_to_bytes, cut
from qkdemo.runs.kept.store import Store
from qkdemo.runs.plan import Plan, twins
from qkdemo.runs.workers import line, workshop
from qkdemo.runs.workers import pool as pool_module
from qkdemo.runs.workers.line import HANDICAP_S, TURN_S, shared, waits
from qkdemo.runs.workers.live import Live
from qkdemo.runs.workers.pool import Pool, PoolError
from qkdemo.runs.workers.process import WorkerProcess
from qkdemo.runs.workers.series import ABSENT_S
from tests.runs.kept.test_store import SMALL, whole


class Clock:
    """Seconds, as the test says."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Shop:
    """A pool whose workers are the test's own: what they are told, and what they say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store: Store, workers: int) -> None:
        self.orders: list[tuple[int, str]] = []
        self.killed: list[WorkerProcess] = []
        self.clock = Clock()

        def told(worker: WorkerProcess, **order: Any) -> None:
            self.orders.append((self.pool._shop.workers.index(worker), order["do"]))

        def ended(worker: WorkerProcess) -> None:
            self.killed.append(worker)
            self.pool._shop.heard(worker, None, [])

        monkeypatch.setattr(WorkerProcess, "_launched", lambda worker: Mock())
        monkeypatch.setattr(WorkerProcess, "_read", lambda worker, process: None)
        monkeypatch.setattr(WorkerProcess, "_send", told)
        monkeypatch.setattr(WorkerProcess, "kill", ended)
        monkeypatch.setattr(pool_module, "_TICK_S", 1e9)  # the test does it
        self.pool = Pool(store, None, workers, self.clock)

    def plan(self, seed: int, steps: int = 40) -> Plan:
        return twins(SMALL.but(seed=seed, steps=steps))

    def passes(self, seconds: float, beating: bool = True) -> None:
        """Time goes by, and workers say that they are there."""
        for _ in range(math.ceil(seconds / 0.5)):
            self.clock.now += 0.5
            for worker in self.pool._shop.workers if beating else ():
                self.pool._shop.heard(worker, {"kind": "alive", "beats": self.clock.now}, [])
            self.pool.tick()

    def says(self, at: int, kind: str, data: Any = (), **told: Any) -> None:
        worker = self.pool._shop.workers[at]
        self.pool._shop.heard(worker, {"kind": kind, "number": worker.number, **told}, data)

    def rests(self, at: int = 0, saved: bool = True) -> None:
        """A worker has put down the run that was taken from it."""
        self.says(at, "rest", step=0, saved=saved, seconds=1.0)

    def steps(self, live: Live, count: int) -> None:
        """The worker that has `live` takes some steps."""
        (at,) = (at for at, worker in enumerate(self.pool._shop.workers) if worker.live is live)
        chunk, first = whole(live.plan), live.steps + 1
        rows = cut(after(chunk, first - 1), first - 1 + count)
        self.says(at, "rows", chunk_to_bytes(rows), first=first, count=count)
        if live.steps == live.plan.steps:
            self.says(at, "rest", step=live.steps, saved=True, seconds=1.0)


@pytest.fixture
def shops(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    made: list[Shop] = []

    def opened(workers: int = 1) -> Shop:
        made.append(Shop(monkeypatch, Store(f"sqlite:///{tmp_path}/runs.sqlite"), workers))
        return made[-1]

    yield opened
    for shop in made:
        shop.pool.close()


# ---- turns


def test_a_short_run_waits_for_one_turn_and_not_for_the_end_of_a_long_one(shops: Callable[..., Shop]) -> None:
    shop = shops()
    long = shop.pool.start(shop.plan(1, steps=3000), "a", pace=math.inf)
    shop.pool.watch(long, 1, "a")
    long.step_s = 0.5  # 1 500 s
    shop.passes(3)
    short = shop.pool.start(shop.plan(2), "b")
    shop.pool.watch(short, 1, "b")
    assert shop.pool.status(short).position == 1
    assert shop.pool.status(short).wait_s == pytest.approx(TURN_S - 3)
    shop.passes(TURN_S - 3)
    assert (long.state, short.state) == ("going", "queued")
    shop.passes(1)
    assert long.state == "queued"
    assert shop.orders[-1] == (0, "stop")
    assert short.state == "queued"  # the worker still writes down where the long one is
    shop.rests()
    assert short.state == "going"
    shop.steps(short, 40)
    assert short.state == "finished"
    assert long.state == "going"
    assert long.turns == 1


def test_who_is_alone_keeps_the_worker(shops: Callable[..., Shop]) -> None:
    shop = shops()
    live = shop.pool.start(shop.plan(1), "a", pace=1.0)
    shop.pool.watch(live, 1, "a")
    shop.passes(10 * TURN_S)
    assert live.state == "going"
    assert live.turns == 0
    assert "stop" not in [order for _, order in shop.orders]


def test_long_runs_take_turns_and_a_newcomer_goes_before_those_that_had_theirs(shops: Callable[..., Shop]) -> None:
    shop = shops()
    lives = [shop.pool.start(shop.plan(seed, steps=3000), f"v{seed}", pace=math.inf) for seed in range(3)]
    for seed, live in enumerate(lives):
        shop.pool.watch(live, 1, f"v{seed}")
        live.step_s = 1.0
    went = []
    for turn in range(7):
        going = next(live for live in lives if live.state == "going")
        went.append(lives.index(going))
        if turn == 4:
            lives.append(shop.pool.start(shop.plan(9), "new"))
            shop.pool.watch(lives[-1], 1, "new")
        shop.passes(TURN_S + 1)
        shop.rests()
    assert went == [0, 1, 2, 0, 1, 3, 2]


def test_nobody_starves_behind_newcomers(shops: Callable[..., Shop]) -> None:
    shop = shops()
    old = shop.pool.start(shop.plan(1, steps=3000), "a", pace=math.inf)
    shop.pool.watch(old, 1, "a")
    seed = 100
    while old.turns < 2:  # as soon as one is finished, another visitor comes with two more
        for _ in range(2):
            seed += 1
            shop.pool.watch(shop.pool.start(shop.plan(seed), f"v{seed}"), 1, f"v{seed}")
        shop.passes(TURN_S + 1)
        shop.rests()
        assert seed < 100 + 2 * 3 * (HANDICAP_S / TURN_S + 2)


def test_a_run_that_could_not_go_on_from_where_it_was_does_not_give_way_again(shops: Callable[..., Shop]) -> None:
    shop = shops()
    live = shop.pool.start(shop.plan(1, steps=3000), "a", pace=math.inf)
    other = shop.pool.start(shop.plan(2, steps=3000), "b", pace=math.inf)
    for visitor, one in (("a", live), ("b", other)):
        shop.pool.watch(one, 1, visitor)
    shop.passes(TURN_S + 1)
    shop.rests(saved=False)
    shop.passes(TURN_S + 1)
    shop.rests()
    assert live.state == "going"
    shop.passes(3 * TURN_S)
    assert live.state == "going"


def test_the_wait_that_is_said_is_the_wait_there_is() -> None:
    """Against a simulation of turns in steps of 0.1 s."""
    busy, needs = [4.0, 25.0], [30.0, 1.0, 8.0, 12.0]
    left, now, found = [min(one, TURN_S) for one in busy], 0.0, []
    queue = list(needs)
    while queue:
        for at in range(len(left)):
            if left[at] <= 1e-9 and queue:
                found.append(now)
                left[at] = min(queue.pop(0), TURN_S)
        left = [one - 0.1 for one in left]
        now += 0.1
    assert waits([min(one, TURN_S) for one in busy], needs) == pytest.approx(found, abs=0.11)


def test_the_time_left_counts_those_with_whom_a_run_takes_turns() -> None:
    assert shared(20, [], 1) == 20
    assert shared(20, [20, 20], 1) == 60
    assert shared(20, [20, 20], 2) == 30
    assert shared(20, [1], 2) == 20  # it has a worker to itself


# ---- nobody watches


def test_a_run_that_nobody_watches_rests_while_others_wait_and_goes_on_when_nobody_does(
    shops: Callable[..., Shop],
) -> None:
    shop = shops()
    left = shop.pool.start(shop.plan(1, steps=3000), "a", pace=math.inf)
    shop.pool.watch(left, 1, "a")
    shop.pool.watch(left, -1, "a")  # the tab is closed
    left.keeps_place = False  # not even at the end of its turn would it have given way
    shop.passes(59)
    assert left.state == "going"
    other = shop.pool.start(shop.plan(2), "b", pace=math.inf)
    shop.pool.watch(other, 1, "b")
    shop.passes(2)
    assert left.state == "stopped"
    assert left.notice == say("live.rested", step=0)
    shop.rests()
    assert other.state == "going"
    shop.passes(100)
    assert left.state == "stopped"
    shop.steps(other, 40)
    assert left.state == "going"  # nobody waits
    assert left.notice == ""
    third = shop.pool.start(shop.plan(3), "c", pace=math.inf)
    shop.pool.watch(third, 1, "c")
    shop.passes(4)
    shop.rests()
    assert third.state == "going"


def test_one_that_nobody_watches_goes_on_to_its_end_while_nobody_waits(shops: Callable[..., Shop]) -> None:
    shop = shops()
    live = shop.pool.start(shop.plan(1), "a")
    shop.passes(1000)
    assert live.state == "going"


def test_who_comes_back_to_a_run_that_rests_has_it_go_on(shops: Callable[..., Shop]) -> None:
    shop = shops()
    live = shop.pool.start(shop.plan(1, steps=3000), "a", pace=math.inf)
    other = shop.pool.start(shop.plan(2, steps=3000), "b", pace=math.inf)
    shop.pool.watch(other, 1, "b")
    shop.passes(62)
    shop.rests()
    assert live.state == "stopped"
    shop.pool.start(live.plan, "a")
    shop.pool.watch(live, 1, "a")
    assert live.state == "queued"
    shop.pool.stop(live, "a")
    shop.pool.stop(other, "b")
    shop.rests()
    shop.passes(10)
    assert live.state == "stopped"  # and what a hand stopped does not go on by itself


def test_a_series_ends_where_nobody_has_been_for_a_minute(shops: Callable[..., Shop]) -> None:
    shop = shops()
    plans = [shop.plan(seed) for seed in (1, 2, 3)]
    shop.pool.start_all(plans, "s")
    first = shop.pool.look(plans[0])
    assert first is not None
    shop.passes(ABSENT_S - 1)
    shop.steps(first, 40)
    second = shop.pool.look(plans[1])
    assert second is not None
    assert second.state == "going"
    shop.passes(ABSENT_S)
    shop.steps(second, 40)
    assert shop.pool.look(plans[2]) is None
    assert "s" not in shop.pool._series


# ---- limits


def test_one_visitor_and_one_address_cannot_fill_the_line(
    shops: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "LONGEST_OF_ADDRESS", 5)
    shop = shops()
    shop.pool.start(shop.plan(0, steps=3000), "going")
    for seed in range(1, 5):
        live = shop.pool.start(shop.plan(seed), "a", address="10.0.0.1")
        shop.pool.watch(live, 1, "a")
        shop.pool.watch(live, 1, "someone")  # so that it does not rest when its visitor asks for another one
        if seed == 3:
            break
    with pytest.raises(PoolError, match="that you started already wait"):
        shop.pool.start(shop.plan(5), "a", address="10.0.0.1")
    for seed in (11, 12):
        shop.pool.start(shop.plan(seed), f"v{seed}", address="10.0.0.1")
    with pytest.raises(PoolError, match="from your network already wait"):
        shop.pool.start(shop.plan(13), "b", address="10.0.0.1")
    assert shop.pool.start(shop.plan(14), "c", address="10.0.0.2").state == "queued"


def test_what_needs_more_memory_than_there_is_is_refused_in_a_sentence(
    shops: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "free_memory", lambda: 1 << 20)
    with pytest.raises(PoolError, match=r"needs about \d+ MB of memory, and this machine has 1 MB left"):
        shops().pool.start(twins(SMALL.but(n_layers=4, d_head=64, n_heads=4)), "a")


def test_two_large_runs_do_not_go_on_at_once_where_memory_is_short(
    shops: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = shops(workers=2)
    lives = [shop.pool.start(shop.plan(seed), f"v{seed}") for seed in (1, 2)]
    assert [live.state for live in lives] == ["going", "going"]
    for seed in (1, 2):
        shop.pool.leave(f"v{seed}")
        shop.rests(seed - 1)
    monkeypatch.setattr(workshop, "free_memory", lambda: 1 << 10)
    lives = [shop.pool.start(shop.plan(seed), f"v{seed}") for seed in (3, 4)]
    assert [live.state for live in lives] == ["going", "queued"]
    shop.steps(lives[0], 40)
    assert lives[1].state == "going"


# ---- workers that hang


def test_of_a_worker_that_starts_it_is_not_said_that_another_one_takes_over_at_once(shops: Callable[..., Shop]) -> None:
    shop = shops()
    live = shop.pool.start(shop.plan(1), "a")
    shop.pool.watch(live, 1, "a")
    shop.passes(60, beating=False)  # while it loads PyTorch
    assert live.state == "going"
    assert shop.pool.status(live).silent_s == 0
    assert not shop.killed


def test_a_worker_that_says_nothing_is_replaced_within_fifteen_seconds_and_the_page_says_so(
    shops: Callable[..., Shop],
) -> None:
    shop = shops()
    live = shop.pool.start(shop.plan(1), "a", pace=math.inf)
    shop.pool.watch(live, 1, "a")
    shop.passes(5)
    shop.steps(live, 12)
    (worker,) = shop.pool._shop.workers
    shop.passes(6, beating=False)
    assert shop.pool.status(live).silent_s == pytest.approx(6)
    told = live.version
    shop.passes(2, beating=False)
    assert live.version > told  # so that the page says it
    assert not shop.killed
    shop.passes(7, beating=False)
    assert shop.killed == [worker]
    assert live.notice == say("live.hung", step=12)
    assert live.state == "going"  # another one has it
    assert shop.orders[-1] == (0, "train")


def test_a_worker_whose_work_does_not_move_hangs_though_it_says_that_it_is_there(shops: Callable[..., Shop]) -> None:
    shop = shops()
    shop.pool.start(shop.plan(1), "a", pace=math.inf)
    shop.passes(2)
    (worker,) = shop.pool._shop.workers
    for _ in range(15):
        shop.says(0, "alive", beats=[7, 0])
        shop.passes(1, beating=False)
    assert shop.killed[0] is worker


def test_a_server_that_was_held_up_itself_does_not_blame_its_workers(shops: Callable[..., Shop]) -> None:
    shop = shops()
    shop.pool.start(shop.plan(1), "a")
    shop.passes(2)
    shop.clock.now += 600  # the machine slept
    shop.pool.tick()
    assert not shop.killed


def test_an_idle_worker_that_is_stopped_is_replaced_before_anybody_needs_it(shops: Callable[..., Shop]) -> None:
    shop = shops()
    shop.passes(5)
    shop.passes(15, beating=False)
    assert len(shop.killed) == 1


def test_a_worker_may_take_long_to_start(shops: Callable[..., Shop]) -> None:
    shop = shops()
    shop.passes(100, beating=False)
    assert not shop.killed
    shop.passes(100, beating=False)
    assert shop.killed


def test_three_workers_that_hang_over_one_run_are_enough(shops: Callable[..., Shop]) -> None:
    shop = shops()
    live = shop.pool.start(shop.plan(1), "a")
    for _ in range(3):
        shop.passes(3)
        shop.passes(15, beating=False)
    assert live.state == "lost"
    assert live.notice == say("live.lost", step=0, count=3)
