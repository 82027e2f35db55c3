"""Charts that are explored, not dragged, as Altair makes them: specs without data, in the one palette.

* `bands(theme, series, ...)`: curves with their spread; the legend hides one, both axes can be zoomed;
* `dots(theme, series, ...)`: a dot per run or round, in rows; what became of it is its shape;
* `matrix(...)`: counts of combinations of words, in groups of rows; a click tells which;
* `changes(theme, ...)`: two shares in a row, before and after.

A spec names the columns of the table that it is given: `name` is a row or curve; `said` what a tooltip adds.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import altair as alt

from qkdemo.charts.theme import Theme, numbered

Spec: TypeAlias = dict[str, Any]
Series: TypeAlias = Sequence[tuple[str, str]]  # a curve's or a row's name, and its role
_LEGEND: Final = alt.Legend(
    orient="bottom", title=None, labelLimit=300, symbolSize=160, symbolType="circle", symbolOpacity=1
)
_SLANTED: Final = alt.Axis(labelAngle=-35, labelOverlap=False, labelLimit=160)
PICK: Final = "pick"  # what a click in a matrix says
HEIGHT: Final = 380
_ROW: Final = 58  # pixels of a row of dots
_IS_DECADE: Final = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6"
_DECADES: Final = f"{_IS_DECADE} ? format(datum.value, '.0~e') : ''"
_SHAPES: Final = ("circle", "triangle-up", "cross", "square", "diamond")


def bands(theme: Theme, series: Series, x: str, y: str, *, extra: str) -> Spec:
    """Columns `x`, `mean`, `low`, `high`, `extra`, `said`; both axes by decades."""
    picked = alt.selection_point(name="legend", fields=["name"], bind="legend")
    zoomed = alt.selection_interval(name="zoom", bind="scales")
    base = alt.Chart(alt.NamedData(name="marks"))
    thin: Any = {"condition": {"test": _IS_DECADE, "value": 1}, "value": 0}
    decades = alt.Axis(labelExpr=_DECADES, gridOpacity=thin)
    across = alt.X("x:Q", scale=alt.Scale(type="log", nice=False, padding=14), title=x, axis=alt.Axis(grid=False))
    up = alt.Scale(type="log", nice=False, padding=10)
    colour = _colour(theme, series)
    tips = [
        alt.Tooltip("name:N", title=" "),
        alt.Tooltip("x:Q", title=x, format=".3~g"),
        alt.Tooltip("mean:Q", title=y, format=".3~g"),
        alt.Tooltip("extra:N", title=extra),
        alt.Tooltip("said:N", title=" "),
    ]
    lit = alt.condition(picked, alt.value(1), alt.value(0.08))
    spread = base.mark_area().encode(
        x=across,
        y=alt.Y("low:Q", scale=up, title=y, axis=decades),
        y2="high:Q",
        color=colour,
        opacity=alt.condition(picked, alt.value(0.2), alt.value(0.02)),
    )
    line = base.mark_line(strokeWidth=2.5).encode(
        x=across, y=alt.Y("mean:Q", scale=up, title=y), color=colour, strokeDash=_dash(theme, series), opacity=lit
    )
    points = base.mark_point(filled=True, size=70).encode(
        x=across, y=alt.Y("mean:Q", scale=up, title=y), color=colour, opacity=lit, tooltip=tips
    )
    return _bare(alt.layer(spread, line, points.add_params(picked, zoomed)).properties(height=HEIGHT))


def dots(theme: Theme, series: Series, x: str, shapes: Sequence[str], *, log: bool = True) -> Spec:
    """Columns `x`, `shape`, `said`, and `level` from 0 to 1, the place within its row; a tick at the median."""
    base = alt.Chart(alt.NamedData(name="marks"))
    scale = alt.Scale(type="log" if log else "linear", nice=True, zero=False)
    across = alt.X("x:Q", scale=scale, title=x, axis=alt.Axis(format="~g"))
    up = alt.Y("name:N", sort=[name for name, _ in series], title=None, axis=alt.Axis(labelLimit=260, ticks=False))
    shape = alt.Shape(
        "shape:N",
        scale=alt.Scale(domain=list(shapes), range=list(_SHAPES[: len(shapes)])),
        legend=alt.Legend(orient="bottom", title=None) if len(shapes) > 1 else None,
    )
    marks = base.mark_point(filled=True, size=90, opacity=0.85).encode(
        x=across,
        y=up,
        yOffset=alt.YOffset("level:Q", scale=alt.Scale(domain=[-0.3, 1.3])),
        color=_colour(theme, series, legend=False),
        shape=shape,
        tooltip=[
            alt.Tooltip("name:N", title=" "),
            alt.Tooltip("said:N", title=" "),
            alt.Tooltip("x:Q", title=x, format=".4~g"),
        ],
    )
    middle = base.mark_tick(thickness=3, size=_ROW * 0.7, color=theme.ink).encode(
        x=alt.X("median(x):Q", scale=scale, title=x), y=up
    )
    return _bare(alt.layer(marks, middle).properties(height=_ROW * max(1, len(series))))


def matrix(xs: Sequence[str], ys: Sequence[str], across: str, up: str, count: str, words: Sequence[str]) -> Spec:
    """Columns `across` and `up` as they are read, `count`, `words` as a click tells them, and `first` of a group.

    Rows of one group stand together; a line is drawn above the first of each.
    """
    base = alt.Chart(alt.NamedData(name="marks"))
    rows = alt.Y("up:N", scale=alt.Scale(domain=list(ys)), title=up, axis=alt.Axis(labelOverlap=False, labelLimit=230))
    place = {"x": alt.X("across:N", scale=alt.Scale(domain=list(xs)), title=across, axis=_SLANTED), "y": rows}
    tips = [alt.Tooltip("up:N", title=up), alt.Tooltip("across:N", title=across), alt.Tooltip("count:Q", title=count)]
    tiles = base.mark_rect(cursor="pointer").encode(
        **place, color=alt.Color("count:Q", scale=alt.Scale(range="ramp", domainMin=0), legend=None), tooltip=tips
    )
    tiles = tiles.add_params(alt.selection_point(name=PICK, fields=[*words], on="click", clear=False, toggle=False))
    groups = base.mark_rule(color="#808080").encode(y=rows.bandPosition(0)).transform_filter("datum.first")
    numbers = [
        base.mark_text(fontSize=13, fontWeight=600, color=ink, stroke=ink, strokeWidth=width).encode(
            **place, text="count:Q"
        )
        for width, ink in ((3.5, "#FFFFFF"), (0, "#14171C"))
    ]
    made = _bare(alt.layer(tiles, groups, *numbers).properties(height=120 + 30 * len(ys)))
    return made | {"usermeta": {"embedOptions": {"renderer": "canvas"}}}


def changes(theme: Theme, rows: Sequence[str], words: Sequence[str], x: str) -> Spec:
    """Columns `name`, `when` (one of `words`), and `share` from 0 to 1."""
    base = alt.Chart(alt.NamedData(name="marks"))
    up = alt.Y("name:N", sort=list(rows), title=None, axis=alt.Axis(labelLimit=420, ticks=False))
    across = alt.X("share:Q", scale=alt.Scale(domain=[0, 1]), title=x, axis=alt.Axis(format="%"))
    between = base.mark_rule(color=theme.muted, strokeWidth=2).encode(
        x=alt.X("min(share):Q", title=x), x2="max(share):Q", y=up
    )
    points = base.mark_point(filled=True, size=110, opacity=1).encode(
        x=across,
        y=up,
        shape=alt.Shape("when:N", scale=alt.Scale(domain=list(words), range=["circle", "triangle-right"])),
        color=alt.Color("when:N", scale=alt.Scale(domain=list(words), range=[theme.muted, theme.role("norm")])),
        tooltip=[
            alt.Tooltip("name:N", title=" "),
            alt.Tooltip("when:N", title=" "),
            alt.Tooltip("share:Q", format=".0%"),
        ],
    )
    legend = alt.Legend(orient="bottom", title=None)
    points = points.encode(
        shape=points.encoding.shape.legend(legend),  # both legends say the same, and become one
        color=points.encoding.color.legend(legend),
    )
    return _bare(alt.layer(between, points).properties(height=40 + 30 * len(rows)))


def _colour(theme: Theme, series: Series, *, legend: bool = True) -> alt.Color:
    scale = alt.Scale(domain=[name for name, _ in series], range=[theme.role(role) for _, role in series])
    shown = _LEGEND if legend else None
    return alt.Color("name:N", scale=scale, legend=shown)


def _dash(theme: Theme, series: Series) -> alt.StrokeDash:
    dashes = [theme.dash(role) for _, role in series]
    return alt.StrokeDash("name:N", scale=alt.Scale(domain=[name for name, _ in series], range=dashes), legend=None)


def _bare(chart: Any) -> Spec:
    """A spec whose table, colours of axes and fonts come from the page; how numbers are written is the language's."""
    made: Spec = chart.to_dict()
    for name in ("$schema", "config", "data", "datasets"):
        made.pop(name, None)
    for layer in made.get("layer", ()):
        layer.pop("data", None)
    return numbered(made)
