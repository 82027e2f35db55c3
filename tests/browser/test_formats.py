"""The formats page: the grid follows the hand, and a click on a stage shows its entries."""

import re

from playwright.sync_api import Page, expect

from qkdemo.labs.formats import LAB
from qkdemo.tracks.catalogue import TRACKS
from tests.browser.test_pages import settled

MORE = "Show all five formats and every stage"


def test_the_page_opens_with_one_format_and_four_stages_and_a_press_unfolds_the_rest(server: str, page: Page) -> None:
    page.goto(f"{server}/formats")
    grid, shown = page.get_by_role("grid"), "figure.curves:visible"
    expect(grid.get_by_role("gridcell")).to_have_count(2 * 4, timeout=20_000)
    expect(grid.locator("thead .full:visible")).to_have_text(
        ["score", "scaled logit", "attention weight", "weighted values"]
    )
    expect(page.locator(shown)).to_have_count(1)
    settled(page)
    grid.get_by_role("gridcell", selected=True).focus()
    page.keyboard.press("ArrowUp")  # there is nothing above it, while float32 is folded away
    expect(grid.get_by_role("row", name="float16, plain").get_by_role("gridcell").first).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("stage=weight"))
    expect(page.locator("figure.heat .title")).to_have_text("attention weight: plain, float16")
    settled(page)
    page.get_by_role("button", name=MORE).click()
    expect(grid.get_by_role("gridcell")).to_have_count(10 * 16)
    expect(page.locator(shown)).to_have_count(6)
    page.get_by_role("slider", name="Learned scale g").focus()
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile("gain="))
    expect(grid.get_by_role("gridcell")).to_have_count(10 * 16)  # news from the server fold nothing
    page.get_by_role("button", name="Show one format and four stages").click()
    expect(grid.get_by_role("gridcell")).to_have_count(2 * 4)


def test_a_link_to_a_stage_beyond_the_four_and_a_stop_show_all_that_they_are_about(server: str, page: Page) -> None:
    page.goto(f"{server}/formats?stage=k_reciprocal_root&storage=bfloat16&side=normalised")
    expect(page.get_by_role("gridcell")).to_have_count(10 * 16, timeout=20_000)
    expect(page.get_by_role("gridcell", selected=True)).to_be_visible()
    expect(page.get_by_role("button", name=MORE)).to_have_count(0)
    stop = next(stop for stop in TRACKS["developer"] if stop.lab is LAB)
    page.goto(f"{server}/formats?track=developer&stop={stop.name}&said={','.join('!' * len(TRACKS['developer']))}")
    expect(page.get_by_role("gridcell").first).to_be_visible()
    expect(page.get_by_role("button", name=MORE)).to_have_count(0)


def test_a_click_on_a_stage_shows_its_entries_and_the_link_follows(server: str, page: Page) -> None:
    page.goto(f"{server}/formats")
    expect(page.locator("h1")).to_contain_text("242 of 256", timeout=20_000)  # the first visit to this server
    grid = page.get_by_role("grid")
    expect(grid.get_by_role("gridcell", selected=True)).to_have_text("242 ∞")
    settled(page)
    page.get_by_role("button", name=MORE).click()
    grid.get_by_role("row", name="bfloat16, L2 · g").get_by_role("gridcell").nth(14).click()
    expect(page).to_have_url(re.compile("storage=bfloat16&stage=weight&side=normalised"))
    expect(page.locator("figure.heat .title")).to_have_text("attention weight: L2 · g, bfloat16")


def test_the_grid_follows_a_drag_over_a_curve(server: str, page: Page) -> None:
    page.goto(f"{server}/formats")
    chosen = page.get_by_role("grid").get_by_role("gridcell", selected=True)
    expect(chosen).to_have_text("242 ∞")
    settled(page)
    canvas = page.locator("figure.curves canvas:visible").first
    canvas.scroll_into_view_if_needed()
    canvas.hover(position={"x": 120, "y": 60})
    expect(chosen).not_to_have_text("242 ∞")
    page.mouse.move(2, 2)
    expect(chosen).to_have_text("242 ∞")


def test_the_ladder_follows_a_pointer_over_the_entries_and_the_arrow_keys(server: str, page: Page) -> None:
    page.goto(f"{server}/formats")
    page.get_by_role("button", name=MORE).click()
    title = page.locator("figure.cells .title").first
    expect(title).to_contain_text("entry 5, 9", timeout=20_000)
    settled(page)
    held = page.locator("figure.cells").first.get_by_role("row").last
    before = held.text_content()
    area = page.locator("figure.heat [role=application]")
    area.scroll_into_view_if_needed()
    canvas = page.locator("figure.heat canvas")
    box = canvas.bounding_box()
    assert box
    canvas.hover(position={"x": box["width"] * 0.4, "y": box["height"] * 0.3})
    expect(title).not_to_contain_text("entry 5, 9")
    expect(held).not_to_have_text(str(before))
    page.mouse.move(2, 2)
    expect(title).to_contain_text("entry 5, 9")
    expect(held).to_have_text(str(before))
    area.focus()
    page.keyboard.press("ArrowRight")
    expect(title).to_contain_text("entry 5, 10")
    page.keyboard.press("Escape")
    expect(title).to_contain_text("entry 5, 9")
    expect(page).to_have_url(re.compile("/formats$"))
