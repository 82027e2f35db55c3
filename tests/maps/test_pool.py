"""Maps fill in from coarse to fine, in a process of their own, in turns, and keep what they have."""

import os
import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest

from qkdemo.labs.registry import LABS
from qkdemo.maps import reader
from qkdemo.maps.cells import whole
from qkdemo.maps.pool import Filling, Fillings
from qkdemo.maps.request import Request, request_of

DRIFT = LABS["drift"]
RANGES = ("scale:0.1:1000", "gain:0.1:100")


@pytest.fixture(scope="module")
def fillings() -> Iterator[Fillings]:
    made = Fillings()
    yield made
    made.close()


def asked(seed: int) -> Request:
    return request_of("drift", DRIFT.settings(seed=seed), *RANGES)


def until(fillings: Fillings, request: Request, size: int, state: str) -> Filling:
    for _ in range(1200):
        filling = fillings.of(request, size)
        fillings.begin(filling)
        if filling.state == state:
            return filling
        time.sleep(0.05)
    raise AssertionError(f"{filling.state}: {filling.done} of {filling.total}")


@pytest.mark.one_rounding
def test_what_a_process_reads_is_what_is_read_here_to_the_last_digit(fillings: Fillings) -> None:
    request = request_of("drift", DRIFT.settings(seed=1, format="float16"), *RANGES, "max_abs_logit")
    there = until(fillings, request, 17, "whole").cells(request.measure)
    here = whole(request, 17)
    assert there is not None
    assert np.isinf(here.shown("plain")).any()
    for role in here.sides:
        for name, column in here.sides[role].items():
            assert np.array_equal(column, there.sides[role][name], equal_nan=True)
    assert os.getpid() not in fillings.processes


def test_a_coarse_map_is_there_before_the_fine_one(fillings: Fillings) -> None:
    request = asked(2)
    filling = fillings.of(request, 33)
    sizes = set()
    while filling.state == "going":
        fillings.begin(fillings.of(request, 33))
        if (cells := filling.cells(request.measure)) is not None:
            sizes.add(len(cells.x))
        time.sleep(0.002)
    last = filling.cells(request.measure)
    assert last is not None
    assert len(last.x) == 33
    assert sizes & {9, 17}


def test_the_first_size_is_read_at_once_where_it_is_quick(fillings: Fillings) -> None:
    filling = fillings.of(asked(3), 9)
    fillings.begin(filling, seconds=60)
    assert filling.state == "whole"
    assert filling.cells("entropy") is not None


def test_two_who_ask_for_the_same_share_it_whatever_they_look_at_and_wherever_they_stand(fillings: Fillings) -> None:
    one = fillings.of(asked(4), 9)
    moved = request_of("drift", DRIFT.settings(seed=4, scale=100, gain=2), *RANGES, "top_weight")
    assert fillings.of(moved, 9) is one
    assert fillings.of(asked(5), 9) is not one


def test_stopped_it_keeps_what_it_has_and_goes_on_from_there(fillings: Fillings) -> None:
    request = asked(6)
    until(fillings, request, 9, "whole")
    filling = fillings.of(request, 33)
    fillings.stop(filling)
    time.sleep(0.3)
    rows = len(filling.canvas.rows_of(33))
    assert rows > 0
    fillings.begin(fillings.of(request, 33))
    time.sleep(0.3)
    assert (filling.state, len(filling.canvas.rows_of(33))) == ("stopped", rows)
    fillings.go_on(filling)
    until(fillings, request, 33, "whole")
    assert not filling.canvas.rows_of(33)


def test_a_small_map_is_whole_before_a_large_one_that_was_asked_for_first(fillings: Fillings) -> None:
    large, small = asked(7), asked(8)
    fillings.begin(fillings.of(large, 65))
    fillings.begin(fillings.of(small, 9))
    until(fillings, small, 9, "whole")
    assert fillings.of(large, 65).state == "going"
    fillings.stop(fillings.of(large, 65))


def test_nobody_looks_nothing_is_read() -> None:
    now = [0.0]
    alone = Fillings(clock=lambda: now[0])
    filling = alone.of(asked(9), 65)
    now[0] = 100.0
    alone.begin(filling)
    assert alone.processes == []
    alone.close()


@pytest.mark.one_rounding
def test_a_process_that_is_killed_loses_no_row(fillings: Fillings) -> None:
    request = asked(10)
    fillings.begin(fillings.of(request, 33))
    killed = fillings.processes
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    cells = until(fillings, request, 33, "whole").cells(request.measure)
    assert cells is not None
    assert np.array_equal(cells.shown("plain"), whole(request, 33).shown("plain"))
    assert killed
    assert not {*killed} & {*fillings.processes}


def test_where_every_process_ends_the_map_gives_up_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "as_order", lambda row: {"lab": "no such lab"})
    alone = Fillings()
    filling = until(alone, asked(11), 9, "failed")
    assert filling.done == 0
    monkeypatch.undo()
    alone.go_on(filling)
    until(alone, asked(11), 9, "whole")
    alone.close()
