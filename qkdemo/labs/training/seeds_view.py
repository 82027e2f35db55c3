"""How many seeds of a run are drawn: small multiples."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qkdemo.charts.panels import Line, Panel
from qkdemo.charts.spec import Drawn, Exhibit
from qkdemo.labs.training.view import ROLES, nat_ticks, step_ticks
from qkdemo.labs.training.words import counted, short_names
from qkdemo.messages import say
from qkdemo.runs.plan import Plan, outcomes
from qkdemo.training.tasks import TASKS
from qkdemo.training.telemetry import CURVES


def seeds_exhibit(plan: Plan, curves: NDArray[np.float32]) -> Drawn:
    """Small multiples: the loss of every pair, and the count as the finding."""
    steps = np.arange(1, len(curves) + 1, dtype=np.float64)
    found = outcomes(plan, curves)
    columns: dict[str, Any] = {"step": steps, "step.text": [str(int(step)) for step in steps]}
    sentence = " ".join(counted(plan, curves))
    columns["finding"] = [sentence] * len(steps)
    at = CURVES.index("loss")
    chance = TASKS[plan.legs[0].runs[0].task].chance()
    names = dict(zip(("first", "second"), short_names(plan.legs), strict=True))
    panels: list[Panel] = []
    for pair in range(len(found) // 2):
        lines: list[Line] = []
        words: list[str] = []
        for row, role in enumerate(ROLES):
            name = f"{role}.{pair}"
            columns[name] = curves[:, 2 * pair + row, at].astype(np.float64)
            lines.append({"role": role, "column": name, "label": ""})
            words.append(say(f"rates.head.{found[2 * pair + row].outcome}"))
        panels.append(
            {
                "kind": "curves",
                "title": say("training.panel.seed", seed=plan.legs[0].runs[2 * pair].seed),
                "subtitle": say("training.seeds.ends", plain=words[0], twin=words[1], **names),
                "wide": 3,
                "x": {"ticks": step_ticks(plan.steps)[::2]},
                "y": {"log": False, "domain": (0, chance * 1.2), "ticks": nat_ticks()},
                "lines": lines,
                "marks": [],
            }
        )
    view: Exhibit = {
        "dial": {
            "column": "step",
            "text": "step.text",
            "label": say("training.step"),
            "at": float(len(steps)),
            "log": False,
        },
        "finding": "finding",
        "heading": 3,
        "tiles": [],
        "panels": panels,
        "words": {name: say(f"exhibit.{name}") for name in ("png", "svg", "undefined")} | {"hint": ""},
        "alt": sentence,
    }
    return pa.table(columns), view
