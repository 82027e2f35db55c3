"""A handout in a real browser: readable by all, on a phone too, and alone."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from qkdemo.tracks.catalogue import TRACKS
from qkdemo.tracks.progress import read_progress
from qkdemo.web.handout.page import handout
from tests.browser.test_accessibility import SEVERE

FULL = [track for track, stops in TRACKS.items() if stops]


@pytest.mark.parametrize("track", FULL)
def test_a_handout_is_accessible_fits_and_asks_nobody(page: Page, tmp_path: Path, track: str) -> None:
    file = tmp_path / "handout.html"
    file.write_text(
        handout(track, read_progress("", TRACKS[track]), "http://192.168.1.20:8501", "end"), encoding="utf-8"
    )
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    found = Axe().run(page).response["violations"]
    severe = {(rule["id"], node["html"][:120]) for rule in found if rule["impact"] in SEVERE for node in rule["nodes"]}
    assert severe == set()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert asked == [file.as_uri()]
