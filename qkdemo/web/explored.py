"""Charts on a page that are explored, not dragged: Altair's specs, drawn by Vega, which loads where one is drawn.

* `drawn(rows, spec, key, words)`: one of them, with its table a key away;
* `losses_explored(result)`: learning rates; `seeds_explored(plan, curves)`: many seeds; `times_explored(measured)`:
  measured cost; `counts_explored(result)`: models; `changes_explored(lines)`: a class before and after.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise, product
from typing import Any, Final

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from qkdemo.charts import explored
from qkdemo.facts.cells import cell
from qkdemo.labs import learning_rates, models
from qkdemo.labs.cost import Measured, explain_times
from qkdemo.labs.learning_rates.lab import median_logit
from qkdemo.labs.learning_rates.words import explain
from qkdemo.labs.models.lab import counts
from qkdemo.labs.training.words import counted, short_names
from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.runs.plan import Plan, outcomes
from qkdemo.training.outcome import summary
from qkdemo.web.lab.controls import turn
from qkdemo.web.lab.takeaway import table_of
from qkdemo.web.space.shown import theme

Row = Mapping[str, Any]
_ROLES: Final = ("plain", "norm", "other", "bound")
_ENDS: Final = ("solved", "partly", "failed")
_CROSSED: Final = ("norm", "place", "order")  # of a model, as the table and the dials name them
_COUNTS: Final = "explored:counts"


def drawn(
    rows: Sequence[Row], spec: explored.Spec, key: str, words: str, pick: Callable[[], None] | None = None
) -> None:
    """`words` say what it shows; `pick` is called after a click where the spec has one."""
    table = table_of(rows)
    more: dict[str, Any] = {} if pick is None else {"on_select": pick, "selection_mode": [explored.PICK]}
    st.vega_lite_chart(table, spec, key=key, alt=words, width="stretch", **more)
    with st.expander(say("explored.table"), key=f"{key}:open", on_change="rerun") as opened:
        if opened.open:
            st.dataframe(table, hide_index=True, key=f"{key}:table")


def losses_explored(result: learning_rates.Result) -> None:
    """Final loss over learning rates with its spread: a legend that hides a curve, both axes can be zoomed."""
    rows, series = [], []
    for role, curve in zip(_ROLES, result.curves, strict=False):
        name = say(f"variant.{curve.variant}.name")
        series.append((name, role))
        for point, ends in zip(curve.points, curve.outcomes, strict=True):
            if point is None:
                continue
            capped, ended = [point.capped(loss) for loss in point.final_losses], summary(ends)
            rows.append(
                {
                    "name": name,
                    "x": point.learning_rate,
                    "mean": float(np.mean(capped)),
                    "low": min(capped),
                    "high": max(capped),
                    "extra": written(median_logit(ends), 3),
                    "said": say("rates.ends", **{word: ended[word] for word in _ENDS}),
                }
            )
    if not rows:
        st.info(say("explored.nothing"))
        return
    st.markdown(say("explored.losses"))
    x, y = say("dial.learning_rate.label"), say("rates.tile.loss")
    spec = explored.bands(theme(), series, x, y, extra=say("rates.tile.logit"))
    drawn(rows, spec, "explored:losses", " ".join([*explain(result), *_ends_of(rows)]))


def _ends_of(rows: Sequence[Row]) -> list[str]:
    """The means at the lowest and at the highest learning rate, for those who do not see them."""
    ends = {"first": min(row["x"] for row in rows), "last": max(row["x"] for row in rows)}
    return [
        say(f"exhibit.{word}", dial=f"{say('dial.learning_rate.label')} {written(x)}", values=values)
        for word, x in ends.items()
        if (values := ", ".join(f"{row['name']}: {written(row['mean'], 3)}" for row in rows if row["x"] == x))
    ]


def seeds_explored(plan: Plan, curves: NDArray[np.float32]) -> None:
    """One dot a run: its final loss, and what became of it as shape."""
    runs, names = plan.legs[0].runs, short_names(plan.legs)
    series = [*zip(names, _ROLES, strict=False)][: len(set(names))]  # twins may both be plain
    ends, rows = [say(f"rates.head.{word}") for word in _ENDS], []
    for row, (run, end) in enumerate(zip(runs, outcomes(plan, curves), strict=True)):
        name = names[row % 2]
        at = sorted({one.seed for one in runs})
        level = at.index(run.seed) / max(1, len(at) - 1)
        if np.isfinite(end.final_loss):
            shape, said = say(f"rates.head.{end.outcome}"), say("training.panel.seed", seed=run.seed)
            rows.append({"name": name, "x": end.final_loss, "shape": shape, "level": level, "said": said})
    lost = len(runs) - len(rows)
    if lost:
        st.caption(say("explored.not_finite", count=lost, all=len(runs)))
    if rows:
        spec = explored.dots(theme(), series, say("explored.final"), ends)
        drawn(rows, spec, "explored:seeds", " ".join(counted(plan, curves)))


def times_explored(measured: Measured) -> None:
    """One dot a round, and the median of every way."""
    roles = ("plain", "norm", "bound", "right", "other")
    series = [(say(f"cost.short.{times.way}"), role) for times, role in zip(measured.times, roles, strict=False)]
    rows = [
        {"name": name, "x": ms, "shape": "", "level": at / max(1, len(times.each_ms) - 1)}
        | {"said": say("explored.round", round=at + 1)}
        for (name, _), times in zip(series, measured.times, strict=True)
        for at, ms in enumerate(times.each_ms)
    ]
    drawn(
        rows,
        explored.dots(theme(), series, say("explored.ms"), [""]),
        "explored:times",
        " ".join(explain_times(measured)),
    )


def counts_explored(result: models.Result) -> None:
    """Norm × place × order as counts; a click filters the table by all three, a second click undoes that."""
    st.markdown(say("explored.counts"))
    found = Counter(tuple(str(getattr(one, column)) for column in _CROSSED) for one in result.models)
    words = {column: [word for word, _ in counts(result.models, column)] for column in _CROSSED}
    rows: list[dict[str, Any]] = [
        {"up": _row_name(norm, place), "across": cell("order", order), "count": found[norm, place, order]}
        | {"norm": norm, "place": place, "order": order}
        for norm, place, order in product(*words.values())
        if (norm, place, order) in found
    ]
    if not rows:
        return
    for before, row in pairwise([{"norm": ""}, *rows]):
        row["first"] = row["norm"] != before["norm"]
    ups, across = list(dict.fromkeys(row["up"] for row in rows)), [cell("order", word) for word in words["order"]]
    x, y = say("column.order"), say("explored.rows", norm=say("column.norm"), place=say("column.place"))
    said = "; ".join(f"{row['up']}, {row['across']}: {row['count']}" for row in rows)
    alt = say("explored.counts_alt", x=x, y=y, count=len(result.models)) + " " + said + "."
    spec = explored.matrix(across, ups, x, y, say("models.models"), _CROSSED)
    drawn(rows, spec, _COUNTS, alt, partial(_filter, result.settings))


def _row_name(norm: str, place: str) -> str:
    """What stands before a row: a norm and where it is; one word where both are the same."""
    return ", ".join(dict.fromkeys((cell("norm", norm), cell("place", place))))


def _filter(settings: models.Settings) -> None:
    points = (st.session_state.get(_COUNTS) or {}).get("selection", {}).get(explored.PICK)
    if not (isinstance(points, list) and points):
        return
    chosen = {column: str(points[0].get(column)) for column in _CROSSED}
    if all(getattr(settings, name) == word for name, word in chosen.items()):
        chosen = dict.fromkeys(chosen, "any")
    turn(models.Settings, "models", chosen)


def changes_explored(lines: Sequence[Row], names: Sequence[str], words: tuple[str, str], alt: str) -> None:
    """The share that was right, before and after: `lines` have `pre` and `post`, None where nobody was asked."""
    rows = [
        {"name": name, "when": word, "share": line[when]}
        for line, name in zip(lines, names, strict=True)
        for when, word in zip(("pre", "post"), words, strict=True)
        if line[when] is not None
    ]
    spec = explored.changes(theme(), list(dict.fromkeys(names)), words, say("explored.share"))
    drawn(rows, spec, "explored:changes", alt)
