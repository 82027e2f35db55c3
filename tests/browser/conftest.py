"""A served app and a real browser.

* `server`: the address of the app, served for the whole session;
* `cold_server`: the address of a server that nobody has visited;
* `page`: an empty page of 1280 × 800 that fails the test if the browser's console reported an error.

The browser is Chromium, see `tests.serving`. Without one the tests are skipped; in CI they fail.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.serving import FLAGS, ROOT, chromium, served

expect.set_options(
    timeout=30_000
)  # of the machine, not of the app: pictures in space are drawn without a graphics card


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(ROOT / "app.py", tmp_path_factory.mktemp("server") / "log.txt") as app:
        yield app.address


@pytest.fixture
def cold_server(tmp_path: Path) -> Iterator[str]:
    with served(ROOT / "app.py", tmp_path / "server.txt") as app:
        yield app.address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = chromium()
    if program is None:
        advice = "No Chromium here: install it, name it in CHROMIUM, or run `playwright install chromium`."
        if os.environ.get("CI"):
            pytest.fail(advice, pytrace=False)
        pytest.skip(advice)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


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


def _is_problem(message: ConsoleMessage) -> bool:
    """Any error but two 404s of Streamlit's own.

    It looks for its routes below a deep link first; and it looks for the file behind a download button, which is gone
    if the visitor went on before.
    """
    probe = "404" in message.text and any(part in message.location["url"] for part in ("/_stcore/", "/media/"))
    return message.type == "error" and not probe and "Download Button source error - 404" not in message.text
