"""The connection goes and comes back, the session may be gone, the server may be another: nothing is lost.

How long it was away does not matter to a session but in one way: after a time it is gone. Here it is gone at once.
"""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from qkdemo.tracks.quiz import Settings, quiz
from tests.browser.test_pages import reading, settled
from tests.browser.test_training import PATIENCE_MS, SMALL, button, step, until
from tests.proxying import NGINX, proxied
from tests.serving import PATIENCE_S, ROOT, free_port, served

BAR = "#qkdemo-connection"
DIALOG = "[role=dialog]"
GROUPS = ".st-key-quiz-questions [role=radiogroup]"
QUESTIONS = "quiz?track=developer"
QUIZ = Settings(track="developer", seed=3)


class Line:
    """Between the browser and a server that keeps no session: it can be cut, and put together again."""

    def __init__(self, server: str, folder: Path) -> None:
        self._server, self._folder, self._port = server, folder, free_port()
        self._open = ExitStack()
        self.address = self.mend()

    def cut(self) -> None:
        """Nothing passes any more, and what is open is closed."""
        self._open.close()

    def mend(self) -> str:
        """The same address answers again."""
        return self._open.enter_context(proxied([self._server], self._folder, port=self._port))


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("forgetful") / "log.txt"
    with served(ROOT / "app.py", log, "--server.disconnectedSessionTTL=0") as app:
        yield app.address


@pytest.fixture
def line(forgetful: str, tmp_path: Path) -> Iterator[Line]:
    if NGINX is None:
        if os.environ.get("CI"):
            pytest.fail("No nginx here.", pytrace=False)
        pytest.skip("No nginx here: install it.")
    line = Line(forgetful, tmp_path)
    yield line
    line.cut()


def out_and_back(page: Page, line: Line, kept: str = "") -> None:
    """`kept`: what the browser has to hold before, since a run hands over last what its first lines already show."""
    settled(page)
    until(page, lambda: kept in page.evaluate("sessionStorage.getItem('qkdemo:kept') ?? ''"))
    line.cut()
    expect(page.locator(BAR)).to_contain_text("The connection to the server is lost", timeout=PATIENCE_MS)
    line.mend()
    expect(page.locator(BAR)).to_be_hidden(timeout=PATIENCE_MS)
    settled(page)


def forget(page: Page) -> None:
    """What the browser's console says about a connection that was cut on purpose."""
    page.problems.clear()  # type: ignore[attr-defined]


def answers(page: Page) -> list[int]:
    return page.locator(GROUPS).evaluate_all(
        "groups => groups.map((group) => [...group.querySelectorAll('input')].findIndex((input) => input.checked))"
    )


def answer(page: Page, many: int) -> None:
    groups = page.locator(GROUPS)
    expect(groups).to_have_count(8, timeout=PATIENCE_MS)
    settled(page)
    for at in range(many):
        groups.nth(at).locator("input").nth(1).press(" ")
    until(page, lambda: answers(page) == [1] * many + [-1] * (8 - many))


def test_answers_outlast_an_outage_are_sent_at_the_first_press_and_stay_sent(line: Line, page: Page) -> None:
    page.goto(f"{line.address}/{QUESTIONS}&seed=3")
    answer(page, 6)
    out_and_back(page, line)
    until(page, lambda: answers(page) == [1] * 6 + [-1] * 2)
    page.get_by_role("button", name="Send my answers").click()
    right = sum(question.choices[1] == question.answer for question in quiz(QUIZ)[:6])
    result = page.get_by_role("heading", level=2).first
    expect(result).to_have_text(f"{right} of 8 right · 2 left open", timeout=PATIENCE_MS)
    out_and_back(page, line, "held:answers:quiz")
    expect(result).to_have_text(f"{right} of 8 right · 2 left open", timeout=PATIENCE_MS)
    expect(page.locator(GROUPS)).to_have_count(0)
    page.goto(f"{line.address}/drift?seed=x")  # elsewhere nothing is asked for: the page runs once
    expect(page.locator(".reading").first).to_be_visible(timeout=PATIENCE_MS)
    settled(page)
    expect(page.get_by_text("seed must be a number")).to_be_visible(timeout=PATIENCE_MS)
    page.reload()
    expect(page.locator(".reading").first).to_be_visible(timeout=PATIENCE_MS)
    page.goto(f"{line.address}/{QUESTIONS}&seed=3")
    expect(result).to_have_text(f"{right} of 8 right · 2 left open", timeout=PATIENCE_MS)
    forget(page)


def test_answers_that_are_not_sent_outlast_a_reload_and_stand_on_their_own_sheet_alone(server: str, page: Page) -> None:
    page.goto(f"{server}/{QUESTIONS}&seed=3")
    answer(page, 5)
    page.reload()
    expect(page.locator(GROUPS)).to_have_count(8, timeout=PATIENCE_MS)
    until(page, lambda: answers(page) == [1] * 5 + [-1] * 3)
    page.goto(f"{server}/{QUESTIONS}&seed=4")
    expect(page.locator(GROUPS)).to_have_count(8, timeout=PATIENCE_MS)
    settled(page)
    assert answers(page) == [-1] * 8


def test_charts_follow_the_pointer_meanwhile_and_the_first_key_after_it_turns_the_dial(line: Line, page: Page) -> None:
    page.goto(f"{line.address}/drift")
    expect(page.locator(".reading").first).to_have_text("×8", timeout=PATIENCE_MS)
    settled(page)
    line.cut()
    expect(page.locator(BAR)).to_be_visible(timeout=PATIENCE_MS)
    box = page.locator("figure.curves canvas").first.bounding_box()
    assert box
    seen = set()
    for place in (0.2, 0.4, 0.6, 0.8):
        page.mouse.move(box["x"] + box["width"] * place, box["y"] + box["height"] / 2)
        page.wait_for_timeout(100)
        seen.add(reading(page))
    assert len(seen) == 4
    page.mouse.move(2, 2)
    page.wait_for_timeout(20_000)  # by then Streamlit's own dialog would be there
    expect(page.locator(DIALOG)).to_have_count(0)
    line.mend()
    expect(page.locator(BAR)).to_be_hidden(timeout=PATIENCE_MS)
    settled(page)
    page.locator("[data-testid=stSidebar] input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".reading").first).to_have_text("×9")
    expect(page).to_have_url(re.compile(r"scale=9$"))
    forget(page)


def test_a_run_on_screen_is_there_after_an_outage_though_the_dials_describe_another(line: Line, page: Page) -> None:
    page.goto(f"{line.address}/training?{SMALL}&seed=41&steps=60&speed=200")
    expect(page.locator(".bar .status")).to_contain_text("60 steps, recorded", timeout=PATIENCE_MS)
    page.locator("[data-testid=stSidebar]").get_by_text("constant", exact=True).click()
    expect(page.get_by_text("The dials now describe another run")).to_be_visible()
    out_and_back(page, line, "held:run")
    expect(page.get_by_text("The dials now describe another run")).to_be_visible()
    expect(page.locator(".bar .status")).to_contain_text("60 steps, recorded", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Start this run").click()
    expect(page.get_by_text("The dials now describe another run")).to_have_count(0)
    expect(page.locator(".bar .status")).to_contain_text("60 steps, recorded", timeout=PATIENCE_MS)
    forget(page)


def test_a_server_that_is_started_again_is_waited_for_and_the_run_goes_on(page: Page, tmp_path: Path) -> None:
    port = free_port()
    with served(ROOT / "app.py", tmp_path / "log.txt", port=port) as app:
        page.goto(f"{app.address}/training?{SMALL}&seed=1&steps=3000&speed=10")
        until(page, lambda: step(page) >= 5)
        before = step(page)
        os.kill(app.pid, signal.SIGTERM)
        expect(page.locator(".bar .status")).to_have_text("The server is restarting; this page goes on by itself.")
        app.process.wait(PATIENCE_S)
    expect(page.locator(BAR)).to_be_visible()
    with served(ROOT / "app.py", tmp_path / "log.txt", port=port):
        expect(page.locator(BAR)).to_be_hidden(timeout=PATIENCE_MS)
        until(page, lambda: step(page) > before + 5)
        button(page, "Stop").click()
        expect(page.locator(".bar .status")).to_contain_text("stopped")
        expect(page.locator(BAR)).to_be_hidden()  # it is one server, though it has another name than before
        page.goto("about:blank")
    forget(page)


def test_a_page_that_there_is_not_is_said(server: str, page: Page) -> None:
    page.goto(f"{server}/kale")
    expect(page.locator(BAR)).to_have_text("There is no page kale here; this is the first one.")
    expect(page.locator(DIALOG)).to_have_count(0)
    page.get_by_role("link", name="Drift", exact=True).click()
    expect(page.locator(BAR)).to_be_hidden()
    forget(page)
