"""Keys that press the page's buttons: for whoever presents, and for whoever goes through a track without a mouse.

* `keys()`: puts them on the page, at its end: by then all that a key presses is there. PageDown and PageUp are what a
  presenter's remote control sends. In a lecture they alone carry it: one shows the answer and then goes on, the other
  takes it back and then goes back; digits choose among the answers of an open question.
"""

from collections.abc import Sequence
from itertools import count
from typing import Final

from streamlit.runtime import Runtime

from qkdemo.messages import language
from qkdemo.web.components import Component
from qkdemo.web.track.lesson import current

PAGE_DOWN: Final = "PageDown"
PAGE_UP: Final = "PageUp"
KEYS: Final[dict[str, Sequence[str]]] = {  # of the buttons that a key names it presses the first that is there
    PAGE_DOWN: ("lesson:next",),
    PAGE_UP: ("lesson:back",),
    "s": ("lesson:show",),
    "l": ("lecture:switch",),
}
_IN_A_LECTURE: Final[dict[str, Sequence[str]]] = {
    PAGE_DOWN: ("lesson:show", "lesson:next"),
    PAGE_UP: ("lesson:conceal", "lesson:before"),
    "0": ("lesson:reset",),
    "q": ("lecture:code",),
}
_HERE: Final = {"p": ["pointer"], "m": ["more"], "n": ["notes"]}  # what the browser does by itself
_CHOICES: Final = "lesson:column"
_RUNS: Final = count()
_COMPONENT: Final = Component(
    "presenter", html="<div class='presenter'><span class='dot'></span></div>"
)  # an empty <i> would fetch 135 KiB of italics


def keys(*, lecture: bool) -> None:
    """Listen to the keys; the pointer, and what a stop has besides, are there in a lecture alone."""
    if not Runtime.exists():
        return
    known = KEYS | _IN_A_LECTURE if lecture else KEYS
    classes = {key: [_class(button) for button in buttons] for key, buttons in known.items()}
    lesson = current()
    shown = lesson is not None and lesson.said.shown
    place = f"{lesson.track}/{lesson.stop.name}/{int(shown)}" if lesson is not None else "//0"
    data = {
        "keys": classes | (_HERE if lecture else {}),
        "lecture": lecture,
        "run": next(_RUNS),
        "lang": language.get(),
    }
    data |= {"place": place, "told": place if shown else ""}
    _COMPONENT.mount(data | {"choices": _class(_CHOICES) if lecture else ""}, key="presenter")


def _class(button: str) -> str:
    return "st-key-" + button.replace(":", "-")
