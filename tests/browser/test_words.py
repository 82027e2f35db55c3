"""The words in a real browser: a sentence is built by clicks, and its arcs are picked by mouse and by keys."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_pages import settled


@pytest.fixture
def words(server: str, page: Page) -> Page:
    page.goto(f"{server}/words")
    page.locator(".exhibit .finding").wait_for()
    settled(page)
    return page


def test_clicked_words_make_a_sentence_that_is_read_and_kept_in_the_link(words: Page) -> None:
    again = words.get_by_role("button", name="Start again")
    again.click()
    expect(
        again
    ).to_be_disabled()  # the server heard it: a word that is clicked before would be one more of the old sentence
    sentence = ["the", "boxes", "near", "the", "hat"]
    for at, word in enumerate(sentence, 1):
        words.locator('[class*="st-key-words-pills"]').get_by_text(word, exact=True).click()
        so_far = r"(\+|%20)".join(sentence[:at])
        expect(words).to_have_url(re.compile(f"sentence={so_far}(&|$)"))  # of two clicks at once one would be lost
        settled(words)
    expect(words.locator(".exhibit .finding")).to_contain_text("both models go on with “are”")


def test_a_word_under_the_arcs_is_picked_by_a_click_and_by_keys(words: Page) -> None:
    arcs = words.locator(".panel.arcs canvas")
    box = arcs.bounding_box()
    assert box is not None
    words.mouse.click(box["x"] + box["width"] * 6.5 / 16, box["y"] + box["height"] / 2)  # the seventh of 16 words
    expect(words).to_have_url(re.compile(r"[?&]word=7\b"))
    settled(words)
    words.locator(".panel.arcs .plot").focus()
    words.keyboard.press("ArrowRight")
    words.keyboard.press("Enter")
    expect(words).to_have_url(re.compile(r"[?&]word=8\b"))
    expect(words.locator(".panel.bars .title")).to_have_text("Where “has” looks")


def test_the_dragged_scale_takes_the_plain_model_to_its_end_and_not_the_other(words: Page) -> None:
    scrubber = words.locator(".exhibit input[type=range]")
    scrubber.focus()
    words.keyboard.press("End")
    expect(words.locator(".exhibit .finding")).to_contain_text("plain attention has no next word")
    expect(words.locator(".exhibit .finding")).to_contain_text("“Ben”")
    expect(words).to_have_url(re.compile(r"[?&]scale=1000\b"))


@pytest.mark.parametrize("size", [(1920, 1080), (1280, 720), (1024, 768)])
def test_a_hall_sees_the_arcs_of_both_models_above_the_bar(server: str, page: Page, size: tuple[int, int]) -> None:
    width, height = size
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{server}/words?lecture=1")
    page.locator(".exhibit .finding").wait_for()
    settled(page)
    arcs, bar = page.locator(".panel.arcs canvas").bounding_box(), page.locator(".st-key-lecture-bar").bounding_box()
    assert arcs
    assert bar
    assert arcs["y"] > 0
    assert arcs["y"] + arcs["height"] <= bar["y"] + 1
    assert arcs["height"] > height / 4
