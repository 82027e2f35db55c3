"""What is seen, and by whom: on a narrow phone, in the system's colours, on paper, late in a lecture."""

from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from qkdemo.web.pages import PAGES
from tests.browser.test_accessibility import SEVERE
from tests.browser.test_everyone import at
from tests.browser.test_lesson import CHOICE, link, opened
from tests.browser.test_pages import CARRIES, path_of, settled

# What can be pressed and is smaller than `least`: links within a sentence may be as small as it is.
SMALL = """(least) => {
  const found = [];
  const boxOf = (node) => (node.matches('input') && node.closest('label')) || node;
  const walk = (root) => {
    for (const node of root.querySelectorAll('*')) {
      if (node.shadowRoot) walk(node.shadowRoot);
      if (!node.matches('a[href], button, input, select, summary, [role=gridcell], [role=radio], [role=tab]')) continue;
      const inline = node.matches('a, button') && getComputedStyle(node).display === 'inline';
      const sentence = inline && node.closest('p, li, td');
      const seen = node.checkVisibility({visibilityProperty: true, opacityProperty: true});
      if (!seen || sentence || node.matches('[data-testid=stSkipToContent]')) continue;
      if (node.matches('input[type=range]') && !root.host) continue; // the thumb of a slider is drawn beside its input
      const {width, height} = boxOf(node).getBoundingClientRect();
      if (width < 2 || height < 2) continue;
      const high = node.closest('[data-testid=stTooltipHoverTarget]') ? 24 : least; // a help is chosen by nobody
      const name = (node.ariaLabel ?? node.textContent).trim().slice(0, 30);
      if (height < high - 0.5 || width < 23.5) found.push(`${name} ${width.toFixed(0)}×${height.toFixed(0)}`);
    }
  };
  walk(document);
  return found;
}"""
# What lies beyond the window's right edge and cannot be scrolled to.
BEYOND = """() => {
  const found = [];
  const page = '[data-testid=stMain], html, body';
  const scrolls = (node) => {
    for (let up = node; up; up = up.parentElement ?? up.getRootNode().host)
      if (['auto', 'scroll'].includes(getComputedStyle(up).overflowX) && !up.matches(page)) return true;
    return false;
  };
  const walk = (root) => {
    for (const node of root.querySelectorAll('*')) {
      if (node.shadowRoot) walk(node.shadowRoot);
      const words = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
      const seen = node.checkVisibility({visibilityProperty: true, opacityProperty: true});
      if (!words || !seen || node.closest('.unseen, style, script, [data-testid=stIconMaterial]')) continue;
      const box = node.getBoundingClientRect();
      if (box.width > 2 && box.right > innerWidth + 1 && !scrolls(node)) found.push(node.textContent.trim());
    }
  };
  walk(document.querySelector('[data-testid=stMain]'));
  return found;
}"""
SPACED = "* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important; }"


def left(page: Page, found: str, least: int = 0) -> list[str]:
    """What is still found once the page has come to rest: what draws late may take its time."""
    for _ in range(40):
        still: list[str] = page.evaluate(found, least)
        if not still:
            break
        page.wait_for_timeout(250)
    return still


@pytest.mark.parametrize("name", PAGES)
def test_on_the_narrowest_phone_all_is_in_reach_of_eye_and_finger_and_no_request_leaves_the_machine(
    server: str, browser: Browser, name: str
) -> None:
    context = browser.new_context(viewport={"width": 320, "height": 700}, has_touch=True, is_mobile=True)
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.goto(server + path_of(name))
    expect(page.locator(CARRIES).first).to_be_visible()
    expect(page.locator(".presenter.listening")).to_be_attached()
    settled(page)
    assert left(page, BEYOND) == []
    assert left(page, SMALL, 44) == []
    severe = [each for each in Axe().run(page).response["violations"] if each["impact"] in SEVERE]
    assert [(rule["id"], node["html"][:120]) for rule in severe for node in rule["nodes"]] == []
    wide = "Math.max(document.scrollingElement.scrollWidth, document.querySelector('[data-testid=stMain]').scrollWidth)"
    assert page.evaluate(wide) == 320  # nothing scrolls sideways
    page.add_style_tag(content=SPACED)
    assert left(page, BEYOND) == []
    context.close()
    own = urlsplit(server).netloc
    assert {urlsplit(url).netloc for url in asked if not url.startswith(("data:", "blob:"))} == {own}


@pytest.mark.parametrize("place", ["/drift", "/quiz", "/formats", link(CHOICE)])
def test_nothing_that_is_pressed_is_smaller_than_24_pixels(server: str, browser: Browser, place: str) -> None:
    with at(browser, server + place) as page:
        assert left(page, SMALL, 24) == []


# How many of the pixels of what is drawn differ from those beside it: 0 where nothing can be seen.
DRAWN = """(node) => { const pen = node.getContext('2d', {willReadFrequently: true});
  const {data} = pen.getImageData(0, 0, node.width, node.height);
  const seen = new Set();
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) seen.add(data.slice(at, at + 3).join());
  return [...seen]; }"""
WIDGETS = "[data-testid=stSidebar] :is([data-testid=stSlider], [data-testid=stCheckbox])"
CONTROLS = """(widgets) => [...document.querySelectorAll(widgets)]
  .map((widget) => [...widget.querySelectorAll('div')].filter((node) => {
    const style = getComputedStyle(node);
    const line = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
    return line && node.getBoundingClientRect().width > 8;
  }).length)"""


def test_the_systems_colours_draw_every_control_and_chart(server: str, browser: Browser) -> None:
    with at(browser, server + "/drift", forced_colors="active") as page:
        widgets = page.evaluate(CONTROLS, WIDGETS)
        assert len(widgets) > 3
        assert all(lines >= 1 for lines in widgets), widgets  # tracks, thumbs and switches have an outline
        chart = page.locator("figure.curves canvas").first
        text = page.locator("h1").evaluate("(node) => getComputedStyle(node).color.match(/\\d+/g).join()")
        assert text in chart.evaluate(DRAWN)  # plain is drawn in the colour of text


def test_paper_has_the_charts_at_its_own_width_on_white_and_no_controls(server: str, browser: Browser) -> None:
    with at(browser, server + "/drift", color_scheme="dark") as page:
        page.emulate_media(media="print", color_scheme="dark")
        page.wait_for_function(
            """() => { const root = document.querySelector('.exhibit') ?? [...document.querySelectorAll('*')]
              .map((node) => node.shadowRoot?.querySelector('.exhibit')).find(Boolean);
              return [...root.querySelectorAll('canvas')].every((node) =>
                node.clientWidth <= 680 && Math.abs(node.width - node.clientWidth * devicePixelRatio) < 2); }"""
        )
        for hidden in ("[data-testid=stSidebar]", "[data-testid=stHeader]", ".exhibit .save", ".exhibit .play"):
            assert not page.locator(hidden).first.is_visible()
        assert page.locator("h1").evaluate("(node) => getComputedStyle(node).color") == "rgb(0, 0, 0)"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        keeps = page.locator("figure.panel").evaluate_all(
            "(all) => all.map((node) => getComputedStyle(node).breakInside)"
        )
        assert set(keeps) == {"avoid"}


def test_the_keys_of_a_lecture_are_found_by_tab_after_they_have_withdrawn(server: str, page: Page) -> None:
    opened(page, server, CHOICE, "&lecture=1")
    bar = page.locator(".st-key-lecture-bar")
    page.wait_for_function("getComputedStyle(document.querySelector('.st-key-lecture-bar')).opacity === '0'")
    keys = bar.locator("button.key")
    keys.first.focus()
    assert bar.evaluate("(node) => getComputedStyle(node).opacity") == "1"
    assert bar.evaluate("(node) => getComputedStyle(node).visibility") == "visible"
