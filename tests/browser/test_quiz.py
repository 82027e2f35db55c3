"""A quiz in a real browser: answered by keyboard alone, locked, and clean before and after."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from qkdemo.tracks.quiz import Settings, quiz
from tests.browser.test_accessibility import SEVERE
from tests.browser.test_lesson import SMALLEST
from tests.browser.test_pages import settled
from tests.browser.test_training import until

LINK = "quiz?track=developer&when=post&seed=3"
HIDE = "hide=track,when,seed"
TOP = "document.querySelector('[data-testid=stMain]').scrollTop"
# Whether two frames find the page scrolled to the same place.
RESTS = """() => new Promise((tell) => {
    const top = () => document.querySelector("[data-testid=stMain]").scrollTop, before = top();
    requestAnimationFrame(() => requestAnimationFrame(() => tell(top() === before)));
})"""


def class_of(page: Page, server: str) -> str:
    """The link of a class that this browser has just made."""
    page.goto(f"{server}/{LINK}")
    page.locator("summary", has_text="For a class").click()
    page.get_by_role("button", name="Make a class").click()
    link = page.locator("[data-testid=stCode] code").first
    expect(link).to_contain_text("class=")
    return link.text_content() or ""


def sent(page: Page, server: str, link: str = "") -> int:
    """The sheet, sent with the second choice of each question but the last, left open; says where it stood scrolled."""
    page.goto(link or f"{server}/{LINK}&{HIDE}")
    groups = page.get_by_role("radiogroup")
    expect(groups).to_have_count(8)
    settled(page)
    for at in range(7):
        groups.nth(at).locator("input").first.focus()
        page.keyboard.press("ArrowDown")
    settled(page)  # the last answer's rerun may still move what stands below it
    page.get_by_role("button", name="Send my answers").focus()
    page.wait_for_function(RESTS)
    top: int = page.evaluate(TOP)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=2).first).to_contain_text("of 8 right · 1 left open")
    return top


def test_a_quiz_is_answered_by_keyboard_and_locked(server: str, page: Page) -> None:
    link = class_of(page, server)
    sent(page, server, link)
    questions = quiz(Settings(track="developer", when="post", seed=3))
    right = sum(question.choices[1] == question.answer for question in questions[:7])
    expect(page.get_by_role("heading", level=2).first).to_have_text(f"{right} of 8 right · 1 left open")
    expect(page.get_by_role("radiogroup")).to_have_count(0)
    expect(page.get_by_text("were kept for the class")).to_be_visible()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
def test_the_result_gets_the_focus_and_a_phone_goes_to_it(server: str, page: Page, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    top = sent(page, server)
    result = page.get_by_role("heading", level=2).first
    expect(result).to_be_focused()
    settled(page)
    if width == 390:
        expect(result).to_be_in_viewport(ratio=1)
        box, header = result.bounding_box(), page.locator("[data-testid=stHeader]").bounding_box()
        assert box
        assert header
        assert box["y"] >= header["height"]
    else:
        assert top > 0
        until(page, lambda: page.evaluate(TOP) == top)


def test_a_hall_reads_what_a_class_chose(server: str, page: Page) -> None:
    link = class_of(page, server)
    sent(page, server, link)
    page.goto(f"{link}&lecture=1")
    page.locator("summary", has_text="Results of the class").click()
    expect(page.locator(".votes")).to_have_count(8)
    expect(page.locator("[data-testid=stTable]")).to_have_count(2)
    settled(page)
    assert page.evaluate(SMALLEST) >= 800 / 41
    bars = page.locator(".votes").first.locator("i").evaluate_all("bars => bars.map((bar) => bar.clientWidth)")
    assert sum(width > 0 for width in bars) >= 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_locked_sheet_with_a_classs_results_is_accessible_and_fits_a_phone(
    server: str, browser: Browser, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    sent(page, server, class_of(page, server))
    page.locator("summary", has_text="Results of the class").click()
    expect(page.locator("[data-testid=stDataFrame]").first).to_be_visible()
    settled(page)
    found = Axe().run(page).response["violations"]
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollWidth === 390")
    context.close()
    assert {
        (rule["id"], node["html"][:120]) for rule in found if rule["impact"] in SEVERE for node in rule["nodes"]
    } == set()


def test_the_lecturers_link_opens_the_results_in_another_browser_and_leaves_no_secret_in_the_address(
    server: str, page: Page, browser: Browser
) -> None:
    sent(page, server, class_of(page, server))
    secret = page.locator("[data-testid=stCode] code", has_text="results=")
    page.locator("summary", has_text="Results of the class").click()
    link = secret.text_content() or ""
    context = browser.new_context()
    other = context.new_page()
    other.goto(link)
    other.locator("summary", has_text="Results of the class").click()
    expect(other.locator(".votes")).to_have_count(8)
    expect(other).not_to_have_url(re.compile("results="))
    other.reload()
    expect(other.locator("summary", has_text="Results of the class")).to_be_visible()
    stranger = browser.new_context()
    third = stranger.new_page()
    third.goto(other.url)
    expect(third.locator("summary", has_text="For a class")).to_be_visible()
    expect(third.get_by_text("Results of the class")).to_have_count(0)
    context.close()
    stranger.close()
