"""Axe finds nothing to complain about, on any page, in light and in dark."""

from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from qkdemo.messages import say
from qkdemo.tracks.catalogue import TRACKS
from qkdemo.web.pages import PAGES
from qkdemo.web.track.lesson import page_of
from tests.browser.test_pages import CARRIES, path_of, settled

SEVERE = ("critical", "serious", "moderate")


STOP = next(stop for stop in TRACKS["beginner"] if stop.start is not None)
LESSON = f"/{page_of(STOP).name}?track=beginner&stop={STOP.name}"
DONE = f"{LESSON}&said={','.join(['!'] * len(TRACKS['beginner']))}"
PLACES = {name: path_of(name) for name in PAGES} | {
    "a stop": LESSON,
    "a stop that was run": DONE,
    "a lecture": f"{DONE}&lecture=1",
    "claims that were tested": f"/claims?said={','.join(['true!'] * len(TRACKS['claims']))}",
    "cost": "/cost?n_keys=64&repeats=3",
    "map": "/map?cells=9&minus=plain&share=spiked",  # a difference, and the diagram of training
    "another diagram": "/map?cells=9&phases=" + quote("learning_rate;beta2;3;1;none,rms"),
}
PRESSED = {  # what is explored there
    "cost": say("cost.measure.start"),
    "models": say("explored.counts_tab"),
    "sensitivity": say("explored.tab"),
}
VEGA = "[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg.marks"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", PLACES)
def test_axe_finds_no_severe_violation(server: str, browser: Browser, place: str, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.goto(server + PLACES[place])
    expect(page.locator(CARRIES).first).to_be_visible(timeout=30_000)
    settled(page)
    if place in PRESSED:
        page.get_by_role("radio", name=PRESSED[place]).or_(page.get_by_role("button", name=PRESSED[place])).click()
        expect(page.locator(VEGA).first).to_be_visible()
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
