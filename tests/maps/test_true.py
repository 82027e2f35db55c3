"""Every sentence about a map or a phase diagram is true of its cells: numbers drawn from a seed, no lab is run."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np

from qkdemo.labs.registry import LABS
from qkdemo.maps.cells import Cells
from qkdemo.maps.difference import Minus, difference
from qkdemo.maps.phases.cells import SHARES, Cell, End, cells
from qkdemo.maps.phases.diagram import BASE, Diagram
from qkdemo.maps.phases.picture import alt as phase_alt
from qkdemo.maps.phases.picture import finding as phase_finding
from qkdemo.maps.request import request_of
from qkdemo.maps.words import alt, cell_words, finding, reads_short
from qkdemo.messages import say
from qkdemo.notation import written
from tests.oracles import NOTHING, Oracle, Said, heard, hold, keys, near

DRAWN: Final = 300
_OF_MARKS: Final = ("lost_in_float16", "undefined_rows", "too_large_for_float8", "bound", "largest_entry")
_KINDS: Final = ("x", "y", "x_mostly", "y_mostly", "both", "flat", "few")


def drawn(rng: np.random.Generator) -> Cells:
    """A map of the drift lab whose numbers are drawn: flat, along one dial, of few finite cells, of none."""
    measure = str(rng.choice(["entropy_fraction", "max_abs_logit", "entropy"]))
    request = request_of(
        "drift", LABS["drift"].settings(scale=float(rng.choice([8, 8, 0.02]))), "scale:0.1:1000", "gain:1:30", measure
    )
    n_x, n_y = int(rng.choice([2, 3, 5])), int(rng.choice([2, 3, 5]))
    xs, ys = np.geomspace(0.1, 1000, n_x).tolist(), np.linspace(1, 30, n_y).tolist()
    sides = {}
    for role in ("plain", "norm"):
        base = np.full((n_y, n_x), float(rng.choice([0.0, 1.0, 50.0])))
        base = base + rng.choice([0, 0, 0.01, 1, 100]) * np.linspace(0, 1, n_x)
        base = base + rng.choice([0, 0, 0.01, 1]) * np.linspace(0, 1, n_y)[:, None]
        holes = rng.random(base.shape) < rng.choice([0, 0, 0.2, 0.8, 1])
        base[holes] = rng.choice([np.nan, np.inf, 0.0], int(holes.sum()))
        sides[role] = dict.fromkeys((*request.plane.measures, *_OF_MARKS), base)
    if rng.random() < 0.2:
        sides["norm"] = sides["plain"]
    return Cells(request, tuple(xs), tuple(ys), sides)


class Told:
    """A map, and the sides that are spoken of by their names."""

    def __init__(self, made: Cells, said: list[Said]) -> None:
        self.made, self.said = made, said
        self.sides = {name: made.shown(role) for role, name in made.names.items()}
        self.log = made.scale == "log"

    def side(self, said: Said) -> Any:
        return self.sides[str(said.values["side"])]

    def cell(self, text: object, values: Any) -> float:
        """The number of the cell that is named."""
        for j in range(len(self.made.y)):
            for i in range(len(self.made.x)):
                with heard() as named:
                    cell_words(self.made, i, j)
                if next(each for each in named if each.key == "map.at").sentence == text:
                    return float(values[j, i])
        raise AssertionError(text)


def _finite(told: Told, values: Any) -> Any:
    """Those that are compared, as they are: NaN elsewhere."""
    kept = np.isfinite(values) & ((values != 0) if told.log else True)
    with np.errstate(all="ignore"):
        return np.where(kept, np.log10(np.abs(values)) if told.log else values, np.nan)


def _all_zero(told: Told, values: Any) -> bool:
    """Whether every finite cell of a map of decades is 0."""
    finite = values[np.isfinite(values)]
    return told.log and finite.size > 0 and not finite.any()


def _unknown(told: Told, values: Any) -> bool:
    return bool(np.isnan(_finite(told, values)).all()) and not _all_zero(told, values)


def changes(kind: Literal["x", "y", "x_mostly", "y_mostly", "both", "flat", "few"]) -> Oracle:
    """How far two finite cells of one line along each dial are apart, beside all of the map."""

    def most(lines: Any) -> float:
        apart = [np.nanmax(line) - np.nanmin(line) for line in lines if np.isfinite(line).sum() > 1]
        return float(max(apart, default=math.nan))

    def holds(told: Told, values: Any) -> bool:
        shown = _finite(told, values)
        whole = float(np.nanmax(shown) - np.nanmin(shown))
        x, y = most(shown), most(shown.T)
        if kind == "flat":
            return np.isfinite(shown).sum() > 1 and whole <= 0.021 * (1 if told.log else np.nanmax(np.abs(shown)))
        if kind == "few":
            return np.isfinite(shown).sum() == 1 or math.isnan(x) or math.isnan(y) or max(x, y) < 0.03 * whole
        little = min(0.021 * whole, 0.105) if told.log else 0.021 * whole  # of decades: by a quarter
        right = {"x": y < 1e-5 * whole < x, "y": x < 1e-5 * whole < y, "both": min(x, y) > 0.9 * little}
        right |= {"x_mostly": 0 < y < little < x, "y_mostly": 0 < x < little < y}
        return right[kind]

    def oracle(said: Said, told: Told) -> bool:
        values = [told.side(said)] if "side" in said.values else list(told.sides.values())
        if kind == "flat" and any(_all_zero(told, each) for each in values):
            return True
        return any(holds(told, each) for each in values if np.isfinite(_finite(told, each)).any())

    return oracle


def among(said: Said, told: Told) -> bool:
    """That something is said of a part of the cells, and of which."""
    odd = [values for values in told.sides.values() if not np.isfinite(values).all()]
    zeros = [values for values in told.sides.values() if told.log and (values == 0).any()]
    return bool(zeros if said.key.endswith("nonzero") else odd)


def nothing_left_out(told: Told) -> None:
    """What is said of all cells of a side is said of a side without others."""
    inside = [each.sentence for each in told.said if each.key.startswith("map.among.")]
    for each in told.said:
        if each.key.startswith("map.finding.") and not any(each.sentence[1:] in text for text in inside):
            values = told.side(each)
            assert np.isnan(_finite(told, values)).all() or not np.isnan(_finite(told, values)).any(), each.sentence


def signs(said: Said, told: Told) -> bool:
    """Counted with what is more than rounding."""
    sides = [told.side(said)] if "side" in said.values else list(told.sides.values())
    for values in sides:
        least = 1e-9 * np.abs(values[np.isfinite(values)]).max(initial=0)
        counts = [(values > least).sum(), (values < -least).sum(), values.size]
        if [said.number(name) for name in ("above", "below", "all")] == counts:
            return True
    return False


def extreme(pick: Any) -> Oracle:
    def holds(said: Said, told: Told) -> bool:
        value = said.number("value")
        return any(
            near(value, float(pick(values[np.isfinite(values)])))
            and near(value, told.cell(said.values["at"], values))
            and len({written(float(end(values[np.isfinite(values)]))) for end in (np.min, np.max)}) == 2
            for values in told.sides.values()
            if np.isfinite(values).any() and bool(np.isfinite(values).all()) != said.key.endswith("_finite")
        )

    return holds


def parted(said: Said, told: Told) -> bool:
    one, other = (told.sides[str(said.values[name])] for name in ("one", "other"))
    both = np.isfinite(one) & np.isfinite(other)
    larger = np.maximum(np.abs(one), np.abs(other))[both]
    apart = np.abs(one[both] - other[both]) > 0.01 * larger
    if said.key == "map.alt.alike":
        return not apart.any()
    first, second = (told.cell(said.values["at"], values) for values in (one, other))
    values = near(said.number("first"), first) and near(said.number("second"), second)
    most = near(abs(first - second), float(np.abs(one[both] - other[both]).max()), 2e-3)
    return said.number("count") == apart.sum() > 0 and said.number("all") == both.sum() and values and most


def marked(said: Said, told: Told) -> bool:
    """Counted on one of the sides, with none that rounding takes away."""
    made, numbers = told.made, [said.number("count"), said.number("all")]
    return any(
        say(f"mark.{mark}") == said.values["mark"] and numbers == [rule(side).sum(), rule(side).size]
        for mark, rule in made.request.plane.marks.items()
        for side in made.sides.values()
    )


def counted(count: Any) -> Oracle:
    return lambda said, told: any(
        said.number("count") == count(values).sum() and said.number("all") == values.size
        for values in told.sides.values()
    )


MAPS: Final[Mapping[str, Oracle]] = {
    **{f"map.{of}.{kind}": changes(kind) for of in ("finding", "short") for kind in _KINDS},
    "map.finding.none": lambda said, told: _unknown(told, told.side(said)),
    "map.short.none": lambda said, told: any(_unknown(told, values) for values in told.sides.values()),
    "map.among.finite": among,
    "map.among.nonzero": among,
    "map.minus.some": signs,
    "map.minus.short": signs,
    "map.minus.same_everywhere": lambda said, told: set(told.side(said)[np.isfinite(told.side(said))]) == {0.0},
    "map.minus.none": lambda said, told: not np.isfinite(told.side(said)).any(),
    "map.minus.name": NOTHING,
    "map.minus.decades": NOTHING,
    "map.minus.measure": NOTHING,
    "map.alt.what": lambda said, told: said.number("columns") == len(told.made.x),
    **dict.fromkeys(("map.alt.lowest", "map.alt.lowest_finite"), extreme(np.min)),
    **dict.fromkeys(("map.alt.highest", "map.alt.highest_finite"), extreme(np.max)),
    "map.alt.part": parted,
    "map.alt.alike": parted,
    "map.alt.mark": marked,
    "map.alt.cross": lambda said, told: (
        told.made.request.settings.scale > 0.1
        and any(near(said.number("value"), told.cell(said.values["at"], values)) for values in told.sides.values())
    ),
    "map.infinite": counted(np.isinf),
    "map.undefined": counted(np.isnan),
    **dict.fromkeys(keys("map.at", "map.range", "map.keys.cell", "measure.", "mark.", "dial.", "variant."), NOTHING),
    **dict.fromkeys(keys("drift."), NOTHING),
}

# ---- phase diagrams


def drawn_ends(rng: np.random.Generator) -> tuple[Diagram, list[End]]:
    """Some of the runs of a small diagram, and how they ended."""
    xs, ys = ((0.002, 0.02), (0.5, 1.0, 2.0)) if rng.random() < 0.5 else ((0.002, 0.02, 0.2), (1.0,))
    diagram = Diagram("learning_rate", xs, "qk_start", ys, seeds=tuple(range(int(rng.choice([1, 2])))))
    kept = rng.choice([0.0, 0.5, 0.9, 1.0])
    ends = []
    for run in diagram.runs:
        if rng.random() < kept:
            end = str(rng.choice(["solved", "solved", "solved", "partly", "lost", "chance", "non_finite"]))
            outcome = end if end in ("solved", "partly") else "failed"
            ends.append(End(run, outcome, end, bool(rng.random() < 0.3), 0.1))
    return diagram, ends


class Phases:
    """The runs of a diagram, by side and row."""

    def __init__(self, diagram: Diagram, ends: list[End], share: str) -> None:
        self.diagram, self.ends, self.share = diagram, ends, share

    def of(self, said: Said, *, row: bool = False) -> list[list[End]]:
        """The cells, each its runs, of the side or the row that is spoken of; of both sides if none is named."""
        found = []
        for remedy in self.diagram.remedies:
            for y in self.diagram.ys:
                for x in self.diagram.xs:
                    named = "side" not in said.values or (remedy == "none") == (
                        "plain" in str(said.values["side"]).lower()
                    )
                    if named and (not row or near(said.number("at"), float(y))):
                        state = {"variant": remedy, "learning_rate": x, "qk_start": y}
                        found.append([end for end in self.ends if state.items() <= end.settings.as_dict().items()])
        return found

    def so(self, end: End) -> bool:
        return {"spiked": end.spiked, "non_finite": end.end == "non_finite"}.get(self.share, end.outcome == self.share)

    def whole(self, cell: list[End]) -> bool:
        return len(cell) == len(self.diagram.seeds)


def solved_cells(said: Said, told: Phases) -> bool:
    full = [cell for cell in told.of(said) if told.whole(cell)]
    return said.number("cells") == len(full) and said.number("whole") == sum(
        all(e.end == "solved" for e in c) for c in full
    )


def found(said: Said, told: Phases) -> bool:
    """Of one of both sides where none is named."""
    runs, n_x = told.of(said, row="at" in said.values), len(told.diagram.xs)
    sides = [runs] if "side" in said.values else [runs[:n_x], runs[n_x:]]
    numbers = [said.number("count"), said.number("runs")]
    return numbers in [[sum(told.so(e) for c in side for e in c), sum(map(len, side))] for side in sides]


def row(said: Said, told: Phases) -> bool:
    runs, n_x = told.of(said, row=True), len(told.diagram.xs)
    for side in (runs[:n_x], runs[n_x:]):
        full = [(x, cell) for x, cell in zip(told.diagram.xs, side, strict=True) if told.whole(cell)]
        good = [x for x, cell in full if all(end.end == "solved" for end in cell)]
        ends = [said.number(name) for name in ("count", "low", "high")] if said.key.endswith("row") else []
        if ends and good and np.allclose(ends, [len(good), good[0], good[-1]], rtol=6e-3):
            return True
        if (said.key.endswith("none") and full and not good) or (said.key.endswith("open") and not full):
            return True
    return False


PHASES: Final[Mapping[str, Oracle]] = {
    "phases.finding": solved_cells,
    "phases.untrained": lambda said, told: (
        not any(told.whole(c) if told.share == "solved" else c for c in told.of(said))
    ),
    "phases.found": found,
    "phases.alt.counted": found,
    "phases.alt.row": row,
    "phases.alt.none": row,
    "phases.alt.open": row,
    "phases.alt.what": NOTHING,
    **dict.fromkeys(keys("phases.counted.", "dial.", "variant."), NOTHING),
}
ORACLES: Final = MAPS | PHASES


def search(seeds: range) -> set[str]:
    """Which keys were said of the maps and diagrams of these seeds."""
    asked: set[str] = set()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        made = drawn(rng)
        whole = made
        if rng.random() < 0.3:
            other = replace(drawn(np.random.default_rng(seed)), sides=drawn(rng).sides) if rng.random() < 0.5 else None
            if other is None or other.shown("plain").shape == made.shown("plain").shape:
                minus = Minus("plain", role="plain") if other is None else Minus("seed=3")
                made = difference(whole, other, minus)
        with heard() as said, np.errstate(all="ignore"):
            finding(made)
            for role in made.sides:
                reads_short(made, role)
                alt(made, role)
        told = Told(made, list(said))
        asked |= hold(told.said, MAPS, told, f"seed {seed}")
        nothing_left_out(told)
        diagram, ends = drawn_ends(rng)
        share = str(rng.choice(SHARES, p=[0.5, 0.1, 0.2, 0.1, 0.1]))
        counted_cells: list[Cell] = cells(ends, diagram)
        with heard() as said:
            phase_finding(counted_cells, diagram, share)
            for remedy in diagram.remedies:
                phase_alt(counted_cells, remedy, diagram, share)
        asked |= hold(said, PHASES, Phases(diagram, ends, share), f"seed {seed}")
    return asked


def test_every_sentence_about_a_map_or_a_phase_diagram_is_true_of_it() -> None:
    assert BASE.schedule == "constant"
    asked = search(range(DRAWN))
    assert {key for key in ORACLES if key.startswith(("map.", "phases."))} - asked <= RARE


RARE: Final = {"map.minus.decades", "map.minus.name", "map.keys.cell", "phases.counted.solved"}
