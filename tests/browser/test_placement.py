"""The placement page: a bar is a known mistake, one click away."""

import re

from playwright.sync_api import Page, expect

from tests.browser.test_pages import settled


def test_a_click_on_a_bar_puts_that_mistake_on_the_right(server: str, page: Page) -> None:
    page.goto(f"{server}/placement")
    expect(page.locator("h1")).to_contain_text("rotary before the norm")
    settled(page)
    bars = page.locator("figure.bars canvas")
    bars.scroll_into_view_if_needed()
    box = bars.bounding_box()
    assert box
    bars.click(position={"x": box["width"] * 0.97, "y": box["height"] * 0.7})  # the last one
    expect(page).to_have_url(re.compile("right_scale=one"))
    expect(page.locator("h1")).to_contain_text("the right logits are 700 % off the left: scale 1 for 1/√d")


def test_dragging_the_spread_to_nothing_hides_the_mistake(server: str, page: Page) -> None:
    page.goto(f"{server}/placement?preset=q_gain_on_k")
    settled(page)
    page.locator(".exhibit input[type=range]").first.focus()
    page.keyboard.press("Home")
    expect(page.locator("h1")).to_contain_text("With gains of 1 the two sides agree in float64")
    expect(page).to_have_url(re.compile("gain_spread=0&"))
