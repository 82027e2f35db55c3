"""The page of maps in a real browser: a click sets both dials, a frame the ranges; Vega loads there alone."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_pages import settled

CHART = "[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg.marks"
FETCHED_MS = 40_000  # Vega is 1 MB, and is read by the browser first


def opened(server: str, page: Page) -> None:
    page.goto(f"{server}/map?cells=9")
    expect(page.locator(CHART)).to_have_count(2, timeout=FETCHED_MS)
    expect(page.locator("h1")).to_contain_text("alone")
    settled(page)


def box(page: Page) -> dict[str, float]:
    found = page.locator(CHART).first.bounding_box()
    assert found
    return dict(found)


def test_a_click_sets_both_dials_and_the_link_follows(server: str, page: Page) -> None:
    opened(server, page)
    at = box(page)
    page.mouse.click(at["x"] + 0.55 * at["width"], at["y"] + 0.3 * at["height"])
    expect(page).to_have_url(re.compile(r"scale=[\d.]+&gain=[\d.]+|gain=[\d.]+&scale=[\d.]+"))
    scale = re.search(r"scale=([\d.]+)", page.url)
    assert scale
    expect(page.locator("[data-testid=stSidebar]")).to_contain_text(f"×{scale[1]}")


def test_a_frame_becomes_the_ranges_and_the_usual_range_comes_back(server: str, page: Page) -> None:
    opened(server, page)
    at = box(page)
    page.mouse.move(at["x"] + 0.3 * at["width"], at["y"] + 0.1 * at["height"])
    page.mouse.down()
    page.mouse.move(at["x"] + 0.5 * at["width"], at["y"] + 0.3 * at["height"], steps=4)
    page.mouse.move(at["x"] + 0.8 * at["width"], at["y"] + 0.5 * at["height"], steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"x=scale%3A[\d.]+%3A[\d.]+.*y=gain%3A[\d.]+%3A[\d.]+"))
    page.get_by_role("button", name="Usual range").click()
    expect(page).to_have_url(re.compile(r"x=scale%3A0\.1%3A1000"))


def test_arrow_keys_move_a_cell_that_is_said_and_enter_sets_both_dials(server: str, page: Page) -> None:
    opened(server, page)
    line = page.locator(".cross")
    line.focus()
    before = line.locator(".said").inner_text()
    page.keyboard.press("ArrowUp")
    expect(line.locator(".said")).not_to_have_text(before)
    said = line.locator(".said").inner_text()
    expect(line.locator("[role=status]")).to_have_text(said)
    assert re.match(r"Weight scale ×[\d.]+, Learned scale g [\d.]+: plain attention .*, L2 norm", said)
    page.keyboard.press("Enter")
    gain = re.search(r"scale g ([\d.]+)", said)
    assert gain
    expect(page).to_have_url(re.compile(f"gain={re.escape(gain[1])}"))
    expect(line).to_be_focused()


def test_a_phase_diagram_over_other_dials_says_its_cost_is_trained_here_and_is_there_for_others(
    server: str, page: Page
) -> None:
    link = f"{server}/map?cells=9&phases=" + quote("learning_rate:0.01:0.1;beta2;3;1;none,rms")
    page.goto(link)
    expect(page.get_by_text("18 runs are not trained here yet: about")).to_be_visible()
    page.get_by_role("button", name="Train it here").click()
    expect(page.get_by_text(re.compile(r"RMSNorm solves the task at every seed in \d of 9 cells"))).to_be_visible(
        timeout=120_000
    )
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    page.goto("about:blank")
    page.goto(link)
    expect(page.get_by_text(re.compile(r"RMSNorm solves the task at every seed in \d of 9 cells"))).to_be_visible()
    expect(page.get_by_role("button", name="Train it here")).to_have_count(0)


@pytest.mark.parametrize("path", ["/", "/drift"])
def test_the_first_view_loads_neither_vega_nor_plotly_nor_the_keys_of_a_map(server: str, page: Page, path: str) -> None:
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(server + path)
    expect(page.locator(".exhibit, .arrows").first).to_be_visible()
    settled(page)
    assert fetched
    assert not [url for url in fetched if re.search(r"vega|/embed\.|plotly|/cross\W", url, re.IGNORECASE)]
    page.goto(f"{server}/map?cells=9")
    expect(page.locator(CHART)).to_have_count(2, timeout=FETCHED_MS)
    for part in ("vega", r"/embed\.", r"/cross\W"):
        assert [url for url in fetched if re.search(part, url, re.IGNORECASE)]
