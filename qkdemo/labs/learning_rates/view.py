"""How losses over learning rates are drawn: the table and view that the exhibit component takes.

* `rates_exhibit(result, own)`: the exhibit, moved along the rates; `Own`: a run that is marked in it;
* `own_of(live, settings)`: that run, if it can be drawn into these curves; `words_of_own(own, settings)`: what it is;
* `picked(pick)`: the dial that a click sets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from qkdemo.charts.axes import decades, log_axis
from qkdemo.charts.columns import words
from qkdemo.charts.panels import Axis, Cells, Entry, Level, Line, Panel, PlainAxis, Point, Role
from qkdemo.charts.spec import Drawn, Exhibit, Pick, Tile
from qkdemo.dials import Value
from qkdemo.labs.learning_rates.lab import Result, Settings, median_logit, rates_of, seen_of
from qkdemo.labs.learning_rates.max_stable_lr import Curve, how_far
from qkdemo.labs.learning_rates.sensitivity import sensitivity
from qkdemo.labs.learning_rates.words import explain, failures_of, finding
from qkdemo.messages import in_each_language, say
from qkdemo.notation import written
from qkdemo.runs.plan import outcomes
from qkdemo.runs.workers.live import Live
from qkdemo.training.outcome import solved_below, summary
from qkdemo.training.settings import RemedyWord
from qkdemo.training.tasks import TASKS

_ROLES: Final[tuple[Role, ...]] = ("plain", "norm", "other", "bound")
_SMALL: Final = 0.01  # nats: below that, numbers are written with a power of ten
_HEADROOM: Final = 1.15  # of chance: where the loss axis ends
_HEADS: Final = ("wall", "number", "solved", "partly", "failed", "how", "spiked")


@dataclass(frozen=True)
class Own:
    """A visitor's twin run: its rate, and final loss and largest logit of plain attention and of its twin."""

    rate: float
    schedule: str
    variant: RemedyWord
    losses: tuple[float, float]
    logits: tuple[float, float]


def own_of(live: Live, settings: Settings) -> Own | None:
    """The run as a point, if it is finished, unforked, of one pair, of the same task, and at a rate of the curves."""
    runs, rates = live.plan.legs[0].runs, rates_of(settings)
    if live.state != "finished" or len(live.plan.legs) > 1 or len(runs) != 2 or runs[1].task != settings.task:
        return None
    if not rates[0] <= runs[1].learning_rate <= rates[-1]:
        return None
    plain, twin = outcomes(live.plan, live.chunk.curves)
    return Own(
        runs[1].learning_rate,
        runs[1].schedule,
        runs[1].variant,
        (plain.final_loss, twin.final_loss),
        (plain.max_abs_logit, twin.max_abs_logit),
    )


def words_of_own(own: Own, settings: Settings) -> list[str]:
    """What the marked run is, and why it need not lie on the curves."""
    key = "rates.own.words" if own.schedule == settings.schedule else "rates.own.other_schedule"
    names = {"schedule": say(f"schedule.{own.schedule}.short"), "ours": say(f"schedule.{settings.schedule}.short")}
    high = any(np.isfinite(loss) and loss > _top(settings) for loss in own.losses)
    return [say(key, **names), *([say("rates.own.edge")] if high else [])]


def _top(settings: Settings) -> float:
    """Where the loss axis ends."""
    return TASKS[settings.task].chance() * _HEADROOM


@in_each_language(32)
def rates_exhibit(result: Result, own: Own | None) -> Drawn:
    """Table and view of the exhibit."""
    table: dict[str, Any] = {
        "rate": list(result.rates),
        "rate.text": [written(rate, 3) for rate in result.rates],
        "finding": [finding(result)] * len(result.rates),
    }
    for role, curve in _by_role(result).items():
        table |= _columns(role, curve)
    return pa.table(table), _view(result, own)


def picked(settings: Settings, pick: Pick) -> Mapping[str, Value]:
    """The dial, by name, that a pick sets."""
    if "dial" not in pick or not rates_of(settings)[0] <= pick["dial"] <= rates_of(settings)[-1]:
        return {}
    return seen_of(settings.but(learning_rate=pick["dial"]))


def _by_role(result: Result) -> dict[Role, Curve]:
    return dict(zip(_ROLES, result.curves, strict=False))


def _columns(role: Role, curve: Curve) -> dict[str, Any]:
    unknown = say("rates.unknown")
    columns: dict[str, list[Any]] = {name: [] for name in ("loss", "low", "high", "logit")}
    texts: dict[str, list[str]] = {name: [] for name in ("loss", "range", "logit", "ends")}
    for point, ends in zip(curve.points, curve.outcomes, strict=True):
        capped = [point.capped(loss) for loss in point.final_losses] if point is not None else [np.nan]
        logit = median_logit(ends) if ends else np.nan
        low, high, mean = min(capped), max(capped), float(np.mean(capped))
        for name, value in zip(columns, (mean, low, high, logit), strict=True):
            columns[name].append(value)
        counts = summary(ends)
        told = (
            written(mean, 3),
            _range(low, high),
            written(logit, 3),
            say("rates.ends", **{word: counts[word] for word in ("solved", "partly", "failed")}),
        )
        for name, text in zip(texts, told, strict=True):
            texts[name].append(text if ends else unknown)
    return {f"{role}.{name}": values for name, values in columns.items()} | {
        f"{role}.{name}.text": values for name, values in texts.items()
    }


def _range(low: float, high: float) -> str:
    """From the lowest to the highest seed, short enough for a tile's line; one number where both are written alike."""
    ends = [_end(low), _end(high)]
    if ends[0] == ends[1]:
        return written((low + high) / 2, 3) if low == high else say("rates.range_alike", both=ends[0])
    return say("rates.range", low=ends[0], high=ends[1])


def _end(x: float) -> str:
    """One end of a range."""
    return written(x, 1 if x < _SMALL else 2)


def _view(result: Result, own: Own | None) -> Exhibit:
    settings, roles = result.settings, _by_role(result)
    names = {role: say(f"variant.{curve.variant}.short") for role, curve in roles.items()}
    x: PlainAxis = {"ticks": decades(result.rates[0], result.rates[-1])}
    task = TASKS[settings.task]

    def tile(name: str, column: str) -> Tile:
        return {
            "label": say(f"rates.tile.{name}"),
            "lines": [{"role": role, "column": f"{role}.{column}.text"} for role in roles],
        }

    levels: list[Level] = [{"y": task.chance(), "label": say("training.chance", chance=written(task.chance(), 3))}]
    if task.floor is not None:
        limit = solved_below(task)
        levels.append({"y": limit, "label": say("rates.solved_below", limit=written(limit, 3))})
    panels: list[Panel] = [
        {
            "kind": "curves",
            "title": say("rates.panel.loss"),
            "subtitle": say(_counted("rates.axis.loss", settings.n_seeds), n=settings.n_seeds),
            "wide": 7,
            "tall": True,
            "x": x,
            "y": _loss_axis(settings),
            "lines": [
                Line(
                    role=role,
                    column=f"{role}.loss",
                    label=names[role],
                    low=f"{role}.low",
                    high=f"{role}.high",
                    dots=True,
                    texts=f"{role}.loss.text",
                )
                for role in roles
            ],
            "marks": [],
            "levels": levels,
            "points": _points(own, result, "losses"),
            "labels": "apart",
        },
        {
            "kind": "curves",
            "title": say("rates.panel.logit"),
            "subtitle": say("rates.axis.logit"),
            "wide": 5,
            "tall": True,
            "x": x,
            "y": log_axis(np.array([*_logits(result), 1.0, 1000.0])),
            "lines": [
                Line(role=role, column=f"{role}.logit", label=names[role], dots=True, texts=f"{role}.logit.text")
                for role in roles
            ],
            "marks": [],
            "points": _points(own, result, "logits"),
        },
        _counts(result),
    ]
    return {
        "dial": {
            "column": "rate",
            "text": "rate.text",
            "label": say("dial.learning_rate.label"),
            "at": float(seen_of(settings)["learning_rate"]),
            "log": True,
        },
        "finding": "finding",
        "room": "" if result.whole else _longest_finding(result),
        "heading": 1,
        "tiles": [
            {
                "label": say("rates.tile.curve"),
                "lines": [{"role": role, "column": {"text": name}} for role, name in names.items()],
            },
            tile("loss", "loss"),
            tile("range", "range"),
            tile("logit", "logit"),
            tile("ends", "ends"),
        ],
        "panels": panels,
        "words": words() | {"hint": say("rates.hint")},
        "alt": " ".join(explain(result)),
    }


def _longest_finding(result: Result) -> str:
    rate, name = written(result.rates[-1]), say(f"variant.{result.curves[-1].variant}.name")
    rates = dict.fromkeys(("plain", "plain_not", "twin", "twin_not"), rate)
    return say("rates.finding.wider", variant=name, **rates)


def _logits(result: Result) -> list[float]:
    return [median_logit(ends) for curve in result.curves for ends in curve.outcomes if ends]


def _counted(key: str, n: int) -> str:
    """The sentence for so many."""
    return f"{key}_of_one" if n == 1 else key


def _loss_axis(settings: Settings) -> Axis:
    whole = range(int(TASKS[settings.task].chance()) + 1)
    return {"log": False, "domain": (0, _top(settings)), "ticks": [(x, str(x)) for x in whole]}


def _points(own: Own | None, result: Result, name: str) -> list[Point]:
    """The visitor's run: plain attention, and its twin where there is a curve of its remedy."""
    if own is None:
        return []
    roles = {curve.variant: role for role, curve in _by_role(result).items()}
    values = dict(zip((own.variant, "none"), reversed(getattr(own, name)), strict=True))  # twins may both be plain
    return [
        {"x": own.rate, "y": value, "role": roles[word], "label": say("rates.own.label")}
        for word, value in values.items()
        if word in roles and np.isfinite(value)
    ]


def _counts(result: Result) -> Cells:
    """Per curve: how far it gets, the one number, and what became of its runs."""
    rows: list[list[Entry]] = []
    for curve in result.curves:
        counts = summary(curve.all_outcomes)
        far = (how_far(curve, result.settings) if result.whole else "") or say("rates.unknown")
        number = written(sensitivity(curve.found), 3) if result.whole else say("rates.unknown")
        name = say(f"variant.{curve.variant}.name")
        how = failures_of(curve.all_outcomes) or say("rates.unknown")
        told = [str(counts[word]) for word in ("solved", "partly", "failed")] + [how, str(counts["spiked"])]
        rows.append([{"text": text} for text in (name, far, number, *told)])
    runs = len(result.curves[0].all_outcomes)
    return {
        "kind": "cells",
        "title": say(_counted("rates.panel.counts", runs), n=runs),
        "wide": 12,
        "head": ["", *(say(f"rates.head.{name}") for name in _HEADS)],
        "roles": [None] * (1 + len(_HEADS)),
        "rows": rows,
        "breaks": [0],
    }
