"""For whoever has no mouse, or hears the page: where the focus is, what is said, and what things are called."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from qkdemo.messages import PSEUDO, say
from qkdemo.tracks.catalogue import CLAIMS, TRACKS, is_trained
from qkdemo.web.pages import PAGES
from tests.browser.test_lecture import press
from tests.browser.test_lesson import CHOICE, link, opened, title
from tests.browser.test_pages import CARRIES, path_of, settled
from tests.serving import SEEDS

# Everything below writes down what the page's status says from now on.
HEAR = """() => { window.said = []; const status = document.querySelector('#qkdemo-status');
  const what = {childList: true, characterData: true, subtree: true};
  new MutationObserver(() => said.push(status.textContent)).observe(status, what); }"""
# What has the focus, the line around it, how that stands out from the page, and whether something lies over it.
MARKED = """() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  if (!at || at === document.body) return null;
  const linear = (x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  const light = (colour) => {
    const pen = document.createElement('canvas').getContext('2d');
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data].map((x) => linear(x / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let [box, line] = [at.getBoundingClientRect(), null];
  for (let [node, up] = [at, 0]; node && up < 4 && !line; up++, node = node.parentElement) {
    const {outlineStyle, outlineWidth, outlineColor} = getComputedStyle(node);
    if (outlineStyle === 'solid' && parseFloat(outlineWidth) >= 2)
      [line, box] = [outlineColor, node.getBoundingClientRect()];
  }
  const frame = at.querySelector?.(':scope > .frame'); // an arrow has a ring around its tip
  if (frame) [line, box] = [getComputedStyle(frame).stroke, frame.getBoundingClientRect()];
  const paper = getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor;
  const [more, less] = [light(line ?? paper), light(paper)].sort((a, b) => b - a);
  const [x, y] = [Math.min(innerWidth - 1, Math.max(0, box.x + box.width / 2)), box.y + Math.min(box.height, 40) / 2];
  const bar = (node) => node?.closest('[data-testid=stHeader], .st-key-lecture-bar');
  return {
    tag: at.tagName,
    name: (at.getAttribute('aria-label') ?? at.textContent).trim().slice(0, 40),
    contrast: (more + 0.05) / (less + 0.05),
    covered: Boolean(bar(document.elementFromPoint(x, y)) && !bar(at.getRootNode().host ?? at)),
    seen: y > 0 && y < innerHeight,
    sidebar: Boolean(at.closest('[data-testid=stSidebar]')),
    cell: Boolean(at.closest('canvas')), // of Streamlit's table, which draws a line around it by itself
  };
}"""


@contextmanager
def at(browser: Browser, address: str, asked: list[str] | None = None, **how: Any) -> Iterator[Page]:
    """A page in a context of its own, once it is there; `asked` gets every address that it fetches."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **how})
    if asked is not None:
        context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.goto(address)
    expect(page.locator(CARRIES).first).to_be_visible()
    expect(page.locator(".presenter.listening")).to_be_attached()
    settled(page)
    yield page
    context.close()


def stops(page: Page, most: int = 200) -> list[dict[str, Any]]:
    """What Tab reaches, from the page's beginning until it leaves the page."""
    page.evaluate("document.activeElement?.blur()")
    found = []
    for _ in range(most):
        page.keyboard.press("Tab")
        marked = page.evaluate(MARKED)
        if marked is None:
            break
        found.append(marked)
    return found


# ---- focus


def test_the_focus_goes_to_the_verdict_and_to_the_next_question(server: str, page: Page) -> None:
    track, stop = CHOICE
    opened(page, server, CHOICE)
    page.locator(".st-key-lesson-show button").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".verdict")).to_be_focused()
    after = TRACKS[track][TRACKS[track].index(stop) + 1]
    page.locator(".st-key-lesson-next button").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h2.stop")).to_have_text(title((track, after)))
    expect(page.locator("h2.stop")).to_be_focused()
    expect(page).to_have_title(f"{title((track, after))} · qkdemo")
    settled(page)
    page.keyboard.press("PageUp")
    expect(page.locator("h2.stop")).to_have_text(title(CHOICE))
    expect(page.locator("h2.stop")).to_be_focused()
    page.locator(".st-key-lesson-reset button").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-lesson-show")).to_be_visible()
    expect(page.locator("h2.stop")).to_be_focused()


def test_in_a_lecture_the_focus_goes_with_the_keys(server: str, page: Page) -> None:
    opened(page, server, CHOICE, "&lecture=1")
    for key, there in (("s", ".verdict"), ("PageDown", "h2.stop"), ("PageUp", "h2.stop")):
        press(page, key)
        expect(page.locator(there)).to_be_focused()


def test_the_verdict_on_a_claim_has_the_focus(server: str, page: Page) -> None:
    claim = next(stop for stop in TRACKS[CLAIMS] if not is_trained(stop))
    page.goto(f"{server}/claims")
    card = page.locator(f".st-key-claims-{claim.name}-show button")
    card.focus()
    page.keyboard.press("Enter")
    verdict = page.locator(f".st-key-claims-{claim.name}-verdict p")
    expect(verdict).to_contain_text("The verdict")
    expect(verdict).to_be_focused()


@pytest.mark.parametrize(  # every page in the dark, and every kind of stop: `test_looks.py`
    ("place", "scheme"), [("/drift", "light"), *((link(CHOICE, "&lecture=1"), scheme) for scheme in ("light", "dark"))]
)
def test_what_has_the_focus_is_marked_by_a_line_that_is_seen_and_lies_under_nothing(
    server: str, browser: Browser, place: str, scheme: str
) -> None:
    with at(browser, server + place, color_scheme=scheme) as page:
        found = stops(page, 70)
    assert len(found) > 5
    assert [(each["tag"], each["name"], each["contrast"]) for each in found if each["contrast"] < 15] == []
    under = [each for each in found if each["tag"] != "MAIN" and (each["covered"] or not each["seen"])]
    assert [(each["tag"], each["name"]) for each in under] == []


@pytest.mark.parametrize(("place", "width"), [(link(CHOICE), 1280), ("/training", 390)])
def test_nothing_of_a_sidebar_that_is_collapsed_can_be_reached(
    server: str, browser: Browser, place: str, width: int
) -> None:
    with at(browser, server + place, viewport={"width": width, "height": 844}) as page:
        sidebar = page.locator("[data-testid=stSidebar]")
        expect(sidebar).to_have_attribute("data-collapsed", "true")
        assert [each["name"] for each in stops(page) if each["sidebar"]] == []
        assert sidebar.get_by_role("slider").count() == 0
        page.get_by_role("button", name="Expand sidebar").click()
        sidebar.get_by_role("slider").first.focus()
        expect(sidebar.get_by_role("slider").first).to_be_focused()


# ---- what is heard


def heard(page: Page, *words: str) -> None:
    """What the status has said is, in this order, what holds these words: no more, and no less."""
    page.wait_for_function(f"said.length >= {len(words)}")
    settled(page)
    page.wait_for_timeout(700)  # in which more would have come
    said = page.evaluate("said.splice(0)")
    assert len(said) == len(words), said
    assert all(wanted in one for wanted, one in zip(words, said, strict=True)), said


def test_a_dial_of_the_sidebar_says_what_came_of_it_once(server: str, page: Page) -> None:
    page.goto(f"{server}/drift")
    expect(page.locator(".reading").first).to_have_text("×8")
    settled(page)
    assert page.locator("[role=status], [aria-live=polite], output").count() == 1
    assert not page.locator("#qkdemo-status").text_content()  # what was just opened is read, not said
    page.evaluate(HEAR)
    page.locator("[data-testid=stSidebar] input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    heard(page, "At weight scale 9")
    page.get_by_role("switch", name="Causal mask").press("Space")
    heard(page, "")
    page.get_by_role("slider", name="Weight scale").last.focus()
    page.keyboard.press("ArrowLeft")
    heard(page, "At weight scale")
    assert page.locator(".exhibit p.unseen").first.text_content()


def test_hidden_words_say_nothing_else_than_the_page_while_the_dial_moves(server: str, page: Page) -> None:
    page.goto(f"{server}/drift")
    hidden = page.locator(".exhibit p.unseen").first
    expect(hidden).to_contain_text("Plain attention: largest |logit| 169.2")
    page.evaluate(HEAR)
    box = page.locator("figure.curves canvas").first.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] / 2)
    expect(page.locator("h1")).not_to_contain_text("At weight scale 8,")
    expect(hidden).to_have_text("")
    page.mouse.move(2, 2)
    expect(hidden).to_contain_text("Plain attention: largest |logit| 169.2")
    assert page.evaluate("said") == []  # nothing was set


def test_a_run_says_when_it_rests_but_no_step_and_its_buttons_keep_the_focus(server: str, page: Page) -> None:
    page.goto(f"{server}/training?seed={next(SEEDS)}&steps=2000&speed=10")
    expect(page.locator(".bar .status")).to_contain_text("step")
    page.evaluate(HEAR)
    stop = page.get_by_role("button", name="Stop")
    expect(stop).to_be_enabled()
    stop.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("said.some((words) => words.includes('stopped'))")
    assert page.evaluate("said.length") <= 3
    expect(stop).to_be_disabled()
    expect(stop).to_be_focused()
    name = re.compile(r"At .*: .*: \d")
    expect(page.locator("figure.curves canvas").first).to_have_attribute("aria-label", name)


def test_a_lost_connection_is_said(server: str, page: Page) -> None:
    page.goto(server)
    settled(page)
    page.evaluate(HEAR)
    page.evaluate("document.querySelector('[data-testid=stApp]').dataset.testConnectionState = 'DISCONNECTED'")
    page.wait_for_function("said.some((words) => words.includes('connection'))")


# ---- names


def test_a_chart_says_its_values_here_and_at_both_ends_and_where_lines_cross(server: str, page: Page) -> None:
    page.goto(f"{server}/drift")
    expect(page.locator(".reading").first).to_have_text("×8")
    chart = page.get_by_role("img", name="Plain logits grow as the scale squared").first
    for words in (
        "At Weight scale ×8: plain: 169.2, L2 · g: 3.302",
        "First, at ×0.01: ",
        "Last, at ×1\u202f000: ",
        "cross near",
    ):
        expect(chart).to_have_attribute("aria-label", re.compile(re.escape(words)))
    names = [each.get_attribute("aria-label") or "" for each in page.locator(".exhibit canvas").all()]
    assert len(set(names)) == len(names)
    expect(page.get_by_role("table", name=re.compile("query 5", re.IGNORECASE)).first).to_be_visible()
    expect(page.locator(".tile").nth(2)).to_contain_text("plain: ")
    page.evaluate(HEAR)
    page.get_by_role("application", name="Attention, plain").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("said.length")
    assert re.search(r"query 5, key \d+: \S+", page.evaluate("said.at(-1)"))


def test_no_name_holds_markup_and_every_page_has_a_title_of_its_own(server: str, page: Page) -> None:
    titles = set()
    for name in PAGES:
        page.goto(server + path_of(name))
        expect(page.locator(CARRIES).first).to_be_visible()
        settled(page)
        names = page.locator("[aria-label]").evaluate_all("(all) => all.map((node) => node.ariaLabel)")
        assert [each for each in names if "**" in each or "`" in each] == [], name
        titles.add(page.title())
    assert len(titles) == len(PAGES)
    assert all(each.endswith(f" · {say('app.title')}") for each in titles)
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.goto(f"{server}/tracks?lang={PSEUDO}")
    expect(page.locator("html")).to_have_attribute("lang", PSEUDO)


# Every tone that the page makes, and whether a context of tones is still open.
TONES = """() => { window.tones = []; window.contexts = [];
  const [Tone, Context] = [window.OscillatorNode, window.AudioContext];
  window.OscillatorNode = class extends Tone {
    constructor(context, how) { super(context, how); tones.push(how.type); } };
  window.AudioContext = class extends Context { constructor() { super(); contexts.push(this); } }; }"""


def test_a_chart_is_heard_when_that_is_asked_for_and_a_hand_ends_it(server: str, page: Page) -> None:
    page.goto(f"{server}/drift")
    expect(page.locator(".reading").first).to_have_text("×8")
    page.evaluate(TONES)
    page.get_by_role("button", name="Listen: Plain logits grow").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("tones.length === 2")
    assert len(set(page.evaluate("tones"))) == 2  # each side has its sound
    expect(page.locator(".reading").first).not_to_have_text("×8")  # the dial goes along
    page.keyboard.press("Escape")
    expect(page.locator(".reading").first).to_have_text("×8")
    page.wait_for_function("contexts.every((each) => each.state === 'closed')")
