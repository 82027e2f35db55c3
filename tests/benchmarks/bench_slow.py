"""Slow clients: a phone's processor and a thin line: `python -m tests.benchmarks.bench_slow [drag] [open]`.

Chromium itself slows its processor down (CDP `Emulation.setCPUThrottlingRate`) and shapes the line
(`Network.emulateNetworkConditions`: bits per second, and a delay for each request; web sockets are not shaped, so what
they bring is added by arithmetic from its bytes). Every number stands beside a baseline of the same browser in the same
run: an empty canvas, or a page with one slider. Only the ratios mean anything on a busy machine.
"""

import asyncio
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from playwright.async_api import Browser, BrowserContext, CDPSession, Page, async_playwright

from tests.benchmarks.bench_page import DRAG_S, EMPTY, IDLE, PROBE, across, dragged
from tests.benchmarks.printing import head, late, line, median
from tests.serving import FLAGS, ROOT, chromium, served

PHONE: Final[Any] = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2}
LAPTOP: Final[Any] = {"viewport": {"width": 1280, "height": 800}}
SLOWER: Final = (1, 4, 6)
BACK: Final = 1e3 / 8  # bytes a second in a kilobit a second
FIRST_PAINT: Final = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"
SETTLED_MS: Final = 1500  # after the first chart: what comes later than that is not waited for


@dataclass(frozen=True)
class Line:
    """How a browser is connected."""

    name: str
    kbit_s: float
    delay_ms: float


LINES: Final = (
    Line("as fast as it goes", 0, 0),
    Line("1.6 Mbit/s, 150 ms", 1600, 150),
    Line("400 kbit/s, 150 ms", 400, 150),
)


def main() -> None:
    """What was asked for, or all of it."""
    wanted = sys.argv[1:] or ["drag", "open"]
    program = chromium()
    if program is None:
        print("No Chromium here.")
        return
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder)
        with (
            served(ROOT / "app.py", logs / "app.txt") as app,
            served(Path(__file__).parent / "bare.py", logs / "bare.txt") as bare,
        ):
            asyncio.run(measured(program, app.address, bare.address, wanted))


async def measured(program: str, app: str, bare: str, wanted: list[str]) -> None:
    """All of it in one browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=FLAGS)
        if "drag" in wanted:
            await drags(browser, app)
        if "open" in wanted:
            await opens(browser, app, bare)
        await browser.close()


async def drags(browser: Browser, app: str) -> None:
    """A finger or a pointer over Drift's first curve, baseline: over an empty canvas."""
    for name, screen in (("390 × 844", PHONE), ("1280 × 800", LAPTOP)):
        head(f"Dragging at {name}, baseline: an empty canvas")
        for slower in SLOWER:
            seen, spent = list[dict[str, Any]](), list[dict[str, float]]()
            for address in (f"{app}/drift", f"data:text/html,{quote(EMPTY)}"):
                page, session = await tab(browser, screen)
                await page.goto(address)
                canvas = page.locator("canvas" if address.startswith("data:") else "figure.curves canvas").first
                if not address.startswith("data:"):
                    await page.wait_for_function(IDLE)
                    await canvas.scroll_into_view_if_needed()
                await session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
                before = await busy(session)
                seen.append(await dragged(page, await across(canvas)))
                spent.append({name: ms - before[name] for name, ms in (await busy(session)).items()})
                await page.context.close()
            ours, empty = seen
            line(f"{slower}× slower: changed frames", len(ours["frames"]) / DRAG_S, len(empty["frames"]) / DRAG_S, "/s")
            if slower == 1:
                frames = [max(1, len(one["frames"])) for one in seen]
                for part in spent[0]:
                    line(f"    {part} per frame", spent[0][part] / frames[0], (spent[1][part] / frames[1]) or None)
            line("    pointer to paint, median", median(ours["delays"]), median(empty["delays"]))
            line("    pointer to paint, 95 of 100", late(ours["delays"]), late(empty["delays"]))


async def busy(session: CDPSession) -> dict[str, float]:
    """Milliseconds of processor time of the page's own thread so far, which other programs do not lengthen."""
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})
    metrics = {each["name"]: 1e3 * each["value"] for each in (await session.send("Performance.getMetrics"))["metrics"]}
    parts = {"work": "Task", "scripts": "Script", "styles": "RecalcStyle", "layout": "Layout"}
    return {name: metrics[f"{part}Duration"] for name, part in parts.items()}


async def opens(browser: Browser, app: str, bare: str) -> None:
    """A phone's first and second visit to Drift, baseline: to a page with one slider.

    The first picture is the server's, in the document; the first chart is the live one.
    """
    for wire in LINES:
        head(f"Opening, {wire.name}, baseline: a page with one slider")
        ours = await visits(browser, wire, f"{app}/drift", ".exhibit", "first")
        least = await visits(browser, wire, bare, "[data-testid=stSlider]", "words")
        for visit, (own, other) in zip(("cold", "cached"), zip(ours, least, strict=True), strict=True):
            line(f"{visit}: until the first picture", own[2])
            line("    until the first chart", own[0], other[0])
            line("    sent over the line", own[1], other[1], "KiB")


async def visits(
    browser: Browser, wire: Line, address: str, awaited: str, mark: str
) -> list[tuple[float, float, float]]:
    """Milliseconds until the probe's `mark`, KiB that came, and milliseconds until the first paint; for a browser that
    never was there, and again."""
    context = await browser.new_context(**PHONE)
    found = []
    for _ in range(2):
        page, session = await tab(context)
        came = Counted(session)
        await page.add_init_script(f"window.awaited = {awaited!r}")
        await session.send("Network.enable")
        if wire.kbit_s:
            speed = wire.kbit_s * BACK
            shape = {"offline": False, "latency": wire.delay_ms, "downloadThroughput": speed, "uploadThroughput": speed}
            await session.send("Network.emulateNetworkConditions", shape)
        await page.goto(address, wait_until="commit", timeout=180_000)
        await page.wait_for_function(f"probe.{mark} > 0", timeout=180_000)
        reached = float(await page.evaluate(f"probe.{mark}"))
        by_socket_ms = 1e3 * came.by_socket / (wire.kbit_s * BACK) if wire.kbit_s else 0.0
        await asyncio.sleep(SETTLED_MS / 1e3)
        first = float(await page.evaluate(FIRST_PAINT))
        found.append((reached + by_socket_ms, (came.by_http + came.by_socket) / 1024, first))
        await page.close()
    await context.close()
    return found


async def painted(page: Page) -> dict[str, float]:
    """Milliseconds until the server's picture was painted, and until the live exhibit stood in its place."""
    await page.wait_for_selector("#qkdemo-first", state="attached", timeout=180_000)
    await page.wait_for_function("!document.getElementById('qkdemo-first')", timeout=180_000)
    live = float(await page.evaluate("performance.now()"))
    return {"picture": float(await page.evaluate(FIRST_PAINT)), "live": live}


class Counted:
    """Bytes that come to a tab, as they are on the line."""

    def __init__(self, session: CDPSession) -> None:
        self.by_http = self.by_socket = 0.0
        session.on("Network.loadingFinished", self._loaded)
        session.on("Network.webSocketFrameReceived", self._framed)

    def _loaded(self, event: dict[str, Any]) -> None:
        self.by_http += event["encodedDataLength"]

    def _framed(self, event: dict[str, Any]) -> None:
        frame = event["response"]
        text = len(frame["payloadData"])
        self.by_socket += text if frame["opcode"] == 1 else text * 3 / 4  # bytes come as base 64


async def tab(place: Browser | BrowserContext, screen: Any = None) -> tuple[Page, CDPSession]:
    """An empty page with the probe in it, and the way to its browser's own controls."""
    context = await place.new_context(**screen) if isinstance(place, Browser) else place
    page = await context.new_page()
    await page.add_init_script(PROBE)
    return page, await context.new_cdp_session(page)


if __name__ == "__main__":
    begun = time.perf_counter()
    main()
    print(f"\nTook {time.perf_counter() - begun:.0f} s")
