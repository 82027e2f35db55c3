"""What a visitor asked for has come: it gets the focus, and on a phone it is brought into view.

* `arrive_at(key, token)`: the heading, or else the paragraph, in the container `key`; once for each `token`.

Streamlit keeps the place that was scrolled to, and drops the focus with the button that was pressed.
"""

from typing import Final

from streamlit.runtime import Runtime

from qkdemo.web.components import Component

_COMPONENT: Final = Component("arrival", html="<span class='arrival'></span>")


def arrive_at(key: str, token: str) -> None:
    """Go to what stands in the container `key`, unless that was done for this `token`."""
    if Runtime.exists():
        _COMPONENT.mount({"within": "st-key-" + key.replace(":", "-"), "token": token}, key=f"{key}:arrival")
