"""Which pages there are, in the order of the navigation.

A lab has a page by being in `labs.registry`; its script lies in `pages/`. Other pages are named here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qkdemo import SERVED
from qkdemo.labs.lab import Lab
from qkdemo.labs.registry import LABS

HOME: Final = "home"  # where one arrives
END: Final = "end"  # of a track
FOLDER: Final = SERVED / "pages"


@dataclass(frozen=True)
class Entry:
    """One page: its name in the URL and of its script, its icon, the lab behind it, and its menu, if in one.

    `names_track`: it reads `track` in the link itself, so that no track stands beside it. `listed`: whether the
    navigation names it.
    """

    name: str
    icon: str
    lab: Lab | None = None
    menu: str = ""
    names_track: bool = False
    listed: bool = True

    @property
    def script(self) -> Path:
        """What Streamlit runs."""
        return FOLDER / f"{self.name}.py"


def _of_labs(*, in_menu: bool) -> list[Entry]:
    return [Entry(lab.name, lab.icon, lab, lab.menu) for lab in LABS.values() if bool(lab.menu) == in_menu]


PAGES: Final[Mapping[str, Entry]] = {
    entry.name: entry
    for entry in (
        Entry(HOME, ":material/home:"),
        Entry("tracks", ":material/school:"),
        *_of_labs(in_menu=False),
        Entry("diagnose", ":material/stethoscope:"),
        Entry("claims", ":material/fact_check:"),
        *_of_labs(in_menu=True),
        Entry("map", ":material/grid_on:", menu="contract"),
        Entry("quiz", ":material/quiz:", names_track=True),
        Entry("glossary", ":material/menu_book:"),
        Entry("notes", ":material/speaker_notes:", names_track=True, listed=False),
        Entry(END, ":material/flag:", names_track=True, listed=False),
    )
}
