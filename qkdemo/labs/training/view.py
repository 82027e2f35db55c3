"""How twins are drawn: the view that the exhibit takes, and the rows that are streamed to it.

* `live_view(settings, plan, ...)`: the view, which does not depend on how far the run has come;
* `rows_of(plan, head, curves, late, first)`: steps as the exhibit draws them, `Rows`;
* `table_rows(plan, curves)`: them all, for the table;
* `status_words(status, plan)`: the line beside the controls;
* `step_ticks(steps)`, `nat_ticks()`: where its axes are named.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.charts.axes import share_axis
from qkdemo.charts.panels import Axis, Curves, Line, Mark, Panel, PlainAxis, Role, Tick
from qkdemo.charts.spec import Drawn, Exhibit, Live, Tile
from qkdemo.floats.float_text import shortest
from qkdemo.labs.training.lab import AS_FAST_AS_IT_GOES, Result, Settings
from qkdemo.labs.training.words import findings, longest_finding, short_names
from qkdemo.messages import say
from qkdemo.notation import superscript, written
from qkdemo.runs.durations import duration
from qkdemo.runs.kept.record import Chunk, joined_chunks
from qkdemo.runs.kept.shipped import SHADE
from qkdemo.runs.plan import Plan
from qkdemo.runs.workers.live import Status
from qkdemo.training.tasks import TASKS
from qkdemo.training.telemetry import CURVES

ROLES: Final[tuple[Role, Role]] = ("plain", "norm")
_WAS: Final = ("loss", "max_abs_logit")  # in which the runs that were not forked are drawn too
_TEXTS: Final = ("max_abs_logit", "entropy_fraction", "softmax_slope", "loss")  # tiles, after the learning rate
_BAR: Final = ("play", "pause", "step", "stop", "train", "offline", "restarting", "full", "waiting")
_WORDS: Final = ("png", "svg", "undefined", *_BAR)
_MOST_LOGIT: Final = 12  # decades above 1 that an axis may reach
_TICKS: Final = 6
NO_ROWS: Final = pa.table({"step": [0.0]})  # what a live exhibit's table is: its rows arrive otherwise


@dataclass(frozen=True, eq=False)
class Rows:
    """Steps from `first` on. Scalars are float32; maps are the codes of the mapped steps, one row per step."""

    first: int
    scalars: dict[str, NDArray[np.float32]]
    texts: dict[str, list[str]]
    mapped: list[int]
    maps: dict[str, NDArray[np.uint8]]


def pace_of(settings: Settings) -> float:
    """Steps per second; the last stop of the dial is no limit."""
    return math.inf if settings.speed >= AS_FAST_AS_IT_GOES else settings.speed


def shown_head(settings: Settings) -> tuple[int, int]:
    """Layer and head that are drawn, counted from 0: the dials', or the last there is."""
    return min(settings.layer, settings.n_layers) - 1, min(settings.head, settings.n_heads) - 1


def rows_of(plan: Plan, head: tuple[int, int], curves: NDArray[np.float32], late: Chunk, first: int) -> Rows:
    """The steps from `first` on. `curves`: those of all steps; `late`: from `first` on, with what maps there are."""
    new = curves[first - 1 :]
    scalars = {"step": np.arange(first, first + len(new), dtype=np.float32)}
    for row, role in enumerate(ROLES):
        for at, name in enumerate(CURVES):
            if name != "learning_rate":
                scalars[f"{role}.{name}"] = new[:, row, at]
    for row, twin in _unforked(plan):
        since = scalars["step"] > plan.legs[-1].after  # before, that row held what an earlier fork left
        for name in _WAS:
            scalars[f"was.{twin}.{name}"] = np.where(since, new[:, row, CURVES.index(name)], np.float32(np.nan))
    texts = {
        f"{role}.{name}.text": [_short(x) for x in scalars[f"{role}.{name}"].tolist()]
        for role in ROLES
        for name in _TEXTS
    }
    texts["step.text"] = [str(step) for step in range(first, first + len(new))]
    texts["rate.text"] = [written(x, 3) for x in new[:, 0, CURVES.index("learning_rate")].tolist()]
    texts["finding"] = findings(plan, curves, first) if len(new) else []
    layer, at = head
    drawn = {f"{role}.heat": late.maps[:, row, layer, at] for row, role in enumerate(ROLES)}
    return Rows(first, scalars, texts, list(late.mapped), drawn)


def scalar_names(plan: Plan) -> list[str]:
    """The scalar columns, in the order in which they are streamed."""
    empty = np.empty((0, plan.width, len(CURVES)), np.float32)
    return list(rows_of(plan, (0, 0), empty, joined_chunks(plan, []), 1).scalars)


def live_view(settings: Settings, plan: Plan, live: Live, alt: str) -> Exhibit:
    """The view of twins; `live` says where their rows come from."""
    names = short_names(plan.legs)
    task, n = TASKS[settings.task], settings.n_keys
    x: PlainAxis = {"ticks": step_ticks(plan.steps)}
    marks: list[Mark] = [{"x": leg.after, "label": say("training.forked"), "role": "other"} for leg in plan.legs[1:]]
    layer, head = shown_head(settings)

    def curve(name: str, y: Axis) -> Curves:
        return {
            "kind": "curves",
            "title": say(f"training.panel.{name}"),
            "subtitle": say(f"training.axis.{name}"),
            "wide": 6,
            "x": x,
            "y": y,
            "lines": _lines(plan, name, names),
            "marks": marks,
        }

    chance = task.chance()
    loss = curve("loss", {"log": False, "domain": (0, chance * 1.2), "ticks": nat_ticks(), "grows": True})
    loss["levels"] = [{"y": chance, "label": say("training.chance", chance=written(chance, 3))}]
    logit = curve("max_abs_logit", _log_axis(0, 3))
    logit["levels"] = [{"y": 100.0, "label": say("training.warning")}]
    slope: Axis = {"log": False, "domain": (0, 0.25 / math.log2(n)), "ticks": _tenths(), "grows": True}
    heats: list[Panel] = [
        {
            "kind": "heat",
            "title": say("training.panel.heat", variant=name, layer=layer + 1, head=head + 1),
            "wide": 3,
            "role": role,
            "column": f"{role}.heat",
            "rows": n,
            "columns": n,
            "selected": None,
            "query_label": say("drift.query"),
            "key_label": say("drift.key"),
            "coarse": SHADE,
        }
        for role, name in zip(ROLES, names, strict=True)
    ]
    return {
        "dial": {"column": "step", "text": "step.text", "label": say("training.step"), "at": 1.0, "log": False},
        "live": live | {"columns": scalar_names(plan), "steps": plan.steps},
        "finding": "finding",
        "room": "" if live.get("resting") else longest_finding(plan),
        "heading": 1,
        "tiles": [
            {"label": say("training.tile.rate"), "lines": [{"role": "other", "column": "rate.text"}]},
            *(
                Tile(
                    label=say(f"training.tile.{name}"),
                    lines=[{"role": role, "column": f"{role}.{name}.text"} for role in ROLES],
                )
                for name in _TEXTS
            ),
        ],
        "panels": [
            loss,
            logit,
            curve("softmax_slope", slope),
            *heats,
            curve("entropy_fraction", share_axis()),
            curve("gradient_norm", _log_axis(-2, 2)),
            curve("spectral_q", _log_axis(0, 2)),
            curve("spectral_k", _log_axis(0, 2)),
        ],
        "words": {name: say(f"exhibit.{name}") for name in _WORDS} | {"hint": say("training.hint")},
        "alt": alt,
    }


def _lines(plan: Plan, name: str, names: Sequence[str]) -> list[Line]:
    lines: list[Line] = [
        {"role": role, "column": f"{role}.{name}", "label": label} for role, label in zip(ROLES, names, strict=True)
    ]
    if name in _WAS:
        was = dict(zip(ROLES, short_names(plan.legs[:-1] or plan.legs), strict=True))
        key = "training.was.last" if plan.chained else "training.was.one"
        lines += [
            {"role": "bound", "column": f"was.{role}.{name}", "label": say(key, name=was[role])}
            for _, role in _unforked(plan)
        ]
    return lines


def _unforked(plan: Plan) -> list[tuple[int, Role]]:
    """Rows of the runs that a fork left as they were, with the twin each stands beside, if it is another run."""
    if len(plan.legs) == 1:
        return []
    runs = plan.legs[-1].runs
    return [(row + 2, role) for row, role in enumerate(ROLES) if runs[row] != runs[row + 2]]


def status_words(status: Status, plan: Plan) -> str:
    """`step 232 of 300 · 6 s left`, and what else there is to say."""
    parts = [say("training.status.step", step=status.steps, steps=plan.steps)]
    match status.state:
        case "queued" if status.position:
            parts.append(say("training.status.queued", position=status.position, wait=duration(status.wait_s)))
        case "going" if status.silent_s:
            parts.append(say("training.status.silent", since=duration(status.silent_s)))
        case "going":
            parts.append(say("training.status.left", left=duration(status.left_s or 0)))
            if status.hurried:
                parts.append(say("training.status.hurried"))
        case "finished" if status.recorded is not None:
            when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(status.recorded))
            key = "training.status.shipped" if status.shipped else "training.status.recorded"
            parts = [say(key, steps=plan.steps, when=when, engine=status.engine)]
        case state:
            parts.append(say(f"training.status.{state}"))
    return " · ".join(parts)


def table_rows(plan: Plan, curves: NDArray[np.float32]) -> list[dict[str, Any]]:
    """One row per step and run, for the table and the CSV."""
    numbers = shortest(curves)
    return [
        {
            "step": step + 1,
            "run": at,
            "variant": run.variant,
            "seed": run.seed,
            **{name: float(numbers[step, at, column]) for column, name in enumerate(CURVES)},
        }
        for step in range(len(curves))
        for at, run in enumerate(plan.legs[plan.leg_of(step + 1)].runs)
    ]


def recorded_exhibit(result: Result) -> Drawn:
    """The curves of a recorded run, looked at after its last step: what a sheet of paper can show of it."""
    plan, curves = result.plan, result.curves
    rows = rows_of(plan, shown_head(result.settings), curves, joined_chunks(plan, []), 1)
    view = live_view(result.settings, plan, {}, rows.texts["finding"][-1])
    view["dial"]["at"] = float(len(curves))
    scalars = {name: np.asarray(column, np.float64) for name, column in rows.scalars.items()}
    view["panels"] = [panel for panel in view["panels"] if panel["kind"] == "curves"]
    return pa.table({**scalars, **rows.texts}), view


def _log_axis(low: int, high: int) -> Axis:
    """It grows by decades up and down; there are ticks for all that it may show."""
    ticks = [(10.0**power, _power(power)) for power in range(-6, _MOST_LOGIT + 1)]
    return {"log": True, "domain": (10.0**low, 10.0**high), "ticks": ticks, "grows": True}


def _power(power: int) -> str:
    return written(10.0**power) if -3 < power < 4 else f"10{superscript(power)}"


def nat_ticks() -> list[Tick]:
    """Whole nats."""
    return [(x, str(x)) for x in range(21)]


def _tenths() -> list[Tick]:
    return [(x / 50, written(x / 50)) for x in range(14)]


def step_ticks(steps: int) -> list[Tick]:
    """Round numbers of steps, 0 apart: the first step is 1."""
    raw = steps / _TICKS
    unit = 10 ** math.floor(math.log10(raw))
    width = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw)
    return [(step, written(step)) for step in range(int(width), steps + 1, int(width))]


def _short(x: float) -> str:
    return say("number.undefined") if math.isnan(x) else written(x, 3)
