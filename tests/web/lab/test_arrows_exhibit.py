"""The arrows in the browser: what they send back, and that they compute what the lab computes."""

import json
import math
import random
import subprocess
from typing import Any

import numpy as np
import pytest

from qkdemo.floats.formats import FORMATS
from qkdemo.labs.arrows import PRESETS, Settings, run
from qkdemo.labs.arrows.words import findings
from qkdemo.web.first.labels import Box, Tip, beside_tip
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


# Reads the view, and then states: prints the headline, how many keys count on either side, and what an arrow says.
HEADLINES = """
Object.assign(globalThis, { matchMedia: () => ({ matches: false }) });
const { attend } = await import("./qkdemo/web/arrows/plane.js");
const { Stage } = await import("./qkdemo/web/arrows/stage.js");
const { createInterface } = await import("node:readline");
let view = null;
for await (const line of createInterface({ input: process.stdin })) {
  if (view) console.log(JSON.stringify(Stage.prototype.headline.call({ view }, attend(JSON.parse(line)))));
  else view = JSON.parse(line);
}
"""


# Reads states, and prints the scale up to which the button lets the arrows grow.
FIRST_LOST = """
import { firstLost } from "./qkdemo/web/arrows/plane.js";
import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) console.log(firstLost(JSON.parse(line), 1000));
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
    undefined = 0
    for state, sides in zip(states, answers(PROGRAM, list(map(state_of, states))), strict=True):
        result = run(state, [state.scale])
        for side, (raw, shares) in zip((result.plain, result.twin), sides, strict=True):
            scores = side.logits[0]
            largest = max([1.0, *(abs(x) for x in scores if math.isfinite(x))])
            assert [float(x) for x in raw] == pytest.approx(side.raw[0].tolist(), rel=1e-12, abs=1e-12 * largest)
            wanted = side.shares[0].tolist()
            assert [float(x) for x in shares] == pytest.approx(wanted, abs=1e-12 * largest, nan_ok=True)
            undefined += math.isnan(wanted[0])
    assert undefined > 20  # float16 was lost often enough to be compared


def test_arrows_that_grow_until_a_score_is_infinite_stop_where_one_is() -> None:
    rng = random.Random(2)
    states = [drawn(rng).but(format="float16", scale=round(10 ** rng.uniform(-1, 2), 2)) for _ in range(1000)]
    scales = answers(FIRST_LOST, list(map(state_of, states)))
    raw = [run(state, [scale]).plain.raw[0] for state, scale in zip(states, scales, strict=True)]
    assert all(np.isinf(scores).any() for scale, scores in zip(scales, raw, strict=True) if scale < 1000)
    assert any(scores.min() == -math.inf and scores.max() < math.inf for scores in raw)  # a negative one may be first


def answers(program: str, lines: list[Any]) -> list[Any]:
    """What Node prints for these lines."""
    command = [node(), "--input-type=module", "--eval", program]
    given = "\n".join(map(json.dumps, lines))
    done = subprocess.run(command, cwd=ROOT, input=given, capture_output=True, encoding="utf-8", check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def at_edges(rng: random.Random) -> Settings:
    """Arrows that are alike, or nearly; tiny and huge ones."""
    angles, lengths = [rng.choice((0, 30, 90, 180)) for _ in range(6)], [rng.choice((0.05, 1, 1, 3)) for _ in range(6)]
    names = ("query", *(f"key_{at}" for at in range(1, 6)))
    arrows = {f"{name}_angle": angle for name, angle in zip(names, angles, strict=True)}
    arrows |= {f"{name}_length": length for name, length in zip(names, lengths, strict=True)}
    scale = rng.choice((0.01, 0.01, 0.1, 1, 10, 1000))
    word = rng.choice(tuple(FORMATS))
    return Settings(scale=scale, gain=rng.choice((0.1, 1, 10, 100)), format=word, **arrows)


def test_the_browser_says_the_headline_that_the_lab_says() -> None:
    rng = random.Random(1)
    zero = [Settings(query_length=0), Settings(query_length=0, scale=1000, format="float16")]
    tiny = [Settings(scale=0.01, gain=0.1, query_length=length) for length in (1e-5, 1e-4, 0.05)]
    states = [
        *PRESETS.values(),
        *zero,
        *tiny,
        *(at_edges(rng) for _ in range(1000)),
        *(drawn(rng) for _ in range(1000)),
    ]
    told = answers(HEADLINES, [view(states[0]), *map(state_of, states)])
    wanted = [findings(run(state, [state.scale]))[0] for state in states]
    differing = [(state, one, other) for state, one, other in zip(states, told, wanted, strict=True) if one != other]
    assert not differing, differing[:3]
    assert len({sentence.split("“")[0] for sentence in told}) > 2  # several kinds were compared


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


# Reads tips and the boxes' half-sizes, and prints where the words stand.
LABELS = """
import { besideTip } from "./qkdemo/web/arrows/labels.js";
import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) {
  const { tips, halves, size } = JSON.parse(line);
  const [words, centre, arrows] = [[], { x: 0, y: 0 }, tips.map(([x, y, dx, dy]) => ({ x, y, dx, dy }))];
  const shifted = (end) => ({ ...end, x: end.x + size[0], y: end.y + size[1] });
  const standing = { words, arrows: arrows.map(shifted), centre: shifted(centre), size: size.map((half) => 2 * half) };
  arrows.forEach((end, at) => words.push(besideTip(shifted(end), halves[at], standing)));
  console.log(JSON.stringify(words.map(({ x, y }) => [x - size[0], y - size[1]])));
}
"""


def test_the_first_picture_puts_words_where_the_browser_puts_them() -> None:
    rng = random.Random(3)
    drawings = []
    for _ in range(500):
        angles = [math.radians(rng.uniform(-180, 180)) for _ in range(6)]
        lengths = [rng.uniform(10, 170) for _ in range(6)]
        tips = [
            (r * math.cos(a), r * math.sin(a), math.cos(a), math.sin(a)) for r, a in zip(lengths, angles, strict=True)
        ]
        drawings.append({"tips": tips, "halves": [(rng.uniform(10, 70), 10) for _ in tips], "size": (250, 200)})
    for drawing, told in zip(drawings, answers(LABELS, drawings), strict=True):
        tips = [Tip((x, y), (dx, dy)) for x, y, dx, dy in drawing["tips"]]
        words = list[Box]()
        for tip, half in zip(tips, drawing["halves"], strict=True):
            words.append(beside_tip(tip, half, words=words, arrows=tips, size=drawing["size"], away=8))
        assert told == [pytest.approx(word.at, abs=1e-9) for word in words]
