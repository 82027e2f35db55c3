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
    "0": "lesson:reset",
    "l": "lecture:switch",
    "q": "lecture:code",
}
_POINTER: Final = {"p": "pointer"}
_COMPONENT: Final = Component("presenter", html="<div class='presenter'></div>")


def keys(*, lecture: bool) -> None:
    """Listen to the keys; the pointer is there in a lecture alone."""
    if not Runtime.exists():
        return
    classes = {key: "st-key-" + button.replace(":", "-") for key, button in KEYS.items()}
    _COMPONENT.mount({"keys": classes | (_POINTER if lecture else {}), "lecture": lecture}, key="presenter")
