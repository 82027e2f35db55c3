"""What a widget asks of the session before it is drawn.

* `look_up_alone()`: lets a selectbox and a radio look up their own value alone.

Each of Streamlit's puts together all that the session holds to read one value: with twenty dials a tenth of a run.
"""

from typing import Any

from streamlit.elements.widgets import radio, selectbox
from streamlit.runtime.state import get_session_state


class _Session:
    """As much of the session as these widgets ask for."""

    @property
    def filtered_state(self) -> Any:
        """What answers `key in …` and `…[key]`."""
        return get_session_state()


def look_up_alone() -> None:
    """Put it before these widgets."""
    for module in (radio, selectbox):
        vars(module)["get_session_state"] = _Session
