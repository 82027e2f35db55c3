"""Tracks and lecture mode in a real browser: by keyboard alone, on the chart, on a projector."""

import re
from collections.abc import Mapping
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from qkdemo.labs import drift
from qkdemo.tracks.catalogue import GUIDED, TRACKS, is_trained, text, told
from qkdemo.tracks.prose import without_targets, words_of
from qkdemo.tracks.stop import Choose, Estimate, Stop
from qkdemo.web.track.lesson import page_of
from tests.browser.test_pages import reading, settled
from tests.tracks.finding import evidence_of

Place = tuple[str, Stop]
DRAWN_ON = ".exhibit, .arrows, [data-testid=stDataFrame], [data-testid=stPlotlyChart]"  # what a stop is read from
DRAWN = [
    (track, stop) for track in GUIDED for stop in TRACKS[track] if stop.lab is drift.LAB and "scale" in stop.turned
]
ESTIMATE = next(place for place in DRAWN if isinstance(place[1].ask, Estimate))
CHOICE = next(place for place in DRAWN if isinstance(place[1].ask, Choose))


def link(place: Place, more: str = "") -> str:
    track, stop = place
    return f"/{page_of(stop).name}?track={track}&stop={stop.name}{more}"


def query(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def title(place: Place) -> str:
    return told(*place, "title")


def explanation(track: str, stop: Stop) -> str:
    return text(track, stop, "explain", evidence_of(stop).numbers)


def scrolled(page: Page, to: int | None = None) -> int:
    """How far the page is scrolled, after scrolling it there."""
    main = page.locator("[data-testid=stMain]")
    return round(main.evaluate("(main, to) => { if (to !== null) main.scrollTop = to; return main.scrollTop; }", to))


def opened(page: Page, server: str, place: Place, more: str = "") -> None:
    page.goto(server + link(place, more))
    expect(page.locator("h2.stop")).to_have_text(title(place))
    expect(page.locator(".reading").first).to_be_visible()
    expect(page.locator(".presenter.listening")).to_be_attached()
    settled(page)


def press(page: Page, key: str, window: Page | None = None) -> None:
    """As a hand does in a lecture: when the page has followed the press before, and not twice within 0.7 s.

    In `window`, if it is the speaker's.
    """
    settled(page)
    expect(page.locator("html:not([data-key-waits])")).to_be_attached()
    page.wait_for_timeout(750)
    (window or page).keyboard.press(key)


@pytest.mark.parametrize("track", GUIDED[1:])  # the first one: `test_heard.py`
def test_a_track_is_walked_from_its_first_stop_to_its_last_by_keyboard_alone(
    server: str, page: Page, track: str
) -> None:
    stops = TRACKS[track]
    page.goto(server + link((track, stops[0])))
    expect(page.locator(".presenter.listening")).to_be_attached()
    for at, stop in enumerate(stops):
        expect(page.locator("h2.stop")).to_have_text(title((track, stop)))
        expect(page.locator(".presenter.listening")).to_be_attached()  # which comes after the page
        settled(page)
        page.keyboard.press("Alt+s")
        if is_trained(stop):
            expect(page.locator(".prose").or_(page.get_by_text("are training")).first).to_be_visible()
        else:
            read = without_targets(explanation(track, stop)).replace("`", "")  # which set code off
            expect(page.locator(".prose")).to_have_text(read)
        expect(page.locator(DRAWN_ON).locator("visible=true").first).to_be_visible(timeout=30_000)  # Plotly loads late
        assert query(page)["said"].count("!") == at + 1
        page.keyboard.press("PageDown")
    expect(page.get_by_role("heading", name="Questions?")).to_be_visible()
    for stop in filter(is_trained, stops):  # whoever comes later finds what this visitor had trained
        page.goto(server + link((track, stop), f"&said={query(page)['said']}"))
        expect(page.locator("h2.stop")).to_have_text(title((track, stop)))
        expect(page.locator(".exhibit").first).to_be_visible()
        expect(page.get_by_text("encountered an error")).to_have_count(0)


def test_a_choice_is_made_with_tab_and_space(server: str, page: Page) -> None:
    opened(page, server, CHOICE)
    page.locator("[data-testid=stRadio] input").first.focus()
    page.keyboard.press("Space")
    expect(page).to_have_url(re.compile("said="))
    page.keyboard.press("Alt+s")
    expect(page.locator("ol.judged")).to_contain_text("your prediction")


def test_what_is_asked_cannot_be_looked_up_and_then_runs(server: str, page: Page) -> None:
    opened(page, server, CHOICE)
    start = reading(page)
    box = page.locator("figure.curves canvas").first.bounding_box()
    assert box
    for share in (0.6, 0.75, 0.9):
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
        page.wait_for_timeout(60)
        assert reading(page) == start
    page.mouse.move(2, 2)
    page.keyboard.press("Alt+s")
    seen = {reading(page)}
    for _ in range(200):
        page.wait_for_timeout(20)
        seen.add(reading(page))
        if len(seen) > 4:
            break
    assert len(seen) > 4  # the dial runs to the answer, it does not jump there


def test_an_estimate_is_drawn_into_the_chart_and_stays_there(server: str, page: Page) -> None:
    opened(page, server, ESTIMATE)
    ask = ESTIMATE[1].ask
    assert isinstance(ask, Estimate)
    focus = page.locator("figure.focus canvas").first
    focus.scroll_into_view_if_needed()
    box = focus.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.3)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.5, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile("said="))
    guess = float(query(page)["said"].split(",")[-1])
    assert ask.low <= guess <= ask.high
    page.keyboard.press("Alt+s")
    expect(page).to_have_url(re.compile("%21|!"))
    expect(page.locator(".prose")).to_be_visible()
    assert float(query(page)["said"].split(",")[-1].removesuffix("!")) == guess


def test_words_of_the_explanation_drive_the_chart(server: str, page: Page) -> None:
    track, stop = next(place for place in DRAWN if drives(place))
    shown = "," * TRACKS[track].index(stop) + "!"
    opened(page, server, (track, stop), f"&said={shown}")
    word = next(word for word in words_of(explanation(track, stop)) if changes(word.turns, stop))
    before, there = reading(page), f"×{word.turns['scale']}"
    page.locator(".prose button", has_text=word.text).first.hover()
    expect(page.locator(".reading").first).to_have_text(there)
    page.mouse.move(2, 2)
    expect(page.locator(".reading").first).to_have_text(before)
    page.locator(".prose button", has_text=word.text).first.click()
    expect(page).to_have_url(re.compile(f"scale={word.turns['scale']}\\b"))


def changes(turns: Mapping[str, str], stop: Stop) -> bool:
    return list(turns) == ["scale"] and float(turns["scale"]) != stop.state.scale


def drives(place: Place) -> bool:
    return any(changes(word.turns, place[1]) for word in words_of(explanation(*place)))


@pytest.mark.parametrize("place", [CHOICE, ESTIMATE], ids=["choice", "estimate"])
def test_on_a_phone_question_and_chart_fit_one_screen(server: str, page: Page, place: Place) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, server, place)
    question, chart = page.locator("h2.stop").bounding_box(), page.locator("figure.focus canvas").first.bounding_box()
    header = page.locator("[data-testid=stHeader]").bounding_box()
    assert question
    assert chart
    assert header
    assert chart["y"] + chart["height"] - question["y"] <= 844 - header["height"]
    tiles = page.locator(".tiles").bounding_box()
    assert tiles
    assert tiles["y"] > chart["y"]


@pytest.mark.parametrize("stop", TRACKS[GUIDED[0]], ids=lambda stop: stop.name)
def test_on_a_phone_the_picture_is_on_screen_when_its_answer_is_shown(server: str, page: Page, stop: Stop) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(server + link((GUIDED[0], stop)))
    expect(page.locator(".presenter.listening")).to_be_attached()
    settled(page)
    page.locator(".st-key-lesson-show button").click()
    expect(page.locator(".prose")).to_be_attached()
    settled(page)
    expect(page.locator("figure.focus canvas, svg.plane, .stPlotlyChart").first).to_be_in_viewport(ratio=0.9)


def test_progress_survives_a_reload_and_a_new_browser(server: str, page: Page, browser: Browser) -> None:
    opened(page, server, CHOICE)
    page.keyboard.press("Alt+s")
    expect(page.locator(".prose")).to_be_visible()
    page.reload()
    expect(page.locator(".prose")).to_be_visible()
    other = browser.new_page()
    other.goto(page.url)
    expect(other.locator(".prose")).to_be_visible()
    other.close()


def test_going_back_returns_to_the_stop_before_on_its_own_page(server: str, page: Page) -> None:
    track, at = next(
        (track, at)
        for track in GUIDED
        for at, (stop, after) in enumerate(pairwise(TRACKS[track]))
        if stop.lab is not after.lab and stop.start is not None
    )
    stop, after = TRACKS[track][at : at + 2]
    opened(page, server, (track, stop))
    page.wait_for_timeout(1200)  # a hand does not leave sooner
    page.keyboard.press("PageDown")
    expect(page.locator("h2.stop")).to_have_text(title((track, after)))
    expect(page).to_have_url(re.compile(f"/{page_of(after).name}\\?"))
    page.go_back()
    expect(page.locator("h2.stop")).to_have_text(title((track, stop)))
    expect(page).to_have_url(re.compile(f"/{page_of(stop).name}\\?"))


def test_of_quick_presses_each_counts(server: str, page: Page) -> None:
    track, stops = CHOICE[0], TRACKS[CHOICE[0]]
    opened(page, server, (track, stops[0]))
    for _ in range(3):
        page.keyboard.press("PageDown")
    expect(page.locator("h2.stop")).to_have_text(title((track, stops[3])))
    page.wait_for_timeout(1000)
    assert query(page)["stop"] == stops[3].name  # and no further


def test_a_press_that_opens_a_question_is_not_followed_by_its_answer(server: str, page: Page) -> None:
    track, stops = CHOICE[0], TRACKS[CHOICE[0]]
    opened(page, server, (track, stops[0]))
    for key in ("PageDown", "Alt+s", "PageDown", "Alt+s"):
        page.keyboard.press(key)
    expect(page.locator("h2.stop")).to_have_text(title((track, stops[2])))
    page.wait_for_timeout(1000)
    assert "said" not in query(page)  # neither question was on screen when S was pressed
    assert scrolled(page, 150) == 150
    page.keyboard.press("Alt+s")
    expect(page).to_have_url(re.compile("%21|!"))
    expect(page.locator(".prose")).to_be_visible()
    assert scrolled(page) == 150  # an answer moves nothing
    page.keyboard.press("PageDown")
    expect(page.locator("h2.stop")).to_have_text(title((track, stops[3])))
    assert scrolled(page) == 0  # a new stop opens at its top
    assert query(page)["said"].count("!") == 1


def test_a_letter_acts_alone_in_a_lecture_only_elsewhere_with_alt(server: str, page: Page) -> None:
    opened(page, server, CHOICE)
    for key in ("1", "Alt+1", "s", "l", "Shift+S", "Shift+L", "Control+l", "Control+Alt+s"):
        page.keyboard.press(key)
    page.wait_for_timeout(1000)
    assert not {"said", "lecture"} & query(page).keys()
    page.keyboard.press("Alt+l")
    expect(page.locator("[data-testid=stHeader]")).to_be_hidden()
    expect(page.locator(".key", has_text="leave")).to_be_visible()
    press(page, "s")
    expect(page.locator(".prose")).to_be_visible()
    press(page, "l")
    expect(page.locator("[data-testid=stHeader]")).to_be_visible()
    expect(page).not_to_have_url(re.compile("lecture"))


def test_the_keys_alone_carry_a_lecture_from_the_first_page_into_a_track_and_choose_an_answer(
    server: str, page: Page
) -> None:
    page.goto(f"{server}/?lecture=1")
    expect(page.locator(".presenter.listening")).to_be_attached()
    settled(page)
    page.keyboard.press("PageDown")
    track, first = GUIDED[0], TRACKS[GUIDED[0]][0]
    assert isinstance(first.ask, Choose)
    expect(page.locator("h2.stop")).to_have_text(title((track, first)))
    expect(page.locator(".key", has_text=f"1 to {len(first.ask.words)}")).to_be_visible()
    expect(page.locator(".presenter.listening")).to_be_attached()
    press(page, "2")
    expect(page).to_have_url(re.compile(f"said={first.ask.words[1]}"))
    assert query(page)["lecture"] == "1"


def test_alt_and_a_letter_act_where_they_write_another_one(server: str, page: Page) -> None:
    opened(page, server, CHOICE)
    mac = {"key": "ß", "code": "KeyS", "altKey": True, "bubbles": True, "composed": True}
    page.evaluate("(press) => document.body.dispatchEvent(new KeyboardEvent('keydown', press))", mac)
    expect(page.locator(".prose")).to_be_visible()


def test_a_lecture_shows_large_words_and_no_controls_and_nothing_leaves_the_machine(
    server: str, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": 1920, "height": 1080})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    opened(page, server, CHOICE, "&lecture=1")
    press(page, "s")
    expect(page.locator(".prose")).to_be_visible()
    expect(page.locator("[data-testid=stSidebar]")).to_be_hidden()
    smallest = page.evaluate(SMALLEST)
    assert smallest >= 1080 / 41, smallest
    for place in (300, 10**6):
        scrolled(page, place)
        charts = [chart for canvas in page.locator("figure canvas").all() if (chart := canvas.bounding_box())]
        for bar in page.locator(".scrubber").all()[:1]:  # another one comes with "more"
            lies = bar.bounding_box()
            assert lies
            for chart in charts:  # no dial lies over a chart
                assert lies["y"] + lies["height"] <= chart["y"] or chart["y"] + chart["height"] <= lies["y"]
    keys = page.locator(".st-key-lecture-bar").bounding_box()
    assert keys
    assert max(chart["y"] + chart["height"] for chart in charts) <= keys["y"]
    press(page, "q")
    code = page.get_by_alt_text("QR code of the address below it")
    expect(code).to_be_visible()
    assert code.evaluate("node => node.naturalWidth > 100")
    for height in (800, 1080):
        page.set_viewport_size({"width": height * 16 // 9, "height": height})
        for part in (code, page.locator("[role=dialog] [data-testid=stAlert]")):
            expect(part).to_be_in_viewport(ratio=1)
    press(page, "q")
    expect(code).to_be_hidden()
    press(page, "p")
    expect(page.locator(".presenter.shown .dot")).to_be_visible()
    press(page, "q")
    expect(code).to_be_visible()
    press(page, "l")
    expect(page.locator("[data-testid=stHeader]")).to_be_visible()
    expect(code).to_be_hidden()
    own = urlsplit(server).netloc
    page.close()
    assert {urlsplit(url).netloc for url in asked if not url.startswith(("data:", "blob:"))} == {own}


# The smallest text that is shown, in pixels; that of a canvas is 12 / 14 of the text around it.
SMALLEST = """() => { let least = 1e9; const walk = (root) => { for (const node of root.querySelectorAll('*')) {
  if (node.shadowRoot) walk(node.shadowRoot);
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  const size = parseFloat(getComputedStyle(node).fontSize);
  if (!node.checkVisibility({opacityProperty: true, visibilityProperty: true}) || node.closest('.unseen')) continue;
  if (node.closest('style, script, [data-testid=stIconMaterial]') || node.getBoundingClientRect().width < 2) continue;
  if (own) least = Math.min(least, size);
  if (node.matches('canvas')) least = Math.min(least, size * 12 / 14); } }; walk(document.body); return least; }"""
