"""Arrows under a hand: `python -m tests.benchmarks.bench_arrows [drag] [wild]`.

`drag` moves one arrow's tip to and fro: changed frames a second, and the time from the pointer's event to the paint,
beside an empty canvas under the same hand in the same browser. `wild` does anything at all to the arrows for a minute
and looks at the drawing after each of it; it ends with 1 if something is wrong.
"""

import asyncio
import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from playwright.async_api import Browser, Locator, async_playwright
from playwright.sync_api import sync_playwright

from tests.benchmarks.bench_page import DRAG_S, EMPTY, EVENTS_PER_S, IDLE, across, dragged, watched
from tests.benchmarks.bench_slow import busy
from tests.benchmarks.printing import head, late, line, median
from tests.browser.wild_hand import Hand, faults
from tests.serving import FLAGS, ROOT, chromium, served

TURNED: Final = math.radians(150)
WILD_S: Final = 60
HELD: Final = ".side.plain .arrow:nth-child(2)"


def main() -> None:
    """What was asked for, or all of it."""
    wanted = sys.argv[1:] or ["drag", "wild"]
    program = chromium()
    if program is None:
        print("No Chromium here.")
        return
    with tempfile.TemporaryDirectory() as folder, served(ROOT / "app.py", Path(folder) / "app.txt") as app:
        if "drag" in wanted:
            asyncio.run(drags(program, app.address))
        if "wild" in wanted:
            wild(program, app.address)


async def drags(program: str, app: str) -> None:
    """The page of the arrows, baseline: an empty canvas."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=FLAGS)
        empty = await seen(browser, f"data:text/html,{quote(EMPTY)}", "canvas", across)
        ours = await seen(browser, f"{app}/arrows", ".side.plain", around)
        await browser.close()
    head(f"An arrow's tip dragged for {DRAG_S} s, {EVENTS_PER_S} events/s, baseline: an empty canvas")
    line("animation frames", ours["ticks"] / DRAG_S, empty["ticks"] / DRAG_S, "/s")
    line("changed frames", len(ours["frames"]) / DRAG_S, len(empty["frames"]) / DRAG_S, "/s")
    line("pointer to paint, median", median(ours["delays"]), median(empty["delays"]))
    line("pointer to paint, 95 of 100", late(ours["delays"]), late(empty["delays"]))
    for part, spent in ours["busy"].items():
        line(f"processor time per changed frame: {part}", spent / max(1, len(ours["frames"])))


async def seen(browser: Browser, address: str, where: str, way: Callable[[Locator], Any]) -> dict[str, Any]:
    """What the probe saw of one drag, and the processor's time that the page's own thread took for it."""
    page = await watched(browser)
    session = await page.context.new_cdp_session(page)
    await page.goto(address)
    place = page.locator(where)
    await place.wait_for()
    if not address.startswith("data:"):
        await page.wait_for_function(IDLE)
        await page.locator(".sides").evaluate("(node) => probe.watch(node)")
    before = await busy(session)
    found = await dragged(page, await way(place))
    found["busy"] = {name: ms - before[name] for name, ms in (await busy(session)).items()}
    await page.context.close()
    return found


async def around(side: Locator) -> Callable[[float], tuple[float, float]]:
    """The way of a tip around the middle of its drawing, from where it stands; where its hand is at 0 to 1 of it."""
    box, tip = await side.locator("svg.plane").bounding_box(), await side.page.locator(f"{HELD} .grip").bounding_box()
    assert box
    assert tip
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    dx, dy = tip["x"] + tip["width"] / 2 - x, tip["y"] + tip["height"] / 2 - y
    radius, begun = math.hypot(dx, dy), math.atan2(dy, dx)
    return lambda place: (
        x + radius * math.cos(begun + TURNED * place),
        y + radius * math.sin(begun + TURNED * place),
    )


def wild(program: str, app: str) -> None:
    """A hand does anything at all for a minute."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{app}/arrows")
        page.locator(".side.plain .arrow").first.wait_for()
        hand, begun = Hand(page, seed=0), time.monotonic()
        while time.monotonic() < begun + WILD_S:
            hand.act()
            problems += [f"after {hand.did[-1]}: {fault}" for fault in faults(page)]
        browser.close()
    head(f"A wild hand for {WILD_S} s")
    line("things that it did", len(hand.did), unit="")
    line("things that went wrong", len(problems), unit="")
    if problems:
        sys.exit("\n".join(problems[:20]))


if __name__ == "__main__":
    main()
