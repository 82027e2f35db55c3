"""How costs are drawn: the tables and views that the exhibit component takes.

* `cost_exhibit(settings)`: by formula, dragged along the length of the text;
* `times_exhibit(measured)`: what a clock said, round by round;
* `picked(pick)`: the dials that a click in the first sets.
"""

from typing import Any, Final, get_args

import numpy as np
import pyarrow as pa

from qkdemo.charts.axes import linear_axis, log_axis
from qkdemo.charts.columns import percent, words
from qkdemo.charts.panels import Cells, Curves, Entry, PlainAxis, Role, Text
from qkdemo.charts.spec import Drawn, Exhibit, Pick
from qkdemo.dials import Value
from qkdemo.labs.cost.lab import PartWord, Result, Settings, run, sweep
from qkdemo.labs.cost.timing import Measured, WayWord
from qkdemo.labs.cost.words import explain, explain_times, finding, spread, time_finding
from qkdemo.messages import in_each_language, say
from qkdemo.notation import written

_PARTS: Final[tuple[PartWord, ...]] = get_args(PartWord)
_SHARES: Final[dict[PartWord, Role]] = {"attention": "plain", "rms": "norm", "softcap": "other"}
_MOVED: Final[dict[PartWord, Role]] = {"attention": "plain", "rms": "norm", "softcap": "other", "projections": "bound"}
_WAYS: Final[dict[WayWord, Role]] = {
    "sdpa": "plain",
    "sdpa_norms": "norm",
    "explicit": "bound",
    "explicit_norms": "other",
    "explicit_softcap": "other",
}
_MIB: Final = 2.0**20


def cost_exhibit(settings: Settings) -> Drawn:
    """Table and view."""
    results = sweep(settings)
    return _table(results), _view(settings, results)


def picked(pick: Pick) -> dict[str, Value]:
    """The dials, by name, that a pick sets."""
    return {"n_keys": round(pick["dial"])} if "dial" in pick else {}


@in_each_language(64)
def _table(results: tuple[Result, ...]) -> pa.Table:
    lengths = [result.settings.n_keys for result in results]
    columns: dict[str, Any] = {
        "keys": np.array(lengths, dtype=np.float64),
        "keys.text": [written(length) for length in lengths],
        "finding": [finding(result) for result in results],
    }
    found = {word: [_part(result, word) for result in results] for word in _PARTS}
    for word, parts in found.items():
        columns[f"share.{word}"] = np.array([100 * part.share for part in parts])
        columns[f"moved.{word}"] = np.array([part.bytes_moved / _MIB for part in parts])
        columns[f"share.text.{word}"] = [percent(part.share) for part in parts]
        columns[f"flops.text.{word}"] = [written(part.flops, 3) for part in parts]
        columns[f"moved.text.{word}"] = [written(part.bytes_moved / _MIB, 3) for part in parts]
    pairs = zip(found["projections"], found["attention"], strict=True)
    columns["whole.text"] = [written(one.flops + other.flops, 3) for one, other in pairs]
    columns["size.text"] = [say("cost.count", x=text) for text in columns["moved.text.rms"]]
    return pa.table(columns)


def _part(result: Result, word: PartWord) -> Any:
    return next(part for part in result.parts if part.part == word)


def _view(settings: Settings, results: tuple[Result, ...]) -> Exhibit:
    x: PlainAxis = {"ticks": [(float(2**n), written(2**n)) for n in (4, 6, 8, 10)]}
    tiles: dict[str, tuple[Role, str]] = {
        "keys": ("plain", "keys.text"),
        "whole": ("plain", "whole.text"),
        "attention": ("plain", "share.text.attention"),
        "rms": ("norm", "share.text.rms"),
        "moved": ("norm", "size.text"),
    }
    return {
        "dial": {
            "column": "keys",
            "name": "n_keys",
            "text": "keys.text",
            "label": say("dial.n_keys.label"),
            "at": float(settings.n_keys),
            "log": True,
        },
        "finding": "finding",
        "heading": 1,
        "tiles": [
            {"label": say(f"cost.tile.{name}"), "lines": [{"role": role, "column": column}]}
            for name, (role, column) in tiles.items()
        ],
        "panels": [
            _curves("share", _SHARES, [100 * _part(r, word).share for r in results for word in _SHARES], x),
            _curves("moved", _MOVED, [_part(r, word).bytes_moved / _MIB for r in results for word in _MOVED], x),
            _parts(),
        ],
        "words": words() | {"hint": say("cost.hint")},
        "alt": " ".join(explain(run(settings))),
    }


def _curves(name: str, roles: dict[PartWord, Role], values: list[float], x: PlainAxis) -> Curves:
    return {
        "kind": "curves",
        "title": say(f"cost.panel.{name}"),
        "subtitle": say(f"cost.axis.{name}"),
        "wide": 6,
        "x": x,
        "y": log_axis(np.array(values)),
        "lines": [
            {"role": role, "column": f"{name}.{word}", "label": say(f"cost.short.{word}")}
            for word, role in roles.items()
        ],
        "marks": [],
    }


def _parts() -> Cells:
    return {
        "kind": "cells",
        "title": say("cost.panel.parts"),
        "wide": 12,
        "head": ["", *(Text(text=say(f"cost.head.{name}")) for name in ("flops", "share", "bytes"))],
        "roles": [None] * 4,
        "rows": [
            [{"text": say(f"choice.part.{word}")}, *(f"{name}.text.{word}" for name in ("flops", "share", "moved"))]
            for word in _PARTS
        ],
        "strong": _PARTS.index("rms"),
    }


def times_exhibit(measured: Measured) -> Drawn:
    """Table and view of a measurement."""
    rounds = range(1, measured.settings.repeats + 1)
    columns: dict[str, Any] = {
        "round": np.array(rounds, dtype=np.float64),
        "round.text": [str(at) for at in rounds],
        "finding": [time_finding(measured)] * len(rounds),
        **{f"ms.{times.way}": np.array(times.each_ms) for times in measured.times},
    }
    longest = max(max(times.each_ms) for times in measured.times)
    step = max(1, len(rounds) // 8)
    view: Exhibit = {
        "dial": {
            "column": "round",
            "text": "round.text",
            "label": say("cost.measure.dial"),
            "at": float(len(rounds)),
            "log": False,
        },
        "finding": "finding",
        "heading": 2,
        "tiles": [],
        "panels": [
            {
                "kind": "curves",
                "title": say("cost.panel.times"),
                "subtitle": say("cost.axis.times"),
                "wide": 6,
                "x": {"ticks": [(float(at), str(at)) for at in rounds[::step]]},
                "y": linear_axis(0, longest),
                "lines": [
                    {"role": role, "column": f"ms.{way}", "label": say(f"cost.short.{way}")}
                    for way, role in _WAYS.items()
                ],
                "marks": [],
            },
            _spreads(measured),
        ],
        "words": words() | {"hint": say("cost.measure.hint")},
        "alt": " ".join(explain_times(measured)),
    }
    return pa.table(columns), view


def _spreads(measured: Measured) -> Cells:
    rows: list[list[Entry]] = []
    for times in measured.times:
        found = spread(times)
        cells = (
            say(f"cost.short.{times.way}"),
            found["median"],
            say("cost.range", low=found["lowest"], high=found["highest"]),
            found["ratio"],
            say("cost.range", low=found["least"], high=found["most"]),
        )
        rows.append([{"text": cell} for cell in cells])
    return {
        "kind": "cells",
        "title": say("cost.panel.ways"),
        "wide": 6,
        "head": ["", *(Text(text=say(f"cost.head.{name}")) for name in ("median", "spread", "ratio", "ratios"))],
        "roles": [None] * 5,
        "rows": rows,
        "strong": 1,
    }
