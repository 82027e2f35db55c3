"""The one palette, for whatever draws without a browser's style sheet: Altair's files, Plotly.

* `LIGHT`, `DARK`: colours as `.streamlit/config.toml` names them, which Streamlit gives to the canvas too;
* `vega_config(theme)`: the same as Vega-Lite takes it, for a file of its own;
* `numbered(spec)`: a spec for a page, its numbers written as in the language that is spoken;
* `mixed(one, other, share)`: a colour between two.

The dashes of the roles stand here, and for the canvas in `web/exhibit/pens/theme.js`: a test holds both to the same.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qkdemo.notation import signs

_HERE: Final = Path(__file__).parents[1]
_CONFIG: Final = (_HERE / "served" if (_HERE / "served").is_dir() else _HERE.parent) / ".streamlit" / "config.toml"
_PLACES: Final = {"plain": 0, "norm": 1, "bound": 2, "right": 4}  # of the roles in the categorical palette
_OTHER: Final = 0.62  # how far a third curve is on the way from paper to text
DASHES: Final[Mapping[str, list[int]]] = {  # pixels on and off
    "plain": [6, 4],
    "norm": [],
    "bound": [2, 3],
    "other": [9, 3, 2, 3],
    "left": [],
    "right": [11, 4],
}
FONT: Final = "sans-serif"  # vl-convert draws no word in a font that it does not have; this one comes with it


def mixed(one: str, other: str, share: float) -> str:
    """The colour that far on the way from `one` to `other`."""
    channels = ((int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in channels)


@dataclass(frozen=True)
class Theme:
    """One mode's colours."""

    primary: str  # of controls
    paper: str
    second: str  # behind what stands apart
    aside: str  # of the sidebar
    ink: str
    categorical: tuple[str, ...]
    sequential: tuple[str, ...]
    diverging: tuple[str, ...]

    def role(self, word: str) -> str:
        """The colour of a role: its own, or one between paper and text."""
        if word == "other":
            return mixed(self.paper, self.ink, _OTHER)
        return self.categorical[_PLACES[word]] if word in _PLACES else self.ink

    def dash(self, word: str) -> list[int]:
        """The dash of a role, in pixels on and off."""
        return DASHES[word] or [1, 0]

    @property
    def muted(self) -> str:
        """Of what is not the point: axes, captions."""
        return mixed(self.paper, self.ink, 0.7)

    @property
    def grid(self) -> str:
        """Of lines behind the numbers."""
        return mixed(self.paper, self.ink, 0.12)


def _read(mode: str) -> Theme:
    found = tomllib.loads(_CONFIG.read_text(encoding="utf-8"))["theme"][mode]
    ramps = (tuple(found[f"chart{name}Colors"]) for name in ("Categorical", "Sequential", "Diverging"))
    papers = (
        found["primaryColor"],
        found["backgroundColor"],
        found["secondaryBackgroundColor"],
        found["sidebar"]["backgroundColor"],
    )
    return Theme(*papers, found["textColor"], *ramps)


LIGHT: Final = _read("light")
DARK: Final = _read("dark")


def numbered(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec without a `config`, or with that of numbers alone."""
    config = _number_config()
    return spec | {"config": config} if config else spec


def _number_config() -> dict[str, Any]:
    found = signs()
    if not found:  # English, whose signs Vega knows
        return {}
    grouping = [3] + [int(found["further"])] * 6
    number = {"decimal": found["decimal"], "thousands": found["group"], "grouping": grouping, "currency": ["", ""]}
    return {"locale": {"number": number}}


def vega_config(theme: Theme, font: str = FONT) -> dict[str, Any]:
    """Vega-Lite's `config`: what Streamlit sets on a page."""
    return {
        **_number_config(),
        "font": font,
        "background": theme.paper,
        "view": {"stroke": None},
        "axis": {
            "labelColor": theme.muted,
            "titleColor": theme.ink,
            "tickColor": theme.muted,
            "domainColor": theme.muted,
            "gridColor": theme.grid,
            "labelFontSize": 12,
            "titleFontSize": 13,
            "titleFontWeight": 600,
        },
        "legend": {"labelColor": theme.muted, "titleColor": theme.ink, "labelFontSize": 12, "titleFontSize": 12},
        "title": {"color": theme.ink, "subtitleColor": theme.muted, "fontSize": 15, "subtitleFontSize": 12},
        "text": {"color": theme.ink},
        "range": {
            "category": list(theme.categorical),
            "ramp": list(theme.sequential),
            "heatmap": list(theme.sequential),
            "diverging": list(theme.diverging),
        },
    }
