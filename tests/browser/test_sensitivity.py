"""Losses over learning rates fill in while one watches, stop, and are there at once the next time."""

import re

from playwright.sync_api import Browser, Page, expect

from tests.browser.test_pages import settled
from tests.browser.test_training import PATIENCE_MS, SMALL
from tests.serving import SEEDS

GRID = f"{SMALL}&n_rates=3&n_seeds=2"


def test_the_page_opens_with_finished_curves_and_a_button_trains_them_here(server: str, page: Page) -> None:
    page.goto(f"{server}/sensitivity")
    expect(page.get_by_text("54 runs, came with the app, recorded")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator("h1")).to_contain_text(
        "Plain attention solves the task up to a learning rate of 0.035, and not at 0.072; RMSNorm up to 0.15"
    )
    expect(page.get_by_text("What became of 27 runs of each")).to_be_visible()
    page.get_by_role("button", name="Train it live here").click()
    page.get_by_role("button", name="Stop").click(timeout=PATIENCE_MS)
    expect(page.get_by_text(re.compile("of 9 rates trained; .* · stopped"))).to_be_visible()
    page.get_by_role("button", name="Show the recorded curves").click()
    expect(page.get_by_text("54 runs, came with the app, recorded")).to_be_visible()


def test_points_come_as_runs_finish_and_the_link_shows_them_at_once(server: str, page: Page, browser: Browser) -> None:
    page.goto(f"{server}/sensitivity?{GRID}&steps=60&seed=21")
    expect(page.locator("h1")).to_contain_text(re.compile("trained so far|[Nn]either|Plain|Both"))
    expect(page.get_by_text(re.compile(r"12 runs, recorded"))).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_text("What became of 6 runs of each")).to_be_visible()
    context = browser.new_context()
    other = context.new_page()
    other.goto(page.url)
    expect(other.get_by_text(re.compile(r"12 runs, recorded"))).to_be_visible()
    assert other.locator("h1").text_content() == page.locator("h1").text_content()
    context.close()


def test_a_click_on_a_curve_sets_the_dial_and_the_link(server: str, page: Page) -> None:
    page.goto(f"{server}/sensitivity?{GRID}&steps=60&seed=21")
    expect(page.get_by_text(re.compile(r"12 runs, recorded"))).to_be_visible(timeout=PATIENCE_MS)
    settled(page)
    box = page.locator("figure.curves canvas").first.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] * 0.47, box["y"] + box["height"] / 2)
    expect(page).to_have_url(re.compile(r"learning_rate=0\.017"))
    expect(page.locator(".reading").first).to_have_text("0.017")


def test_stop_stops_and_the_rest_can_be_trained_later(server: str, page: Page) -> None:
    page.goto(f"{server}/sensitivity?{GRID}&steps=2000&seed={next(SEEDS)}")
    page.get_by_role("button", name="Stop").click(timeout=PATIENCE_MS)
    expect(page.get_by_text(re.compile("of 3 rates trained; .* · stopped"))).to_be_visible()
    rest = page.get_by_role("button", name=re.compile("^.*Train( the rest)?$"))
    expect(rest).to_be_visible()
    before = page.get_by_text(re.compile(r"of 3 rates trained")).text_content()
    page.wait_for_timeout(1500)
    assert page.get_by_text(re.compile(r"of 3 rates trained")).text_content() == before
    rest.click()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.get_by_role("button", name="Stop").click()


def test_a_finished_run_of_the_training_page_is_marked(server: str, page: Page) -> None:
    page.goto(f"{server}/training?{SMALL}&seed=23&steps=60&speed=200&schedule=constant&learning_rate=0.05")
    expect(page.locator(".bar .status")).to_contain_text("60 steps, recorded", timeout=PATIENCE_MS)
    page.get_by_role("link", name="Where does this run stand among learning rates?").click()
    expect(page).to_have_url(re.compile(r"/sensitivity\?.*run=[0-9a-f]{24}"))
    expect(page.get_by_text("The diamonds are one run of the training page")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
