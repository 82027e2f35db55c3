"""What a widget asks of the session."""

from typing import Any

import pytest
from streamlit.elements.widgets import radio, selectbox
from streamlit.runtime.state import SafeSessionState, SessionState
from streamlit.testing.v1 import AppTest

from qkdemo.web.patched.session import look_up_alone

WIDGETS = """
import streamlit as st
for key in ("free", "held", "empty", "gone"):
    if key == "held": st.session_state[key] = "b"
    if key == "empty": st.session_state[key] = None
    if key != "gone": st.selectbox(key, ["a", "b"], index=0, key=key)
    st.radio(key, ["a", "b"], index=1, key=f"radio {key}")
"""


def values() -> list[Any]:
    page = AppTest.from_string(WIDGETS).run()
    page.radio[0].set_value("a").run()
    assert not page.exception
    return [each.value for each in (*page.selectbox, *page.radio)]


def test_widgets_stand_where_streamlit_puts_them_and_nobody_puts_the_session_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Red when another Streamlit asks for it elsewhere."""
    whole = values()
    asked = list[str]()

    def counted(kind: type[SafeSessionState | SessionState]) -> property:
        put_together = kind.filtered_state

        def found(self: Any) -> Any:
            asked.append(kind.__name__)
            return put_together.__get__(self)

        return property(found)

    for module in (radio, selectbox):  # set back afterwards
        monkeypatch.setattr(module, "get_session_state", vars(module)["get_session_state"])
    for kind in (SafeSessionState, SessionState):
        monkeypatch.setattr(kind, "filtered_state", counted(kind))
    values()
    before = len(asked)
    asked.clear()
    look_up_alone()
    assert values() == whole == ["a", "b", None, "a", "b", "b", "b"]
    assert len(asked) < before
