"""The arrows in the plane as HTML that nothing moves: what `web/arrows/drawing.js` would build, in a state.

* `plane(result)`: the finding, the dial, both sides with their arrows and bars, in the classes of `arrows/arrows.css`.

The shorter half of a side is 100 units wide or high.
"""

import math
from dataclasses import dataclass
from html import escape
from typing import Final

from qkdemo.labs.arrows import N_KEYS, Result, explain, percent, word_of
from qkdemo.labs.arrows.lab import Side
from qkdemo.messages import say
from qkdemo.notation import signs

_SHOWN: Final = (-1.0, 3.0)  # decades that the dial reaches
_REACH, _RING = 2.6, 0.68  # lengths from the centre to the edge of the plain side; the other side's circle
_WIDE, _HIGH = 105, 82  # where an arrow is cut
_QUERY: Final = -1  # its place among the arrows
_EDGE: Final = 116  # beyond which a label is not seen on a phone
_HEAD, _GAP, _LETTER = 9, 10.5, 0.56


def plane(result: Result, *, lecture: bool = False) -> str:
    """The exhibit's HTML."""
    settings = result.settings
    done = (math.log10(settings.scale) - _SHOWN[0]) / (_SHOWN[1] - _SHOWN[0])
    sides = "".join(
        _side(role, side, result, 20 if lecture else 11)
        for role, side in (("plain", result.plain), ("norm", result.twin))
    )
    more = "".join(f"<button>{escape(say(f'arrows.ui.{name}'))}</button>" for name in ("turn", "infinity", "again"))
    return (
        f'<section class="arrows{" lecture" if lecture else ""}"><p class="finding">{escape(explain(result)[0])}</p>'
        f'<div class="dial"><button class="play">{escape(say("arrows.ui.play"))}</button>'
        f'<span class="label">{escape(say("arrows.ui.scale"))}</span>'
        f'<input type="range" min="0" max="1000" value="{1000 * min(1.0, max(0.0, done)):.0f}">'
        f'<span class="reading">× {_short(settings.scale)}</span></div>'
        f'<div class="sides">{sides}</div><div class="more">{more}</div>'
        f'<p class="hint">{escape(say("arrows.ui.hint"))}</p></section>'
    )


@dataclass(frozen=True)
class _Arrow:
    """One arrow as it is drawn."""

    word: str
    length: float  # in units
    angle: float
    thick: float
    opacity: float
    name: str  # its class

    def drawn(self, font: int, taken: list[tuple[float, float, float]]) -> str:
        dx, dy = math.cos(math.radians(self.angle)), -math.sin(math.radians(self.angle))
        most = min(_WIDE / max(1e-9, abs(dx)), _HIGH / max(1e-9, abs(dy)))
        shown = min(self.length, most)
        x, y = dx * shown, dy * shown
        head = 0.0 if self.length > most else min(_HEAD + self.thick * 0.8, shown)
        bx, by, nx, ny = x - dx * head, y - dy * head, -dy * head * 0.45, dx * head * 0.45
        return (
            f'<g class="arrow {self.name}"><line x2="{bx + dx:.1f}" y2="{by + dy:.1f}" '
            f'stroke-width="{self.thick:.1f}" opacity="{self.opacity:.2f}"/>'
            f'<polygon points="{x:.1f},{y:.1f} {bx + nx:.1f},{by + ny:.1f} {bx - nx:.1f},{by - ny:.1f}"/>'
            f"{_label(self.word, (x, y), (dx, dy), font, taken)}</g>"
        )


def _side(role: str, side: Side, result: Result, font: int) -> str:
    settings, shares = result.settings, side.shares[result.at].tolist()
    known = not any(math.isnan(share) for share in shares)
    top = shares.index(max(shares)) if known else -1

    def length(own: float) -> float:
        return own * settings.scale * 100 / _REACH if role == "plain" else 100 * _RING * (own > 0)

    arrows = dict[int, _Arrow]()
    for at, (own, angle) in enumerate(settings.keys):
        share, strong = shares[at] if known else 0.0, "strong" if at == top else ""
        faint = 0.35 + 0.65 * math.sqrt(share)
        arrows[at] = _Arrow(word_of(at), length(own), angle, 1 + 3.8 * share, faint, strong)
    own, angle = settings.query
    asks = say("arrows.ui.query_label", name=say("arrows.word.query"))
    arrows[_QUERY] = _Arrow(asks, length(own), angle, 2.8, 1.0, "query")
    taken = list[tuple[float, float, float]]()  # the one that takes most is named first
    drawn = {at: arrows[at].drawn(font, taken) for at in sorted(arrows, key=lambda at: (at != top, at == _QUERY))}
    ring = "" if role == "plain" else f'<circle class="ring" r="{100 * _RING:g}"/>'
    counted = say("arrows.ui.no_shares")
    if known:
        counted = say("arrows.ui.counting", counting=_short(round(float(side.counting[result.at]), 1)), keys=N_KEYS)
    return (
        f'<figure class="side {role}"><figcaption><p class="title">{escape(say(f"arrows.ui.{role}_title"))}</p>'
        f'<p class="subtitle">{escape(say(f"arrows.ui.{role}_subtitle"))}</p></figcaption>'
        f'<svg class="plane" viewBox="-100 -100 200 200">{ring}{"".join(drawn[at] for at in arrows)}</svg>'
        f'<div class="bars"><p class="subtitle count">{escape(counted)}</p>'
        f'<div class="row">{"".join(_bar(at, share, top) for at, share in enumerate(shares))}</div></div></figure>'
    )


def _bar(at: int, share: float, top: int) -> str:
    known = not math.isnan(share)
    return (
        f'<div class="bar{" strong" if at == top else ""}"><span class="word">{escape(word_of(at))}</span>'
        f'<span class="share">{escape(percent(share)) if known else "NaN"}</span>'
        f'<span class="room"><i style="height:{100 * share if known else 0:.1f}%"></i></span></div>'
    )


def _label(
    word: str, tip: tuple[float, float], to: tuple[float, float], font: int, taken: list[tuple[float, float, float]]
) -> str:
    """It stands beyond its tip, and steps aside for those that stand already."""
    anchor = "start" if to[0] > 0.35 else "end" if to[0] < -0.35 else "middle"
    x, y = tip[0] + to[0] * _GAP, tip[1] + to[1] * _GAP
    long, line = (len(word) + 1) * _LETTER * font, 1.2 * font
    left = x - {"start": 0.0, "middle": long / 2, "end": long}[anchor]
    for _ in range(6):
        if not any(left < right and left + long > start and abs(y - at) < line for start, right, at in taken):
            break
        y += line / 2 if to[1] >= 0 else -line / 2
    y = max(y, 0.7 * line - 100)
    x += min(0.0, _EDGE - left - long) - min(0.0, _EDGE + left)
    taken.append((left, left + long, y))
    return f'<text x="{x:.1f}" y="{y + 0.35 * font:.1f}" text-anchor="{anchor}">{escape(word)}</text>'


def _short(x: float) -> str:
    """As `arrows/words.js` writes a number."""
    text = f"{x:.{0 if abs(x) >= 100 else 1 if abs(x) >= 10 else 2}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace(".", signs().get("decimal", "."))
