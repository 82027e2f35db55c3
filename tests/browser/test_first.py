"""The picture that the server draws into a page: seen before any code, where the page then stands, and gone with it."""

from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect

from qkdemo.web.first.symbols import NAMES

PARTS = (".finding", ".tiles", ".scrubber input", ".panel .title", ".panel.heat .title")
# What a part says, and where it stands.
STANDS = """function () { const { x, y, width } = this.getBoundingClientRect();
  return [this.querySelector(".steady > span")?.textContent ?? this.textContent, x, y, width]; }"""


def trees_of(node: dict[str, Any]) -> list[dict[str, Any]]:
    """All shadow trees below a node of the protocol, in order."""
    below = [tree for each in (*node.get("children", ()), *node.get("shadowRoots", ())) for tree in trees_of(each)]
    return [*node.get("shadowRoots", ()), *below]


def stands(browser: CDPSession) -> list[list[Any]]:
    """Where the parts of the page's first exhibit are, in a closed tree too."""
    root = browser.send("DOM.getDocument", {"depth": -1, "pierce": True})["root"]
    for tree in trees_of(root):
        asked = [{"nodeId": tree["nodeId"], "selector": part} for part in PARTS]
        found = [browser.send("DOM.querySelector", each)["nodeId"] for each in asked]
        if all(found):
            nodes = [browser.send("DOM.resolveNode", {"nodeId": each})["object"]["objectId"] for each in found]
            asks = {"functionDeclaration": STANDS, "returnByValue": True}
            said = [browser.send("Runtime.callFunctionOn", asks | {"objectId": each}) for each in nodes]
            return [each["result"]["value"] for each in said]
    raise AssertionError("There is no exhibit.")


@pytest.mark.parametrize(("width", "address"), [(1280, "drift?scale=16"), (390, "drift"), (1280, "drift?lecture=1")])
def test_the_first_picture_stands_where_the_page_then_stands(
    server: str, browser: Browser, width: int, address: str
) -> None:
    page = browser.new_context(viewport={"width": width, "height": 800}).new_page()
    page.route("**/static/js/index.*.js", lambda route: None)
    page.goto(f"{server}/{address}", wait_until="commit")
    picture = page.locator("#qkdemo-first")
    expect(picture).to_have_role("img")
    page.wait_for_function("document.fonts.status === 'loaded' && document.fonts.size > 0")
    tree = page.context.new_cdp_session(page)
    drawn = stands(tree)
    assert drawn[0][0] in (picture.get_attribute("aria-label") or "")
    page.unroute("**/static/js/index.*.js")  # what was held goes on, too
    expect(picture).to_have_count(0)
    for one, other in zip(drawn, stands(tree), strict=True):
        assert one[0] == other[0]
        assert one[1:] == pytest.approx(other[1:], abs=6), (one, other)
    page.context.close()


def test_a_page_that_comes_to_rest_without_its_exhibit_is_seen(server: str, page: Page) -> None:
    page.route("**/exhibit.js*", lambda route: route.abort())
    page.goto(f"{server}/epsilon")
    expect(page.locator("#qkdemo-first")).to_have_count(0)
    page.problems.clear()  # type: ignore[attr-defined]  # it says that the script did not come


def test_every_icon_of_the_small_font_is_drawn_as_one(server: str, page: Page) -> None:
    page.goto(f"{server}/epsilon")
    expect(page.locator("#qkdemo-first")).to_have_count(0)
    words = page.evaluate(
        """async (names) => {
          const font = '24px "Material Symbols Rounded"';
          const faces = await document.fonts.load(font, names[0]);
          const pen = document.createElement("canvas").getContext("2d");
          pen.font = font;
          return [faces.length, names.filter((name) => Math.abs(pen.measureText(name).width - 24) > 0.5)];
        }""",
        NAMES.read_text(encoding="utf-8").split(),
    )
    assert words == [1, []]
