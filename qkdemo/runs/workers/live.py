"""A run in memory, as its watchers see it.

* `Live`: its steps so far and its state; `Status`: what there is to say about it.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar

from qkdemo.messages import language
from qkdemo.runs.kept.record import Chunk, joined_chunks
from qkdemo.runs.plan import Plan
from qkdemo.training.settings import ENGINE

StateWord: TypeAlias = Literal["queued", "going", "paused", "stopped", "finished", "lost"]
RESTING: Final = ("paused", "stopped", "finished", "lost")

DEFAULT_PACE: Final = 15.0  # steps per second: 300 steps in 20 s
_Said = TypeVar("_Said")


@dataclass(frozen=True)
class Status:
    """How a run stands. `left_s` and `wait_s` are estimates; `position` counts from 1."""

    state: StateWord
    steps: int
    pace: float
    left_s: float | None = None
    position: int = 0
    wait_s: float = 0.0
    hurried: bool = False  # it goes faster than asked for, since others wait
    silent_s: float = 0.0  # for how long its worker has said nothing, where that is long
    notice: str = ""
    recorded: float | None = None  # when what is shown was recorded
    shipped: bool = False  # elsewhere, and it came with the app
    engine: str = ENGINE


@dataclass(eq=False)
class Live:
    """A run in memory. Whoever reads `chunks` takes a copy of the list; chunks themselves do not change."""

    plan: Plan
    owner: str
    generation: int
    pace: float = DEFAULT_PACE
    state: StateWord = "paused"
    chunks: list[Chunk] = field(default_factory=list)
    owner_seen: float = field(default_factory=time.monotonic)
    visitors: set[str] = field(default_factory=set)  # who asked for it
    asked: tuple[str, str] = ("", "")  # who did so last, and from which address
    present: Counter[str] = field(default_factory=Counter)  # who watches it, in how many windows
    watchers: int = 0
    watched: float = field(default_factory=time.monotonic)  # when somebody last did
    touched: float = field(default_factory=time.monotonic)
    until: int = 0
    attempts: int = 0
    notice: str = ""
    recorded: float | None = None  # when, in seconds since 1970; None while it goes on
    shipped: bool = False  # it came with the app: nobody trains it, nobody owns it
    kept: bool = True  # the store takes it
    unread: bool = False  # the store could not be asked what it has of it
    broken_off: bool = False  # as it was found, its server had died of it or it was damaged: still to be said
    step_s: float | None = None
    timed: bool = False  # its worker has begun, so that from one chunk to the next steps can be timed
    queued_at: float = 0.0
    turns: int = 0  # since it was asked for, how often it had a worker and gave way to others
    computed_s: float = 0.0  # since it was asked for
    keeps_place: bool = True  # when it gives way, it can go on from where it was
    version: int = 0  # grows with everything that a watcher should see
    _said: dict[str, tuple[int, Any]] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """How many steps it has."""
        return self.chunks[-1].last if self.chunks else 0

    @property
    def chunk(self) -> Chunk:
        """All of its steps."""
        return joined_chunks(self.plan, list(self.chunks))

    @property
    def size(self) -> int:
        """Bytes of its steps."""
        return sum(chunk.curves.nbytes + chunk.maps.nbytes for chunk in self.chunks)

    def once(self, name: str, said: Callable[[], _Said]) -> _Said:
        """What `said` says of it at its present step, formed once, and forgotten with it."""
        steps, key = self.steps, f"{name} {language.get()}"
        if key not in self._said or self._said[key][0] != steps:
            self._said[key] = (steps, said())
        found: _Said = self._said[key][1]
        return found
