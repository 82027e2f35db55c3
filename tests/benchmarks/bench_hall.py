"""A hall that opens one page within a minute over one access point: `python -m tests.benchmarks.bench_hall [phones]`.

By default 40 phones in 60 s over 50 Mbit/s that they share (`tests.shaping`). One before them, and the last of them, is
Chromium and tells when it paints; the others fetch what that browser fetched, over six connections each, but open no
socket. Then, from bytes alone, what 200 phones need.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from playwright.async_api import Browser, Request, async_playwright

from tests.benchmarks.bench_slow import PHONE, painted
from tests.benchmarks.printing import head, late, line
from tests.serving import FLAGS, ROOT, chromium, served
from tests.shaping import Line, shaped

PHONES, WITHIN_S, BYTES_S = 40, 60.0, 50e6 / 8
HALL: Final = 200
SETTLED_MS: Final = 3000
_AT_ONCE: Final = 6  # connections of a browser to one server
_HEADERS: Final = {"accept-encoding": "gzip, deflate", "accept": "*/*"}
_PAGE: Final = _HEADERS | {"accept": "text/html,*/*"}


async def opened(browser: Browser, address: str, wire: Line) -> tuple[dict[str, float], list[str], int]:
    """When a browser that was never there paints, what it fetched, and how many bytes that were."""
    context = await browser.new_context(**PHONE)
    page = await context.new_page()
    fetched = list[str]()

    def asked(request: Request) -> None:
        fetched.append(request.url)

    page.on("request", asked)
    before = wire.carried
    await page.goto(address, wait_until="commit", timeout=180_000)
    times = await painted(page)
    await page.wait_for_timeout(SETTLED_MS)
    await context.close()
    return times, [url for url in fetched if url.startswith("http")], wire.carried - before


def phone(urls: list[str]) -> tuple[float, float]:
    """Seconds until the document is there, and until everything is."""
    begun, waiting = time.perf_counter(), list(reversed(urls[1:]))
    host = urlsplit(urls[0]).netloc
    fetch(host, urls[:1], _PAGE)
    first = time.perf_counter() - begun
    with ThreadPoolExecutor(_AT_ONCE) as connections:
        for each in [connections.submit(fetch, host, waiting) for _ in range(_AT_ONCE)]:
            each.result()
    return first, time.perf_counter() - begun


def fetch(host: str, waiting: list[str], headers: Mapping[str, str] = _HEADERS) -> None:
    """Takes addresses off the list and fetches them, over one connection."""
    connection = HTTPConnection(host, timeout=180)
    with suppress(IndexError):  # another connection took the last one
        while waiting:
            parts = urlsplit(waiting.pop())
            connection.request("GET", urlunsplit(("", "", parts.path, parts.query, "")), headers=dict(headers))
            connection.getresponse().read()
    connection.close()


async def hall(port: int, phones: int, program: str) -> None:
    """All of it."""
    async with async_playwright() as playwright, shaped(port, BYTES_S, 0.02) as (shared, wire):
        browser = await playwright.chromium.launch(executable_path=program, args=FLAGS)
        address = f"http://127.0.0.1:{shared}/drift"
        alone, urls, size = await opened(browser, address, wire)
        head(f"{phones} phones in {WITHIN_S:.0f} s over {BYTES_S * 8 / 1e6:.0f} Mbit/s")
        line("one alone, a browser: first picture", alone["picture"])
        line("    live exhibit", alone["live"])
        line("    bytes", size / 1024, unit="KiB")
        start, threads = time.perf_counter(), ThreadPoolExecutor(phones)

        async def comes(at: int) -> tuple[float, float]:
            await asyncio.sleep(max(0.0, start + at * WITHIN_S / phones - time.perf_counter()))
            return await asyncio.get_running_loop().run_in_executor(threads, phone, urls)

        others = [asyncio.create_task(comes(at)) for at in range(phones - 1)]
        await asyncio.sleep(max(0.0, start + (phones - 1) * WITHIN_S / phones - time.perf_counter()))
        last, _, _ = await opened(browser, address, wire)
        seen = await asyncio.gather(*others)
        line("the document with its picture, median", 1e3 * statistics.median(first for first, _ in seen))
        line("    95 of 100", 1e3 * late([first for first, _ in seen]))
        line("all that a page fetches, median", 1e3 * statistics.median(whole for _, whole in seen))
        line("    95 of 100", 1e3 * late([whole for _, whole in seen]))
        line("    bytes to all of them", wire.carried / 1024, unit="KiB")
        line("the last one, a browser: first picture", last["picture"])
        line("    live exhibit", last["live"])
        line(f"{HALL} phones, by bytes: everything", HALL * size / BYTES_S, unit="s")
        await browser.close()


def main() -> None:
    """A server of its own, and the hall before it."""
    phones, program = int(sys.argv[1]) if sys.argv[1:] else PHONES, chromium()
    if program is None:
        print("No Chromium here.")
        return
    with tempfile.TemporaryDirectory() as folder, served(ROOT / "app.py", Path(folder) / "log.txt") as app:
        asyncio.run(hall(urlsplit(app.address).port or 0, phones, program))


if __name__ == "__main__":
    main()
