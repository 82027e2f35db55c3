"""Types and shapes are checked at every call, by beartype; jaxtyping only keeps what a call’s shapes have to agree on.

jaxtyping’s own decorator also binds the arguments of a call and checks them twice, for longer messages. That takes
longer than a small function does.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_args

import jaxtyping

_jaxtyped = jaxtyping.jaxtyped


def checked_once() -> None:
    """What jaxtyping’s import hook decorates from now on is decorated by `checked`."""
    jaxtyping.jaxtyped = checked  # type: ignore[assignment]


def checked(*, typechecker: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Decorates a function or a dataclass, as `jaxtyping.jaxtyped` does."""

    def decorated(made: Any) -> Any:
        if dataclasses.is_dataclass(made):
            made.__init__ = decorated(made.__init__)  # type: ignore[misc]
            return made
        if not inspect.isfunction(made) or inspect.isgeneratorfunction(made):
            return _jaxtyped(made, typechecker=typechecker)
        inner = typechecker(made)
        return _agreeing(inner) if any(map(_has_shape, made.__annotations__.values())) else inner

    return decorated


def _agreeing(function: Any) -> Any:
    """The function, whose shapes have to agree within a call; those of another call are others."""

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        with _jaxtyped("context"):
            return function(*given, **named)

    return called


def _has_shape(hint: Any) -> bool:
    """Whether a shape is in it; a hint that is still a text may have one."""
    if isinstance(hint, str) or (inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray)):
        return True
    return any(map(_has_shape, get_args(hint)))
