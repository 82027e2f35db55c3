"""A lecture: two keys carry it from the first page to the last slide, and all of a stop is on one screen."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from qkdemo.labs import arrows, drift
from qkdemo.tracks.catalogue import GUIDED, TRACKS, is_trained
from qkdemo.tracks.stop import Choose
from tests.browser.test_lesson import CHOICE, link, opened, press, query, title
from tests.browser.test_pages import settled

SIZES = [(1920, 1080), (1280, 720), (1024, 768)]
LECTURE = "&lecture=1"
# What stands outside the part of the window that a hall sees, or was shortened to fit; and how high the charts are.
LOOK = """() => {
  const bar = document.querySelector('.st-key-lecture-bar').getBoundingClientRect();
  const main = document.querySelector('[data-testid=stMain]');
  const [cut, charts] = [main.scrollTop ? ['scrolled'] : [], []];
  const walk = (root) => { for (const node of root.querySelectorAll('*')) {
    if (node.shadowRoot) walk(node.shadowRoot);
    const words = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!words && !node.matches('canvas, svg.plane, img, input')) continue;
    if (node.closest('.unseen, .st-key-lecture-bar, style, script')) continue;
    if (!node.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    const prose = root.querySelector('p.prose'); // what its last line hides is not seen
    const box = (prose?.contains(node) ? prose : node).getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    if (node.matches('.focus canvas, svg.plane, img.qr')) charts.push(box.height / innerHeight);
    if (box.top < -1 || box.left < -1 || box.right > innerWidth + 1 || box.bottom > bar.top + 1)
      cut.push(`${node.tagName} ${node.textContent.slice(0, 30)} ${JSON.stringify(box)}`);
  } };
  walk(main);
  const lines = document.querySelector('.st-key-lesson-column')?.style.getPropertyValue('--lines') ?? 'none';
  return {cut, charts, shortened: lines !== 'none'}; }"""


def looked_at(page: Page, charts: int, *, shortened: bool = False) -> None:
    """At every size all of it is on screen, and so are at least so many charts, each high enough to be read."""
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        for _ in range(20):  # Plotly takes its time to fit a window that has changed
            page.wait_for_timeout(200)
            seen = page.evaluate(LOOK)
            if not seen["cut"]:
                break
        assert seen["cut"] == [], (width, page.url)
        assert len(seen["charts"]) >= charts, (width, page.url)
        assert all(share > 1 / 8 for share in seen["charts"]), (width, page.url, seen)
        assert shortened or not seen["shortened"], (width, page.url)


@pytest.mark.parametrize("track", GUIDED)
def test_page_down_alone_carries_a_track_to_its_end_and_every_stop_fits_one_screen(
    server: str, page: Page, track: str
) -> None:
    stops = TRACKS[track]
    page.emulate_media(reduced_motion="reduce")
    if track == GUIDED[0]:
        page.goto(f"{server}/?lecture=1")
        expect(page.locator(".presenter.listening")).to_be_attached()
        expect(page.locator(".key", has_text="the beginner’s track")).to_be_visible()
        press(page, "PageDown")
    else:
        page.goto(server + link((track, stops[0]), LECTURE))
    for stop in stops:
        expect(page.locator("h2.stop")).to_have_text(title((track, stop)))
        expect(page.locator(".key", has_text="show the answer")).to_be_visible()
        expect(page.locator(".st-key-lesson-column[data-fitted]")).to_be_visible()
        drawn = int(stop.lab in (drift.LAB, arrows.LAB))
        if drawn and stop.start is not None:
            expect(page.locator("figure.focus :is(canvas, table), svg.plane").first).to_be_visible()
        looked_at(page, drawn if stop.start is not None else 0)
        press(page, "PageDown")
        expect(page.locator("ol.judged" if isinstance(stop.ask, Choose) else ".verdict, .prose").first).to_be_attached()
        expect(page.locator(".key", has_text=re.compile(r"\bon$"))).to_be_visible()
        if not is_trained(stop):
            expect(page.locator(".prose")).to_be_visible()
        settled(page)
        looked_at(page, drawn, shortened=track != GUIDED[0])
        press(page, "PageDown")
    expect(page.get_by_role("heading", name="Questions?")).to_be_visible()
    looked_at(page, 2)
    assert query(page)["said"].count("!") == len(stops)


def test_page_up_takes_back_an_answer_and_then_a_stop_down_to_the_first_page(server: str, page: Page) -> None:
    track, stops = CHOICE[0], TRACKS[CHOICE[0]]
    assert isinstance(stops[1].ask, Choose)
    opened(page, server, (track, stops[1]), LECTURE)
    press(page, "2")
    expect(page).to_have_url(re.compile("said="))
    press(page, "PageDown")
    expect(page.locator("ol.judged")).to_contain_text("your prediction")
    press(page, "PageUp")
    expect(page.locator("ol.judged")).to_have_count(0)
    assert query(page)["said"] == f",{stops[1].ask.words[1]}"  # what was predicted stays
    for heading in (page.locator("h2.stop", has_text=title((track, stops[0]))), page.locator("h1")):
        press(page, "PageUp")
        expect(heading.first).to_be_visible()
    assert urlsplit(page.url).path == "/"


def test_a_key_is_heard_at_once_and_pressing_it_twice_skips_nothing(server: str, page: Page) -> None:
    track, stop = CHOICE
    opened(page, server, (track, stop), LECTURE)
    heard = page.evaluate("""() => new Promise((done) => {
        const key = document.querySelector('[data-key=PageDown]');
        const down = () => document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'PageDown', bubbles: true}));
        down(); down();
        requestAnimationFrame(() => { down(); done(key.classList.contains('lit')); }); })""")
    assert heard  # in the frame after the press, whatever the server does
    expect(page.locator(".prose")).to_be_visible()
    page.wait_for_timeout(1000)
    assert query(page)["stop"] == stop.name
    expect(page.locator(".key.lit")).to_have_count(0)


def test_the_code_for_the_hall_leads_to_the_stop_and_holds_no_answer(server: str, page: Page) -> None:
    track, stop = CHOICE
    opened(page, server, (track, stop), LECTURE + "&said=!!&seed=7")
    press(page, "s")
    expect(page.locator(".prose")).to_be_visible()
    press(page, "q")
    expect(page.locator("img.qr")).to_be_visible()
    address = page.locator("[role=dialog] [data-testid=stCode]").inner_text().strip()
    assert parse_qs(urlsplit(address).query) == {"track": [track], "stop": [stop.name]}
    press(page, "PageDown")
    expect(page.locator("img.qr")).to_be_hidden()


def test_the_pointer_turns_no_dial_and_more_shows_the_rest_of_the_page(server: str, page: Page) -> None:
    opened(page, server, CHOICE, LECTURE)
    press(page, "PageDown")
    expect(page.locator(".prose")).to_be_visible()
    page.wait_for_timeout(2000)  # until the dial has arrived
    before, box = (
        page.locator(".reading").first.text_content(),
        page.locator("figure.focus canvas").first.bounding_box(),
    )
    assert box
    press(page, "p")
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    page.mouse.click(box["x"] + box["width"] / 3, box["y"] + box["height"] / 2)
    page.wait_for_timeout(300)
    assert page.locator(".reading").first.text_content() == before
    press(page, "p")
    expect(page.locator(".tiles").first).to_be_hidden()
    press(page, "m")
    expect(page.locator(".tiles").first).to_be_visible()
    press(page, "m")
    expect(page.locator(".tiles").first).to_be_hidden()


def test_the_focus_goes_to_the_verdict_also_outside_a_lecture(server: str, page: Page) -> None:
    opened(page, server, CHOICE)
    page.keyboard.press("Alt+s")
    expect(page.locator(".verdict")).to_be_focused()
    expect(page.locator(".verdict")).to_contain_text("This is what happens: ")


def test_the_speakers_window_follows_the_lecture_and_hands_its_keys_on(server: str, page: Page) -> None:
    track, stops = CHOICE[0], TRACKS[CHOICE[0]]
    opened(page, server, (track, stops[0]), LECTURE)
    with page.context.expect_page() as opening:
        press(page, "n")
    notes = opening.value
    expect(notes.get_by_role("heading", name=title((track, stops[0])))).to_be_visible()
    expect(notes.get_by_text("The question is on screen.")).to_be_visible()
    expect(notes.get_by_text("✓")).to_be_visible()  # the answer, which the hall does not see yet
    expect(notes.get_by_text(f"Next: {title((track, stops[1]))}")).to_be_visible()
    for seen in ("The answer is on screen.", "The question is on screen."):
        press(page, "PageDown", notes)
        expect(notes.get_by_text(seen)).to_be_visible()
    expect(notes.get_by_role("heading", name=title((track, stops[1])))).to_be_visible()
    expect(page.locator("h2.stop")).to_have_text(title((track, stops[1])))


def test_a_recorded_run_is_played_when_its_answer_is_asked_for(server: str, page: Page) -> None:
    track, stop = next((track, stop) for track in GUIDED for stop in TRACKS[track] if is_trained(stop))
    page.goto(server + link((track, stop), LECTURE))
    expect(page.locator(".key", has_text="show the answer")).to_be_visible()
    press(page, "PageDown")
    expect(page.locator(".status", has_text="recorded")).to_be_visible(
        timeout=120_000
    )  # trained while the question was open, or now
    press(page, "PageUp")
    press(page, "PageDown")
    expect(page.locator(".reading").first).to_be_visible()
    steps = {page.locator(".reading").first.text_content()}
    for _ in range(40):
        page.wait_for_timeout(100)
        steps.add(page.locator(".reading").first.text_content())
    assert len(steps) > 10


# Of every arrow: whether its head is drawn, and whether its word and tip lie inside the drawing.
WHOLE = """() => {
  const found = [];
  const seek = (root) => { for (const node of root.querySelectorAll('*')) {
    if (node.matches('svg.plane .arrow')) {
      const room = node.ownerSVGElement.getBoundingClientRect();
      const inside = ({left, right, top, bottom}) =>
        left >= room.left - 1 && right <= room.right + 1 && top >= room.top - 1 && bottom <= room.bottom + 1;
      const [head, word] = ['polygon', 'text'].map((tag) => node.querySelector(tag).getBoundingClientRect());
      found.push([word.width > 0 && head.width > 4, inside(head), inside(word)]);
    }
    if (node.shadowRoot) seek(node.shadowRoot); } };
  seek(document);
  return found; }"""


@pytest.mark.parametrize(("width", "height", "more"), [(390, 844, ""), (1280, 720, LECTURE), (1920, 1080, LECTURE)])
def test_all_arrows_are_drawn_whole_when_the_answer_doubles_them(
    server: str, page: Page, width: int, height: int, more: str
) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": height})
    stop = next(stop for stop in TRACKS["beginner"] if stop.lab is arrows.LAB)
    opened(page, server, ("beginner", stop), more + "&said=!")
    expect(page.locator(".dial .reading")).to_have_text("× 2")
    settled(page)
    assert page.evaluate(WHOLE) == [[True, True, True]] * 12


# What has a frame or words, and begins above the bar of keys but ends below it.
CUT = """(end) => {
  const cut = [];
  const framed = (node) => parseFloat(getComputedStyle(node).borderTopWidth) > 0;
  const says = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  const seek = (root) => { for (const node of root.querySelectorAll('*')) {
    const {top, bottom, width} = node.getBoundingClientRect();
    if (width > 1 && top < end - 1 && bottom > end + 1 && (framed(node) || says(node))) cut.push(node.className);
    if (node.shadowRoot) seek(node.shadowRoot); } };
  seek(document.querySelector('[data-testid=stMain]'));
  return cut; }"""


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1920, 1080), (1024, 768)])
def test_a_lecture_begins_with_one_screen_on_which_nothing_is_cut(
    server: str, page: Page, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{server}/?lecture=1")
    settled(page)
    keys = page.locator(".st-key-lecture-bar").bounding_box()
    assert keys is not None
    assert page.evaluate(CUT, keys["y"]) == []
