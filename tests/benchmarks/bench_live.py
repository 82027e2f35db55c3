"""How smoothly a live curve grows: `python -m tests.benchmarks.bench_live [steps per second]`.

A browser watches a small run at that pace, 50 by default. Printed are, of the same seconds: steps that came, pictures
that showed a new step, the longest time without one, frames that the browser had, and the processor time that its page
took for drawing. A busy machine has fewer frames: the ratio of pictures to frames, or to steps, is what compares.
"""

import sys
from typing import Any

from tests.benchmarks.printing import head, line
from tests.serving import browsed

SECONDS = 10
RUN = "n_layers=1&n_heads=1&d_head=8&n_keys=8&batch=2&steps=3000&seed=77"
BEGUN = """() => { const find = (root) => [...root.querySelectorAll('*')].some((node) =>
  (node.matches('.reading') && Number(node.textContent) > 50) || (node.shadowRoot && find(node.shadowRoot)));
  return find(document); }"""
WATCH = """async (ms) => {
  const find = (root) => { for (const node of root.querySelectorAll('*')) {
    if (node.matches('.reading')) return node;
    const inner = node.shadowRoot && find(node.shadowRoot); if (inner) return inner; } };
  const node = find(document), begun = performance.now(), first = Number(node.textContent);
  let frames = 0, pictures = 0, seen = node.textContent, at = begun, longest = 0, now = begun;
  while (now - begun < ms) {
    now = await new Promise(requestAnimationFrame);
    frames += 1;
    if (node.textContent === seen) continue;
    pictures += 1;
    longest = Math.max(longest, now - at);
    [seen, at] = [node.textContent, now];
  }
  return { seconds: (now - begun) / 1000, steps: Number(seen) - first, pictures, longest, frames };
}"""


def watched(pace: int) -> dict[str, Any]:
    """What a browser saw of a run at that pace, a second after it began."""
    with browsed() as (app, browser):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"{app.address}/training?{RUN}&speed={pace}")
        page.wait_for_function(BEGUN)
        cdp = page.context.new_cdp_session(page)
        cdp.send("Performance.enable")

        def spent() -> float:
            told = cdp.send("Performance.getMetrics")["metrics"]
            return float(next(one["value"] for one in told if one["name"] == "ScriptDuration"))

        before = spent()
        found: dict[str, Any] = page.evaluate(WATCH, 1000 * SECONDS)
        found["script"] = spent() - before
    return found


def main(words: list[str]) -> None:
    """Prints it."""
    pace = int(words[0]) if words else 50
    found = watched(pace)
    seconds, pictures, frames, script = (found[name] for name in ("seconds", "pictures", "frames", "script"))
    head(f"A live curve at {pace} steps/s, watched for {seconds:.0f} s")
    line("steps that came", found["steps"] / seconds, unit="/s")
    line("pictures with a new step, baseline: frames", pictures / seconds, frames / seconds, "/s")
    line("longest time without one", found["longest"])
    line("scripts, for each picture", 1000 * script / max(pictures, 1))


if __name__ == "__main__":
    main(sys.argv[1:])
