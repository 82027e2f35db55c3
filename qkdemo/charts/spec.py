"""What an exhibit is, as types: the contract between the labs' views, the browser that draws them, and paper.

* `Exhibit`: a dial, tiles, and panels over it;
* its panels are those of `qkdemo.charts.panels`;
* `Drawn`: the table of an exhibit, and how it is drawn; `Pick`: what a visitor picked in it, by name.

The table has one row per position of the dial, ascending in its column: float64 scalars, fixed-size lists of float32
(vectors) or uint8 (matrices, row by row), and strings, which are every text that follows the cursor. Scalars and
vectors may hold ±inf and NaN; an exhibit is JSON and holds neither. What the browser's scripts know of these types is
made from here: `python -m tests.javascript.declarations`.
"""

from collections.abc import Mapping
from typing import NotRequired, TypeAlias, TypedDict

import pyarrow as pa

from qkdemo.charts.panels import Entry, Panel, Role


class Pick(TypedDict, total=False):
    """What a visitor picked: a value of the dial, a cell, a bar, a way on; or a command to a live exhibit."""

    dial: float
    query: int
    key: int
    row: int
    column: int
    fork: int
    news: int
    command: str
    guess: float  # a drawn prediction
    again: int  # the browser lacks parts that it was sent


class Dial(TypedDict):
    """Along which the exhibit is dragged. A logarithmic dial that starts at 0 is laid out by log(1 + x)."""

    column: str
    name: NotRequired[str]  # the dial's, if the column has another
    text: str  # a string column
    label: str
    at: float  # the committed value, equal to one row
    log: bool


class TileLine(TypedDict):
    """One number of a tile."""

    role: Role
    column: Entry


class Tile(TypedDict):
    """A quantity in numbers; tiles are read as a causal chain."""

    label: str
    lines: list[TileLine]


class Fork(TypedDict):
    """A way on from the step that is shown."""

    label: str
    help: str


class Live(TypedDict, total=False):
    """Where the rows of a live exhibit come from, as `web.training.stream` writes them: they are not in the table."""

    url: str
    source: str  # another one: begin anew
    columns: list[str]  # scalars, in order
    steps: int
    own: bool
    shipped: bool  # it came with the app: `train` trains it here
    pace: float  # steps a second
    resting: bool  # whether it rested when the page was drawn
    shown: int  # after so many steps; news come when it rests after others
    watch: bool  # its answer was just asked for: what is recorded is played once
    lead: str  # which names the step that is shown
    forks: list[Fork]


# An open question: nothing from `from` towards x, or beyond, is shown; and in which column the answer is drawn.
Veil = TypedDict("Veil", {"x": float, "from": float, "column": str, "low": float, "high": float}, total=False)


class Guess(TypedDict):
    """A prediction."""

    column: str
    x: float
    y: float
    label: str


class Fold(TypedDict):
    """What the button says that shows the rest, and folds it away again."""

    more: str
    less: str


class Exhibit(TypedDict):
    """Everything but the table."""

    dial: Dial
    finding: str  # a string column: the headline
    room: NotRequired[str]  # a text for which the headline keeps room, if a longer one than there is may come
    heading: NotRequired[int]  # level of the headline, 2 unless given; panel titles are one below
    tiles: list[Tile]
    panels: list[Panel]
    # hint, png, svg, undefined; arcs, heat, bars, grid: how a keyboard picks there; and how `hear.js` says a picture
    words: Mapping[str, str]
    alt: str  # what it shows at the committed value, for those who do not see it
    fold: NotRequired[Fold]  # what is the rest is not shown until a press
    live: NotRequired[Live]
    made: NotRequired[str]  # below a picture that is saved: the other dials and the versions
    veil: NotRequired[Veil | None]  # what a track adds
    guesses: NotRequired[list[Guess]]
    lecture: NotRequired[bool]  # whether a hall looks on
    stop: NotRequired[bool]  # whether it stands beside a stop, whose title is the page's


Drawn: TypeAlias = tuple[pa.Table, Exhibit]
