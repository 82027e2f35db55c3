"""A Streamlit script served on a free port of this machine, for tests and benchmarks.

* `served(script)`: the server, from the moment it is healthy; stopped at the end; `children(pid)`: its workers;
* `chromium()`: the browser's program: the one that CHROMIUM names, `chromium` on the path, or Playwright's own;
* `browsed()`: the app on a fresh server, and a browser that can open it;
* `SEEDS`: of runs that go on: each try of a test takes the next, since what another browser has begun it cannot stop.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
SEEDS = count(7000)
PATIENCE_S = 180  # for a server to start on a busy machine
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True)
class Server:
    """Where it answers, and which process it is."""

    address: str
    pid: int
    process: "subprocess.Popen[bytes]"
    log: Path


@contextmanager
def served(
    script: Path,
    log: Path,
    *options: str,
    port: int | None = None,
    base: str = "",
    descriptors: tuple[int, int] | None = None,
) -> Iterator[Server]:
    """A fresh server of `script`, below `base`, that may have so many descriptors (soft and hard limit).

    Raises RuntimeError, with what it said, if it does not start.
    """
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(script)]
    command += [f"--server.port={port}", "--server.address=127.0.0.1", *options]
    store = f"sqlite:///{log.parent}/runs.sqlite"  # not the user's own runs
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "QKDEMO_STORE": store, "QKDEMO_WORKERS": "1"}
    if descriptors is not None:
        soft, hard = descriptors
        command = ["sh", "-c", f'ulimit -Sn {soft} && ulimit -Hn {hard} && exec "$@"', "sh", *command]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}{base}"
        _wait_for(f"{address}/_stcore/health", process, log)
        yield Server(address, process.pid, process, log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def browsed() -> Iterator[tuple[Server, Browser]]:
    """The app and a browser, both stopped at the end."""
    program = chromium()
    with (
        tempfile.TemporaryDirectory() as folder,
        served(ROOT / "app.py", Path(folder) / "log.txt") as app,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield app, browser
        browser.close()


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def processes() -> dict[int, int]:
    """Every process that goes on, and who started it."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in listed.splitlines()]
    return {int(child): int(parent) for child, parent, state in lines if not state.startswith("Z")}


def children(pid: int) -> list[int]:
    """The processes that a process has started and that go on."""
    return [child for child, parent in processes().items() if parent == pid]


def chromium() -> str | None:
    """The browser's program; None if there is none."""
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    candidates = (os.environ.get("CHROMIUM"), shutil.which("chromium"), own)
    return next((path for path in candidates if path and Path(path).exists()), None)


def _wait_for(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < give_up:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):  # not listening yet, or not ready
            time.sleep(0.1)
    raise RuntimeError(f"The app did not start. It said:\n{log.read_text(encoding='utf-8', errors='replace')}")
