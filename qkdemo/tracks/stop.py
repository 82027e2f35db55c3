"""One stop of a track: a lab in a state, one question, and what the lab's numbers answer.

* `Stop`: the declaration; `Choose` and `Estimate`: the two ways to predict;
* `Evidence`: the right answer and the numbers that its explanation quotes, made by a stop's own function from what
  the lab found, never written down;
* `Read`: where the page shows such a number;
* `in_slots`: the stops of a track in an order that links outlive;
* `only`, `closest`: how numbers decide between choices.

A stop's sentences stand in the string table under `stop.<track>.<name>`: `title`, `question`, `choice.<word>`,
`explain`, and `mark.<number>`, as which a number is drawn into the chart. They may quote `{name}` of the evidence's
numbers (a mark `{x}`, its own), and any dial of the two states as `{state_scale}` and `{start_scale}`. In `explain`,
words drive the chart: `[at scale 8](scale=8)` turns dials, `[the plain curve](~plain)` picks out the lines of a role.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Literal

from qkdemo.dials import Value, declarations
from qkdemo.labs.lab import Lab, R, S

CLOSE: Final = 1.5  # an estimate within this factor is right


@dataclass(frozen=True)
class Choose:
    """Predict by choosing one of these words."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Estimate:
    """Predict a positive number, from `low` to `high` on a logarithmic scale.

    It is drawn at the stop's state in the panel that shows `column` of the page's exhibit, and is right within the
    factor `within`.
    """

    low: float
    high: float
    column: str
    within: float = CLOSE

    def says(self, guess: float, measured: float) -> bool:
        """Whether the guess is right. A measured 0, ∞ or NaN is met by no number."""
        if not (guess > 0 and 0 < measured < math.inf):
            return False
        return abs(math.log(guess / measured)) <= math.log(self.within)


@dataclass(frozen=True)
class Evidence:
    """What the numbers say: the word of the right choice or the measured number, and numbers as they are written.

    `sources` are what was read for it, words and address, where it was not computed.
    """

    answer: str | float
    numbers: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Read:
    """Where the page's exhibit shows a number of the evidence: in this `column` of its table.

    It stands there in the stop's state, or where `turns` puts the dials, and is `times` what the column says (100: in
    per cent). `of` a column it is what the dial points `at`, or the `largest`, or the mean over the `last` steps of a
    run; in a list, its `entry`, or the largest. In a text it is quoted, as is what the sphere's page says of a side.
    Two kinds are no value of the column, and are drawn into its panel: a `place` along the dial, and a `level` that
    nothing in the lab draws.
    """

    column: str
    turns: Mapping[str, Value] = field(default_factory=dict)
    entry: int | None = None
    times: float = 1
    of: Literal["at", "largest", "last", "place", "level"] = "at"


@dataclass(frozen=True, kw_only=True, eq=False)
class Stop(Generic[S, R]):
    """One stop.

    `start` is the state that is seen while predicting, None if every state would give the answer away; `state` is the
    one that the answer is read from. `evidence` gets the lab's result there; a lab that trains reads it off its runs.
    `points` are the numbers of the subject's points (`qkdemo.tracks.points`) that it teaches; `reads` says where the
    page shows numbers of the evidence, by name: the panels that draw these columns are what it shows first. `slot` is
    where its answer stands in a link: see `in_slots`.
    """

    name: str
    lab: Lab[S, R]
    state: S
    evidence: Callable[[R], Evidence]
    ask: Choose | Estimate
    points: tuple[int, ...]
    start: S | None = None
    reads: Mapping[str, Read] = field(default_factory=dict)
    slot: int = 0

    @property
    def turned(self) -> dict[str, Any]:
        """The dials, by name, that the run turns, with the values that it gives them."""
        if self.start is None:
            return {}
        values = ((dial.name, getattr(self.state, dial.name)) for dial in declarations(type(self.state)))
        return {name: value for name, value in values if value != getattr(self.start, name)}


def in_slots(names: Sequence[str], *stops: Stop) -> tuple[Stop, ...]:
    """The stops in this order, each with its slot: the place of its name in `names`.

    A link holds what was said slot by slot. So `names` only ever grows at its end, and stops may change their order
    while every link that was handed out still means what it said. Raises ValueError for a stop without a place.
    """
    missing = [stop.name for stop in stops if stop.name not in names]
    if missing:
        raise ValueError(f"the list of slots must name {', '.join(missing)}: add it at its end")
    return tuple(replace(stop, slot=names.index(stop.name)) for stop in stops)


def only(**conditions: object) -> str:
    """The one word whose condition holds.

    Raises ValueError if none holds, or several: then the choices do not cover what was measured.
    """
    held = [word for word, holds in conditions.items() if holds]
    if len(held) != 1:
        raise ValueError(f"exactly one choice must be right, but these are: {', '.join(held) or 'none'}")
    return held[0]


def closest(measured: float, choices: Mapping[str, float]) -> str:
    """The word whose number is nearest to a positive `measured` one, by ratio."""
    return min(choices, key=lambda word: abs(math.log(choices[word] / measured)))
