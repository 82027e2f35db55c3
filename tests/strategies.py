"""Hypothesis strategies derived from what the code declares, and no second list of ranges.

* `settings_of(cls, at_most=…)`: any settings that the dials of `cls` allow;
* `COMPUTED`: the labs whose answer is computed, name → lab; the others have to be trained;
* `ends(cls)`: the default with every dial at either end of its range, one at a time, then all together.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from qkdemo.dials import Choice, Declaration, Dial, Dials, Sentence, Switch, Value, declarations
from qkdemo.labs.lab import TrainedLab
from qkdemo.labs.registry import LABS

S = TypeVar("S", bound=Dials)

COMPUTED: Final = {name: lab for name, lab in LABS.items() if not isinstance(lab, TrainedLab)}

# Dials that cost time: random settings stay below this, and `ends` shows that the ends work.
SMALL: Final[Mapping[str, float]] = {"n_keys": 12, "d_head": 16, "n_heads": 3}


def values_of(dial: Declaration, at_most: float | None = None) -> st.SearchStrategy[Value]:
    """Whatever `dial` accepts; of a `Dial`, its ends and stops come up often."""
    match dial.kind:
        case Switch():
            return st.booleans()
        case Choice():
            return st.sampled_from(dial.allowed_words())
        case Sentence(known=known, most=most):
            return st.lists(st.sampled_from(known), min_size=1, max_size=most).map(" ".join)
        case Dial(low=low, high=high):
            high = max(low, min(high, at_most)) if at_most is not None else high
            stops = [stop for stop in {low, high, *dial.kind.grid()} if low <= stop <= high]
            if dial.whole:
                return st.sampled_from([int(stop) for stop in sorted(stops)]) | st.integers(int(low), int(high))
            return st.sampled_from(sorted(stops)) | st.floats(low, high)


def settings_of(cls: type[S], at_most: Mapping[str, float] = SMALL, **fixed: Any) -> st.SearchStrategy[S]:
    """Any settings of `cls` whose dials named in `at_most` stay below that; `fixed` are values or strategies."""
    chosen = {dial.name: values_of(dial, at_most.get(dial.name)) for dial in declarations(cls)}
    given = {
        name: value if isinstance(value, st.SearchStrategy) else st.just(value)
        for name, value in fixed.items()
        if name in chosen
    }
    return st.builds(cls, **(chosen | given))


def ends(cls: type[S]) -> Iterator[tuple[str, S]]:
    """A name and settings: each dial alone at every word, or at its lowest and highest; then all low, all high."""
    default = cls()
    low: dict[str, Value] = {}
    high: dict[str, Value] = {}
    for dial in declarations(cls):
        match dial.kind:
            case Switch():
                values: tuple[Value, ...] = (False, True)
            case Choice():
                values = dial.allowed_words()
            case Sentence():
                values = (dial.kind.known[0], " ".join(dial.kind.known[-1:] * dial.kind.most))
            case Dial():
                values = (dial.kind.low, dial.kind.high)
        low[dial.name], high[dial.name] = values[0], values[-1]
        for value in values:
            yield f"{dial.name}={dial.write(value)}", default.but(**{dial.name: value})
    yield "all-low", default.but(**low)
    yield "all-high", default.but(**high)
