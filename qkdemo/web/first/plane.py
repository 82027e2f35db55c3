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
from qkdemo.web.first.labels import Box, Pair, Tip, beside_tip

_SHOWN: Final = (-1.0, 3.0)  # decades that the dial reaches
_REACH, _RING = 2.6, 0.68  # lengths from the centre to the edge of the plain side; the other side's circle
_WIDE, _HIGH = 105, 82  # where an arrow is cut
_QUERY: Final = -1  # its place among the arrows
_SEEN: Final = (116, 100)  # half of what is seen of it on a phone
_HEAD, _AWAY = 9, 5.5
_LETTER, _SPACE, _LINE = 0.5, 0.3, 1.2  # in font sizes


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

    @property
    def most(self) -> float:
        """The length at which it is cut at the edge."""
        dx, dy = self.to
        return min(_WIDE / max(1e-9, abs(dx)), _HIGH / max(1e-9, abs(dy)))

    @property
    def to(self) -> Pair:
        """Its direction, y growing downwards."""
        return math.cos(math.radians(self.angle)), -math.sin(math.radians(self.angle))

    @property
    def tip(self) -> Tip:
        """Where it ends on the drawing."""
        shown = min(self.length, self.most)
        return Tip((self.to[0] * shown, self.to[1] * shown), self.to)

    def drawn(self, font: int, word: Box) -> str:
        (dx, dy), (x, y) = self.to, self.tip.at
        head = 0.0 if self.length > self.most else min(_HEAD + self.thick * 0.8, self.length)
        bx, by, nx, ny = x - dx * head, y - dy * head, -dy * head * 0.45, dx * head * 0.45
        return (
            f'<g class="arrow {self.name}"><line x2="{bx + dx:.1f}" y2="{by + dy:.1f}" '
            f'stroke-width="{self.thick:.1f}" opacity="{self.opacity:.2f}"/>'
            f'<polygon points="{x:.1f},{y:.1f} {bx + nx:.1f},{by + ny:.1f} {bx - nx:.1f},{by - ny:.1f}"/>'
            f'<text x="{word.at[0]:.1f}" y="{word.at[1] + 0.35 * font:.1f}">{escape(self.word)}</text></g>'
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
    words = _words(arrows, top, font)
    drawn = "".join(arrow.drawn(font, words[at]) for at, arrow in arrows.items())
    ring = "" if role == "plain" else f'<circle class="ring" r="{100 * _RING:g}"/>'
    counted = say("arrows.ui.no_shares")
    if known:
        counted = say("arrows.ui.counting", counting=_short(round(float(side.counting[result.at]), 1)), keys=N_KEYS)
    return (
        f'<figure class="side {role}"><figcaption><p class="title">{escape(say(f"arrows.ui.{role}_title"))}</p>'
        f'<p class="subtitle">{escape(say(f"arrows.ui.{role}_subtitle"))}</p></figcaption>'
        f'<svg class="plane" viewBox="-100 -100 200 200">{ring}{drawn}</svg>'
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


def _words(arrows: dict[int, _Arrow], top: int, font: int) -> dict[int, Box]:
    """Where the arrows' words stand; the one that takes most is named first."""
    words = dict[int, Box]()
    tips = [arrow.tip for arrow in arrows.values()]
    for at in sorted(arrows, key=lambda at: (at != top, at == _QUERY)):
        half = (len(arrows[at].word) * _LETTER + _SPACE) * font / 2, _LINE * font / 2
        words[at] = beside_tip(arrows[at].tip, half, words=list(words.values()), arrows=tips, size=_SEEN, away=_AWAY)
    return words


def _short(x: float) -> str:
    """As `arrows/words.js` writes a number."""
    text = f"{x:.{0 if abs(x) >= 100 else 1 if abs(x) >= 10 else 2}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace(".", signs().get("decimal", "."))
