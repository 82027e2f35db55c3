"""Types and shapes are checked at every call, by beartype; jaxtyping only keeps what a call’s shapes have to agree on.

jaxtyping’s decorator, given a type checker, checks the arguments of a call twice, for longer messages. That takes
longer than a small function does; its older form, around a function that beartype has decorated, checks them once.
"""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

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
        return _jaxtyped(typechecker(made), typechecker=None)

    return decorated
