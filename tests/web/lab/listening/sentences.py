"""Whether what is heard of a panel is true: `hold(said)`, by its kind."""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

import numpy as np

from qkdemo.charts.columns import span
from qkdemo.charts.panels import Curves, Heat
from qkdemo.charts.spec import Drawn, Exhibit
from qkdemo.notation import read
from tests.labs.told import reads
from tests.web.lab.listening.node import Heard
from tests.web.lab.listening.numbers import Array

HIDDEN: Final = "hidden by the causal mask"
NUMBER: Final = r"(?:undefined|< \S+|[−\d∞–][^,;: ]*)"
LEAST: Final = 2.0**-126  # what float32, in which most numbers are sent, tells from 0 with all its digits
SHARP: Final = 1e-3  # relative: a crossing between two such differences has to be named


class Said:
    """A panel as it is heard at a row, and what its columns hold."""

    def __init__(self, drawn: Drawn, heard: Heard, holds: Callable[[str], Array], map_step: int | None = None) -> None:
        self.table, self.view = drawn
        self.panel: Any = heard.panel
        self.row, self.words, self.cells = heard.row, heard.words, heard.cells
        self.holds = holds
        self.map_step = map_step or self.row + 1  # of a run: the latest one that has maps

    def column(self, name: str) -> Array:
        found = self.holds(name)
        return np.broadcast_to(found, (self.table.num_rows, *found.shape[1:]))

    def dial(self, row: int) -> str:
        return str(self.table.column(self.view["dial"]["text"])[row].as_py())

    def fail(self, why: str) -> NoReturn:
        raise AssertionError(f"{self.panel['title']}, row {self.row}: {why}\n{self.words}")

    def is_number(self, text: str, x: float, digits: int) -> None:
        if text.startswith("< "):
            right = abs(x) < read(text[2:])
        elif text == "undefined":
            right = math.isnan(x)
        elif text == "0":
            right = abs(x) < LEAST
        else:
            right = not math.isnan(x) and reads(text, x, digits)
        if not right:
            self.fail(f"{text} is said of {x!r}")

    def is_weight(self, text: str, x: float) -> None:
        """A weight that is known to the step of its colour alone."""
        if math.isnan(x) or x < 0:
            right = text == ("undefined" if math.isnan(x) else HIDDEN)
        else:
            kind, _, number = text.rpartition(" ")
            said = read(number)
            half = (round(250 * math.sqrt(x)) + 0.25) / 250**2  # of the step of its code
            unit = 0.01 if said >= 0.1 else 0.001 if said >= 0.001 else 1e-4  # of its last digit
            right = {
                "less than": x < said * (1 + 1e-6) and said <= 2e-4,
                "more than": x > said * (1 - 1e-6) and said > 0.99,
                "about": abs(said - x) < half + unit / 2 + 1e-9,
            }.get(kind, False)
        if not right:
            self.fail(f"{text} is said of {x!r}")

    def names_largest(self, where: str, all_of_it: Array, name: Callable[[int], str]) -> None:
        """The place of the largest is the one that is named, or among those that are."""
        best = name(int(np.nanargmax(all_of_it)))
        many = re.fullmatch(r"one of (\d+) places alike", where)
        named = where.removeprefix("one of these: ").split("; ")
        if not (3 < int(many[1]) <= all_of_it.size if many else best in named):
            self.fail(f"{where} is said, and {best} has the largest")


def sides_of(view: Exhibit) -> dict[str, str]:
    """What each role is called: as its line is in the first chart that has one."""
    sides: dict[str, str] = {}
    for each in view["panels"]:
        if each["kind"] == "curves":
            for line in each["lines"]:
                if line["label"]:
                    sides.setdefault(line["role"], line["label"])
    return sides


def names_of(view: Exhibit, panel: Any) -> list[tuple[Any, str]]:
    """The lines of a panel that have a name."""
    sides = sides_of(view)
    named = [(line, line.get("name") or line.get("label") or sides.get(line["role"], "")) for line in panel["lines"]]
    return [(line, name) for line, name in named if name]


def curves(it: Said) -> None:
    lines = names_of(it.view, it.panel)
    if not lines:
        assert not it.words
        return
    levels(it, lines)
    last = it.table.num_rows - 1
    values = ", ".join(rf"{re.escape(name)}: (.+?)" for _, name in lines)
    rows = [it.row, *([0, last] if last else [])]
    begun = (f"At {it.view['dial']['label']} ", "First, at ", "Last, at ")
    parts = [rf"{re.escape(words + it.dial(row))}: {values}\." for words, row in zip(begun, rows, strict=False)]
    found = re.match(" ".join(parts) + r"(?: |$)", it.words)
    if not found:
        it.fail("the sentence has another form")
    digits = [3 if "texts" in line else 4 for line, _ in lines] * len(rows)
    truths = [it.column(line["column"])[row] for row in rows for line, _ in lines]
    for text, x, many in zip(found.groups(), truths, digits, strict=True):
        it.is_number(text, float(x), many)
    rest = crossings(it, lines, it.words[found.end() :])
    assert rest == " ".join(marks(it))


def levels(it: Said, lines: list[tuple[Any, str]]) -> None:
    """A line that is named by a number, as a bound is, lies there all along."""
    for line, name in lines:
        if found := re.search(r"(?:bound:?|≤|≥) (\S+)$", name):
            for x in it.column(line["column"]):
                it.is_number(found[1], float(x), 4)


def marks(it: Said) -> Iterator[str]:
    """Each mark, and whose it is if they are not all one side's; where it stands, unless it says so itself."""
    names = sides_of(it.view) if len({mark["role"] for mark in it.panel["marks"]}) > 1 else {}
    along = np.array([place(it, x) for x in it.table.column(it.view["dial"]["column"]).to_pylist()])
    for mark in it.panel["marks"]:
        row = int(np.argmin(abs(along - place(it, mark["x"]))))
        label = mark["label"]
        begin = f"{names[mark['role']]}: " if names else ""
        yield begin + (f"{label}." if re.search(r"\d", label) else f"{label}: {it.dial(row)}.")


def place(it: Said, x: float) -> float:
    if not it.view["dial"]["log"]:
        return x
    return math.log(x) if it.table.column(it.view["dial"]["column"])[0].as_py() > 0 else math.log1p(x)


def crossings(it: Said, lines: list[tuple[Any, str]], rest: str) -> str:
    """Those that are said are some, and those that everybody sees are said; what is left of the words."""
    either = "|".join(sorted((re.escape(name) for _, name in lines), key=len, reverse=True))
    said = set[tuple[str, str, str]]()
    while found := re.match(rf"({either}) and ({either}) cross near (.+?)\.(?: |$)", rest):
        said.add((found[1], found[2], found[3]))
        rest = rest[found.end() :]
    clear, sharp = set[tuple[str, str, str]](), set[tuple[str, str, str]]()
    for i, (one, name) in enumerate(lines):
        for other, other_name in lines[i + 1 :]:
            a, b = it.column(one["column"]), it.column(other["column"])
            for row, before, after in changes(it.panel, a, b):
                clear.add((name, other_name, it.dial(row)))
                if min(before, after) > SHARP:
                    sharp.add((name, other_name, it.dial(row)))
    if not said <= clear:
        it.fail(f"nothing crosses: {said - clear}")
    if len(clear) <= 3 and not sharp <= said:
        it.fail(f"not said: {sharp - said}")
    return rest


def changes(panel: Curves, a: Array, b: Array) -> Iterator[tuple[int, float, float]]:
    """Rows near which a clear difference changes its sign, and how clear it is on either side."""
    low, high = panel["y"]["domain"]
    log = panel["y"]["log"]
    noise = max(2.0**-22, panel.get("noise", 0))
    before: tuple[int, float] | None = None
    for row, (one, other) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        if math.isnan(one) or math.isnan(other):
            before = None
            continue
        x, y = (max(one, low), max(other, low)) if log else (one, other)
        size = max(abs(x), abs(y), 0.0 if log else high - low)
        apart = 0.0 if x == y else math.copysign(1.0, x - y) if math.isinf(size) else (x - y) / size
        if abs(apart) <= noise:
            continue
        if before and before[1] * apart < 0:
            yield math.ceil((before[0] + row) / 2), abs(before[1]), abs(apart)
        before = row, apart


def key_name(panel: Any, at: int) -> str:
    pooled = panel.get("pooled")
    if pooled:
        return f"{pooled['keys']} {span(at, pooled)}"
    return f"{panel['key_label']} {at if panel['kind'] == 'heat' else panel['labels'][at]}".strip()


def largest_in(block: Array) -> float:
    return float(np.nan if np.isnan(block).any() else block.max())


def heat(it: Said) -> None:
    panel: Heat = it.panel
    if "ramp" in panel:
        assert not it.words
        return
    pooled = panel.get("pooled")
    each = pooled["each"] if pooled else 1
    weights = it.column(panel["column"])[it.row]
    cells = [(q, k) for q in range(panel["rows"]) for k in range(panel["columns"])]
    blocks = {(q, k): weights[q * each : (q + 1) * each, k * each : (k + 1) * each] for q, k in cells}
    held = {cell: largest_in(block) for cell, block in blocks.items()}
    names = {
        (q, k): f"{pooled['queries']} {span(q, pooled)}, {key_name(panel, k)}"
        if pooled
        else f"{panel['query_label']} {q}, {key_name(panel, k)}"
        for q, k in cells
    }
    for cell, (name, said) in zip(cells, it.cells, strict=True):
        assert name == (f"largest weight of {names[cell]}" if pooled else names[cell])
        it.is_weight(said, held[cell])
    if panel["selected"] is None:
        step = it.map_step
        begun = ("" if step == it.row + 1 else f"{it.view['dial']['label']} {step}. ") + "Largest: "
        assert it.words.startswith(begun)
        said, _, where = it.words.removeprefix(begun).removesuffix(".").partition(", ")
        every = np.array([held[cell] for cell in cells])
        it.is_weight(said, float(np.nanmax(every)))
        it.names_largest(where, every, lambda at: names[cells[at]])
        return
    query, key = panel["selected"]
    here, _, rest = it.words.partition(f". The largest weight of {'these queries' if pooled else 'this query'}: ")
    name, _, said = here.rstrip(".").rpartition(": ")
    assert name == it.cells[cells.index((query, key))][0]
    it.is_weight(said, held[query, key])
    row = np.array([held[query, k] for k in range(panel["columns"])])
    if np.isnan(row).all() or not rest:
        assert not rest
        assert not (row >= 0).any()
        return
    said, _, where = rest.removesuffix(".").partition(", at ")
    it.is_weight(said, float(np.nanmax(row)))
    it.names_largest(where, row, lambda k: key_name(panel, k))


def bars(it: Said) -> None:
    """Bars, or the words under arcs."""
    panel: Any = it.panel
    pooled, selected = panel.get("pooled"), panel["selected"] or 0
    each = pooled["each"] if pooled else 1
    every: list[Array] = []
    for line in panel["lines"]:
        if "numbers" in line:
            every.append(np.array([it.column(name)[it.row] for name in line["numbers"]]))
            continue
        held = it.column(line["column"])[it.row]
        held = held[selected] if panel["kind"] == "arcs" else held
        every.append(np.array([largest_in(held[at : at + each]) for at in range(0, len(held), each)]))
    sides = [name for _, name in names_of(it.view, panel)] or [""] * len(every)
    begin = [f"{side}: " if side else "" for side in sides]

    def one(text: str, at: int) -> None:
        found = re.fullmatch(", ".join(rf"{re.escape(side)}({NUMBER})" for side in begin), text)
        assert found, text
        for number, held in zip(found.groups(), every, strict=True):
            it.is_number(number, float(held[at]), 3)

    keys = [key_name(panel, at) for at in range(len(every[0]))]
    names = [f"largest weight of {key}" if pooled else key for key in keys]
    for at, (name, said) in enumerate(it.cells):
        assert name == names[at]
        one(said, at)
    here, _, rest = it.words.partition(". Largest: ")
    assert here.startswith(f"{names[selected]}: ")
    one(here.removeprefix(f"{names[selected]}: "), selected)
    largest = re.fullmatch("; ".join(rf"{re.escape(side)}(.+?)" for side in begin) + r"\.", rest)
    assert largest, rest
    for held, said in zip(every, largest.groups(), strict=True):
        if said == "undefined":
            assert np.isnan(held).any()
            continue
        number, _, where = said.partition(", ")
        it.is_number(number, float(held.max()), 3)
        it.names_largest(where, held, lambda at: keys[at])


def arrows(it: Said) -> None:
    panel, key = it.panel, it.panel["selected"]
    length, angle = (it.column(panel[name])[it.row][key] for name in ("lengths", "angles"))
    found = re.fullmatch(r"Key (\d+): length (.+?), (?:angle (\d+)°|no angle, since an arrow has length 0)\.", it.words)
    assert found, it.words
    assert int(found[1]) == (panel["keys"][key] if "keys" in panel else key)
    it.is_number(found[2], float(length), 3)
    if min(length, it.column(panel["query"])[it.row]) < LEAST:
        assert not found[3], it.words
    else:
        assert abs(int(found[3]) - math.degrees(angle)) <= 0.5 + 1e-4


def nothing(it: Said) -> None:
    assert not it.words
    assert not it.cells


KINDS: Final = {"curves": curves, "heat": heat, "bars": bars, "arcs": bars, "arrows": arrows} | dict.fromkeys(
    ("cells", "grid"), nothing
)


def hold(said: Said) -> None:
    """Every number that is said is the one that its column holds."""
    KINDS[said.panel["kind"]](said)
