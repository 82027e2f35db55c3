"""The rotary page: dragging the position moves one order and not the other, down to position 0."""

from playwright.sync_api import Page, expect

from tests.browser.test_pages import settled


def test_dragging_through_the_text_moves_rotary_first_alone(server: str, page: Page) -> None:
    page.goto(f"{server}/rope")
    expect(page.locator(".reading").first).to_have_text("50")
    settled(page)
    logit = page.locator(".tile").nth(3).locator(".value")
    box = page.locator("figure.curves canvas").first.bounding_box()
    assert box
    seen: dict[str, set[str]] = {"position": set(), "norm first": set(), "rotary first": set()}
    for step in range(15):
        page.mouse.move(box["x"] + box["width"] * (0.1 + 0.05 * step), box["y"] + box["height"] / 2)
        page.wait_for_timeout(40)
        seen["position"].add(page.locator(".reading").first.text_content() or "")
        seen["norm first"].add(logit.nth(0).text_content() or "")
        seen["rotary first"].add(logit.nth(1).text_content() or "")
    assert len(seen["position"]) > 8
    assert len(seen["norm first"]) == 1
    assert len(seen["rotary first"]) > 8


def test_the_logarithmic_dial_reaches_position_0(server: str, page: Page) -> None:
    page.goto(f"{server}/rope")
    settled(page)
    page.locator(".exhibit input[type=range]").first.focus()
    page.keyboard.press("Home")
    expect(page.locator(".reading").first).to_have_text("0")
    page.wait_for_url("**/rope?position=0")
