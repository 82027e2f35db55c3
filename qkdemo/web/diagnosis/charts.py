"""Charts of somebody's own file: a log's curves, heads as a heat map, and the worst head while its weights grow.

* `curves(log, known)`; `heat_map(heads, theme)`; `growth(rows)`: Altair charts, each with its own title and with what
  it shows in words: `Described`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import altair as alt
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.charts.theme import Theme
from qkdemo.diagnose.curves.growth import LARGE
from qkdemo.diagnose.paper import plotted
from qkdemo.diagnose.readers.columns import Log
from qkdemo.messages import say
from qkdemo.notation import written

Described: TypeAlias = tuple[Any, str]
_DRAWN: Final = ("loss", "max_logit", "entropy", "grad_norm")
MOST_HEADS: Final = 48
_SAID: Final = 8  # of the worst heads: the table below has all of them
_MEASURED: Final[Mapping[str, int]] = {"max_logit": 1, "entropy_fraction": -1, "softmax_slope": -1, "first_key": 1}
_PLAIN, _NORMED = "#C2410C", "#0067B0"  # as everywhere
_WIDE, _LEAST = 0.55, 9  # of a character of a number, in parts of its size; the least size that is read, in px
_FULL: Final = 0.6  # how strong the colour of the worst is: its number has to be read on it
_LINE: Final = alt.Axis(grid=False, tickCount=5)


def curves(log: Log, known: Mapping[str, str]) -> list[Described]:
    """The columns that say most, over steps, by their roles; logits with the line from which trouble is reported."""
    return [_curve(log, role, known[role]) for role in _DRAWN if role in known]


def _curve(log: Log, role: str, column: str) -> Described:
    values, logarithmic = plotted(role, log.columns[column])
    finite = np.isfinite(values)
    kept = finite & ((values > 0) if logarithmic else True)
    table = pa.table({"step": log.step[kept], "value": values[kept]})
    scale = alt.Scale(type="log") if logarithmic else alt.Scale(zero=role != "loss")
    name = say(f"diagnose.role.{role}")
    title = name if name == column else f"{name} ({column})"
    words = f"{title}. {_course(log.step[finite], values[finite])}"
    line = (
        alt.Chart(table, title=title, height=250)
        .mark_line()
        .encode(
            x=alt.X("step:Q", title=say("diagnose.step"), axis=_LINE),
            y=alt.Y("value:Q", title=None, scale=scale, axis=alt.Axis(grid=False, tickCount=4, format="~g")),
            tooltip=["step", "value"],
        )
    )
    if role != "max_logit":
        return line, words
    limit = alt.Chart(pa.table({"y": [LARGE]})).mark_rule(strokeDash=[4, 4]).encode(y="y:Q")
    return alt.layer(line, limit), words


def _course(steps: NDArray[Any], values: NDArray[Any]) -> str:
    """Where a curve begins and ends, and its extremes."""
    if not len(values):
        return ""

    def place(at: int) -> str:
        return f"{say('diagnose.step')} {written(float(steps[at]))}"

    ends = [("exhibit.first", 0), ("exhibit.last", len(values) - 1)]
    said = [say(key, dial=place(at), values=written(float(values[at]), 3)) for key, at in ends]
    extremes = [("map.alt.lowest", int(values.argmin())), ("map.alt.highest", int(values.argmax()))]
    return " ".join(said + [say(key, at=place(at), value=written(float(values[at]), 3)) for key, at in extremes])


def heat_map(heads: Sequence[Mapping[str, Any]], theme: Theme) -> Described:
    """Heads from left to right, the worst first; the darker, the worse among them; NaN has no colour.

    Numbers stand where they fit.
    """
    cells: list[dict[str, Any]] = []
    for name, sign in _MEASURED.items():
        sizes = [abs(row[name]) for row in heads]
        order = sorted((size for size in sizes if not math.isnan(size)), reverse=sign < 0)
        for row, size in zip(heads[:MOST_HEADS], sizes, strict=False):
            bad = order.index(size) / max(1, len(order) - 1) if size in order else -1.0
            cells.append(
                {
                    "head": str(row["head"]),
                    "measure": say(f"diagnose.measure.{name}"),
                    "bad": bad,
                    "value": written(row[name], 3),
                }
            )
    rows = [say(f"diagnose.measure.{name}") for name in _MEASURED]
    order_of_heads = [str(row["head"]) for row in heads[:MOST_HEADS]]
    base = alt.Chart(pa.Table.from_pylist(cells), height=80 + 42 * len(rows)).encode(
        x=alt.X("head:N", sort=order_of_heads, title=say("diagnose.head"), axis=alt.Axis(orient="top", labelAngle=0)),
        y=alt.Y("measure:N", sort=rows, title=None, axis=alt.Axis(labelLimit=220)),
    )
    fill = (
        base.transform_filter("datum.bad >= 0")
        .mark_rect(color=_PLAIN)
        .encode(
            opacity=alt.Opacity("bad:Q", scale=alt.Scale(range=[0.05, _FULL]), legend=None),
            tooltip=["head", "measure", "value"],
        )
    )
    longest = max(len(cell["value"]) for cell in cells)
    size = f"min(13, bandwidth('x') / {_WIDE * longest:.3g})"  # as a cell has room for
    seen = alt.ExprRef(f"{size} < {_LEAST} ? 0 : 1")
    number = base.mark_text(fontSize=alt.ExprRef(size), opacity=seen, color=theme.ink).encode(text="value:N")
    return alt.layer(fill, number), " ".join(
        f"{say('diagnose.head')} {head}: {_measured(cells, head)}." for head in order_of_heads[:_SAID]
    )


def _measured(cells: Sequence[Mapping[str, Any]], head: str) -> str:
    return ", ".join(f"{cell['measure']} {cell['value']}" for cell in cells if cell["head"] == head)


def growth(rows: Sequence[Mapping[str, Any]]) -> tuple[Described, Described]:
    """Largest |logit| and entropy of one head over the weight scale, plain and normalised."""
    table = pa.Table.from_pylist([{**row, "variant": say(f"diagnose.side.{row['variant']}")} for row in rows])
    sides = [say(f"diagnose.side.{word}") for word in ("none", "rms")]
    made = []
    for name, y in (("max_abs_logit", alt.Scale(type="log")), ("entropy_fraction", alt.Scale(domain=[0, 1]))):
        made.append(
            alt.Chart(table, title=say(f"diagnose.grown.{name}"), height=320)
            .mark_line(point=True)
            .encode(
                x=alt.X("scale:Q", title=say("diagnose.weight_scale"), scale=alt.Scale(type="log", base=2), axis=_LINE),
                y=alt.Y(
                    f"{name}:Q",
                    title=None,
                    scale=y,
                    axis=alt.Axis(grid=False, tickCount=4, format="~g"),
                ),
                color=alt.Color(
                    "variant:N",
                    sort=sides,
                    title=None,
                    scale=alt.Scale(domain=sides, range=[_PLAIN, _NORMED]),
                    legend=alt.Legend(orient="bottom"),
                ),
                strokeDash=alt.StrokeDash(
                    "variant:N", sort=sides, title=None, scale=alt.Scale(domain=sides, range=[[6, 4], [1, 0]])
                ),
                tooltip=["scale", "variant", name],
            )
        )
    return (made[0], _grown(rows, "max_abs_logit")), (made[1], _grown(rows, "entropy_fraction"))


def _grown(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """Both sides at the least and at the largest scale."""
    scales = [row["scale"] for row in rows]
    said = [f"{say(f'diagnose.grown.{name}')}."]
    for key, scale in (("exhibit.first", min(scales)), ("exhibit.last", max(scales))):
        there = [row for row in rows if row["scale"] == scale]
        values = [f"{say('diagnose.side.' + row['variant'])}: {written(row[name], 3)}" for row in there]
        said.append(say(key, dial=f"{say('diagnose.weight_scale')} {written(scale)}", values=", ".join(values)))
    return " ".join(said)
