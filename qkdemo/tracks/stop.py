"""One stop of a track: a lab in a state, one question, and what the lab's numbers answer.

* `Stop`: the declaration; `Choose` and `Estimate`: the two ways to predict;
* `Evidence`: the right answer and the numbers that its explanation quotes, made by a stop's own function from what
  the lab found, never written down;
* `Trained`: what the training lab found: a recorded run;
* `only`, `closest`: how numbers decide between choices.

A stop's sentences stand in the string table under `stop.<track>.<name>`: `title`, `question`, `choice.<word>`,
`explain`. They may quote `{name}` of the evidence's numbers, and any dial of the two states as `{state_scale}` and
`{start_scale}`. In `explain`, words drive the chart: `[at scale 8](scale=8)` turns dials, `[the plain curve](~plain)`
picks out the lines of a role.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.dials import Dials, declarations
from qkdemo.runs.plan import Plan

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


@dataclass(frozen=True, eq=False)
class Trained:
    """A recorded run: `curves` is [steps, runs, curves] from step 1 on, in the order of `telemetry.CURVES`."""

    plan: Plan
    curves: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Stop:
    """One stop.

    `start` is the state that is seen while predicting, None if every state would give the answer away; `state` is the
    one that the answer is read from. `evidence` gets what `lab.run(state)` returns; in the training lab a `Trained`.
    `points` are the numbers of the subject's points (`qkdemo.tracks.points`) that it teaches; `focus` is the column of
    the exhibit whose panel matters most, shown first where there is room for one.
    """

    name: str
    lab: ModuleType
    state: Dials
    evidence: Callable[[Any], Evidence]
    ask: Choose | Estimate
    points: tuple[int, ...]
    start: Dials | None = None
    focus: str = ""

    @property
    def turned(self) -> dict[str, Any]:
        """The dials, by name, that the run turns, with the values that it gives them."""
        if self.start is None:
            return {}
        values = ((dial.name, getattr(self.state, dial.name)) for dial in declarations(type(self.state)))
        return {name: value for name, value in values if value != getattr(self.start, name)}


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
