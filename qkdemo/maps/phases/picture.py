"""The phase diagram drawn and in words.

* `phase_spec(diagram, share)`, `phase_table(made, remedy, share)`: a side as Altair draws it;
  `alt(made, remedy, diagram, share)`, `finding(made, diagram, share)`: in words; `side_name(remedy)`.

A tile's colour is the share of seeds that solved the task, or that ended otherwise, and the number on it how many they
are.
"""

from collections.abc import Sequence
from typing import Any, cast

import altair as alt_air
import pyarrow as pa

from qkdemo.charts.theme import numbered
from qkdemo.dials import Value
from qkdemo.maps.phases.cells import Cell
from qkdemo.maps.phases.diagram import DEFAULT, Diagram
from qkdemo.maps.picture import tall
from qkdemo.messages import in_each_language, say
from qkdemo.notation import plain, written
from qkdemo.training.settings import RemedyWord, identity


def phase_table(made: Sequence[Cell], remedy: str, share: str = "solved") -> pa.Table:
    """One row per cell of a side."""
    of_side = [cell for cell in made if cell.remedy == remedy]
    columns: dict[str, list[Any]] = {
        "across": [_text(cell.x) for cell in of_side],
        "up": [_text(cell.y) for cell in of_side],
        "share": [cell.count(share) / cell.seeds for cell in of_side],
        "count": [str(cell.count(share)) for cell in of_side],
        "said": [_ends(cell) for cell in of_side],
    }
    kinds = {"share": pa.float64()}
    return pa.table({name: pa.array(column, kinds.get(name, pa.string())) for name, column in columns.items()})


@in_each_language(maxsize=16)
def phase_spec(diagram: Diagram = DEFAULT, share: str = "solved", *, hall: bool = False) -> dict[str, Any]:
    """Tiles, and how many seeds solved the task, or ended otherwise, on each; larger where a hall looks on."""
    across, up = (say(f"dial.{name}.label") for name in (diagram.x, diagram.y))
    xs, ys = [_text(x) for x in diagram.xs], [_text(y) for y in reversed(diagram.ys)]
    place = {
        "x": alt_air.X("across:O", scale=alt_air.Scale(domain=xs), title=across, axis=alt_air.Axis(labelAngle=0)),
        "y": alt_air.Y("up:O", scale=alt_air.Scale(domain=ys), title=up),
    }
    tips = [
        alt_air.Tooltip("across:N", title=across),
        alt_air.Tooltip("up:N", title=up),
        alt_air.Tooltip("said:N", title=say("phases.ends")),
    ]
    ramp: Any = "diverging" if share == "solved" else "ramp"  # of what is not wished for, much is not good
    scale = alt_air.Scale(domain=[0, 1], range=ramp, interpolate="lab")
    legend = alt_air.Legend(orient="bottom", gradientLength=260, gradientThickness=12, titleLimit=900, format="~g")
    base = alt_air.Chart(alt_air.NamedData(name="marks"))
    colour = alt_air.Color(
        "share:Q", scale=scale, legend=legend, title=say("phases.share", what=say(f"phases.counted.{share}"))
    )
    tiles = base.mark_rect().encode(**place, color=colour, tooltip=tips)
    numbers = [
        base.mark_text(fontSize=22 if hall else 13, fontWeight=600, color=ink, stroke=ink, strokeWidth=width).encode(
            **place, text="count:N"
        )
        for width, ink in ((3.5, "#FFFFFF"), (0, "#14171C"))
    ]
    made: dict[str, Any] = alt_air.layer(tiles, *numbers).properties(height=tall(hall=hall)).to_dict()
    for layer in made["layer"]:
        layer.pop("data", None)
    for name in ("$schema", "config", "data", "datasets"):
        made.pop(name, None)
    return numbered(made | {"usermeta": {"embedOptions": {"renderer": "canvas"}}})


def finding(made: Sequence[Cell], diagram: Diagram = DEFAULT, share: str = "solved") -> str:
    """In how many cells every seed solves the task, on every side; of cells of which all seeds are trained.

    Of another share: how many runs of all cells it is.
    """
    said = []
    for remedy in diagram.remedies:
        of_side, side = [cell for cell in made if cell.remedy == remedy], side_name(remedy)
        side = side[0].upper() + side[1:]
        full = [cell for cell in of_side if cell.seeds == len(diagram.seeds)]
        if not (full if share == "solved" else of_side):
            said.append(say("phases.untrained", side=side))
        elif share == "solved":
            whole = sum(cell.solved == cell.seeds for cell in full)
            said.append(say("phases.finding", side=side, whole=whole, cells=len(full)))
        else:
            count, runs = _runs(of_side, diagram, share)
            said.append(say("phases.found", side=side, count=count, runs=runs, what=say(f"phases.counted.{share}")))
    return " ".join(said)


def alt(made: Sequence[Cell], remedy: str, diagram: Diagram = DEFAULT, share: str = "solved") -> str:
    """What the picture of a side shows, row by row: where every seed solves the task, or how many end otherwise."""
    across, up = (say(f"dial.{name}.label") for name in (diagram.x, diagram.y))
    sentences = [say("phases.alt.what", side=side_name(remedy), x=across, y=up)]
    if share != "solved":
        return " ".join([*sentences, *_counted(made, remedy, diagram, share)])
    for y in diagram.ys:
        row = [cell for cell in made if cell.remedy == remedy and cell.y == y and cell.seeds == len(diagram.seeds)]
        good = [cell.x for cell in row if cell.solved == cell.seeds]
        key = "phases.alt.row" if good else "phases.alt.none" if row else "phases.alt.open"
        values = {"low": _text(good[0]), "high": _text(good[-1]), "count": len(good)} if good else {}
        sentences.append(say(key, y=up, at=_text(y), x=across, **values))
    return " ".join(sentences)


def _counted(made: Sequence[Cell], remedy: str, diagram: Diagram, share: str) -> list[str]:
    """Row by row, how many runs ended in one way."""
    up, what = say(f"dial.{diagram.y}.label"), say(f"phases.counted.{share}")
    said = []
    for y in diagram.ys:
        row = [cell for cell in made if cell.remedy == remedy and cell.y == y]
        count, runs = _runs(row, diagram, share)
        key = "phases.alt.counted" if row else "phases.alt.open"
        said.append(say(key, y=up, at=_text(y), count=count, runs=runs, what=what))
    return said


def _runs(of_cells: Sequence[Cell], diagram: Diagram, share: str) -> tuple[int, int]:
    """How many runs ended in one way, and how many there are: cells along an idle dial hold the same ones."""
    seed = diagram.seeds[0]
    once = {identity(diagram.run(cast("RemedyWord", cell.remedy), cell.x, cell.y, seed)): cell for cell in of_cells}
    return sum(cell.count(share) for cell in once.values()), sum(cell.seeds for cell in once.values())


def side_name(remedy: str) -> str:
    """Plain attention, or the remedy."""
    return say(f"variant.{remedy}.name")


def _ends(cell: Cell) -> str:
    said = ", ".join(f"{count} × {say(f'phases.end.{word}')}" for word, count in sorted(cell.ends.items()))
    return f"{said}; {say('phases.spiked', count=cell.spiked)}" if cell.spiked else said


def _text(value: Value) -> str:
    return plain(value) if isinstance(value, int) else written(float(value), 3)
