"""A hand that does anything at all to the arrows, and what must hold whatever it did.

* `Hand(page, seed)`: `act()` does one thing, drawn at random: an arrow dragged anywhere, keys, the dial, a button;
* `faults(page)`: what is wrong with the drawing now; nothing, if all is well.
"""

import random
from collections.abc import Callable
from typing import Final

from playwright.sync_api import Page

ARROWS: Final = ".side.plain .arrow, .side.norm .arrow"
KEYS: Final = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Shift+ArrowLeft", "Shift+ArrowRight")
# Numbers that are none in the drawing, tips that left it, shares that are not whole, and a twin that is undefined.
_FAULTS: Final = """() => {
  const find = (root) => root.querySelector('.arrows .sides')?.closest('.arrows') ??
    [...root.querySelectorAll('*')].map((node) => node.shadowRoot && find(node.shadowRoot)).find(Boolean);
  const arrows = find(document);
  if (!arrows) return ['no arrows'];
  const found = [];
  for (const side of arrows.querySelectorAll('.side')) {
    const drawing = side.querySelector('svg').getBoundingClientRect();
    for (const node of side.querySelectorAll('svg *')) for (const { name, value } of node.attributes)
      if (/NaN|Infinity|undefined/.test(value) && name !== 'aria-valuetext') found.push(`${name}=${value}`);
    for (const grip of side.querySelectorAll('.grip')) {
      const { x, y, width, height } = grip.getBoundingClientRect();
      const [left, top] = [x + width / 2 - drawing.x, y + height / 2 - drawing.y];
      if (left < 0 || top < 0 || left > drawing.width || top > drawing.height) found.push(`a tip at ${left}, ${top}`);
    }
    const shares = [...side.querySelectorAll('.share')].map((share) => share.textContent);
    const lost = shares.filter((text) => text === 'NaN').length;
    if (lost && (lost < shares.length || side.classList.contains('norm'))) found.push(`shares ${shares}`);
    const heights = [...side.querySelectorAll('.room i')].map((bar) => parseFloat(bar.style.height));
    const whole = heights.reduce((sum, height) => sum + height, 0);
    if (Math.abs(whole - (lost ? 0 : 100)) > 1e-3) found.push(`bars of ${whole} % together`);
  }
  return found; }"""


class Hand:
    """Does one thing after another; the same seed does the same things in the same window."""

    def __init__(self, page: Page, seed: int) -> None:
        self._page, self._random = page, random.Random(seed)
        self.did: list[str] = []

    def act(self) -> None:
        """One thing."""
        kinds: list[Callable[[], str]] = [self._drag, self._keys, self._turn_dial, self._press]
        (act,) = self._random.choices(kinds, weights=[8, 3, 1, 1])
        self.did.append(act())

    def _drag(self) -> str:
        arrows, draw = self._page.locator(ARROWS), self._random
        at = draw.randrange(arrows.count())
        box = arrows.nth(at).locator(".grip").bounding_box()
        size = self._page.viewport_size
        assert box
        assert size
        mouse = self._page.mouse
        mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        mouse.down()
        for _ in range(draw.randint(1, 3)):  # also far beyond the drawing
            mouse.move(draw.uniform(0, size["width"]), draw.uniform(0, size["height"]), steps=draw.randint(1, 12))
        mouse.up()
        return f"drag {at}"

    def _keys(self) -> str:
        arrows, draw = self._page.locator(".side.plain .arrow"), self._random
        at, key = draw.randrange(arrows.count()), draw.choice(KEYS)
        arrows.nth(at).focus()
        for _ in range(draw.randint(1, 30)):
            self._page.keyboard.press(key)
        return f"{key} on {at}"

    def _turn_dial(self) -> str:
        share = self._random.random()
        self._page.locator(".arrows input[type=range]").evaluate(
            """(dial, share) => {
            dial.value = Number(dial.min) + share * (dial.max - dial.min);
            dial.dispatchEvent(new Event('input', {bubbles: true})); }""",
            share,
        )
        return f"dial to {share:.3f}"

    def _press(self) -> str:
        name = self._random.choice(["play", "turn", "infinity", "again"])
        self._page.locator(f".arrows button.{name}").dispatch_event("click")
        return name


def faults(page: Page) -> list[str]:
    """What is wrong with the drawing now."""
    found: list[str] = page.evaluate(_FAULTS)
    return found
