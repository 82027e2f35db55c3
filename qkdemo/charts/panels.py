"""What a panel of an exhibit is, as types: its axes, lines and marks, and the seven kinds of panels.

* `Panel`: one of `Curves`, `Heat`, `Bars`, `Cells`, `Grid`, `Arcs`, `Arrows`;
* `Role`, `Entry`, `Axis`, `Line`, `Mark`, `Point`, `Level`: what stands in them. Columns are those of the exhibit's
  table.
"""

from collections.abc import Mapping
from typing import Literal, NotRequired, TypeAlias, TypedDict

# Attention without a norm, with one, and what bounds it: colours one to three of the theme's palette. Left and right
# are compared and are neither; the first is what the second should be: the text's colour, colour five. Other is grey.
Role: TypeAlias = Literal["plain", "norm", "bound", "left", "right", "other"]
Tick: TypeAlias = tuple[float, str]  # where it stands, and what is written there


class Text(TypedDict):
    """A constant."""

    text: str


Entry: TypeAlias = str | Text  # a string column, or a word that names none


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
    name: NotRequired[str]  # what it is called where it is heard, if not by its label or its role's
    texts: NotRequired[str]  # a string column: its numbers as they are said, where it is drawn at other heights


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
    on_paper: NotRequired[str]  # the subtitle where nothing can be pressed
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
    noise: NotRequired[float]  # relative: how far two computed numbers may be apart and be the same


class Details(TypedDict):
    """Texts of any cell, asked for at url&row=&column=&name=. A panel shows the answer: a title, texts by column."""

    url: str
    panel: int
    numbers: Mapping[str, list[str]]  # one text for each cell


BRIGHTEST, MASKED, UNDEFINED = 250, 254, 255  # codes of a heat map


class Pooled(TypedDict):
    """Of what holds the largest of several: of how many queries, and keys; how many there are; what they are called."""

    each: int
    of: int
    queries: str
    keys: str


class Heat(_Panel):
    """A matrix. Codes 0 to 250 are parts of the colour; a weight is (code / 250)². 254 is masked, 255 undefined."""

    kind: Literal["heat"]
    role: Role
    column: str
    rows: int
    columns: int
    selected: tuple[int, int] | None  # query and key
    query_label: str
    key_label: str
    pooled: NotRequired[Pooled]
    coarse: NotRequired[int]  # where all codes are multiples of it, each stands for as many: they were kept so
    ramp: NotRequired[list[Tick]]  # sizes at parts of the whole colour, 0 to 1; without it cells are attention weights
    details: NotRequired[Details]


class BarsLine(TypedDict):
    """Bars of one side: a vector column."""

    role: Role
    column: str
    label: NotRequired[str]  # what it is called where it is heard, if not as its role's first line
    numbers: NotRequired[list[str]]  # where heights are not the numbers: columns that hold these, with "….text" each


class Note(TypedDict):
    """What is written over a bar while the dial stands at x; over the largest, if `entry` is none."""

    role: Role
    column: str
    entry: int | None
    x: float
    label: str


class Bars(_Panel):
    """Shares from 0 to 1, side by side. Pooled bars have the numbers of their keys as labels."""

    kind: Literal["bars"]
    lines: list[BarsLine]
    labels: list[str]
    selected: int | None
    key_label: str
    y: NotRequired[PlainAxis]
    pooled: NotRequired[Pooled]
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
    keys: NotRequired[list[int]]  # which ones they are, where they are not the first ones or not all
    reach: float  # a length that reaches the frame
    ring: float | None
    label: str  # a string column


Panel: TypeAlias = Curves | Heat | Bars | Cells | Grid | Arcs | Arrows
