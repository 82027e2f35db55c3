"""What is seen, and by whom: on a narrow phone, by keyboard, in the system's colours, on paper, late in a lecture."""

from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from qkdemo.tracks.catalogue import TRACKS, is_trained
from qkdemo.web.pages import PAGES
from tests.browser.test_accessibility import SEVERE
from tests.browser.test_everyone import at, stops
from tests.browser.test_lesson import CHOICE, ESTIMATE, Place, link, opened
from tests.browser.test_pages import path_of

# What can be pressed and is smaller than `least`: links within a sentence may be as small as it is.
SMALL = """(least) => {
  const found = [];
  const boxOf = (node) => (node.matches('input') && node.closest('label')) || node;
  const walk = (root) => {
    for (const node of root.querySelectorAll('*')) {
      if (node.shadowRoot) walk(node.shadowRoot);
      if (!node.matches('a[href], button, input, select, summary, [role=gridcell], [role=radio], [role=tab]')) continue;
      const inline = node.matches('a, button') && getComputedStyle(node).display.startsWith('inline');
      const sentence = (inline && node.closest('p, li, td')) || node.closest('.prose');
      const seen = node.checkVisibility({visibilityProperty: true, opacityProperty: true});
      if (!seen || sentence || node.matches('[data-testid=stSkipToContent]')) continue;
      if (node.matches('input[type=range]') && !root.host) continue; // the thumb of a slider is drawn beside its input
      const {width, height} = boxOf(node).getBoundingClientRect();
      if (width < 2 || height < 2) continue;
      const help = node.matches('[data-testid=stTooltipHoverTarget] > button:not([kind])');
      const high = help ? 24 : least; // a help is chosen by nobody
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
# Labels of buttons that do not fit into them.
CUT = """() => [...document.querySelectorAll('button p')].filter((label) => {
  const words = document.createRange();
  words.selectNodeContents(label);
  const seen = label.checkVisibility({visibilityProperty: true});
  return seen && words.getBoundingClientRect().width > label.parentElement.clientWidth + 1;
}).map((label) => label.textContent)"""
SPACED = "* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important; }"
PAPER_PX = 680  # of A4 between its margins
ON_PAPER = f"""() => [{{root: document}}].every(function drawn({{root}}) {{
  return [...root.querySelectorAll('*')].every((node) => (!node.shadowRoot || drawn({{root: node.shadowRoot}})) &&
    (!node.matches('figure canvas') || !node.clientWidth || (node.clientWidth <= {PAPER_PX} &&
      Math.abs(node.width - node.clientWidth * devicePixelRatio) < 2))); }})"""
# What cannot be read on white paper, is cut off there, or is only pressed.
BAD_ON_PAPER = """() => {
  const found = [];
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map((x) => x / 255)
      .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const walk = (root) => {
    for (const node of root.querySelectorAll('*')) {
      if (node.shadowRoot) walk(node.shadowRoot);
      const seen = node.checkVisibility({visibilityProperty: true, opacityProperty: true});
      if (!seen || node.closest('.unseen, style, script')) continue;
      const style = getComputedStyle(node);
      const name = `${node.tagName} ${node.classList} ${node.textContent.trim().slice(0, 30)}`;
      const words = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
      if (words && !node.closest('svg') && 1.05 / (light(style.color) + 0.05) < 4.5) found.push(`pale: ${name}`);
      if (words && node.getBoundingClientRect().right > innerWidth + 1) found.push(`beyond: ${name}`);
      if (node.matches('[data-testid=stSidebar], [data-testid=stHeader], .save, .play')) found.push(`pressed: ${name}`);
    }
  };
  walk(document);
  return found;
}"""
# Controls of which nothing is drawn in the system's colours but perhaps their words; and charts that are not seen.
UNDRAWN = """() => {
  const found = [];
  const line = (node, pseudo) => {
    const style = getComputedStyle(node, pseudo);
    const drawn = (side) => style[`${side}Style`] !== 'none' && style[`${side}Color`] !== 'rgba(0, 0, 0, 0)';
    const wide = (side) => parseFloat(style[`${side}Width`]) >= 1;
    return ['outline', 'borderTop', 'borderBottom'].some((side) => drawn(side) && wide(side));
  };
  const paper = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).join();
  const walk = (root) => {
    for (const node of root.querySelectorAll('*')) {
      if (node.shadowRoot) walk(node.shadowRoot);
      if (node.clientWidth < 2) continue;
      const name = `${node.tagName} ${node.dataset?.testid ?? node.className} ${node.textContent.trim().slice(0, 30)}`;
      const control = '[data-testid=stSlider], [data-testid=stCheckbox], [data-testid=stRadioOption], [role=combobox]';
      const box = node.matches('[role=combobox]') ? node.parentElement.parentElement : node;
      const parts = [box, ...box.querySelectorAll('*')];
      if (node.matches(control) && !parts.some((part) => line(part))) found.push(name);
      if (node.matches('canvas') && node.closest('figure') && node.checkVisibility({visibilityProperty: true})) {
        const {data} = node.getContext('2d').getImageData(0, 0, node.width, node.height);
        const seen = new Set();
        for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) seen.add(data.slice(at, at + 3).join());
        seen.delete(paper);
        if (!seen.size) found.push(`${name} ${node.ariaLabel}`);
      }
    }
  };
  walk(document);
  return found;
}"""


def shown(place: Place) -> str:
    """What a link says when the answers were shown up to this stop."""
    track, stop = place
    return ",".join(["!"] * (TRACKS[track].index(stop) + 1))


# A stop of every kind: chosen, estimated, closed until it is answered, answered, trained.
CLOSED = next(("developer", stop) for stop in TRACKS["developer"] if stop.start is None and not is_trained(stop))
TRAINED = next(("beginner", stop) for stop in TRACKS["beginner"] if is_trained(stop))
SEEN = {name: path_of(name) for name in PAGES} | {
    "a choice": link(CHOICE),
    "an estimate": link(ESTIMATE),
    "a closed page": link(CLOSED),
    "an answer": link(CHOICE, f"&said={shown(CHOICE)}"),
    "a run": link(TRAINED, f"&said={shown(TRAINED)}"),
}


def left(page: Page, found: str, least: int = 0) -> list[str]:
    """What is still found once the page has come to rest: what draws late may take its time."""
    for _ in range(40):
        still: list[str] = page.evaluate(found, least)
        if not still:
            break
        page.wait_for_timeout(250)
    return still


@pytest.mark.parametrize("place", SEEN)
def test_on_the_narrowest_phone_by_keyboard_in_the_systems_colours_and_on_paper_all_is_there(
    server: str, browser: Browser, place: str
) -> None:
    """One look at every page, in the dark, at 320 px and at a paper's width; and no request leaves the machine."""
    asked: list[str] = []
    how = {"viewport": {"width": 320, "height": 700}, "has_touch": True, "is_mobile": True, "color_scheme": "dark"}
    with at(browser, server + SEEN[place], asked, **how) as page:
        assert left(page, BEYOND) == []
        assert left(page, SMALL, 44) == []
        assert left(page, CUT) == []
        severe = [each for each in Axe().run(page).response["violations"] if each["impact"] in SEVERE]
        assert [(rule["id"], node["html"][:120]) for rule in severe for node in rule["nodes"]] == []
        wide = "['html', '[data-testid=stMain]'].map((name) => document.querySelector(name).scrollWidth)"
        assert max(page.evaluate(wide)) == 320  # nothing scrolls sideways
        spaced = page.add_style_tag(content=SPACED)
        assert left(page, BEYOND) == []
        spaced.evaluate("(style) => style.remove()")
        marked = [each for each in stops(page, 25) if each["tag"] != "MAIN" and not each["cell"]]
        assert [(each["name"], each["contrast"]) for each in marked if each["contrast"] < 15] == []
        assert [each["name"] for each in marked if each["covered"] or not each["seen"]] == []
        page.set_viewport_size({"width": PAPER_PX, "height": 960})
        assert left(page, CUT) == []
        page.emulate_media(forced_colors="active")
        assert left(page, UNDRAWN) == []
        page.emulate_media(forced_colors="none", media="print", color_scheme="dark")
        page.wait_for_function(ON_PAPER)
        assert left(page, BAD_ON_PAPER) == []
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        figures = page.locator("figure.panel").evaluate_all(
            "(all) => all.map((node) => getComputedStyle(node).breakInside)"
        )
        assert set(figures) <= {"avoid"}
    own = urlsplit(server).netloc
    assert {urlsplit(url).netloc for url in asked if not url.startswith(("data:", "blob:"))} == {own}


@pytest.mark.parametrize("place", ["/drift", "/quiz", "/formats", link(CHOICE)])
def test_nothing_that_is_pressed_is_smaller_than_24_pixels(server: str, browser: Browser, place: str) -> None:
    with at(browser, server + place) as page:
        assert left(page, SMALL, 24) == []


# The colours of the pixels of what is drawn.
DRAWN = """(node) => { const pen = node.getContext('2d', {willReadFrequently: true});
  const {data} = pen.getImageData(0, 0, node.width, node.height);
  const seen = new Set();
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) seen.add(data.slice(at, at + 3).join());
  return [...seen]; }"""


def test_plain_attention_is_drawn_in_the_systems_colour_of_text(server: str, browser: Browser) -> None:
    with at(browser, server + "/drift", forced_colors="active") as page:
        text = page.locator("h1").evaluate("(node) => getComputedStyle(node).color.match(/\\d+/g).join()")
        assert text in page.locator("figure.curves canvas").first.evaluate(DRAWN)


def test_the_keys_of_a_lecture_are_found_by_tab_after_they_have_withdrawn(server: str, page: Page) -> None:
    opened(page, server, CHOICE, "&lecture=1")
    bar = page.locator(".st-key-lecture-bar")
    page.wait_for_function("getComputedStyle(document.querySelector('.st-key-lecture-bar')).opacity === '0'")
    keys = bar.locator("button.key")
    keys.first.focus()
    assert bar.evaluate("(node) => getComputedStyle(node).opacity") == "1"
    assert bar.evaluate("(node) => getComputedStyle(node).visibility") == "visible"
