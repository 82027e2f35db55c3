"""What stands in a cell of the table of models, as it is read: `cell(column, value)`."""

from typing import Any, Final

from qkdemo.messages import has, say
from qkdemo.notation import written


def cell(column: str, value: Any) -> str:
    """A value of a column in words.

    >>> cell("cache", "latent"), cell("default_on", True), cell("softcap", None), cell("epsilon", 1e-6)
    ('a latent', 'yes', '', '1·10⁻⁶')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return say(f"choice.on_by_default.{'yes' if value else 'no'}")
    if isinstance(value, float):
        return written(value)
    keys = (f"choice.{column}.{value}", f"choice.{_DIALS.get(column, column)}.{value}")
    return next((say(key) for key in keys if has(key)), str(value))


_DIALS: Final = {
    "cache": "cached",
    "scale": "scaled",
    "gain": "gain_kind",
    "bias": "biased",
    "rule": "epsilon_stands",
    "cast": "cast_back",
}
