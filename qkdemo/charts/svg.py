"""A drawing as SVG: text stays text, and nothing is fetched.

* `Drawing(width, height)`: takes lines, boxes, polygons, paths and words; `html(title, text)` is the whole of it;
* `COLOURS`: the colour of each role on paper, `DASHES`: its dash; `mixed(one, other, share)`;
* `text_width(words)`: about how wide words are, for keeping them apart.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final, TypeAlias

CAPTION: Final = 9.5  # size of words in a drawing
PAPER, INK = "#FFFFFF", "#14171C"
_AVERAGE, _THIN, _BOLD = 0.56, 0.31, 1.09  # width of a letter, in its size, as in Arial: wider than most
_NARROW: Final = frozenset("iljtfr.,:;|!'()[]1· \u202f")

Point: TypeAlias = tuple[float, float]
Style: TypeAlias = str | float


def mixed(one: str, other: str, share: float) -> str:
    """The colour that far on the way from `one` to `other`."""
    channels = ((int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in channels)


MUTED: Final = mixed(PAPER, INK, 0.7)
RULE: Final = mixed(PAPER, INK, 0.5)
COLOURS: Final = {
    "plain": "#C2410C",
    "norm": "#0067B0",
    "bound": "#6B6B70",
    "other": mixed(PAPER, INK, 0.62),
    "left": INK,
    "right": "#A03E78",
}
DASHES: Final = {"plain": "6 4", "norm": "", "bound": "2 3", "other": "9 3 2 3", "left": "", "right": "11 4"}


def text_width(words: str, *, bold: bool = False) -> float:
    """About how wide `words` are."""
    narrow = sum(letter in _NARROW for letter in words)
    capitals = sum(letter.isupper() for letter in words)
    wide = _AVERAGE * (len(words) - narrow) + _THIN * narrow + (0.72 - _AVERAGE) * capitals
    return CAPTION * wide * (_BOLD if bold else 1)


class Drawing:
    """What is drawn so far, in the order in which it covers what was there.

    `style` is SVG's own: stroke, stroke_width, fill, font_weight and so on. Nothing has an outline or, but for words,
    a filling unless it says so.
    """

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def line(self, points: Sequence[Point], **style: Style) -> None:
        """A run of straight lines."""
        self._add("polyline", {"points": _places(points), "fill": "none", **style})

    def polygon(self, points: Sequence[Point], **style: Style) -> None:
        """A closed shape."""
        self._add("polygon", {"points": _places(points), "fill": "none", **style})

    def box(self, corner: Point, size: Point, **style: Style) -> None:
        """A rectangle."""
        placed = {"x": corner[0], "y": corner[1], "width": size[0], "height": size[1]}
        self._add("rect", {**placed, "fill": "none", **style})

    def dot(self, x: float, y: float, radius: float, **style: Style) -> None:
        """A circle."""
        self._add("circle", {"cx": x, "cy": y, "r": radius, **style})

    def path(self, data: str, **style: Style) -> None:
        """Whatever `data` says in SVG's own words."""
        self._add("path", {"d": data, "fill": "none", **style})

    def text(self, x: float, y: float, words: str, **style: Style) -> None:
        """Words. `halo`: with paper around them, so that a line behind does not cross them out; `turn`: upwards."""
        if not words:
            return
        if style.pop("halo", ""):
            style |= {"stroke": PAPER, "stroke_width": 3, "paint_order": "stroke"}
        if style.pop("turn", ""):
            style["transform"] = f"rotate(-90 {x:.1f} {y:.1f})"
        self._add("text", {"x": x, "y": y, "fill": INK, **style}, escape(words))

    def html(self, title: str, told: str) -> str:
        """The drawing, which says itself to those who do not see it: its title, and what it shows."""
        width, height, told = round(self.width), round(self.height), escape(told)
        return (
            f'<svg role="img" aria-label="{escape(title)}: {told}" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-size="{CAPTION:g}"><title>{escape(title)}</title><desc>{told}</desc>'
            f"{''.join(self._parts)}</svg>"
        )

    def _add(self, tag: str, attributes: Mapping[str, Style], inner: str = "") -> None:
        written = "".join(
            f' {name.replace("_", "-")}="{value if isinstance(value, str) else f"{value:.4g}"}"'
            for name, value in attributes.items()
            if value != ""
        )
        self._parts.append(f"<{tag}{written}>{inner}</{tag}>" if inner else f"<{tag}{written}/>")


def _places(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
