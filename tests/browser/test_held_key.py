"""A key that is held down: the dial ends where the hand left it, and the address says the same."""

import re

import pytest
from playwright.sync_api import Page, expect

from qkdemo.dials import Dial, declarations
from qkdemo.web.pages import PAGES
from tests.browser.test_pages import settled

PRESSES, EVERY_MS = 15, 33  # as a held key repeats


def stops_from(page_name: str, dial: str, start: float) -> list[str]:
    """The dial's next stops above `start`, as a link writes them."""
    declared = next(each for each in declarations(PAGES[page_name].lab.settings) if each.name == dial)
    assert isinstance(declared.kind, Dial)
    steps = range(1, PRESSES + 1)
    stops = [stop for stop in declared.kind.grid() if stop > start] or [start + declared.kind.step * n for n in steps]
    return [declared.write(round(stop, 12)) for stop in stops[:PRESSES]]


@pytest.mark.parametrize(("page_name", "dial", "start"), [("drift", "scale", 1), ("placement", "gain_spread", 0)])
def test_a_held_key_leaves_the_dial_where_the_hand_left_it(
    server: str, page: Page, page_name: str, dial: str, start: float
) -> None:
    page.goto(f"{server}/{page_name}?{dial}={start}")
    expect(page.locator(".reading").first).to_be_visible(timeout=30_000)
    name = next(each.label for each in declarations(PAGES[page_name].lab.settings) if each.name == dial)
    slider = page.locator("[data-testid=stSidebar]").get_by_role("slider", name=name)
    slider.focus()
    for _ in range(PRESSES):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(EVERY_MS)
    last = stops_from(page_name, dial, start)[-1]
    settled(page)
    expect(page).to_have_url(re.compile(rf"[?&]{dial}={re.escape(last)}(&|$)"))
    expect(page.locator(".reading").first).to_have_text(re.compile(re.escape(last)))
    page.wait_for_timeout(500)  # nothing comes late and turns it back
    expect(page).to_have_url(re.compile(rf"[?&]{dial}={re.escape(last)}(&|$)"))
    expect(slider).to_be_focused()
