"""What was made for one visitor, kept for the next, as far as it takes no more memory than it may.

* `within(room)`: a decorator, as `functools.lru_cache`, but bounded by bytes, with a place for every language;
* `bytes_of(thing)`: what a result, a table or a view takes, with all that it holds.
"""

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
from torch import Tensor

from qkdemo.messages import language

P = ParamSpec("P")
T = TypeVar("T")


def within(room: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keeps what the function gives, at most `room` bytes of it: what was asked for longest ago goes first.

    Its arguments are hashable. Two who ask at once may both make it.
    """

    def decorate(make: Callable[P, T]) -> Callable[P, T]:
        kept, lock = OrderedDict[Hashable, tuple[T, int]](), threading.Lock()

        @wraps(make)
        def found(*args: P.args, **kwargs: P.kwargs) -> T:
            key = (language.get(), args, tuple(kwargs.items()))
            with lock:
                if key in kept:
                    kept.move_to_end(key)
                    return kept[key][0]
            made = make(*args, **kwargs)
            size = bytes_of(made)
            with lock:
                kept[key] = made, size
                while sum(size for _, size in kept.values()) > room:
                    kept.popitem(last=False)
            return made

        found.kept = kept  # type: ignore[attr-defined]  # for tests
        return found

    return decorate


def bytes_of(thing: Any, seen: set[int] | None = None) -> int:
    """The memory that `thing` takes; what it holds twice counts once, and so does an array of which it holds a part.

    >>> column = np.zeros(1000)
    >>> bytes_of({"a": column, "b": column[:10]}) // 1000
    8
    """
    seen = set() if seen is None else seen
    if isinstance(thing, np.ndarray) and isinstance(thing.base, np.ndarray):
        thing = thing.base
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray | pa.Table | Tensor):
        return int(thing.nbytes)
    parts: list[Any] = []
    if isinstance(thing, Mapping):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        parts = list(thing)
    elif is_dataclass(thing):
        parts = [getattr(thing, field.name) for field in fields(thing)]
    return sys.getsizeof(thing) + sum(bytes_of(part, seen) for part in parts)
