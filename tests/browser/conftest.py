"""A served app and a real browser.

* `server`: the address of the app, served for the whole session;
* `cold_server`: the address of a server that nobody has visited;
* `page`: an empty page of 1280 × 800 that fails the test if the browser's console reported an error.

The browser is Chromium: the program that CHROMIUM names, `chromium` on the path, or Playwright's own. Without one the
tests are skipped; in CI they fail.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, sync_playwright

ROOT = Path(__file__).parents[2]
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


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with _served(tmp_path_factory.mktemp("server") / "log.txt") as address:
        yield address


@pytest.fixture
def cold_server(tmp_path: Path) -> Iterator[str]:
    with _served(tmp_path / "server.txt") as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=_chromium(playwright), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """`page.problems` lists what the browser complained about; it must be empty at the end of a test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    problems: list[str] = []
    page.problems = problems  # type: ignore[attr-defined]
    page.on("console", lambda message: problems.append(message.text) if _is_problem(message) else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    context.close()
    assert problems == []


@contextmanager
def _served(log: Path) -> Iterator[str]:
    """The address of a fresh server, which is stopped at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py"]
    command += [f"--server.port={port}", "--server.address=127.0.0.1"]
    store = f"sqlite:///{log.parent}/runs.sqlite"  # not the user's own runs
    environment = os.environ | {"QKDEMO_STORE": store, "QKDEMO_WORKERS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_for(f"{address}/_stcore/health", process, log)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < give_up:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):  # not listening yet, or not ready
            time.sleep(0.1)
    pytest.fail(f"The app did not start. It said:\n{log.read_text(encoding='utf-8', errors='replace')}", pytrace=False)


def _chromium(playwright: Playwright) -> str:
    candidates = (os.environ.get("CHROMIUM"), shutil.which("chromium"), playwright.chromium.executable_path)
    for path in candidates:
        if path and Path(path).exists():
            return path
    advice = "No Chromium here: install it, name it in CHROMIUM, or run `playwright install chromium`."
    if os.environ.get("CI"):
        pytest.fail(advice, pytrace=False)
    pytest.skip(advice)


def _is_problem(message: ConsoleMessage) -> bool:
    """Any error but one: Streamlit looks for its routes below a deep link first, and the browser logs the 404."""
    probe = "404" in message.text and "/_stcore/" in message.location["url"]
    return message.type == "error" and not probe
