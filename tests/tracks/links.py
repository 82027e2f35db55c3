"""Which words of a text lead to the glossary, kept to be looked at; as a program: writes them anew.

* `links()`: text → its words that lead there. The stops', the points' and “how this is computed”, whole; of what labs
  say, the words that have another sense as well (`DOUBTFUL`).
"""

import json
import re
from pathlib import Path
from typing import Final

from qkdemo.messages import LANGUAGES
from qkdemo.tracks.glossary import marked
from qkdemo.tracks.prose import words_of

KEPT: Final = Path(__file__).parent / "links.json"
WHOLE: Final = re.compile(r"stop\.\w+\.\w+\.(question|explain)$|point\.\d+$|how\.\w+$")
_NEVER_LINKED: Final = re.compile(
    r"(advice|choice|column|command|diagnose|dial|finding|glossary|input|log|measure|own|page|preset|quiz|report)\."
    r"|.*\.(axis|head|help|panel|table|tile|\w+_help)\b"
)
DOUBTFUL: Final = ("weights", "rows", "share", "γ")


def links() -> dict[str, str]:
    """Text → the words in it that lead to the glossary, in their order."""
    found = {}
    for key, text in LANGUAGES["en"].items():
        leading = [word.text.lower() for word in words_of(marked(text)) if word.term]
        if not WHOLE.match(key):
            leading = [word for word in leading if word in DOUBTFUL and not _NEVER_LINKED.match(key)]
        if leading:
            found[key] = ", ".join(leading)
    return found


if __name__ == "__main__":
    KEPT.write_text(json.dumps(links(), indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
