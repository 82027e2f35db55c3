"""The whole app in a real browser: links, dials, dragging, and what leaves the machine (nothing)."""

import re
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import Page, expect

from qkdemo.dials import declarations
from qkdemo.labs import drift
from qkdemo.messages import say
from qkdemo.web.pages import PAGES

# What carries a page: an exhibit, a table, doors to other pages, or a question.
CARRIES = (
    ".exhibit, .arrows, [data-testid=stDataFrame], [data-testid=stFileUploader], "
    "[data-testid=stMain] [data-testid=stRadio], [data-testid=stMain] [data-testid=stPageLink], "
    "[data-testid=stMain] [data-testid=stTextInput], [data-testid=stVegaLiteChart], [data-testid=stPlotlyChart]"
)
LABS = [name for name, entry in PAGES.items() if entry.lab is not None]
# A mark on the exhibit's first canvas: it is gone if the exhibit was built anew.
MARK = """() => { const find = (root) => { for (const node of root.querySelectorAll('*')) {
  if (node.matches('canvas')) return node;
  const inner = node.shadowRoot && find(node.shadowRoot); if (inner) return inner; } };
  const canvas = find(document); canvas.dataset.marked ??= window.fresh ?? ''; return canvas.dataset.marked; }"""


def path_of(name: str) -> str:
    return "/" if name == "home" else f"/{name}"


def reading(page: Page) -> str:
    return page.locator(".reading").first.text_content() or ""


def settled(page: Page) -> None:
    """The page's script has run, and the page stands where its first picture stood."""
    ran = "document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"
    page.wait_for_function(f"{ran} && !document.getElementById('qkdemo-first')")


def test_a_deep_link_opened_first_on_a_cold_server_shows_shell_page_and_state(cold_server: str, page: Page) -> None:
    page.goto(f"{cold_server}/drift?scale=16&variant=rms&seed=7")
    expect(page.locator(".reading").first).to_have_text("×16")
    expect(page.get_by_role("link", name="Home")).to_be_visible()
    expect(page.locator("h1")).to_contain_text("RMSNorm")
    assert urlsplit(page.url).query == "scale=16&variant=rms&seed=7"


def test_a_key_on_the_ordinary_slider_reaches_chart_and_link_and_builds_nothing_anew(server: str, page: Page) -> None:
    page.goto(f"{server}/drift")
    expect(page.locator(".reading").first).to_have_text("×8")
    page.evaluate(f"window.fresh = 'first'; ({MARK})()")
    page.locator("[data-testid=stSidebar] input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".reading").first).to_have_text("×9")
    expect(page).to_have_url(re.compile(r"scale=9$"))
    assert page.evaluate(f"window.fresh = 'second'; ({MARK})()") == "first"


def test_dragging_shows_many_states_and_the_link_follows_on_release(server: str, page: Page) -> None:
    page.goto(f"{server}/drift")
    expect(page.locator(".reading").first).to_have_text("×8")
    settled(page)
    box = page.locator("figure.curves canvas").first.bounding_box()
    assert box
    seen = set()
    for step in range(20):
        page.mouse.move(box["x"] + box["width"] * (0.2 + 0.02 * step), box["y"] + box["height"] / 2)
        if step == 1:
            page.mouse.down()
        page.wait_for_timeout(40)
        seen.add((reading(page), page.locator("h1").text_content()))
    assert len(seen) > 12
    assert "scale" not in page.url
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"scale="))
    held = reading(page)
    settled(page)
    page.mouse.move(2, 2)
    assert reading(page) == held


def test_going_back_undoes_the_last_change(server: str, page: Page) -> None:
    page.goto(f"{server}/drift?scale=4")
    expect(page.locator(".reading").first).to_have_text("×4")
    page.locator("[data-testid=stSidebar] input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile(r"scale=4\.5$"))
    page.go_back()
    expect(page.locator(".reading").first).to_have_text("×4")
    expect(page.locator("[data-testid=stSidebar]")).to_contain_text("×4")


def test_going_back_from_another_page_is_one_step_and_forward_leads_there_again(server: str, page: Page) -> None:
    page.goto(f"{server}/formats?storage=bfloat16")
    expect(page.locator(".reading").first).to_have_text("×400")
    page.get_by_role("link", name="Drift", exact=True).click()
    expect(page.locator(".reading").first).to_have_text("×8")
    page.wait_for_timeout(1200)  # a hand does not leave sooner
    page.locator("[data-testid=stSidebar] input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile(r"/drift\?scale=9$"))
    page.go_back()
    expect(page.locator(".reading").first).to_have_text("×8")
    page.go_back()
    expect(page).to_have_url(re.compile(r"/formats\?storage=bfloat16$"))
    expect(page.locator(".reading").first).to_have_text("×400")
    page.go_forward()
    expect(page).to_have_url(re.compile(r"/drift$"))


def test_what_was_set_goes_along_to_the_next_page_and_back_is_still_one_step(server: str, page: Page) -> None:
    page.goto(f"{server}/formats?scale=100")
    expect(page.locator(".reading").first).to_have_text("×100")
    page.get_by_role("link", name="Drift", exact=True).click()
    expect(page.locator(".reading").first).to_have_text("×100")
    expect(page).to_have_url(re.compile(r"/drift\?scale=100$"))
    settled(page)
    page.go_back()
    expect(page).to_have_url(re.compile(r"/formats\?scale=100$"))
    expect(page.locator(".reading").first).to_have_text("×100")
    expect(page.locator("h1")).to_contain_text("float16")


def test_a_preset_moves_dials_chart_and_link(server: str, page: Page) -> None:
    page.goto(f"{server}/drift")
    page.get_by_role("button", name="Start from").click()
    page.get_by_text("float16 at scale 400").click()
    expect(page).to_have_url(re.compile(r"scale=400&format=float16"))
    expect(page.locator("h1")).to_contain_text("no defined attention weights")


def test_a_door_leads_into_a_track(server: str, page: Page) -> None:
    page.goto(server)
    page.get_by_role("link", name="Begin the first track").click()
    expect(page).to_have_url(re.compile(r"track=beginner&stop="))
    expect(page.locator("h2.stop")).to_be_visible()


def test_a_link_may_hide_the_other_dials(server: str, page: Page) -> None:
    others = ",".join(dial.name for dial in declarations(drift.Settings) if dial.name != "scale")
    page.goto(f"{server}/drift?scale=1&hide={others}")
    expect(page.locator(".reading").first).to_have_text("×1")
    expect(page.locator("[data-testid=stSidebar] input[type=range]")).to_have_count(1)


def test_a_dial_in_the_chart_stays_and_moves_where_the_link_hides_it(server: str, page: Page) -> None:
    page.goto(f"{server}/drift?hide=scale,gain")
    scale = page.get_by_role("slider", name="Weight scale")  # in the sidebar there is none
    expect(scale).to_have_count(1)
    scale.press("ArrowRight")
    expect(page).to_have_url(re.compile(r"[?&]scale=9&|[?&]scale=9$"))
    assert "A dial in the chart stays, and can be moved." in say("takeaway.hide_help")


def test_the_dials_are_kept_while_another_page_is_visited(server: str, page: Page) -> None:
    page.goto(f"{server}/drift?scale=2&seed=3")
    expect(page.locator(".reading").first).to_have_text("×2")
    page.get_by_role("link", name="Home").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Which word")
    page.get_by_role("link", name="Drift", exact=True).click()
    expect(page.locator(".reading").first).to_have_text("×2")
    expect(page).to_have_url(re.compile(r"scale=2&seed=3"))


def test_in_a_narrow_window_choosing_a_page_closes_the_menu(server: str, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server}/tracks")
    expect(page.locator(".presenter.listening")).to_be_attached()
    page.get_by_role("button", name="Expand sidebar").click()
    page.get_by_role("link", name="Claims").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Said about QK norm")
    expect(page.locator("[data-testid=stSidebar]")).not_to_be_in_viewport()


def test_the_copied_link_opens_the_same_state(server: str, page: Page) -> None:
    page.goto(f"{server}/drift?scale=2.5&variant=cosine&temperature=0.05")
    page.get_by_role("radio", name="Copy link").click()
    link = page.locator("[data-testid=stCode] code").first  # below it stand the line and the BibTeX entry to cite
    expect(link).to_contain_text("temperature=0.05")
    page.goto(link.text_content() or "")
    expect(page.locator(".reading").first).to_have_text("×2.5")
    expect(page.locator("h1")).to_contain_text("scaled cosine")


def test_an_address_that_a_link_holds_is_no_link_on_the_page(server: str, page: Page) -> None:
    given = {"scale": "http://evil.example/login", "gain": "www.evil.example", "seed": "<b>`[x](http://evil.example)"}
    page.goto(f"{server}/drift?{urlencode(given)}")
    told = page.locator("[data-testid=stAlert]")
    for text in given.values():
        expect(told.locator("code", has_text=text)).to_be_visible()
    expect(told.locator("a, b")).to_have_count(0)
