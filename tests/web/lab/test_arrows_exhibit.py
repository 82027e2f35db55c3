"""The arrows in the browser: what they send back, and that they compute what the lab computes."""

import json
import math
import random
import subprocess
from typing import Any

import pytest

from qkdemo.floats.formats import FORMATS
from qkdemo.labs.arrows import PRESETS, Settings, run
from qkdemo.web.lab.parts.arrows_exhibit import read_pick, state_of, view
from tests.javascript import node
from tests.serving import ROOT

STATES = 3000
# Reads states, one JSON a line, and prints both sides' raw scores and shares.
PROGRAM = """
import { attend } from "./qkdemo/web/arrows/plane.js";
import { createInterface } from "node:readline";
const word = (x) => (Number.isFinite(x) ? x : String(x));
for await (const line of createInterface({ input: process.stdin })) {
  const { plain, norm } = attend(JSON.parse(line));
  console.log(JSON.stringify([plain, norm].map((side) => [side.raw.map(word), side.shares.map(word)])));
}
"""


def drawn(rng: random.Random) -> Settings:
    arrows = {
        f"{name}_{part}": rng.randint(-180, 180) if part == "angle" else round(rng.uniform(0.05, 3), 2)
        for name in ("query", *(f"key_{at}" for at in range(1, 6)))
        for part in ("length", "angle")
    }
    word = rng.choice(("float64", "float64", *FORMATS))
    most = 2.5 if word == "float16" else 1.5
    return Settings(scale=10 ** rng.uniform(-1, most), gain=10 ** rng.uniform(-1, 2), format=word, **arrows)


def test_the_browser_computes_what_the_lab_computes() -> None:
    rng = random.Random(0)
    states = [*PRESETS.values(), *(drawn(rng) for _ in range(STATES))]
    lines = "\n".join(json.dumps(state_of(state)) for state in states)
    command = [node(), "--input-type=module", "--eval", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(states)
    undefined = 0
    for state, sides in zip(states, answers, strict=True):
        result = run(state, [state.scale])
        for side, (raw, shares) in zip((result.plain, result.twin), sides, strict=True):
            scores = side.logits[0]
            largest = max([1.0, *(abs(x) for x in scores if math.isfinite(x))])
            assert [float(x) for x in raw] == pytest.approx(side.raw[0].tolist(), rel=1e-12, abs=1e-12 * largest)
            wanted = side.shares[0].tolist()
            assert [float(x) for x in shares] == pytest.approx(wanted, abs=1e-12 * largest, nan_ok=True)
            undefined += math.isnan(wanted[0])
    assert undefined > 20  # float16 was lost often enough to be compared


@pytest.mark.parametrize("message", [{"scale": 2}, {"scale": 2.5, "query_angle": 90}, {"format": "float16"}])
def test_what_a_hand_moved_is_read(message: dict[str, Any]) -> None:
    assert read_pick(message) == message


@pytest.mark.parametrize(
    "message",
    [None, [], {}, {"scale": True}, {"scale": None}, {"scale": math.nan}, {"seed": 1}, {"key_1_length": [1]}],
)
def test_anything_else_is_not(message: object) -> None:
    assert read_pick(message) is None


def test_the_component_gets_numbers_and_whole_sentences() -> None:
    shown = view(PRESETS["overflow"])
    json.dumps(shown, allow_nan=False)
    assert shown["state"]["scale"] == PRESETS["overflow"].scale
    assert all(shown["words"].values())
    assert len(shown["names"]["keys"]) == len(shown["state"]["keys"])
