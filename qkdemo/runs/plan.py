"""What is trained together, from its first step to its last: a plan, which determines every number of its record.

* `Plan`: legs and a number of steps; `Leg`: what is trained from a step on, and from which rows of the leg before;
* `twins(settings, ...)`: plain attention beside the chosen remedy, over one seed or many;
* `forked_at(plan, after, ...)`: the same plan up to a step, then other dials;
* `Plan.name`: its identity, a hash of everything its numbers depend on; `to_json`, `from_json`.

Training is deterministic, so whoever has the plan can make the record again, from its beginning or from a checkpoint.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.dials import Value
from qkdemo.training.network.parameters import shape_of
from qkdemo.training.outcome import Outcome, outcome_of
from qkdemo.training.settings import Settings, canonical, identity
from qkdemo.training.telemetry import CURVES, Telemetry
from qkdemo.training.trainer import forked

MOST_STEPS: Final = 4000  # of a plan with all its forks
MOST_RUNS: Final = 40
_MAP_BYTES: Final = 12 << 20  # of a whole record; where maps of every step would take more, some steps have none


@dataclass(frozen=True)
class Leg:
    """Runs that train together after step `after`. `rows`: which run of the leg before each goes on from.

    `left` is the number of steps of the plan that a fork leaves here; nothing that is trained depends on it.
    """

    after: int
    rows: tuple[int, ...]
    runs: tuple[Settings, ...]
    left: int = 0


@dataclass(frozen=True)
class Plan:
    """Legs in order, the first one after step 0; the last ends with step `steps`."""

    legs: tuple[Leg, ...]
    steps: int
    maps: bool = True

    def __post_init__(self) -> None:
        starts = [leg.after for leg in self.legs]
        widths = [len(leg.runs) for leg in self.legs]
        rising = all(a < b for a, b in zip(starts, [*starts[1:], self.steps], strict=True))
        if starts[:1] != [0] or not rising or self.steps > MOST_STEPS or not 1 <= max(widths) <= MOST_RUNS:
            raise ValueError("not a plan")
        for before, leg in zip([widths[0], *widths], self.legs, strict=False):
            if len(leg.rows) != len(leg.runs) or not all(0 <= row < before for row in leg.rows):
                raise ValueError("a leg that goes on from nowhere")

    @cached_property
    def name(self) -> str:
        """The same for plans whose records are the same."""
        told = [[leg.after, leg.rows, [identity(run) for run in leg.runs]] for leg in self.legs]
        return hashlib.sha256(json.dumps([told, self.steps, self.maps]).encode()).hexdigest()[:24]

    @property
    def trunk(self) -> "Plan | None":
        """The plan that this one was forked from."""
        if len(self.legs) == 1:
            return None
        steps = self.legs[-1].left or self.legs[-2].runs[0].steps
        return Plan(self.legs[:-1], max(steps, self.legs[-1].after), self.maps)

    @property
    def chained(self) -> bool:
        """Whether it was forked more than once."""
        return sum(leg.after > 0 for leg in self.legs) > 1

    @property
    def width(self) -> int:
        """How many runs its widest leg has."""
        return max(len(leg.runs) for leg in self.legs)

    def leg_of(self, step: int) -> int:
        """Which leg makes `step`; steps are counted from 1."""
        return max(at for at, leg in enumerate(self.legs) if at == 0 or leg.after < step)

    @cached_property
    def map_shape(self) -> tuple[int, int, int]:
        """Layers, heads, and visible pairs of a query and a key; all 0 if attention maps are not kept."""
        shape = shape_of(self.legs[0].runs[0])
        n = self.legs[0].runs[0].n_keys
        return (shape.n_layers, shape.n_heads, n * (n + 1) // 2) if self.maps else (0, 0, 0)

    @cached_property
    def map_stride(self) -> int:
        """Every how many steps attention maps are kept; the first step always has them."""
        layers, heads, cells = self.map_shape
        return max(1, -(-layers * heads * cells * self.width * self.steps // _MAP_BYTES))

    def to_json(self) -> str:
        """The plan as text."""
        legs = [[leg.after, leg.rows, [run.as_dict() for run in leg.runs], leg.left] for leg in self.legs]
        return json.dumps({"legs": legs, "steps": self.steps, "maps": self.maps})

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """The plan that `text` writes. Raises ValueError, of which SettingsError is one, for anything else."""
        try:
            told: dict[str, Any] = json.loads(text)
            legs = tuple(
                Leg(
                    int(after), tuple(int(row) for row in rows), tuple(Settings(**run) for run in runs), *map(int, left)
                )
                for after, rows, runs, *left in told["legs"]
            )
            return cls(legs, int(told["steps"]), bool(told["maps"]))
        except (TypeError, KeyError) as error:
            raise ValueError(str(error)) from error


def twins(settings: Settings, seeds: Sequence[int] | None = None) -> Plan:
    """Plain attention beside `settings`, the same in everything else; for several seeds pair by pair, without maps."""
    every = [settings.seed] if seeds is None else seeds
    runs = tuple(
        canonical(settings.but(variant=word, seed=seed)) for seed in every for word in ("none", settings.variant)
    )
    return Plan((Leg(0, tuple(range(len(runs))), runs),), settings.steps, maps=seeds is None)


def forked_at(
    plan: Plan, after: int, changes: Sequence[Mapping[str, Value]], *, more: int = 0, beside: bool = True
) -> Plan:
    """`plan` up to step `after`; then its runs with `changes` (in turn), and beside them the same runs unchanged.

    Of a plan that is a fork itself, what stood beside it unchanged is left behind. It ends where `plan` ends, or after
    `more` further steps. Raises SettingsError for a change that a run cannot make on its way.
    """
    before = plan.legs[-1].runs[: len(plan.legs[0].runs)]
    steps = min(MOST_STEPS, after + more if more else max(plan.steps, after + 1))
    new = tuple(canonical(forked(run, **changes[at % len(changes)])) for at, run in enumerate(before))
    rows = tuple(range(len(new)))
    both = (rows + rows, new + before) if beside else (rows, new)
    return Plan((*plan.legs, Leg(after, *both, left=plan.steps)), steps, plan.maps)


def outcomes(plan: Plan, curves: NDArray[np.float32]) -> list[Outcome]:
    """What became of every run of the plan's last leg; `curves` from step 1 on."""
    runs = plan.legs[-1].runs
    columns = {name: curves[:, : len(runs), at] for at, name in enumerate(CURVES)}
    telemetry = Telemetry(1, **columns, maps=np.empty((len(curves), len(runs), 0, 0, 0, 0), np.float16))
    return [outcome_of(run, telemetry, at) for at, run in enumerate(runs)]
