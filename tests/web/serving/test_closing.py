"""The server ends when it is told to, also while runs are watched, and leaves no process behind."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from qkdemo.labs.training.lab import Settings, plan_of
from qkdemo.web.serving import closing
from tests.benchmarks.visitor import Visitor
from tests.serving import PATIENCE_S, ROOT, Server, children, processes, served

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and ps")

LONG = Settings(n_layers=1, n_heads=1, d_head=8, n_keys=8, batch=2, steps=3000, speed=1)
QUERY = "&".join(f"{name}={text}" for name, text in LONG.to_texts().items())


PATIENT = """
from qkdemo.web.serving import closing
closing.GRACE_S = closing._WORKERS_S = 60.0
"""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Server]:
    """With time to end: a busy machine does nothing in two seconds. The last test says how long it is otherwise."""
    script = tmp_path / "app.py"
    script.write_text(PATIENT + (ROOT / "app.py").read_text(encoding="utf-8"), encoding="utf-8")
    with served(script, tmp_path / "log.txt") as app:
        yield app


class Watcher:
    """A client that follows a run."""

    def __init__(self, app: Server) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(app.address).netloc, timeout=PATIENCE_S)
        self.connection.request("GET", f"/live/{plan_of(LONG).name}")
        self.response = self.connection.getresponse()

    def messages(self) -> Iterator[dict[str, Any]]:
        """Until the stream ends."""
        for line in self.response:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))


def watched(app: Server, many: int) -> tuple[Visitor, list[Iterator[dict[str, Any]]]]:
    """A visitor whose run goes on, and so many streams of it."""
    visitor = Visitor(app.address, "training", query=QUERY)
    streams = [Watcher(app).messages() for _ in range(many)]
    for stream in streams:
        assert next(message for message in stream if message["rows"])["status"]["state"] == "going"
    return visitor, streams


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_watched_streams_with_a_word_the_server_and_its_worker(
    app: Server, number: signal.Signals
) -> None:
    visitor, streams = watched(app, 3)
    workers = children(app.pid)
    assert len(workers) == 1
    os.kill(app.pid, number)
    for stream in streams:
        *_, last = stream
        assert last == {"closing": True}
    app.process.wait(PATIENCE_S)
    said = app.log.read_text(encoding="utf-8")
    assert "left behind" not in said  # nothing had to be
    assert "Traceback" not in said
    assert not alive(workers)
    visitor.socket.close()


def test_a_worker_whose_server_was_killed_ends_by_itself(app: Server) -> None:
    watched(app, 1)
    workers = children(app.pid)
    os.kill(app.pid, signal.SIGKILL)
    app.process.wait(PATIENCE_S)
    give_up = time.monotonic() + PATIENCE_S
    while alive(workers):
        assert time.monotonic() < give_up
        time.sleep(0.05)


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if pid in processes()]


STUCK = """
import asyncio, os, signal
from qkdemo.web.serving import closing

async def serve():
    signal.signal(signal.SIGTERM, lambda *_: print("told", flush=True))
    async with closing.lifespan(None):
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

closing.GRACE_S = 0.1
asyncio.run(serve())
"""


def test_what_does_not_end_by_itself_is_left_behind() -> None:
    command = [sys.executable, "-c", STUCK]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.stdout == "told\n"  # and who heeded the signal before still hears of it
    assert done.returncode == 128 + signal.SIGTERM
    assert "left behind" in done.stderr


def test_it_takes_at_most_three_seconds() -> None:
    assert closing.GRACE_S + closing._WORKERS_S <= 3
