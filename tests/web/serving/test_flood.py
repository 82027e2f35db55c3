"""More connections than a process usually may have: they are answered, and where the system sets a limit it is said."""

import select
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from tests.benchmarks.visitor import Visitor
from tests.serving import PATIENCE_S, ROOT, Server, served

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ulimit")


@contextmanager
def connections(app: Server, many: int) -> Iterator[list[socket.socket]]:
    """So many open ones, on which nothing is asked yet."""
    found = urlsplit(app.address)
    sockets = [socket.create_connection((found.hostname, found.port), timeout=PATIENCE_S) for _ in range(many)]
    try:
        yield sockets
    finally:
        for each in sockets:
            each.close()


def turned_away(sockets: list[socket.socket]) -> bool:
    """Whether the server has closed one of them."""
    ready, _, _ = select.select(sockets, [], [], 0)
    return bool(ready)


def until(happened: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < give_up
        time.sleep(0.1)


def healthy(app: Server) -> bool:
    with urlopen(f"{app.address}/_stcore/health", timeout=PATIENCE_S) as answer:
        return bool(answer.status == 200)


def healthy_again(app: Server) -> bool:
    """The descriptors of connections that were closed here come back to the server a moment later."""
    try:
        return healthy(app)
    except OSError:
        return False


def test_more_connections_than_the_soft_limit_and_tabs_that_are_reloaded_are_answered(tmp_path: Path) -> None:
    """As many tabs for the limit as 200 for the usual 1,024."""
    with served(ROOT / "app.py", tmp_path / "log.txt", descriptors=(256, 4096)) as app:
        tabs = [Visitor(app.address, "rope") for _ in range(50)]
        with connections(app, 400), ThreadPoolExecutor(16) as hands:
            assert healthy(app)
            fresh = list(hands.map(lambda tab: (tab.socket.close(), Visitor(app.address, "rope"))[1], tabs))
        assert all(tab.dials for tab in fresh)
        for tab in fresh:
            tab.socket.close()
        said = app.log.read_text(encoding="utf-8")
    assert "Too many open files" not in said
    assert "enough for about" not in said


def test_beyond_the_hard_limit_it_is_said_at_the_start_and_no_error_fills_the_log(tmp_path: Path) -> None:
    """uvloop turns away what it has no descriptor for; the loop of Python itself tries again and again, and logs it."""
    with served(ROOT / "app.py", tmp_path / "log.txt", descriptors=(200, 200)) as app:
        assert "enough for about 20 visitors" in app.log.read_text(encoding="utf-8")
        with connections(app, 400) as sockets:
            until(lambda: turned_away(sockets) or "out of system resource" in app.log.read_text(encoding="utf-8"))
            time.sleep(2)  # Python's tries again every second
        until(lambda: healthy_again(app))
        said = app.log.read_text(encoding="utf-8")
    assert said.count("Too many open files") <= 1
    assert said.count("Traceback") <= 1
