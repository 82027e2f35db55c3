"""Keys that press the page's buttons: for whoever presents, and for whoever goes through a track without a mouse.

* `keys()`: puts them on the page, at its end: by then all that a key presses is there. PageDown and PageUp are what a
  presenter's remote control sends. In a lecture digits choose among the answers of an open question.
"""

from itertools import count
from typing import Final

from streamlit.runtime import Runtime

from qkdemo.web.components import Component

KEYS: Final = {
    "PageDown": "lesson:next",
    "PageUp": "lesson:back",
    "s": "lesson:show",
    "l": "lecture:switch",
}
_IN_A_LECTURE: Final = {"0": "lesson:reset", "q": "lecture:code"}
_POINTER: Final = {"p": "pointer"}
_ANSWERS: Final = KEYS["s"]
_CHOICES: Final = "lesson:column"
_RUNS: Final = count()
_COMPONENT: Final = Component("presenter", html="<div class='presenter'></div>")


def keys(*, lecture: bool) -> None:
    """Listen to the keys; the pointer is there in a lecture alone."""
    if not Runtime.exists():
        return
    known = KEYS | _IN_A_LECTURE if lecture else KEYS
    classes = {key: _class(button) for key, button in known.items()} | (_POINTER if lecture else {})
    named = {"answers": _class(_ANSWERS), "code": _class(_IN_A_LECTURE["q"]), "leave": _class(KEYS["l"])}
    named |= {"choices": _class(_CHOICES) if lecture else ""}
    _COMPONENT.mount({"keys": classes, "lecture": lecture, "run": next(_RUNS), **named}, key="presenter")


def _class(button: str) -> str:
    return "st-key-" + button.replace(":", "-")
