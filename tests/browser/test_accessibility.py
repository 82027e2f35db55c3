"""Axe finds nothing to complain about, on any page, in light and in dark."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from qkdemo.web.pages import PAGES
from tests.browser.test_pages import CARRIES, path_of, settled

SEVERE = ("critical", "serious", "moderate")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_severe_violation(server: str, browser: Browser, name: str, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.goto(server + path_of(name))
    expect(page.locator(CARRIES).first).to_be_visible()
    settled(page)
    found = Axe().run(page).response["violations"]
    context.close()
    severe = {(rule["id"], node["html"][:120]) for rule in found if rule["impact"] in SEVERE for node in rule["nodes"]}
    assert severe == set()


def test_axe_would_complain(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content("<html><body><img src='data:,'></body></html>")
    found = Axe().run(page).response["violations"]
    page.close()
    assert "image-alt" in {rule["id"] for rule in found}
