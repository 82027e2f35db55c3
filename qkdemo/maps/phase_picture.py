"""The phase diagram drawn and in words.

* `phase_spec()`, `phase_table(made, role)`: a side as Altair draws it; `alt(made, role)`, `finding(made)`: in words.

A tile's colour is the share of seeds that solved the task, and the number on it how many they are.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt_air
import pyarrow as pa

from qkdemo.maps.phases import RATES, SEEDS, STARTS, Cell
from qkdemo.messages import in_each_language, say
from qkdemo.notation import plain, written


def phase_table(made: Sequence[Cell], role: str) -> pa.Table:
    """One row per cell of a side."""
    of_side = [cell for cell in made if cell.role == role]
    return pa.table(
        {
            "rate": [plain(cell.learning_rate) for cell in of_side],
            "start": [plain(cell.qk_start) for cell in of_side],
            "share": [cell.solved / cell.seeds for cell in of_side],
            "solved": [str(cell.solved) for cell in of_side],
            "said": [_ends(cell) for cell in of_side],
        }
    )


@in_each_language(maxsize=1)
def phase_spec() -> dict[str, Any]:
    """Tiles, and how many seeds solved the task on each."""
    place = {
        "x": alt_air.X("rate:O", sort=[plain(rate) for rate in RATES], title=say("dial.learning_rate.label")),
        "y": alt_air.Y("start:O", sort=[plain(start) for start in reversed(STARTS)], title=say("dial.qk_start.label")),
    }
    tips = [
        alt_air.Tooltip("rate:N", title=say("dial.learning_rate.label")),
        alt_air.Tooltip("start:N", title=say("dial.qk_start.label")),
        alt_air.Tooltip("said:N", title=say("phases.ends")),
    ]
    scale = alt_air.Scale(domain=[0, 1], range="diverging", interpolate="lab")
    legend = alt_air.Legend(orient="bottom", gradientLength=260, gradientThickness=12, titleLimit=400)
    base = alt_air.Chart(alt_air.NamedData(name="marks"))
    colour = alt_air.Color("share:Q", scale=scale, legend=legend, title=say("phases.share"))
    tiles = base.mark_rect().encode(**place, color=colour, tooltip=tips)
    numbers = [
        base.mark_text(fontSize=13, fontWeight=600, color=ink, stroke=ink, strokeWidth=width).encode(
            **place, text="solved:N"
        )
        for width, ink in ((3.5, "#FFFFFF"), (0, "#14171C"))
    ]
    made: dict[str, Any] = alt_air.layer(tiles, *numbers).properties(height=430).to_dict()
    for layer in made["layer"]:
        layer.pop("data", None)
    for name in ("$schema", "config", "data", "datasets"):
        made.pop(name, None)
    return made | {"usermeta": {"embedOptions": {"renderer": "canvas"}}}


def finding(made: Sequence[Cell]) -> str:
    """In how many cells every seed solves the task, on both sides."""
    whole = {role: sum(cell.solved == cell.seeds for cell in made if cell.role == role) for role in ("plain", "norm")}
    return say("phases.finding", **whole, cells=len(RATES) * len(STARTS), seeds=len(SEEDS))


def alt(made: Sequence[Cell], role: str) -> str:
    """What the picture of a side shows: up to which rate every seed solves the task, at each size at the start."""
    of_side = [cell for cell in made if cell.role == role]
    sentences = [say("phases.alt.what", side=say(f"phases.side.{role}"))]
    for start in STARTS:
        good = [cell.learning_rate for cell in of_side if cell.qk_start == start and cell.solved == cell.seeds]
        key = "phases.alt.row" if good else "phases.alt.none"
        values = {"low": written(min(good)), "high": written(max(good))} if good else {}
        sentences.append(say(key, start=written(start), **values))
    return " ".join(sentences)


def _ends(cell: Cell) -> str:
    return ", ".join(f"{count} × {say(f'phases.end.{word}')}" for word, count in sorted(cell.ends.items()))
