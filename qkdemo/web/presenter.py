"""Keys that press the page's buttons: for whoever presents, and for whoever goes through a track without a mouse.

* `keys()`: puts them on the page. PageDown and PageUp are what a presenter's remote control sends.
"""

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
_COMPONENT: Final = Component("presenter", html="<div class='presenter'></div>")


def keys(*, lecture: bool) -> None:
    """Listen to the keys; the pointer is there in a lecture alone."""
    if not Runtime.exists():
        return
    known = KEYS | _IN_A_LECTURE if lecture else KEYS
    classes = {key: "st-key-" + button.replace(":", "-") for key, button in known.items()}
    _COMPONENT.mount({"keys": classes | (_POINTER if lecture else {}), "lecture": lecture}, key="presenter")
