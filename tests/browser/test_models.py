"""The table of models where it is read: on a laptop, and in a hall."""

import pytest
from playwright.sync_api import Browser, Page, expect

from qkdemo.messages import say
from qkdemo.web.lab.parts.models_table import LARGE
from tests.browser.test_lesson import SMALLEST
from tests.browser.test_pages import settled

MATTERS = {"model", "norm", "place", "gain", "epsilon", "order"}


@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080)])
def test_what_makes_the_function_is_seen_without_scrolling(server: str, page: Page, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(server + "/models")
    heads = page.locator("[data-testid=stDataFrame]").first.locator("canvas [role=columnheader]")
    expect(heads.first).to_be_attached()  # there are heads of the columns that are seen alone
    settled(page)
    seen = heads.all_text_contents()[:-1]  # of the last one not all, perhaps
    assert {say(f"column.{name}") for name in MATTERS} <= set(seen)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1920, 1080)])
def test_a_lecture_shows_the_table_large_and_whole(server: str, browser: Browser, width: int, height: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(server + "/models?lecture=1")
    table = page.locator("[data-testid=stTable]")
    expect(table.get_by_role("columnheader")).to_have_text([say(f"column.{name}") for name in LARGE])
    settled(page)
    assert set(LARGE) >= MATTERS
    assert page.evaluate(SMALLEST) >= height / 41
    assert page.evaluate(
        "[...document.querySelectorAll('[data-testid=stTable] th')].pop().getBoundingClientRect().right <= innerWidth"
    )
    page.close()
