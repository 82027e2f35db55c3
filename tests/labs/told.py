"""What the labs say at many random settings, held against their numbers (`tests.oracles`).

* `hold(said, truths, names, about, state)`: each sentence against the truth of its key; a key that has none fails,
  unless it is one of the `names`, which claim nothing;
* `computed(*patterns)`: the keys of the string table that a lab's truths have to know;
* `states(cls, …)`: random settings of a lab, the ends of its dials drawn often; `HOW_MANY` of them;
* `reads(text, x)`: whether a text is that number as it is written.

`QKDEMO_STATES=3000 python -m pytest tests/labs/<lab>/test_true.py` searches longer than CI does.
"""

import math
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from qkdemo.dials import Choice, Dial, Dials, Switch, Value, declarations
from qkdemo.messages import ENGLISH, LANGUAGES
from qkdemo.notation import read
from tests import oracles
from tests.oracles import Said

S = TypeVar("S", bound=Dials)
HOW_MANY: Final = int(os.environ.get("QKDEMO_STATES", "0"))
SEED: Final = int(os.environ.get("QKDEMO_STATES_SEED", "0"))

# Of what a sentence is about, and the texts that fill it in: whether it is true.
Truth: TypeAlias = Callable[[Any, Mapping[str, str]], bool]


def hold(said: Iterable[Said], truths: Mapping[str, Truth], names: str, about: Any, state: object) -> set[str]:
    """Every sentence is true, and has an oracle unless its key is one of the `names`. The keys that were held."""

    def asked(each: Said, about: Any) -> bool:
        return truths[each.key](about, {name: str(value) for name, value in each.values.items()})

    claims = [each for each in said if not re.fullmatch(names, each.key)]
    return oracles.hold(claims, dict.fromkeys(truths, asked), about, f"At {state}")


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
        start = 0.0 if low else 1.0  # a dial from 0 on counts in steps of one more
        found = math.exp(draw.uniform(math.log(low + start), math.log(high + start))) - start
        return min(high, max(low, found))
    return draw.uniform(low, high) if not dial.whole else draw.randint(int(low), int(high))


def reads(text: str, x: float, digits: int = 4, slack: float = 1e-6) -> bool:
    """Whether `text` is `x` written with that many digits; `slack` is relative, for another order of the same sums."""
    if math.isnan(x) or not math.isfinite(x):
        return text == ("NaN" if math.isnan(x) else "∞" if x > 0 else "−∞")
    found = read(text)
    return abs(found - x) <= abs(x) * (0.51 * 10.0 ** (1 - digits) + slack) + 1e-300
