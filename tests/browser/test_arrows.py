"""The arrows in a real browser: taken hold of by a mouse, by keys and by Play."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.test_pages import settled
from tests.browser.wild_hand import Hand, faults

CAT, QUERY = "Key “cat”", "Query “sat”"


@pytest.fixture
def arrows(server: str, page: Page) -> Page:
    page.goto(f"{server}/arrows")
    expect(page.get_by_role("slider", name=CAT)).to_be_visible()
    settled(page)
    return page


def value(arrow: Locator) -> str:
    return arrow.get_attribute("aria-valuetext") or ""


def middle(arrow: Locator) -> tuple[float, float]:
    box = arrow.locator(".grip").bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_dragged_tip_answers_at_once_and_the_link_follows_when_it_rests(arrows: Page) -> None:
    cat = arrows.get_by_role("slider", name=CAT)
    before, (x, y) = value(cat), middle(cat)
    arrows.mouse.move(x, y)
    arrows.mouse.down()
    arrows.mouse.move(x + 30, y - 20, steps=4)
    expect(cat).not_to_have_attribute("aria-valuetext", before)  # while the hand still holds it
    assert "key_2" not in arrows.url
    arrows.mouse.up()
    expect(arrows).to_have_url(re.compile(r"key_2_length=.*key_2_angle=|key_2_angle=.*key_2_length="))
    held = value(cat)
    settled(arrows)
    assert value(cat) == held  # what came back from the server moved nothing


def test_arrow_keys_turn_and_lengthen_and_a_reader_hears_length_angle_and_shares(arrows: Page) -> None:
    cat = arrows.get_by_role("slider", name=CAT)
    assert re.fullmatch(r"length 1\.4, 20°; share 3\d %, with QK norm 59 %", value(cat))
    cat.focus()
    for key in ("ArrowLeft", "ArrowUp", "Shift+ArrowLeft"):
        arrows.keyboard.press(key)
    expect(cat).to_have_attribute("aria-valuetext", re.compile(r"^length 1\.5, 26°"))
    expect(arrows).to_have_url(re.compile("key_2_angle=26"))
    expect(cat).to_be_focused()


def test_play_grows_all_arrows_until_a_hand_stops_it(arrows: Page) -> None:
    headline = arrows.get_by_role("heading", name=re.compile("listens most"))
    expect(headline).to_contain_text("“on”")
    arrows.get_by_role("button", name="Play").click()
    expect(headline).to_contain_text("> 99 %")
    expect(headline).to_contain_text("“cat” (59 %) with QK norm")
    arrows.get_by_role("button", name="Pause").click()
    expect(arrows.get_by_role("button", name="Play")).to_be_visible()
    expect(arrows).to_have_url(re.compile("scale="))


def test_a_score_of_infinity_leaves_the_plain_side_without_shares(arrows: Page) -> None:
    arrows.get_by_role("button", name="Grow until a score is infinite").click()
    expect(arrows.get_by_role("heading", name=re.compile("has no shares"))).to_be_visible(timeout=20_000)
    expect(arrows.locator(".side.plain .share")).to_have_text(["NaN"] * 5)
    expect(arrows.locator(".side.norm .bar.strong .word")).to_have_text("cat")
    expect(arrows).to_have_url(re.compile("format=float16"))
    arrows.get_by_role("button", name="Start again").click()
    expect(arrows.locator(".side.plain .bar.strong .word")).to_have_text("on")


@pytest.mark.parametrize("seed", [1, 2])
def test_a_wild_hand_leaves_every_number_a_number_and_comes_to_rest(arrows: Page, seed: int) -> None:
    """A minute of it: `python -m tests.benchmarks.bench_arrows wild`."""
    hand = Hand(arrows, seed)
    for _ in range(40):
        hand.act()
        assert faults(arrows) == [], hand.did[-3:]
    settled(arrows)
    arrows.locator(".arrows button.again").click()
    expect(arrows).to_have_url(re.compile(r"/arrows$"))  # the server heard the last of it, and nothing older comes back
    expect(arrows.locator(".side.plain .bar.strong .word")).to_have_text("on")
    assert faults(arrows) == []


def test_a_fault_of_the_drawing_would_be_found(arrows: Page) -> None:
    arrows.locator(".side.norm .grip").first.evaluate("(grip) => grip.setAttribute('cx', -500)")
    arrows.locator(".side.plain .room i").first.evaluate("(bar) => { bar.style.height = '400%'; }")
    assert len(faults(arrows)) >= 2
