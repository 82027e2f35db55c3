"""The component alone: what a hand does to it, and what it does then."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.serving import ROOT, served

COMMITTED = "×10"

# Every text the dial shows from now on, in order: a flash back to an old value would be one of them.
WATCH = """() => {
  const host = [...document.querySelectorAll("*")].find((node) => node.shadowRoot?.querySelector(".reading"));
  window.shown = [];
  const look = () => {
    const text = host.shadowRoot.querySelector(".reading").textContent;
    if (shown.at(-1) !== text) shown.push(text);
    requestAnimationFrame(look);
  };
  look();
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(ROOT / "tests/browser/exhibit_app.py", tmp_path_factory.mktemp("exhibit") / "log.txt") as app:
        yield app.address


@pytest.fixture
def exhibit(page: Page, address: str) -> Page:
    page.add_init_script("window.told = []; document.addEventListener('qkdemo:say', ({detail}) => told.push(detail))")
    page.goto(address)
    expect(page.locator(".reading")).to_have_text(COMMITTED, timeout=30_000)  # the server's first page
    return page


def _svg_of(page: Page, kind: str, title: str, folder: Path) -> str:
    """What is saved as SVG of the panel."""
    page.locator(f"figure.{kind}").hover()
    with page.expect_download() as download:
        page.get_by_role("button", name=f"SVG: {title}").click()
    download.value.save_as(folder / "plot.svg")
    return (folder / "plot.svg").read_text(encoding="utf-8")


def _point(page: Page, kind: str, across: float, down: float = 0.5) -> tuple[float, float]:
    box = page.locator(f"figure.{kind} canvas").bounding_box()
    assert box
    return box["x"] + across * box["width"], box["y"] + down * box["height"]


def test_hovering_previews_and_leaving_returns(exhibit: Page) -> None:
    exhibit.mouse.move(*_point(exhibit, "curves", 0.2))
    expect(exhibit.locator(".reading")).not_to_have_text(COMMITTED)
    expect(exhibit.locator("h1")).not_to_contain_text("scale 10 ")
    exhibit.mouse.move(2, 2)
    expect(exhibit.locator(".reading")).to_have_text(COMMITTED)
    expect(exhibit.get_by_text("picked None")).to_be_visible()


def test_a_click_commits_and_the_cursor_stays_until_the_data_follow(exhibit: Page) -> None:
    exhibit.mouse.move(*_point(exhibit, "curves", 0.2))
    expect(exhibit.locator(".reading")).not_to_have_text(COMMITTED)
    hovered = exhibit.locator(".reading").text_content()
    exhibit.evaluate(WATCH)
    exhibit.mouse.down()
    exhibit.mouse.up()
    exhibit.mouse.move(2, 2)
    expect(exhibit.get_by_text(re.compile(r"picked \{'dial': "))).to_be_visible()
    exhibit.wait_for_timeout(300)
    assert exhibit.evaluate("shown") == [hovered]


def test_play_runs_along_the_dial_until_it_is_paused_and_goes_on_from_there_to_its_end(exhibit: Page) -> None:
    exhibit.evaluate(WATCH)
    exhibit.get_by_role("button", name="Play").click()
    exhibit.wait_for_function("shown.length > 4")
    assert exhibit.get_by_text("picked None").is_visible()
    exhibit.get_by_role("button", name="Pause").click()
    expect(exhibit.get_by_text(re.compile(r"picked \{'dial': "))).to_be_visible()
    shown = exhibit.evaluate("shown").copy()
    assert shown == sorted(shown, key=lambda text: float(text[1:]))
    paused = exhibit.locator(".reading").text_content()
    assert COMMITTED != paused != "×100"
    exhibit.get_by_role("button", name="Play").click()
    expect(exhibit.locator(".reading")).to_have_text("×100", timeout=20_000)
    expect(exhibit.get_by_text("picked {'dial': 100.0}")).to_be_visible()
    expect(exhibit.get_by_role("button", name="Play")).to_be_visible()
    exhibit.get_by_role("button", name="Play").click()  # at its end it begins again
    expect(exhibit.locator(".reading")).to_have_text("×1")


def test_any_hand_stops_what_plays(exhibit: Page) -> None:
    exhibit.evaluate(WATCH)
    for stop in (
        lambda: exhibit.keyboard.press("Escape"),
        lambda: exhibit.mouse.move(*_point(exhibit, "curves", 0.1)),
    ):
        exhibit.mouse.move(2, 2)
        exhibit.get_by_role("button", name="Play").click()
        expect(exhibit.get_by_role("button", name="Pause")).to_be_visible()
        stop()
        expect(exhibit.get_by_role("button", name="Play")).to_be_visible()
        expect(exhibit.get_by_text("picked None")).to_be_visible()


def test_arrow_keys_on_the_scrubber_commit_once_they_rest_and_keep_the_focus(exhibit: Page) -> None:
    scrubber = exhibit.get_by_role("slider", name="Weight scale")
    scrubber.focus()
    exhibit.evaluate(WATCH)
    for _ in range(4):
        exhibit.keyboard.press("ArrowRight")
        exhibit.wait_for_timeout(40)
    expect(exhibit.get_by_text("picked {'dial': 15.8")).to_be_visible()
    exhibit.wait_for_timeout(300)
    assert exhibit.evaluate("shown") == ["×10", "×11.2", "×12.6", "×14.1", "×15.8"]
    expect(scrubber).to_be_focused()
    expect(scrubber).to_have_attribute("aria-valuetext", "×15.8")
    assert "At scale 15.8" in exhibit.evaluate("told.at(-1).finding")


def test_escape_returns_to_the_committed_value(exhibit: Page) -> None:
    exhibit.get_by_role("slider", name="Weight scale").focus()
    exhibit.mouse.move(*_point(exhibit, "curves", 0.3))
    exhibit.mouse.down()
    expect(exhibit.locator(".reading")).not_to_have_text(COMMITTED)
    exhibit.keyboard.press("Escape")
    expect(exhibit.locator(".reading")).to_have_text(COMMITTED)
    exhibit.mouse.up()
    exhibit.mouse.move(2, 2)
    expect(exhibit.locator(".reading")).to_have_text(COMMITTED)
    exhibit.wait_for_timeout(300)
    expect(exhibit.get_by_text("picked None")).to_be_visible()


def test_a_cell_is_picked_by_click_and_by_keys(exhibit: Page) -> None:
    exhibit.mouse.click(*_point(exhibit, "heat", 0.3, 0.1))
    expect(exhibit.get_by_text(re.compile(r"picked \{'query': 0, 'key': \d\}"))).to_be_visible()
    exhibit.get_by_role("application", name="Plain").focus()
    exhibit.keyboard.press("ArrowDown")
    assert re.search(r"queries 2–3, keys \d+–\d+: \S+", exhibit.evaluate("told.at(-1).words"))  # a cell is two queries
    exhibit.keyboard.press("ArrowDown")
    exhibit.keyboard.press("Enter")
    expect(exhibit.get_by_text(re.compile(r"picked \{'query': 2, 'key': \d\}"))).to_be_visible()
    exhibit.get_by_role("application", name="Where query 2 looks").focus()
    for _ in range(8):
        exhibit.keyboard.press("ArrowRight")
    exhibit.keyboard.press("Enter")
    expect(exhibit.get_by_text("picked {'key': 7}")).to_be_visible()


def test_a_cell_of_a_grid_follows_the_cursor_and_is_picked_by_click_and_by_keys(exhibit: Page) -> None:
    exhibit.set_viewport_size({"width": 1280, "height": 2400})  # what is off screen waits until the dial stands
    grid = exhibit.get_by_role("grid", name="Fates")
    chosen = grid.get_by_role("gridcell", selected=True)
    expect(chosen).to_have_text("20 ∞")
    exhibit.mouse.move(*_point(exhibit, "curves", 0.2))
    expect(chosen).not_to_have_text("20 ∞")
    exhibit.mouse.move(2, 2)
    expect(chosen).to_have_text("20 ∞")
    grid.get_by_role("gridcell").first.click()
    expect(exhibit.get_by_text("picked {'row': 0, 'column': 0}")).to_be_visible()
    chosen.focus()
    exhibit.keyboard.press("ArrowDown")
    exhibit.keyboard.press("ArrowDown")
    exhibit.keyboard.press("ArrowRight")
    expect(chosen).to_be_focused()
    exhibit.keyboard.press("Enter")
    expect(exhibit.get_by_text("picked {'row': 1, 'column': 1}")).to_be_visible()
    expect(chosen).to_be_focused()


def test_svg_export_is_vectors_and_says_what_it_shows(exhibit: Page, address: str, tmp_path: Path) -> None:
    drawing = _svg_of(exhibit, "curves", "Logits grow", tmp_path)
    assert "<polyline" in drawing
    assert "<image" not in drawing
    for words in ("Logits grow", "largest |logit|", "Weight scale", "∞", "overflow", "Weight scale: ×10", address):
        assert words in drawing


def test_neither_a_line_nor_its_band_is_drawn_across_rows_that_are_not_known(exhibit: Page, tmp_path: Path) -> None:
    drawing = _svg_of(exhibit, "curves", "Logits grow", tmp_path)
    band = re.findall(r'<polygon points="([^"]*)"', drawing)
    assert sorted(len(points.split()) for points in band) == [4, 6]  # two rows and three, there and back
    dots = re.findall(r'<circle [^>]*r="2.5"[^>]*fill="([^"]*)"', drawing)
    assert len(dots) == 6  # every row that is known
    drawn = re.findall(rf'<polyline points="([^"]*)" [^>]*stroke="{re.escape(dots[0])}"', drawing)
    assert sorted(len(points.split()) for points in drawn) == [2, 3]


def test_a_cell_that_stands_for_several_queries_and_keys_names_them_all(exhibit: Page, tmp_path: Path) -> None:
    drawing = _svg_of(exhibit, "heat", "Plain", tmp_path)
    assert ">4–5</text>" in drawing
    assert ">6–7</text>" in drawing


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_scrolls_sideways(page: Page, address: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(address)
    expect(page.locator(".reading")).to_have_text(COMMITTED)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("query", ["", "?lost=1"])
@pytest.mark.parametrize("inflates", [True, False])
def test_what_the_browser_does_not_have_or_cannot_open_it_asks_for_again(
    page: Page, address: str, query: str, inflates: bool
) -> None:
    if not inflates:
        page.add_init_script("delete window.DecompressionStream")
    page.goto(address + query)
    expect(page.locator(".reading")).to_have_text(COMMITTED)
    expect(page.locator("h1")).to_contain_text("At scale 10 the plain logit is 10.")


def test_a_picture_off_screen_rests_while_the_dial_moves_and_is_right_when_the_dial_stands(exhibit: Page) -> None:
    exhibit.set_viewport_size({"width": 800, "height": 420})
    last = exhibit.locator("figure.panel canvas").last
    expect(last).not_to_be_in_viewport()
    exhibit.evaluate(
        """() => {
          const clear = CanvasRenderingContext2D.prototype.clearRect;
          window.drawn = 0;
          CanvasRenderingContext2D.prototype.clearRect = function (...box) {
            if (this.canvas === window.watched) window.drawn += 1;
            return clear.apply(this, box);
          };
        }"""
    )
    last.evaluate("(canvas) => { window.watched = canvas; }")
    curve = exhibit.locator("figure.curves canvas").first
    curve.scroll_into_view_if_needed()
    box = curve.bounding_box()
    assert box
    expect(last).not_to_be_in_viewport()
    exhibit.wait_for_timeout(200)
    before = exhibit.evaluate("drawn")
    words = exhibit.locator(".reading")
    for share in (0.3, 0.5, 0.7):
        told = words.inner_text()
        exhibit.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        expect(words).not_to_have_text(told)
    assert exhibit.evaluate("drawn") == before
    exhibit.mouse.down()
    exhibit.mouse.up()  # the dial stands, at another value
    exhibit.wait_for_function(f"drawn > {before}")
