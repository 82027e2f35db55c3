"""Sentences held against what they are said of, for tests that form many of them and ask of each whether it is true.

* `heard()`: within it, every sentence that is formed, as `Said`: its key and the values that fill it in;
* `Said.number(name)`: one of these values as a number, as far as it is written; `near(one, other)`: the same so far;
* `keys(*prefixes)`: the keys of the English tables that begin so;
* `hold(said, oracles, state)`: asks of each sentence the oracle of its key; a key without one is a failure;
* `sought(seeds, drawn, form, oracles)`: the same of what is drawn from each seed.

`python -m tests.oracles MODULE FIRST COUNT` searches further than the tests do: MODULE has `search(seeds)`, which gives
back the keys that were asked, and its table `ORACLES`.

An oracle is a function of what was said and of whatever it is said of: raw arrays, a synthetic log, settings. It works
the claim out anew and never calls the condition that chose the sentence. A key that claims nothing has `NOTHING`.
"""

import importlib
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from unittest.mock import patch

import numpy as np

from qkdemo import messages
from qkdemo.messages import ENGLISH, LANGUAGES
from qkdemo.notation import read

DIGITS: Final = 1e-3  # what four significant digits leave out


@dataclass(frozen=True)
class Said:
    """A sentence that was formed."""

    key: str
    values: Mapping[str, object]
    sentence: str = ""

    def number(self, name: str) -> float:
        """One of its values, as it is written."""
        value = self.values[name]
        return read(value) if isinstance(value, str) else float(str(value))


Oracle: TypeAlias = Callable[[Said, Any], object]


def NOTHING(said: Said, state: Any) -> bool:  # noqa: N802  a value of the tables, as `True` is
    """Of a sentence that claims nothing of the result."""
    return True


def near(one: float, other: float, rel: float = DIGITS, least: float = 1e-12) -> bool:
    """Whether two numbers are the same as far as they are written; ∞ and NaN are themselves."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other or math.isclose(one, other, rel_tol=rel, abs_tol=least)


@contextmanager
def heard() -> Iterator[list[Said]]:
    """Every sentence that `say` forms meanwhile, in its order. What is kept from before is not formed again."""
    told: list[Said] = []

    class Heard(str):
        __slots__ = ("key",)
        key: str

        def format(self, *args: object, **values: object) -> str:
            plain = {name: getattr(value, "_text", value) for name, value in values.items()}
            told.append(Said(self.key, plain, super().format(*args, **values)))
            return told[-1].sentence

    spoken = messages._sentence

    def sentence(key: str) -> str:
        found = Heard(spoken(key))
        found.key = key
        return found

    with patch.object(messages, "_sentence", sentence):
        yield told


def keys(*prefixes: str) -> set[str]:
    """The keys of the English tables that begin with one of these."""
    return {key for key in LANGUAGES[ENGLISH] if key.startswith(prefixes)}


def hold(said: Iterable[Said], oracles: Mapping[str, Oracle], state: Any, about: str = "") -> set[str]:
    """Asks each sentence's oracle; the keys that were asked. Values that the sentences do not fill in claim nothing."""
    asked: set[str] = set()
    for each in said:
        assert each.key in oracles, f"no oracle for {each.key}: {each.sentence}"
        asked.add(each.key)
        assert oracles[each.key](each, state), f"{each.key}: “{each.sentence}” is not true. {about}"
    return asked


def sought(
    seeds: Iterable[int], drawn: Callable[[np.random.Generator], Any], form: Callable[[Any], object], oracles: Any
) -> set[str]:
    """The keys that were said, and held, of what is `drawn` from each seed; `form` forms the sentences of it."""
    asked: set[str] = set()
    for seed in seeds:
        state = drawn(np.random.default_rng(seed))
        with heard() as said:
            form(state)
        asked |= hold(said, oracles, state, f"seed {seed}: {state}")
    return asked


def main(module: str, first: int, count: int) -> int:
    """What is false, by its key: how often, and once in words."""
    tested, false, asked = importlib.import_module(module), defaultdict[str, list[str]](list), set[str]()
    for seed in range(first, first + count):
        try:
            asked |= tested.search(range(seed, seed + 1))
        except AssertionError as error:
            text = str(error).split("\n")[0]
            false[text.split(":")[0]].append(f"{text} (seed {seed})")
    for key, sentences in false.items():
        print(f"{key}: {len(sentences)} times. {sentences[0]}")
    print(f"{len(asked)} keys were said; never: {sorted(tested.ORACLES.keys() - asked)}")
    return len(false)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
