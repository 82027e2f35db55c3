"""The style of the first picture: that of the exhibits, in the colours of both themes.

* `sheet(kind)`: all of it, without comments; what stands for a canvas there has the class of that name.

The look is the system's until `data-look` of the picture says `light` or `dark`, as the visitor may have chosen.
"""

import re
from functools import cache
from pathlib import Path
from typing import Final

from qkdemo.charts.theme import DARK, LIGHT, Theme, mixed

_HERE: Final = Path(__file__).parent
_OURS: Final = _HERE / "first.css"
_WEB: Final = _HERE.parent
_ROLES: Final = ("plain", "norm", "bound", "other", "left", "right")


@cache
def sheet(kind: str) -> str:
    """The text of a `style` for an `exhibit`, or for the `arrows`."""
    exhibit = re.sub(r"\bcanvas\b", ".canvas", (_WEB / kind / f"{kind}.css").read_text(encoding="utf-8"))
    light, dark = _colours(LIGHT), _colours(DARK)
    colours = (
        f":host{{color-scheme:light;{light}}}"
        f"@media (prefers-color-scheme:dark){{:host{{color-scheme:dark;{dark}}}}}"
        f':host([data-look="light"]){{color-scheme:light;{light}}}'
        f':host([data-look="dark"]){{color-scheme:dark;{dark}}}'
    )
    return colours + _short(exhibit + _OURS.read_text(encoding="utf-8"))


def _colours(theme: Theme) -> str:
    found = {
        "st-background-color": theme.paper,
        "st-secondary-background-color": theme.second,
        "st-text-color": theme.ink,
        "st-heading-color": theme.ink,
        "muted": theme.muted,
        "grid": theme.grid,
        "rule": mixed(theme.paper, theme.ink, 0.5),
        "sidebar": theme.aside,
        **{role: theme.role(role) for role in _ROLES},
        "st-primary-color": theme.primary,
        "st-font": '"Source Sans",sans-serif',
        "st-heading-font": '"Source Sans",sans-serif',
    }
    return "".join(f"--{name}:{value};" for name, value in found.items())


def _short(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    return re.sub(r"\s*([{};,>])\s*", r"\1", text).replace(": ", ":").replace(";}", "}")
