"""What an exhibit is, as types: the contract between the labs' views, the browser that draws them, and paper.

* `Exhibit`: a dial, tiles, and panels over it;
* `Panel`: one of `Curves`, `Heat`, `Bars`, `Cells`, `Grid`, `Arcs`, `Arrows`;
* `Drawn`: the table of an exhibit, and how it is drawn; `Pick`: what a visitor picked in it, by name.

The table has one row per position of the dial, ascending in its column: float64 scalars, fixed-size lists of float32
(vectors) or uint8 (matrices, row by row), and strings, which are every text that follows the cursor. Scalars and
vectors may hold ±inf and NaN; an exhibit is JSON and holds neither. What the browser's scripts know of these types is
made from here: `python -m tests.javascript.declarations`.
"""

from collections.abc import Mapping
from typing import Literal, NotRequired, TypeAlias, TypedDict

import pyarrow as pa

# Attention without a norm, with one, and what bounds it: colours one to three of the theme's palette. Left and right
# are compared and are neither; the first is what the second should be: the text's colour, colour five. Other is grey.
Role: TypeAlias = Literal["plain", "norm", "bound", "left", "right", "other"]
Tick: TypeAlias = tuple[float, str]  # where it stands, and what is written there


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


class Text(TypedDict):
    """A constant."""

    text: str


Entry: TypeAlias = str | Text  # a string column, or a word that names none


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


class PlainAxis(TypedDict):
    """An axis that something else lays out."""

    ticks: list[Tick]


class Axis(TypedDict):
    """A vertical axis."""

    log: bool
    domain: tuple[float, float]
    ticks: list[Tick]
    grows: NotRequired[bool]  # it takes in what arrives


class Line(TypedDict):
    """A curve over the dial."""

    role: Role
    column: str
    label: str
    low: NotRequired[str]  # the columns between which a band is laid
    high: NotRequired[str]
    dots: NotRequired[bool]  # at the rows that are known


class Mark(TypedDict):
    """A place on the dial."""

    x: float
    label: str
    role: Role


class Point(TypedDict):
    """A point; one that is `read` lies on a line, and a sentence quotes it."""

    x: float
    y: float
    role: Role
    label: str
    read: NotRequired[bool]


class Level(TypedDict):
    """A height, from side to side."""

    y: float
    label: str


class _Panel(TypedDict):
    title: str
    subtitle: NotRequired[str]
    wide: int  # columns of 12
    tall: NotRequired[bool]  # a picture of nearly twice the height
    matters: NotRequired[bool]  # a track's stop is about it; it comes first where there is room for one
    rest: NotRequired[bool]  # it is not shown until the exhibit is unfolded
    folded: NotRequired[int]  # how wide it is until then


class Curves(_Panel):
    """Curves over the dial."""

    kind: Literal["curves"]
    x: PlainAxis
    y: Axis
    lines: list[Line]
    marks: list[Mark]
    points: NotRequired[list[Point]]
    levels: NotRequired[list[Level]]
    labels: NotRequired[Literal["apart"]]  # inside, where a line is far from the others; for lines that end together


class Details(TypedDict):
    """Texts of any cell, asked for at url&row=&column=&name=. A panel shows the answer: a title, texts by column."""

    url: str
    panel: int
    numbers: Mapping[str, list[str]]  # one text for each cell


class Heat(_Panel):
    """A matrix. Codes 0 to 250 are the weight (code / 250)², 254 is masked, 255 is undefined."""

    kind: Literal["heat"]
    role: Role
    column: str
    rows: int
    columns: int
    selected: tuple[int, int] | None  # query and key
    query_label: str
    key_label: str
    each: NotRequired[int]  # how many queries, and keys, a cell stands for
    chosen: NotRequired[tuple[int, int]]  # the numbers of the selected two, then
    details: NotRequired[Details]


class BarsLine(TypedDict):
    """Bars of one side: a vector column."""

    role: Role
    column: str


class Note(TypedDict):
    """What is written over a bar while the dial stands at x; over the largest, if `entry` is none."""

    role: Role
    column: str
    entry: int | None
    x: float
    label: str


class Bars(_Panel):
    """Shares from 0 to 1, side by side."""

    kind: Literal["bars"]
    lines: list[BarsLine]
    labels: list[str]
    selected: int | None
    key_label: str
    y: NotRequired[PlainAxis]
    notes: NotRequired[list[Note]]


class Cells(_Panel):
    """A table."""

    kind: Literal["cells"]
    head: list[Entry]
    roles: list[Role | None]
    rows: list[list[Entry]]
    strong: NotRequired[int]  # row
    breaks: NotRequired[list[int]]  # columns whose long texts break anywhere; it scrolls sideways where it is narrow


class Head(TypedDict):
    """A column of a grid: in short, and in full."""

    text: str
    label: str
    rest: NotRequired[bool]  # it is not shown until the exhibit is unfolded


class GridRow(Head):
    """A row of a grid: the texts of its cells, joined by tabs, and a digit for each: 0 (quiet) to 3 (loudest)."""

    role: Role
    column: str
    tones: str


class Grid(_Panel):
    """A table whose cells are picked."""

    kind: Literal["grid"]
    corner: str
    head: list[Head]
    rows: list[GridRow]
    selected: tuple[int, int]  # row and column


class Arcs(_Panel):
    """A sentence between arcs of attention: the first line's above, the second's below; weights, row by row."""

    kind: Literal["arcs"]
    labels: list[str]
    lines: list[Line]
    selected: int  # whose arcs are in colour
    key_label: str


class Arrows(_Panel):
    """A query and its keys by angle and length; the keys' are vector columns."""

    kind: Literal["arrows"]
    role: Role
    angles: str
    lengths: str
    query: str  # a scalar column
    selected: int
    reach: float  # a length that reaches the frame
    ring: float | None
    label: str  # a string column


Panel: TypeAlias = Curves | Heat | Bars | Cells | Grid | Arcs | Arrows


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
    veil: NotRequired[Veil | None]  # what a track adds
    guesses: NotRequired[list[Guess]]
    lecture: NotRequired[bool]  # whether a hall looks on


Drawn: TypeAlias = tuple[pa.Table, Exhibit]
