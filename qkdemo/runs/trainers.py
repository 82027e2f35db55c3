"""Many runs trained step by step, in as many trainers as memory asks for.

* `Trainers(runs, state)`: like a `Trainer`; runs that would need more memory together than there is take each step one
  group after another. Their numbers are the same: no run sees another.
* `Course(plan, state)`: a plan under way: the trainers of its present leg, and the next leg's when its time comes;
* `Rows`: where the state of some of the runs comes from.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import torch

from qkdemo.runs.budget import at_once
from qkdemo.runs.kept.record import Chunk, chunk_of
from qkdemo.runs.plan import Plan
from qkdemo.training.settings import Settings
from qkdemo.training.telemetry import Telemetry, beside, joined
from qkdemo.training.trainer import State, Trainer


@runtime_checkable
class Rows(Protocol):
    """States of runs: a `State` in memory, `Trainers`, or a file of them."""

    @property
    def step(self) -> int:
        """After which step."""
        ...

    def rows(self, indices: Sequence[int]) -> State:
        """A copy of those of some runs, in that order."""
        ...


class Trainers:
    """Trains `runs` from `state` or afresh. Raises SettingsError if they cannot share a batch."""

    def __init__(self, runs: Sequence[Settings], state: Rows | None = None, *, maps: bool = True) -> None:
        size = at_once(runs[0])
        self.groups = [range(start, min(start + size, len(runs))) for start in range(0, len(runs), size)]
        self._trainers = [
            Trainer([runs[at] for at in group], state.rows(group) if state is not None else None, maps=maps)
            for group in self.groups
        ]

    @property
    def step(self) -> int:
        """The last step taken."""
        return self._trainers[-1].step

    @property
    def state(self) -> State:
        """A copy of where all runs stand."""
        return self.rows(range(self.n_runs))

    @property
    def n_runs(self) -> int:
        """How many there are."""
        return self.groups[-1].stop

    def rows(self, indices: Sequence[int]) -> State:
        """A copy of where some of them stand, in that order."""
        found = []
        for at in indices:
            group = next(k for k, group in enumerate(self.groups) if at in group)
            found.append(self._trainers[group].rows([at - self.groups[group].start]))
        return State(
            self.step, *(torch.cat(tensors) for tensors in zip(*(one.tensors() for one in found), strict=True))
        )

    def advance(
        self, steps: int, goes_on: Callable[[], bool] = lambda: True, beat: Callable[[], None] = lambda: None
    ) -> Telemetry:
        """Takes `steps` steps, or fewer if `goes_on`, asked after each, says no. `beat` is called as work goes on."""

        def and_on() -> bool:
            beat()
            return goes_on()

        if len(self._trainers) == 1:
            return self._trainers[0].advance(steps, and_on)
        taken: list[Telemetry] = []
        while len(taken) < steps and (not taken or goes_on()):
            parts = []
            for trainer in self._trainers:
                parts.append(trainer.advance(1))
                beat()
            taken.append(beside(parts))
        return joined(taken)


class Course:
    """Raises SettingsError or RuntimeError for a plan that cannot be trained here."""

    def __init__(self, plan: Plan, state: Rows | None) -> None:
        self.plan = plan
        self._leg = plan.leg_of(state.step) if state is not None and state.step else 0
        self.trainers = Trainers(plan.legs[self._leg].runs, state, maps=plan.maps)

    @property
    def step(self) -> int:
        """The last step taken."""
        return self.trainers.step

    def advance(self, steps: int, goes_on: Callable[[], bool], beat: Callable[[], None] = lambda: None) -> Chunk:
        """At most that many steps, until `goes_on` says no: a chunk does not reach over the end of a leg."""
        legs = self.plan.legs
        if self._leg + 1 < len(legs) and self.step >= legs[self._leg + 1].after:
            self._leg += 1
            leg = legs[self._leg]
            self.trainers = Trainers(leg.runs, _Picked(self.trainers, leg.rows), maps=self.plan.maps)
        last = legs[self._leg + 1].after if self._leg + 1 < len(legs) else self.plan.steps
        return chunk_of(self.plan, self.trainers.advance(min(steps, last - self.step), goes_on, beat))


class _Picked:
    """Of the runs of a leg, those from which the next leg goes on."""

    def __init__(self, before: Trainers, rows: tuple[int, ...]) -> None:
        self._before, self._rows = before, rows
        self.step = before.step

    def rows(self, indices: Sequence[int]) -> State:
        """A copy of where some of them stand."""
        return self._before.rows([self._rows[at] for at in indices])
