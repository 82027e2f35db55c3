"""The served app, measured: dragging, a key on a slider, first paint, and what a rerun costs the server.

Every number stands beside a baseline of the same run: an empty canvas, or a Streamlit page with one slider and
nothing else. Only the ratios mean anything on a busy machine.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from playwright.async_api import Browser, Locator, Page, async_playwright

from tests.benchmarks.printing import head, late, line, median
from tests.benchmarks.visitor import Visitor, cpu_ms
from tests.serving import FLAGS, ROOT, Server, chromium, served

DRAG_S, EVENTS_PER_S, CROSSING_S = 4, 60, 1.0  # the pointer goes to and fro, once across in CROSSING_S
KEYS, WARM_UP, STILL_MS = 12, 3, 400  # a change is over when nothing moved for STILL_MS
OPENINGS: Final = 5
RERUNS, WALKS = 200, 8  # changes, by so many visitors: one alone may stay long where states are large
PROBE: Final = (Path(__file__).parent / "probe.js").read_text(encoding="utf-8")
IDLE: Final = f"""() => document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning"
    && performance.now() - probe.touched > {STILL_MS}"""
CANVASES: Final = """() => [...document.querySelectorAll("*")]
    .flatMap((node) => [...(node.shadowRoot?.querySelectorAll("canvas") ?? [])])"""
EMPTY: Final = """<body style="margin: 0"><canvas width="500" height="200"></canvas><script>
  const canvas = document.querySelector("canvas");
  canvas.onpointermove = (event) => requestAnimationFrame(() => {
    canvas.getContext("2d").clearRect(0, 0, 500, 200);
    canvas.getContext("2d").fillRect(event.offsetX, 0, 1, 200);
  });
</script></body>"""


def main() -> None:
    """All measurements, one after the other."""
    program = chromium()
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder)
        with (
            served(ROOT / "app.py", logs / "app.txt") as app,
            served(Path(__file__).parent / "bare.py", logs / "bare.txt") as bare,
        ):
            reruns(app, bare)
            if program is None:
                print("\nNo Chromium here: the rest needs one.")
            else:
                asyncio.run(in_browser(program, app.address, bare.address))


def reruns(app: Server, bare: Server) -> None:
    """Processor time of the server and bytes sent for one change, new and seen before."""
    least, least_sent = cost(bare, [Visitor(bare.address, "")], Visitor.turn)
    head("One change: the server's processor time, baseline: a page with one slider")
    places = iter(range(10**6))
    for page in ("drift", "formats"):
        visitors = [Visitor(app.address, page, seed) for seed in range(WALKS)]
        for visitor in visitors:
            visitor.open()
        scale = next(dial.label for dial in visitors[0].dials.values() if dial.label.startswith("Weight scale"))
        kinds: dict[str, Callable[[Visitor], int]] = {
            "the weight scale to and fro": lambda one, scale=scale: one.put(scale, 40 + 3 * (next(places) % 4)),  # type: ignore[misc]
            "any dial anywhere": Visitor.turn,
        }
        for kind, change in kinds.items():
            spent, sent = cost(app, visitors, change)
            line(f"{page}: {kind}, median", median(spent), median(least))
            line("    95 of 100", late(spent), late(least))
            line("    and bytes", sent / 1024, least_sent / 1024, "KiB")


def cost(server: Server, visitors: list[Visitor], change: Callable[[Visitor], int]) -> tuple[list[float], float]:
    """Milliseconds of processor time for each change, and bytes sent for one."""
    spent, sent = [], []
    for visitor in visitors:
        for _ in range(WARM_UP + 2):
            change(visitor)
        for _ in range(RERUNS // len(visitors)):
            before = cpu_ms(server.pid)
            sent.append(change(visitor))
            spent.append(cpu_ms(server.pid) - before)
    return spent, median(sent)


async def in_browser(program: str, app: str, bare: str) -> None:
    """What a visitor sees of it."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=FLAGS)
        await dragging(browser, app)
        await a_key(browser, app, bare)
        await opening(browser, app, bare)
        await browser.close()


async def dragging(browser: Browser, app: str) -> None:
    """A pointer going to and fro over a curve, baseline: over an empty canvas."""
    page = await watched(browser)
    await page.goto(f"data:text/html,{quote(EMPTY)}")
    empty = await dragged(page, await across(page.locator("canvas")))
    await page.context.close()
    page = await watched(browser)
    await page.goto(f"{app}/drift")
    await page.wait_for_function(IDLE)
    drift = await dragged(page, await across(page.locator("figure.curves canvas").first))
    await page.context.close()
    head(f"Dragging for {DRAG_S} s, {EVENTS_PER_S} events/s, baseline: an empty canvas")
    line("events that arrived", drift["moves"] / DRAG_S, empty["moves"] / DRAG_S, "/s")
    line("animation frames", drift["ticks"] / DRAG_S, empty["ticks"] / DRAG_S, "/s")
    line("changed frames", len(drift["frames"]) / DRAG_S, len(empty["frames"]) / DRAG_S, "/s")
    line("pointer to paint, median", median(drift["delays"]), median(empty["delays"]))
    line("pointer to paint, 95 of 100", late(drift["delays"]), late(empty["delays"]))


async def across(canvas: Locator) -> Callable[[float], tuple[float, float]]:
    """The way from a canvas' left to its right; where its hand is at 0 to 1 of that way."""
    box = await canvas.bounding_box()
    assert box
    return lambda place: (box["x"] + box["width"] * (0.15 + 0.7 * place), box["y"] + box["height"] / 2)


async def dragged(page: Page, way: Callable[[float], tuple[float, float]]) -> dict[str, Any]:
    """What the probe saw while the pointer was held down and moved. Events are sent on time, not after an answer."""
    hand = await page.context.new_cdp_session(page)

    async def send(kind: str, place: float, held: int) -> None:
        x, y = way(place)
        await hand.send(
            "Input.dispatchMouseEvent",
            {"type": kind, "x": x, "y": y, "button": "left", "buttons": held, "clickCount": 1},
        )

    await send("mouseMoved", 0, 0)
    await send("mousePressed", 0, 1)
    await page.evaluate("probe.reset()")
    start, sent = time.perf_counter(), []
    for event in range(DRAG_S * EVENTS_PER_S):
        await asyncio.sleep(max(0.0, start + event / EVENTS_PER_S - time.perf_counter()))
        gone = event / EVENTS_PER_S / CROSSING_S % 2
        sent.append(asyncio.create_task(send("mouseMoved", min(gone, 2 - gone), 1)))
    seen: dict[str, Any] = await page.evaluate("({...probe})")
    await asyncio.gather(*sent)
    await send("mouseReleased", 0, 0)
    return seen


async def a_key(browser: Browser, app: str, bare: str) -> None:
    """An arrow key on the first ordinary slider, until the last thing on the page has moved."""
    delays: dict[str, list[float]] = {}
    lost = 0
    for address in (f"{app}/drift", bare):
        page = await watched(browser)
        await page.goto(address)
        await page.wait_for_function(IDLE)
        await page.evaluate(f"window.before = ({CANVASES})()")
        await page.locator("[data-testid=stSlider] input[type=range]").first.focus()
        delays[address] = []
        for key in range(WARM_UP + KEYS):
            await page.evaluate("probe.reset()")
            await page.keyboard.press("ArrowRight" if key // 5 % 2 else "ArrowLeft")
            await page.wait_for_function(IDLE)
            delays[address].append(await page.evaluate("probe.touched - probe.pressed"))
        lost += await page.evaluate("before.filter((canvas) => !canvas.isConnected).length")
        await page.context.close()
    ours, least = (measured[WARM_UP:] for measured in delays.values())
    head("An arrow key on a slider until the last paint, baseline: a page with one slider")
    line("median", median(ours), median(least))
    line("95 of 100", late(ours), late(least))
    line("canvases built anew", lost, unit="")


async def opening(browser: Browser, app: str, bare: str) -> None:
    """A new visitor at a warm server, until there is a result."""
    least = [await opened(browser, bare, "[data-testid=stSlider]", "words") for _ in range(OPENINGS)]
    ours = [await opened(browser, f"{app}/drift", ".exhibit", "first") for _ in range(OPENINGS)]
    head("A new visitor until the first chart, baseline: until the slider of a page with one slider")
    line("from navigation, median", median([total for total, _ in ours]), median([total for total, _ in least]))
    line("from the script's start, median", median([since for _, since in ours]), median([since for _, since in least]))


async def opened(browser: Browser, address: str, awaited: str, mark: str) -> tuple[float, float]:
    """Milliseconds until the probe's `mark`: since navigation, and since the server's first message about the run."""
    page = await watched(browser)
    messages: list[float] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda _: messages.append(1e3 * time.time())))
    await page.add_init_script(f"window.awaited = {awaited!r}")
    await page.goto(address)
    await page.wait_for_function(f"probe.{mark} > 0")
    reached = await page.evaluate(f"probe.{mark}")
    since = await page.evaluate(f"performance.timeOrigin + probe.{mark}") - messages[0]
    await page.context.close()
    return reached, since


async def watched(browser: Browser) -> Page:
    """An empty page with the probe in it."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    await context.add_init_script(PROBE)
    return await context.new_page()


if __name__ == "__main__":
    main()
