"""What a field of settings may be: a number, a word, a switch or a sentence of known words."""

import difflib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

Value: TypeAlias = float | int | str | bool

# ISO 3, series R20: twenty stops a decade, each about 12 % above the last; 1, 2, 4, 8 and 16 are among them.
_R20: Final = (1.0, 1.12, 1.25, 1.4, 1.6, 1.8, 2.0, 2.24, 2.5, 2.8, 3.15, 3.55, 4.0, 4.5, 5.0, 5.6, 6.3, 7.1, 8.0, 9.0)


@dataclass(frozen=True)
class Dial:
    """A number from `low` to `high`; `log` dials stop at preferred numbers, others every `step`.

    Stops and steps are the widget's: a link or a flag may stand between two of them, so that a state found
    elsewhere can be set exactly.

    `only_for` names another field and its values for which this dial acts: it is shown for those alone.
    `use` says which of the dial's help texts is shown, where a lab uses it for something of its own.
    `below` and `divides` name another field by whose value this one is bounded. A lab takes the nearest that there is,
    so that turning the other dial moves nothing; whoever types a value that there is not is told (`misfit`).
    """

    low: float
    high: float
    step: float = 1
    log: bool = False
    stops: tuple[float, ...] = ()
    sign: str = ""  # written before the value: "×"
    more: bool = False  # stands under "more dials"
    also: str = ""  # another dial's name that a command line may use for this one where that one is idle
    only_for: tuple[str, tuple[Value, ...]] | None = None
    below: str = ""
    divides: str = ""
    use: str = ""

    def grid(self) -> tuple[float, ...]:
        """The stops of a logarithmic dial, ends included; empty for a linear one."""
        if self.stops:
            return self.stops
        return preferred_numbers(self.low, self.high) if self.log else ()


@dataclass(frozen=True)
class Choice:
    """One of the words of the field's `Literal`; `available` narrows them on this machine.

    `named` is another dial by whose names they are written: that of a first choice for a second. `use` as above.
    """

    more: bool = False
    available: Callable[[], Sequence[str]] | None = None
    only_for: tuple[str, tuple[Value, ...]] | None = None
    named: str = ""
    use: str = ""


@dataclass(frozen=True)
class Switch:
    """On or off."""

    more: bool = False
    only_for: tuple[str, tuple[Value, ...]] | None = None


@dataclass(frozen=True)
class Sentence:
    """One word or more, `most` at the most, of those that are `known`; each stands alone, full stops too."""

    known: tuple[str, ...]
    most: int
    more: bool = False
    only_for: tuple[str, tuple[Value, ...]] | None = None

    def words(self, text: str) -> list[str]:
        """The words of `text` as they are known where they differ in capitals alone; a mark at an end stands alone.

        >>> Sentence(("Ana", "has", "it", "?"), most=9).words("ana  has it?")
        ['Ana', 'has', 'it', '?']
        """
        spelt = {word.lower(): word for word in self.known}
        parts = re.findall(r"[^\s.?]\S*?(?=[.?]*(?:\s|$))|[.?]", text)
        return [spelt.get(part.lower(), part) for part in parts]

    def nearest_word(self, word: str) -> str | None:
        """The known word that is spelt most like `word`; None if none is like it."""
        close = difflib.get_close_matches(word, self.known, n=1)
        return close[0] if close else None


@lru_cache(maxsize=64)
def preferred_numbers(low: float, high: float, per_decade: Literal[20, 10, 5, 4] = 20) -> tuple[float, ...]:
    """The preferred numbers (ISO 3: R20, R10, R5 or R20/5) from `low` to `high`; both ends are included.

    >>> preferred_numbers(1, 10, per_decade=10)
    (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0, 10.0)
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    stops = (float(f"{step}e{decade}") for decade in decades for step in _R20[:: 20 // per_decade])
    return tuple(sorted({float(low), float(high)} | {stop for stop in stops if low <= stop <= high}))
