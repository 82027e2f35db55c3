"""Sentences as they are formed, with what they are filled with: for tests that hold each one against the numbers.

* `listening()`: keeps every sentence that is formed inside it;
* `hold(heard, oracles, names)`: each sentence against the oracle of its key; a key that has none fails;
* `computed(*patterns)`: the keys of the string table that a lab's oracles have to know;
* `states(cls, …)`: random settings of a lab, the ends of its dials drawn often; `HOW_MANY` of them;
* `reads(text, x)`: whether a text is that number as it is written.

`QKDEMO_STATES=3000 python -m pytest tests/labs/<lab>/test_true.py` searches longer than CI does.
"""

import math
import os
import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

from qkdemo import messages
from qkdemo.dials import Choice, Dial, Dials, Switch, Value, declarations
from qkdemo.messages import ENGLISH, LANGUAGES
from qkdemo.notation import read

S = TypeVar("S", bound=Dials)
HOW_MANY: Final = int(os.environ.get("QKDEMO_STATES", "0"))
SEED: Final = int(os.environ.get("QKDEMO_STATES_SEED", "0"))

Oracle = Callable[[Any, Mapping[str, str]], bool]  # what the sentence is about, and what fills it → whether it is true


class Formed(NamedTuple):
    """A sentence: its key, what it was filled with, and how it reads."""

    key: str
    values: Mapping[str, str]
    text: str


class _Listener(str):
    """A sentence of the table that tells what it is filled with."""

    __slots__ = ("heard", "key")
    heard: list[Formed]
    key: str

    def format(self, *args: object, **values: object) -> str:
        text = str(self).format(*args, **values)
        self.heard.append(Formed(self.key, {name: format(value, "") for name, value in values.items()}, text))
        return text


@contextmanager
def listening() -> Iterator[list[Formed]]:
    """The sentences that are formed inside, in their order. What was kept from before is not formed again."""
    heard: list[Formed] = []
    kept = messages._sentence

    def overheard(key: str) -> str:
        sentence = _Listener(kept(key))
        sentence.heard, sentence.key = heard, key
        return sentence

    messages._sentence = overheard
    try:
        yield heard
    finally:
        messages._sentence = kept


def hold(heard: Collection[Formed], oracles: Mapping[str, Oracle], names: str, about: Any, state: object) -> set[str]:
    """Every sentence is true, and has an oracle unless its key is one of the `names`. The keys that were held."""
    held = set()
    for formed in heard:
        if re.fullmatch(names, formed.key):
            continue
        assert formed.key in oracles, f"{formed.key} has no oracle: say when it is true"
        assert oracles[formed.key](about, formed.values), f"{formed.key}: “{formed.text}” is false at {state}"
        held.add(formed.key)
    return held


def computed(*patterns: str) -> set[str]:
    """The keys of the table of which one of the patterns is the whole."""
    return {key for key in LANGUAGES[ENGLISH] if any(re.fullmatch(pattern, key) for pattern in patterns)}


def states(cls: type[S], many: int, at_most: Mapping[str, float] | None = None, **fixed: Any) -> Iterator[S]:
    """`many` random settings, or as many as the environment asks for: half of all values stand at an end or a stop."""
    draw = random.Random(SEED)
    limits = at_most or {}
    for _ in range(HOW_MANY or many):
        yield cls(**{dial.name: _value(draw, dial, limits.get(dial.name)) for dial in declarations(cls)} | fixed)


def _value(draw: random.Random, dial: Any, at_most: float | None) -> Value:
    match dial.kind:
        case Switch():
            return draw.random() < 0.5
        case Choice():
            return draw.choice(dial.allowed_words())
        case Dial(low=low, high=high):
            high = max(low, min(high, at_most)) if at_most is not None else high
            stops = [stop for stop in (low, high, *dial.kind.grid(), dial.default) if low <= stop <= high]
            found = draw.choice([low, high, draw.choice(stops), draw.choice(stops), _between(draw, dial, low, high)])
            return int(found) if dial.whole else float(found)
    raise TypeError(f"{dial.name}: a {type(dial.kind).__name__} is drawn by its own test")


def _between(draw: random.Random, dial: Any, low: float, high: float) -> float:
    if dial.kind.log:
        return min(high, max(low, math.exp(draw.uniform(math.log(low), math.log(high)))))
    return draw.uniform(low, high) if not dial.whole else draw.randint(int(low), int(high))


def reads(text: str, x: float, digits: int = 4, slack: float = 1e-6) -> bool:
    """Whether `text` is `x` written with that many digits; `slack` is relative, for another order of the same sums."""
    if math.isnan(x) or not math.isfinite(x):
        return text == ("NaN" if math.isnan(x) else "∞" if x > 0 else "−∞")
    found = read(text)
    return abs(found - x) <= abs(x) * (0.51 * 10.0 ** (1 - digits) + slack) + 1e-300
