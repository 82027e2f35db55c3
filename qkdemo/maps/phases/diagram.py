"""What a phase diagram of training consists of: two training dials, remedies beside each other, seeds in every cell.

* `Diagram`: its runs and their plans, checked when it is made; raises SettingsError;
* `DEFAULT`: learning rate × size of W_q and W_k at the start, three seeds, plain and with RMSNorm: its record ships;
* `diagram_of(x, y, cells, seeds, remedies)`: one over other dials, as they are typed; `Diagram.text`, `from_link`: the
  same in a link; `training_dials()`: what can be an axis; `remedy_words()`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final

from qkdemo.dials import Declaration, Dial, SettingsError, Value, declarations
from qkdemo.maps.request import axis_in
from qkdemo.messages import say
from qkdemo.runs.batches import LARGEST_BATCH
from qkdemo.runs.budget import GROUP_BYTES, at_once
from qkdemo.runs.plan import Leg, Plan
from qkdemo.training.settings import SHARED, RemedyWord, Settings, canonical, identity

SIDES: Final = (3, 5, 9)  # cells along one, each size taken in by the next
MOST_SEEDS: Final = 5
MOST_REMEDIES: Final = 4
MOST_RUNS: Final = 1000
RATES: Final = (0.002, 0.004, 0.008, 0.016, 0.032, 0.063, 0.125, 0.25, 0.5)
STARTS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
BASE: Final = Settings(schedule="constant", warmup=20, steps=200, n_layers=1, n_heads=1, n_keys=16)
_NO_AXES: Final = ("steps", "seed")  # a run's length is no remedy, and seeds are counted in every cell


@dataclass(frozen=True)
class Diagram:
    """Every combination is one run: `x` and `y` are dials' names, `xs` and `ys` the values that they go through."""

    x: str
    xs: tuple[Value, ...]
    y: str
    ys: tuple[Value, ...]
    remedies: tuple[RemedyWord, ...] = ("none", "rms")
    seeds: tuple[int, ...] = (0, 1, 2)
    base: Settings = BASE

    def __post_init__(self) -> None:
        for name in (self.x, self.y):
            _refuse_other(name, self.remedies, self.base)
        if self.x == self.y:
            others = ", ".join(name for name in training_dials(self.remedies, self.base) if name != self.x)
            raise SettingsError(say("phases.error.twice", name=self.x, known=others))
        if self.size > MOST_RUNS:
            raise SettingsError(say("phases.error.budget", runs=self.size, most=MOST_RUNS))

    @property
    def size(self) -> int:
        """How many runs it counts."""
        return len(self.xs) * len(self.ys) * len(self.remedies) * len(self.seeds)

    def run(self, remedy: RemedyWord, x: Value, y: Value, seed: int) -> Settings:
        """One of its runs; two that differ in a dial that does not act are the same."""
        return canonical(self.base.but(variant=remedy, seed=seed, **{self.y: y, self.x: x}))

    @cached_property
    def runs(self) -> tuple[Settings, ...]:
        """Every run once, the coarse grid before the fine one."""
        cells = sorted(product(range(len(self.ys)), range(len(self.xs))), key=lambda at: max(map(_fineness, at)))
        every = (
            self.run(remedy, self.xs[i], self.ys[j], seed)
            for j, i in cells
            for remedy in self.remedies
            for seed in self.seeds
        )
        return tuple({identity(run): run for run in every}.values())

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """The runs in batches that share a shape, the same on every machine."""
        made: list[Plan] = []
        waiting: dict[tuple[object, ...], list[Settings]] = {}
        for run in self.runs:
            batch = waiting.setdefault(tuple(getattr(run, name) for name in sorted(SHARED)), [])
            batch.append(run)
            if len(batch) >= min(LARGEST_BATCH, at_once(run, GROUP_BYTES)):
                made.append(_plan(batch))
                batch.clear()
        return (*made, *(_plan(batch) for batch in waiting.values() if batch))

    @property
    def text(self) -> str:
        """As a link says it."""
        ends = [f"{name}:{_written(name, at[0])}:{_written(name, at[-1])}" for name, at in self._axes]
        cells = max(len(values) for _, values in self._axes)
        size = next((side for side in SIDES if side >= cells), SIDES[-1])
        return ";".join([*ends, str(size), str(len(self.seeds)), ",".join(self.remedies)])

    @property
    def _axes(self) -> tuple[tuple[str, tuple[Value, ...]], ...]:
        return (self.x, self.xs), (self.y, self.ys)


def diagram_of(x: str, y: str, cells: int = 5, seeds: int = 3, remedies: Iterable[str] = ("none", "rms")) -> Diagram:
    """`x` and `y` as `learning_rate` or `learning_rate:0.002:0.5`. Raises SettingsError."""
    chosen: list[RemedyWord] = []
    for word in remedies:
        if word not in remedy_words():
            raise SettingsError(say("phases.error.remedy", name=repr(word), known=", ".join(remedy_words())))
        chosen.append(word)  # type: ignore[arg-type]
    if not 1 <= len({*chosen}) == len(chosen) <= MOST_REMEDIES:
        raise SettingsError(say("phases.error.remedies", most=MOST_REMEDIES))
    if cells not in SIDES:
        raise SettingsError(say("phases.error.size", cells=cells, known=", ".join(map(str, SIDES))))
    if not 1 <= seeds <= MOST_SEEDS:
        raise SettingsError(say("phases.error.seeds", seeds=seeds, most=MOST_SEEDS))
    for text in (x, y):
        _refuse_other(text.split(":")[0], chosen, BASE)
    usual = {"learning_rate": f"{RATES[0]}:{RATES[-1]}", "qk_start": f"{STARTS[0]}:{STARTS[-1]}"}
    typed = [f"{text}:{usual[text]}" if text in usual else text for text in (x, y)]
    across, up = (axis_in(Settings, text) for text in typed)
    values = (across.values(cells), up.values(cells))
    made = Diagram(across.dial.name, values[0], up.dial.name, values[1], tuple(chosen), tuple(range(seeds)))
    return DEFAULT if made.text == DEFAULT.text else made


def from_link(text: str) -> Diagram:
    """What `Diagram.text` wrote. Raises SettingsError."""
    parts = text.split(";")
    if len(parts) != 5 or not all(part.isdecimal() and len(part) < 3 for part in parts[2:4]):
        raise SettingsError(say("phases.error.link", text=repr(text), example=DEFAULT.text))
    return diagram_of(parts[0], parts[1], int(parts[2]), int(parts[3]), parts[4].split(","))


def training_dials(remedies: Sequence[str], base: Settings = BASE) -> dict[str, Declaration]:
    """The dials, by name, that do something for one of the remedies at least."""
    states = [base.but(variant=word) for word in remedies]
    return {
        dial.name: dial
        for dial in declarations(Settings)
        if isinstance(dial.kind, Dial) and dial.name not in _NO_AXES and any(map(dial.acts_for, states))
    }


def _refuse_other(name: str, remedies: Sequence[str], base: Settings) -> None:
    known = training_dials(remedies, base)
    if name not in known:
        raise SettingsError(say("phases.error.dial", name=name, known=", ".join(known)))


def remedy_words() -> tuple[str, ...]:
    """What can stand side by side."""
    return next(dial.allowed_words() for dial in declarations(Settings) if dial.name == "variant")


def _written(name: str, value: Value) -> str:
    return next(dial.write(value) for dial in declarations(Settings) if dial.name == name)


def _fineness(at: int) -> int:
    """0 in the coarse grid; 2 between two places of the middle one."""
    return 0 if at % 4 == 0 else 1 if at % 2 == 0 else 2


def _plan(runs: Sequence[Settings]) -> Plan:
    return Plan((Leg(0, tuple(range(len(runs))), tuple(runs)),), runs[0].steps, maps=False)


DEFAULT: Final = Diagram("learning_rate", RATES, "qk_start", STARTS)
