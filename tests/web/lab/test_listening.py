"""Every number that the browser's scripts say of an exhibit, held against what the lab computed, in float64."""

import json
import subprocess
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from qkdemo.charts.columns import coded, step_of
from qkdemo.charts.panels import BRIGHTEST, UNDEFINED
from qkdemo.charts.spec import Drawn
from qkdemo.dials import Choice, Dial, Switch, declarations
from qkdemo.labs.registry import LABS
from qkdemo.labs.training import Settings as Training
from qkdemo.labs.training import plan_of
from qkdemo.labs.training.view import ROLES, live_view
from qkdemo.runs.kept.shipped import SHADE, shipped
from qkdemo.runs.workers.live import Live as RunLive
from qkdemo.training.telemetry import CURVES
from qkdemo.web.lab.exhibit import spoken
from qkdemo.web.training import stream
from qkdemo.web.training.stream import rows_between
from tests.javascript import node
from tests.runs.kept.test_store import whole
from tests.serving import ROOT
from tests.web.lab.listening.node import BROWSER, listened, listened_live
from tests.web.lab.listening.numbers import NUMBERS, Array, Holds, of_sharpness
from tests.web.lab.listening.sentences import Said, hold

PARTS: Final = (0.3, 0.8)  # of the way along the dial, where they are heard too


def extremes(lab: Any) -> list[dict[str, Any]]:
    """All dials at their low ends, and at their high ones, as far as they are numbers, words or switches."""
    found: list[dict[str, Any]] = [{}, {}]
    for dial in declarations(lab.settings):
        match dial.kind:
            case Dial(low=low, high=high):
                ends: tuple[Any, Any] = (low, high)
            case Choice():
                ends = (dial.allowed_words()[0], dial.allowed_words()[-1])
            case Switch():
                ends = (False, True)
            case _:
                continue
        for state, end in zip(found, ends, strict=True):
            state[dial.name] = int(end) if dial.whole and isinstance(end, float) else end
    return found


MORE: Final[dict[str, list[dict[str, Any]]]] = {
    "drift": [
        {"scale": 3.0, "n_keys": 256, "query": 100, "key": 200},
        {"scale": 0.01, "n_keys": 33, "query": 32, "key": 31},
        {"n_keys": 65, "causal": True, "query": 3, "key": 64, "variant": "softcap"},
        {"scale": 300.0, "format": "float16", "causal": True},
        {"format": "bfloat16", "alignment": 0.9, "variant": "cosine"},
    ],
    "rope": [{"seed": 1, "gain_kind": "tied"}],
    "epsilon": [{"seed": 1}],
    "placement": [{"compare": "all_mistakes"}],
    "cache": [{"n_keys": 32, "key": 20, "step": 30}],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_that_is_heard_is_the_labs(name: str) -> None:
    lab = LABS[name]
    states = [lab.settings(), *lab.presets.values()]
    states += [lab.settings(**more) for more in (*extremes(lab), *MORE.get(name, ()))]
    exhibits: list[tuple[Any, Drawn]] = []
    for result in map(lab.run, states):
        opened = [section().exhibit for section in lab.tabs(result).values()]
        exhibits += [(result, each) for each in (*lab.figures(result), *opened) if each is not None]
    for (result, drawn), heard in zip(exhibits, listened([each for _, each in exhibits], PARTS), strict=True):
        of_dial = drawn[1]["dial"]["column"] == "value"
        holds: Holds = of_sharpness if of_dial else NUMBERS[name]
        kept: dict[str, Array] = {}

        def column(which: str, result: Any = result, holds: Holds = holds, kept: dict[str, Array] = kept) -> Array:
            if which not in kept:
                kept[which] = holds(result, which)
            return kept[which]

        for each in heard:
            hold(Said(drawn, each, column))


def test_lines_that_nobody_sees_apart_are_not_said_to_cross() -> None:
    """Beyond a size of about 0.5 epsilon inside the root takes less than one outside it: by some 10⁻⁷ of the length."""
    lab = LABS["epsilon"]
    (heard,) = listened(lab.figures(lab.run(lab.settings())))
    told = [each.words for each in heard if each.panel["kind"] == "curves"]
    assert len(told) == 2
    assert not any(" cross " in words for words in told)


def test_every_number_that_is_heard_of_a_run_is_the_one_that_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_MOST_MAPS", 10)
    settings = Training(n_layers=1, n_heads=1, d_head=8, n_keys=8, batch=2, steps=40)
    plan = plan_of(settings)
    chunk = whole(plan)
    rows = rows_between(RunLive(plan, owner="", generation=1, chunks=[chunk]), (0, 0), 0, plan.steps)
    view = live_view(settings, plan, {}, "")
    table = pa.table({**{name: column.astype(np.float64) for name, column in rows.scalars.items()}, **rows.texts})
    shown = [max(step for step in rows.mapped if step <= row + 1) for row in range(plan.steps)]

    def holds(column: str) -> Array:
        role, _, name = column.partition(".")
        run = ROLES.index(role)
        if name != "heat":
            return chunk.curves[:, run, CURVES.index(name)].astype(np.float64)
        weights = np.full((plan.steps, 8, 8), -1.0)
        for row, step in enumerate(shown):
            codes = chunk.maps[chunk.mapped.index(step), run, 0, 0].astype(np.float64)
            weights[row][np.tril_indices(8)] = np.where(codes == UNDEFINED, np.nan, (codes / BRIGHTEST) ** 2)
        return weights

    for each in listened_live(view, stream._encoded(rows), (0, 10, 21, 39)):
        hold(Said((table, view), each, holds, shown[each.row]))


def test_the_browser_says_a_code_as_paper_does() -> None:
    words = spoken(LABS["mla"].figures(LABS["mla"].run(LABS["mla"].settings()))[0][1]["panels"])
    program = f"""
    const {{ weight }} = await import("./qkdemo/web/exhibit/heard/cells.js");
    const codes = Array.from({{ length: {BRIGHTEST + 1} }}, (_, code) => code);
    const words = {json.dumps(words)};
    const told = (step) => codes.filter((code) => code % step === 0).map((code) => weight(code, words, step));
    console.log(JSON.stringify([1, {SHADE}].map(told)));
    """
    command = [node(), "--input-type=module", "--eval", BROWSER + program]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout
    assert json.loads(told) == [[coded(code, step) for code in range(0, BRIGHTEST + 1, step)] for step in (1, SHADE)]


def test_of_a_run_that_came_with_the_app_no_more_is_heard_than_its_fewer_codes_hold() -> None:
    """Each code stands for five: a weight of 0.982 is kept as the brightest, and is not “more than 0.996”."""
    settings, plan = Training(), plan_of(Training())
    record = shipped().record(plan)
    assert record is not None
    rows = rows_between(RunLive(plan, owner="", generation=1, chunks=[record.chunk]), (0, 0), 0, 60)
    view = live_view(settings, plan, {}, "")
    panel = next(panel for panel in view["panels"] if panel["kind"] == "heat")
    said = [each.words for each in listened_live(view, stream._encoded(rows), (56,)) if each.panel["kind"] == "heat"]
    exact = np.array([0, 1e-5, 0.004, 0.94, 0.982, 1])
    codes = np.rint(np.rint(np.sqrt(exact) * BRIGHTEST) / SHADE) * SHADE
    assert step_of(list(codes), panel["coarse"]) == SHADE
    assert [coded(int(code), SHADE) for code in codes] == [
        *["less than 1·10⁻⁴"] * 2,
        "less than 4.9·10⁻³",
        "about 0.9",
        "more than 0.98",
        "more than 0.98",
    ]
    assert said
    assert not any("0.996" in words or "4·10⁻⁶" in words for words in said)
