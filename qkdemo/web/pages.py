"""Which pages there are, in the order of the navigation.

Adding a page is one line here, one script in `pages/` and its sentences in `locale/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from qkdemo.labs import arrows, cache, cost, drift, epsilon, formats, mla, models, placement, rope
from qkdemo.labs.learning_rates import lab as rates
from qkdemo.labs.training import lab as twins

FOLDER: Final = Path(__file__).parents[2] / "pages"


@dataclass(frozen=True)
class Entry:
    """One page: its name in the URL and of its script, its icon, the lab behind it, and its menu, if in one.

    `names_track`: its own dial says `track` in the link, so that no track stands beside it.
    """

    name: str
    icon: str
    lab: ModuleType | None = None
    menu: str = ""
    names_track: bool = False

    @property
    def script(self) -> Path:
        """What Streamlit runs."""
        return FOLDER / f"{self.name}.py"


PAGES: Final[Mapping[str, Entry]] = {
    entry.name: entry
    for entry in (
        Entry("home", ":material/home:"),
        Entry("tracks", ":material/school:"),
        Entry("arrows", ":material/near_me:", arrows),
        Entry("drift", ":material/trending_up:", drift),
        Entry("formats", ":material/memory:", formats),
        Entry("training", ":material/model_training:", twins),
        Entry("sensitivity", ":material/show_chart:", rates),
        Entry("diagnose", ":material/stethoscope:"),
        Entry("claims", ":material/fact_check:"),
        Entry("placement", ":material/compare_arrows:", placement, "contract"),
        Entry("rope", ":material/rotate_right:", rope, "contract"),
        Entry("epsilon", ":material/expand:", epsilon, "contract"),
        Entry("cache", ":material/database:", cache, "contract"),
        Entry("mla", ":material/compress:", mla, "contract"),
        Entry("cost", ":material/timer:", cost, "contract"),
        Entry("models", ":material/table_view:", models, "contract"),
        Entry("quiz", ":material/quiz:", names_track=True),
        Entry("glossary", ":material/menu_book:"),
    )
}
