"""What the first view of a page costs in bytes: every request of a browser that has nothing yet.

`python -m tests.benchmarks.bench_bytes [page ...]`: by default Home and Drift. Bytes are those on the line, headers and
deflated bodies; what comes over the web socket is counted apart. The files that have Vega, Plotly or maps in them are
looked for by what is in them, not by their names.
"""

import re
import sys
from collections import defaultdict
from typing import Any, Final

from playwright.sync_api import Browser

from tests.serving import browsed

_PAGES: Final = ("", "drift")
_SETTLED_MS: Final = 12_000
_CHARTS: Final = re.compile(r"vegaEmbed|getScaleComponent|Plotly\.newPlot|plotly\.js|export function moved\(at, step")


def first_view(browser: Browser, address: str) -> tuple[dict[str, int], int, dict[str, str]]:
    """Bytes by file; bytes over the web socket; the scripts' texts."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    watched = context.new_cdp_session(page)
    watched.send("Network.enable")
    names, sizes, texts, frames = dict[str, str](), defaultdict[str, int](int), dict[str, str](), [0]

    def asked(event: Any) -> None:
        names[event["requestId"]] = event["request"]["url"].removeprefix(address.rpartition("/")[0]).split("?")[0]

    def ended(event: Any) -> None:
        sizes[names.get(event["requestId"], "?")] += int(event["encodedDataLength"])

    def framed(event: Any) -> None:
        frames[0] += len(event["response"]["payloadData"]) * 3 // 4  # a frame is written in base 64

    watched.on("Network.requestWillBeSent", asked)
    watched.on("Network.loadingFinished", ended)
    watched.on("Network.webSocketFrameReceived", framed)
    page.goto(address)
    page.wait_for_timeout(_SETTLED_MS)
    for request, name in names.items():
        if name.endswith(".js"):
            texts[name] = watched.send("Network.getResponseBody", {"requestId": request})["body"]
    context.close()
    return dict(sizes), frames[0], texts


def main() -> None:
    """Print every file of each page, the largest first."""
    with browsed() as (app, browser):
        for name in sys.argv[1:] or _PAGES:
            sizes, socket, texts = first_view(browser, f"{app.address}/{name}")
            for file, size in sorted(sizes.items(), key=lambda entry: -entry[1]):
                print(f"{size:>9} {file}")
            found = [file for file, text in texts.items() if _CHARTS.search(text)]
            print(f"{sum(sizes.values()):>9} /{name}: {len(sizes)} files; over the web socket {socket}")
            print(f"          of Vega, Plotly and maps: {', '.join(found) or 'none'}\n")


if __name__ == "__main__":
    main()
