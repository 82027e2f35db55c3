"""The app where people really open it: below a path, behind a proxy, before which there may be several servers."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_pages import settled
from tests.browser.test_training import PATIENCE_MS, SMALL, button, step, until
from tests.proxying import NGINX, proxied
from tests.serving import ROOT, SEEDS, served


@pytest.fixture(scope="module", autouse=True)
def nginx() -> None:
    if NGINX is None:
        if os.environ.get("CI"):
            pytest.fail("No nginx here.", pytrace=False)
        pytest.skip("No nginx here: install it.")


@pytest.fixture(params=["stripped", "kept"])
def below(request: pytest.FixtureRequest, server: str, tmp_path: Path) -> Iterator[str]:
    """The app below /lab/qk: at a proxy that takes the path away, and at one that leaves it to the app."""
    if request.param == "stripped":
        with proxied([server], tmp_path, "/lab/qk", strips=True) as address:
            yield address
    else:
        with (
            served(ROOT / "app.py", tmp_path / "log.txt", "--server.baseUrlPath=lab/qk", base="/lab/qk") as app,
            proxied([app.address.removesuffix("/lab/qk")], tmp_path, "/lab/qk") as address,
        ):
            yield address


def test_below_a_path_runs_arrive_ladders_answer_and_links_keep_the_path(below: str, page: Page) -> None:
    page.goto(f"{below}/training?{SMALL}&seed={next(SEEDS)}&steps=2000&speed=10")
    until(page, lambda: step(page) >= 3)
    button(page, "Stop").click()
    expect(page.locator(".bar .status")).to_contain_text("stopped", timeout=PATIENCE_MS)
    page.goto(f"{below}/formats")
    heat = page.locator("figure.heat canvas").first
    expect(heat).to_be_visible(timeout=PATIENCE_MS)
    settled(page)
    with page.expect_response(lambda answer: answer.url.startswith(f"{below}/ladder?")) as answered:
        heat.hover()
    assert answered.value.ok
    page.goto(f"{below}/drift/?scale=16")  # a slash too many
    expect(page.locator(".reading").first).to_have_text("×16", timeout=PATIENCE_MS)
    page.get_by_role("radio", name="Copy link").click()
    expect(page.locator("[data-testid=stCode] code").first).to_contain_text(f"{below}/drift?")
    page.get_by_role("link", name="Home").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Which word")


def test_two_servers_that_keep_nobody_draw_the_page_and_say_what_is_missing(
    server: str, page: Page, tmp_path: Path
) -> None:
    with served(ROOT / "app.py", tmp_path / "log.txt") as other, proxied([server, other.address], tmp_path) as address:
        page.goto(f"{address}/drift")
        expect(page.locator("#qkdemo-connection")).to_contain_text(
            "Several servers answer at this address", timeout=PATIENCE_MS
        )
        expect(page.locator("h1")).to_be_visible(timeout=PATIENCE_MS)
        page.goto("about:blank")
        page.problems.clear()  # type: ignore[attr-defined]  a download's file may be on the other one


def test_a_proxy_that_passes_no_web_socket_on_is_told_of(server: str, page: Page, tmp_path: Path) -> None:
    with proxied([server], tmp_path, upgrades=False) as address:
        page.goto(f"{address}/drift")
        expect(page.locator("#qkdemo-connection")).to_contain_text("a web socket", timeout=30_000)
        page.goto("about:blank")
        page.problems.clear()  # type: ignore[attr-defined]  the browser says so too
