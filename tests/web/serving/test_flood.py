"""More connections than a process usually may have: they are answered, and where the system sets a limit it is said."""

import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from tests.serving import PATIENCE_S, ROOT, Server, served

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ulimit")


@contextmanager
def connections(app: Server, many: int) -> Iterator[None]:
    """So many open ones, on which nothing is asked yet."""
    found = urlsplit(app.address)
    sockets = [socket.create_connection((found.hostname, found.port), timeout=PATIENCE_S) for _ in range(many)]
    try:
        yield
    finally:
        for each in sockets:
            each.close()


def until(happened: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < give_up
        time.sleep(0.1)


def healthy(app: Server) -> bool:
    with urlopen(f"{app.address}/_stcore/health", timeout=PATIENCE_S) as answer:
        return bool(answer.status == 200)


def test_more_connections_than_the_soft_limit_are_answered(tmp_path: Path) -> None:
    with served(ROOT / "app.py", tmp_path / "log.txt", descriptors=(256, 4096)) as app:
        with connections(app, 400):
            assert healthy(app)
        said = app.log.read_text(encoding="utf-8")
    assert "Too many open files" not in said
    assert "enough for about" not in said


def test_beyond_the_hard_limit_it_is_said_at_the_start_and_the_error_once(tmp_path: Path) -> None:
    with served(ROOT / "app.py", tmp_path / "log.txt", descriptors=(200, 200)) as app:
        assert "enough for about 20 visitors" in app.log.read_text(encoding="utf-8")
        with connections(app, 400):
            until(lambda: "out of system resource" in app.log.read_text(encoding="utf-8"))
            time.sleep(2)  # it tries again every second
        assert healthy(app)
        said = app.log.read_text(encoding="utf-8")
    assert said.count("Too many open files") == 1
    assert said.count("Traceback") == 1
    assert "times by now: socket.accept() out of system resource" in said
