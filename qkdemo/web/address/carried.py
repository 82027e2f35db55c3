"""What a visitor set on one page goes along to the next that is opened by the menu.

* `carry(settings)`: these settings with what was set elsewhere by dials of the same name and kin, where this page
  allows it: the nearest number of its range, and no word that it does not know;
* `set_here(before, after)`: note which dials a visitor turned: a default that nobody touched goes nowhere.
"""

from typing import Final, TypeVar

import streamlit as st

from qkdemo.dials import Dials, Value, declarations

D = TypeVar("D", bound=Dials)
_HELD: Final = "carried"


def carry(settings: D) -> D:
    """`settings` with the values that were set last by dials that mean the same."""
    held = _held(settings)
    fitting = {dial.name: dial.fitting(held[dial.name]) for dial in declarations(type(settings)) if dial.name in held}
    return settings.but(**{name: value for name, value in fitting.items() if value is not None})


def set_here(before: Dials, after: Dials) -> None:
    """Remember every value in which `after` differs from `before`."""
    turned = {name: value for name, value in after.as_dict().items() if value != getattr(before, name)}
    if turned:
        st.session_state[_key(after)] = _held(after) | turned


def _held(settings: Dials) -> dict[str, Value]:
    held: dict[str, Value] = st.session_state.get(_key(settings), {})
    return held


def _key(settings: Dials) -> str:
    return f"{_HELD}.{settings.kin}"
