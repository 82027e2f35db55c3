"""What a lab is: the one type by which pages, command line, tracks, handouts and tests know every lab.

* `Lab`: one question about attention, how it is answered, and the ways to read the answer;
* `TrainedLab`: a lab whose answer is read off recorded runs;
* `Section`: a part of its page; `OnDemand`: what it computes only when asked; `Command`: how a shell calls it;
* `Plane`: what a map over two of its dials shows, `Measure`: how one of its numbers is read; `along`, `state_by_state`:
  how it is read.

A lab is declared in the `__init__` of its folder and named in `labs.registry`, and nowhere else. Its functions take
settings or a result, are pure, and know neither pages nor widgets. Types are checked where it is declared: a view that
takes another lab's result does not pass.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeVar

from qkdemo.attention.inputs import Inputs
from qkdemo.charts.spec import Drawn, Pick
from qkdemo.dials import Dials, Value
from qkdemo.runs.batches import Progress
from qkdemo.runs.plan import Plan
from qkdemo.runs.train_to_end import train_whole


class Answer(Protocol):
    """What every result says: the settings that it answers."""

    @property
    def settings(self) -> Dials:
        """The dials."""


# Written without them, `Lab` is any lab.
S = TypeVar("S", bound=Dials, default=Any)
R = TypeVar("R", bound=Answer, default=Any)
M = TypeVar("M", default=Any)

Rows: TypeAlias = Sequence[Mapping[str, Any]]
Report: TypeAlias = Mapping[str, Any]  # names of tables, and of single numbers
Curves: TypeAlias = NDArray[np.float32]  # [steps, runs, curves]


def _nothing(settings: Dials, pick: Pick) -> dict[str, Value]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a page: an exhibit, and sentences about it.

    `picked` says which dials a pick in the exhibit turns. `title` is a sentence's key; `listed` puts each sentence into
    a line of its own. While a track's question is open the page shows no sentence.
    """

    exhibit: Drawn | None = None
    name: str = ""  # of the exhibit, among those of its page
    picked: Callable[[Pick], Mapping[str, Value]] = lambda pick: {}
    sentences: Sequence[str] = ()
    title: str = ""
    listed: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class OnDemand(Generic[S, M]):
    """Arithmetic of a second or more, done when a visitor asks for it.

    Its sentences stand under `name`: `tab`, `start`, `none` (before it was done) and `table`. `run` tells how far it is
    by calling its second argument with rounds done and rounds to do, and may be stopped by what that raises.
    """

    name: str
    run: Callable[[S, Callable[[int, int], None]], M]
    rows: Callable[[M], Rows]
    section: Callable[[M], Section]


@dataclass(frozen=True, kw_only=True, eq=False)
class Command(Generic[S]):
    """A lab from a shell: `python -m qkdemo <word>`; every dial is a flag.

    `base` is the state it starts from and `swept` are lists that dials go through unless they are given; `noise`, `on`
    and `drawn` are the lab's, the last two for q and k from a file. It reports one state after another (`report`; with
    `--measure`, `measured`), or trains all runs together (`train`), which gives the report and every step of every run
    as columns.
    """

    word: str
    page: str  # whose names the named states have
    settings: type[S]
    presets: Mapping[str, S]
    base: S
    swept: Mapping[str, str] = field(default_factory=dict)
    report: Callable[[S], Report] | None = None
    noise: Mapping[str, float] = field(default_factory=dict)
    on: Callable[[S, Inputs], S] | None = None
    drawn: Sequence[str] = ()
    measured: Callable[[S], Report] | None = None
    train: Callable[[Sequence[S], Progress], tuple[Report, Mapping[str, NDArray[Any]]]] | None = None
    figures: Callable[[S], Sequence[Drawn]] | None = None  # what its page shows of a state


# Of one side, by name: one entry per state.
Columns: TypeAlias = Mapping[str, NDArray[np.float64]]
ReadStates: TypeAlias = Callable[[S, str, Sequence[Value]], Mapping[str, Columns]]
Measure: TypeAlias = Literal["share", "log", "linear"]  # from 0 to 1; over decades; as it is


@dataclass(frozen=True, kw_only=True, eq=False)
class Plane(Generic[S]):
    """What a map over any two numeric dials shows of a lab.

    `read(settings, dial, values)` gives, for every side, by its role, all columns at every value of that dial; it is
    quickest along `swept`. `measures` are the columns that can be shown, the first one at first; `x` and `y` the dials
    that a map begins with, as they are typed: `scale` or `scale:0.1:1000`. `marks` are what changes in kind somewhere:
    true or false for every state, from a side's columns. Sentences: `measure.<name>`, `mark.<name>`.
    """

    x: str
    y: str
    measures: Mapping[str, Measure]
    sides: Callable[[S], Mapping[str, str]]  # role → what the side is, in words
    read: ReadStates[S]
    marks: Mapping[str, Callable[[Columns], NDArray[np.bool_]]] = field(default_factory=dict)
    swept: str = ""


def state_by_state(one: Callable[[S], Mapping[str, Mapping[str, float]]]) -> ReadStates[S]:
    """The `read` of a lab that answers one state at a time."""

    def read(settings: S, dial: str, values: Sequence[Value]) -> Mapping[str, Columns]:
        states = [one(settings.but(**{dial: value})) for value in values]
        return {
            role: {name: np.array([state[role][name] for state in states], dtype=np.float64) for name in columns}
            for role, columns in states[0].items()
        }

    return read


def along(swept: str, many: Callable[[S, Sequence[float]], Mapping[str, Columns]]) -> ReadStates[S]:
    """The `read` of a lab that answers many values of one dial together, in any order; other dials one by one."""

    def read(settings: S, dial: str, values: Sequence[Value]) -> Mapping[str, Columns]:
        if dial == swept:
            return many(settings, [float(value) for value in values])
        states = [settings.but(**{dial: value}) for value in values]
        found = [many(state, [float(getattr(state, swept))]) for state in states]
        return {
            role: {name: np.concatenate([each[role][name] for each in found]) for name in columns}
            for role, columns in found[0].items()
        }

    return read


@dataclass(frozen=True, kw_only=True, eq=False)
class Lab(Generic[S, R]):
    """One question about attention.

    `name` is that of its page and of its command, and the first word of its sentences' keys. `explain` begins with the
    headline of the exhibit. `exhibit` draws what a handout shows too; what stands under it on the page are `sections`,
    by default what `explain` says, and `tabs`, which are made when they are opened. Titles are sentences' keys.
    """

    name: str
    icon: str  # a Material symbol
    question: str
    settings: type[S]
    presets: Mapping[str, S]
    run: Callable[[S], R]
    explain: Callable[[R], Sequence[str]]
    tables: Callable[[R], Mapping[str, Callable[[], Rows]]]
    programs: Callable[[R], Mapping[str, Callable[[], str]]]
    report: Callable[[S], Report] | None = None  # what a shell prints of one state
    measured_report: Callable[[S], Report] | None = None  # and with `--measure`
    exhibit: Callable[[R], Drawn] | None = None
    picked: Callable[[S, Pick], Mapping[str, Value]] = _nothing
    sections: Callable[[R], Sequence[Section]] | None = None
    tabs: Callable[[R], Mapping[str, Callable[[], Section]]] = lambda result: {}
    on_demand: OnDemand[S, Any] | None = None
    plane: Plane[S] | None = None
    menu: str = ""  # in which its page stands, if not in the first row
    noise: Mapping[str, float] = field(default_factory=dict)  # column of a table → below which its numbers are rounding
    on: Callable[[S, Inputs], S] | None = None  # its settings with q and k that somebody brought, instead of drawn ones
    drawn: Sequence[str] = ()  # dials of what is drawn, which do nothing then

    @property
    def command(self) -> Command[Any]:
        """How a shell calls it: by its name."""
        return Command(
            word=self.name,
            page=self.name,
            settings=self.settings,
            presets=self.presets,
            base=self.settings(),
            report=self.report,
            noise=self.noise,
            on=self.on,
            drawn=self.drawn,
            measured=self.measured_report,
            figures=None if self.exhibit is None else lambda settings: self.figures(self.run(settings)),
        )

    def beneath(self, result: R) -> Sequence[Section]:
        """What stands under the exhibit."""
        return [Section(sentences=self.explain(result)[1:])] if self.sections is None else self.sections(result)

    def figures(self, result: R) -> Sequence[Drawn]:
        """Its exhibit and those that stand under it, as far as they have rows."""
        drawn = [self.exhibit(result) if self.exhibit else None, *(each.exhibit for each in self.beneath(result))]
        return [each for each in drawn if each is not None and each[0].num_rows]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedLab(Lab[S, R]):
    """A lab whose answer is read off runs, which workers train and a store keeps.

    `plans` says what to train; `read` makes the answer of what every plan's telemetry is, None where it is not known.
    """

    plans: Callable[[S], Sequence[Plan]]
    read: Callable[[S, Sequence[Curves | None]], R]
    from_a_shell: Command[Any]

    @property
    def command(self) -> Command[Any]:
        """How a shell calls it: runs there have dials of their own."""
        return self.from_a_shell


def trained_here(
    plans: Callable[[S], Sequence[Plan]], read: Callable[[S, Sequence[Curves | None]], R]
) -> Callable[[S], R]:
    """The `run` of a trained lab: trains everything in this process, to its end."""
    return lambda settings: read(settings, [train_whole(plan).curves for plan in plans(settings)])
