"""Twins train while one watches: curves grow, pause holds, scrubbing looks back, a fork goes on, a link attaches."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from qkdemo.training.settings import ENGINE
from tests.serving import SEEDS

SMALL = "n_layers=1&n_heads=1&d_head=8&n_keys=8&batch=2"
PATIENCE_MS = 120_000
FRAMES = """async (ms) => {
  const find = (root) => { for (const node of root.querySelectorAll('*')) {
    if (node.matches('.reading')) return node;
    const inner = node.shadowRoot && find(node.shadowRoot); if (inner) return inner; } };
  const node = find(document), seen = new Set(), end = performance.now() + ms, first = Number(node.textContent);
  let frames = 0;
  while (performance.now() < end) { await new Promise(requestAnimationFrame); seen.add(node.textContent); frames++; }
  return [seen.size, Math.min(frames, Number(node.textContent) - first)]; }"""


def step(page: Page) -> int:
    text = page.locator(".reading").first.text_content() or ""
    return int(text or 0)


def until(page: Page, happened: Callable[[], Any]) -> None:
    for _ in range(PATIENCE_MS // 50):
        if happened():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it never happened")


def open_run(page: Page, server: str, query: str) -> None:
    page.goto(f"{server}/training?{SMALL}&{query}")
    expect(page.locator(".bar .status")).to_contain_text("step", timeout=PATIENCE_MS)


def button(page: Page, name: str) -> Any:
    return page.locator(".bar").get_by_role("button", name=name, exact=True)


def test_the_curve_grows_pause_holds_it_and_play_goes_on(server: str, page: Page) -> None:
    open_run(page, server, f"seed={next(SEEDS)}&steps=2000&speed=10")
    until(page, lambda: step(page) >= 3)
    button(page, "Pause").click()
    expect(page.locator(".bar .status")).to_contain_text("paused")
    held = step(page)
    page.wait_for_timeout(700)
    assert step(page) == held
    button(page, "Step").click()
    until(page, lambda: step(page) == held + 1)
    page.wait_for_timeout(500)
    assert step(page) == held + 1
    button(page, "Play").click()
    until(page, lambda: step(page) > held + 5)
    button(page, "Stop").click()
    expect(page.locator(".bar .status")).to_contain_text("stopped")


def test_every_step_is_painted(server: str, page: Page) -> None:
    open_run(page, server, f"seed={next(SEEDS)}&steps=2000&speed=10")
    until(page, lambda: step(page) >= 3)
    painted, could_be = page.evaluate(FRAMES, 3000)  # a busy browser has fewer frames than there are steps
    assert painted >= 0.8 * could_be > 0
    button(page, "Stop").click()


def test_scrubbing_back_shows_an_earlier_step_while_the_run_goes_on(server: str, page: Page) -> None:
    open_run(page, server, f"seed={next(SEEDS)}&steps=2000&speed=25")
    until(page, lambda: step(page) >= 20)
    page.locator("#dial").focus()
    page.keyboard.press("Home")
    until(page, lambda: step(page) == 1)
    rate = page.locator(".tile .value").first
    expect(rate).to_have_text("1·10⁻⁴")  # of the first step, a frame or two later than the step itself
    page.keyboard.press("ArrowRight")
    until(page, lambda: step(page) == 2)
    expect(rate).to_have_text("2·10⁻⁴")
    page.wait_for_timeout(1000)
    assert step(page) == 2
    page.keyboard.press("End")
    until(page, lambda: step(page) > 25)
    button(page, "Stop").click()


def test_a_finished_run_is_there_at_once_in_another_browser_and_can_be_played(
    server: str, page: Page, browser: Browser
) -> None:
    open_run(page, server, "seed=4&steps=60&speed=200")
    expect(page.locator(".bar .status")).to_contain_text("60 steps, recorded", timeout=PATIENCE_MS)
    link = page.url
    context = browser.new_context()
    other = context.new_page()
    other.goto(link)
    expect(other.locator(".reading").first).to_have_text("60", timeout=PATIENCE_MS)
    expect(other.locator(".bar .status")).to_contain_text(f"engine {ENGINE}")
    assert other.locator("h1").text_content() == page.locator("h1").text_content()
    button(other, "Play").click()
    until(other, lambda: step(other) < 60)
    until(other, lambda: step(other) == 60)
    context.close()


def test_the_page_opens_with_a_finished_run_that_came_with_the_app_and_a_button_trains_it(
    server: str, page: Page, browser: Browser
) -> None:
    page.goto(f"{server}/training")
    expect(page.locator(".bar .status")).to_contain_text("300 steps, came with the app, recorded", timeout=PATIENCE_MS)
    expect(page.locator(".reading").first).to_have_text("300")
    expect(page.locator("h1")).to_contain_text("forgot it at step")
    expect(button(page, "Stop")).to_be_hidden()
    button(page, "Train it live here").click()
    expect(button(page, "Train it live here")).to_be_hidden(timeout=PATIENCE_MS)
    until(page, lambda: 3 <= step(page) < 250)
    button(page, "Stop").click()
    expect(page.locator(".bar .status")).to_contain_text("stopped")
    context = browser.new_context()
    other = context.new_page()
    other.goto(page.url)
    expect(other.locator(".bar .status")).to_contain_text("300 steps, came with the app", timeout=PATIENCE_MS)
    context.close()


def test_a_trained_stop_of_a_track_shows_its_run_and_its_numbers_at_once(server: str, page: Page) -> None:
    page.goto(f"{server}/training?track=beginner&stop=live")
    page.get_by_role("button", name="Show without predicting").click(timeout=PATIENCE_MS)
    expect(page.get_by_text("forgot the task; this counts from step").first).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator(".reading").first).to_have_text("300", timeout=PATIENCE_MS)
    expect(page.locator("figure.curves")).to_have_count(7)


def test_the_dot_at_the_end_of_a_line_covers_no_letter_of_its_label(server: str, page: Page, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 2600, "height": 1400})  # everything grows, the dots as well
    open_run(page, server, "seed=4&steps=60&speed=200")
    expect(page.locator(".bar .status")).to_contain_text("60 steps, recorded", timeout=PATIENCE_MS)
    page.get_by_text("Largest attention logit").hover()
    with page.expect_download() as download:
        page.get_by_role("button", name="SVG: Largest attention logit").click()
    download.value.save_as(tmp_path / "plot.svg")
    drawing = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    dots = [tag for tag in re.findall("<circle[^>]*>", drawing) if "stroke" in tag]
    edges = [number(tag, "cx") + number(tag, "r") + number(tag, "stroke-width") / 2 for tag in dots]
    (label,) = re.findall(r"<text transform=.translate\(([\d.]+) [^>]*>plain<", drawing)
    assert len(edges) == 2
    assert float(label) > max(edges)
    below = " ".join(re.findall("<text [^>]*>([^<]*)</text>", drawing)[-12:])  # how it was made
    for words in ("step: 60", "training: ", "seed=4", "torch ", f"{server}/training?"):
        assert words in below


def number(tag: str, name: str) -> float:
    match = re.search(rf'{name}="([-\d.]+)"', tag)
    assert match is not None, tag
    return float(match[1])


def test_a_visitor_of_a_running_link_watches_the_same_run_and_cannot_stop_it(
    server: str, page: Page, browser: Browser
) -> None:
    open_run(page, server, f"seed={next(SEEDS)}&steps=2000&speed=10")
    until(page, lambda: step(page) >= 2)
    context = browser.new_context()
    other = context.new_page()
    other.goto(page.url)
    until(other, lambda: step(other) >= 2)
    expect(button(other, "Stop")).to_be_disabled()
    button(other, "Pause").click()  # of the view alone
    told = other.locator(".st-key-watching")
    assert (told.bounding_box() or {})["y"] < 800  # in sight
    other.set_viewport_size({"width": 390, "height": 844})
    assert (told.bounding_box() or {})["y"] > 844  # where it would hide what one watches
    other.wait_for_timeout(200)  # until the held step is painted
    held = step(other)
    now = step(page)
    until(page, lambda: step(page) > now + 5)
    assert step(other) == held
    assert abs(step(page) - now) < 60
    context.close()
    button(page, "Stop").click()


def test_a_reload_keeps_the_run_and_its_controls(server: str, page: Page) -> None:
    open_run(page, server, f"seed={next(SEEDS)}&steps=2000&speed=10")
    until(page, lambda: step(page) >= 5)
    page.reload()
    until(page, lambda: step(page) >= 6)
    expect(button(page, "Stop")).to_be_enabled()
    button(page, "Pause").click()
    expect(page.locator(".bar .status")).to_contain_text("paused")
    held = step(page)
    page.reload()
    until(page, lambda: step(page) > held)  # opening a link starts its run
    button(page, "Stop").click()


def test_a_fork_goes_on_beside_the_original_and_stands_in_the_link(server: str, page: Page) -> None:
    open_run(page, server, f"seed={next(SEEDS)}&steps=60&speed=50&learning_rate=0.05")
    expect(page.locator(".bar .status")).to_contain_text("60 steps, recorded", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Is there a way back?").click()
    expect(page.locator(".bar .status")).to_contain_text("of 660", timeout=PATIENCE_MS)
    expect(page).to_have_url(re.compile(r"fork=rate.*fork_at=60.*fork_steps=600"))
    until(page, lambda: step(page) > 62)
    expect(page.locator("h1")).to_contain_text("After step 60 both go on at a learning rate of")
    button(page, "Stop").click()


def test_a_fork_begins_at_the_step_where_a_playback_was_held_and_not_elsewhere(server: str, page: Page) -> None:
    open_run(page, server, f"seed={next(SEEDS)}&steps=200&speed=200")
    expect(page.locator(".bar .status")).to_contain_text("200 steps, recorded", timeout=PATIENCE_MS)
    page.locator("[data-testid=stSidebar]").get_by_role("slider", name="Speed").press("ArrowLeft")  # 100 a second
    expect(page).to_have_url(re.compile("speed=100"))
    button(page, "Play").click()
    until(page, lambda: 20 < step(page) < 180)
    button(page, "Pause").click()
    lead = page.get_by_text(re.compile(r"^Fork from step"))
    expect(lead).not_to_contain_text("step 200:")
    until(page, lambda: f"step {step(page)}:" in (lead.text_content() or ""))  # a frame or two pass until it stands
    button(page, "Play").click()  # to its end, where the page speaks of the last step again
    expect(page.get_by_text(re.compile(r"^Fork from step"))).to_contain_text("step 200:", timeout=PATIENCE_MS)
    page.locator("#dial").press("Home")
    button(page, "Step").click()
    expect(page.get_by_text(re.compile(r"^Fork from step"))).to_contain_text("step 2:")
    page.get_by_role("button", name="Slow W_q and W_k").click()
    expect(page).to_have_url(re.compile("fork_at=2(&|$)"))


def test_a_dial_that_makes_another_run_says_so_first(server: str, page: Page) -> None:
    open_run(page, server, f"seed={next(SEEDS)}&steps=2000&speed=10")
    until(page, lambda: step(page) >= 2)
    page.locator("[data-testid=stSidebar]").get_by_text("constant", exact=True).click()
    expect(page.get_by_text("The dials now describe another run.")).to_be_visible()
    now = step(page)
    until(page, lambda: step(page) > now)  # it went on
    page.get_by_role("button", name="Start this run").click()
    expect(page.get_by_text("The dials now describe another run.")).to_have_count(0)
    until(page, lambda: 0 < step(page) < now + 2000)
    button(page, "Stop").click()


def test_a_learning_rate_that_is_turned_while_a_run_goes_on_changes_it_without_a_reset(server: str, page: Page) -> None:
    open_run(page, server, f"seed={next(SEEDS)}&steps=2000&speed=10")
    until(page, lambda: step(page) >= 5)
    page.locator("[data-testid=stSidebar]").get_by_role("slider", name="Learning rate").press("ArrowLeft")
    page.get_by_role("button", name="Go on at 0.18 instead").click()
    expect(page.locator("h1")).to_contain_text("both go on at a learning rate of 0.18.", timeout=PATIENCE_MS)
    assert step(page) > 5
    expect(page).to_have_url(re.compile(r"fork=rate.*fork_rate=0\.18"))
    expect(page.get_by_text("The dials now describe another run.")).to_have_count(0)
    button(page, "Stop").click()
    expect(page.locator(".bar .status")).to_contain_text("stopped")
    page.locator("[data-testid=stSidebar]").get_by_text("constant", exact=True).click()
    expect(page.get_by_text("Starting it begins at step 1.")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Go on at .* instead$"))).to_have_count(0)
    page.get_by_role("button", name="Start this run").click()
    expect(button(page, "Stop")).to_be_enabled()
    button(page, "Stop").click()
    expect(page.locator(".bar .status")).to_contain_text("stopped")
    page.locator("[data-testid=stSidebar]").get_by_text("ramp", exact=True).click()
    known = re.compile(r"Starting it goes on after step \d+, up to which it is recorded")
    expect(page.get_by_text(known)).to_be_visible()


def test_many_seeds_are_counted_from_the_runs_just_made(server: str, page: Page) -> None:
    open_run(page, server, "seed=8&steps=40&speed=200")
    expect(page.locator(".bar .status")).to_contain_text("40 steps, recorded", timeout=PATIENCE_MS)
    page.locator("[data-testid=stMain]").get_by_text("5", exact=True).click()
    page.get_by_role("button", name="Train 5 pairs").click()
    together, told = page.get_by_text("10 runs together"), page.get_by_text(re.compile("Plain attention failed in"))
    expect(together.or_(told).first).to_be_attached(timeout=PATIENCE_MS)  # they may be done before they are seen to go
    expect(page.get_by_text(re.compile(r"Plain attention failed in \d of 5 runs")).first).to_be_attached(
        timeout=PATIENCE_MS
    )
    expect(page.get_by_text("Seed 12: loss")).to_be_visible()
    with page.expect_download() as kept:
        page.get_by_role("button", name="CSV of all seeds").click()
    lines = kept.value.path().read_text().splitlines()
    assert len(lines) == 1 + 40 * 10
    assert {line.split(",")[3] for line in lines[1:]} == {"8", "9", "10", "11", "12"}


def test_many_seeds_can_be_stopped_and_are_kept_waiting_while_their_tab_is_open(
    server: str, page: Page, browser: Browser
) -> None:
    context = browser.new_context()
    other = context.new_page()
    open_run(other, server, f"seed={next(SEEDS)}&steps=3000&n_keys=64&batch=32")
    until(other, lambda: step(other) > 0)
    open_run(page, server, f"seed={next(SEEDS)}&steps=3000&speed=10")
    page.get_by_role("button", name="Train 10 pairs").click()
    expect(page.get_by_text(re.compile("20 runs together: .*waiting for a worker: number 1"))).to_be_visible()
    expect(page.locator(".notice")).to_contain_text("whoever trained it started another one")
    page.wait_for_timeout(3000)
    asked = page.locator(".st-key-training-opened").get_by_role("button", name="Stop")
    asked.click()
    expect(asked).to_have_count(0)
    expect(page.get_by_text(re.compile("20 runs together: .*stopped"))).to_be_visible()
    button(other, "Stop").click()
    context.close()
