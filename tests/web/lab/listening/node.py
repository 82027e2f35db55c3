"""What the browser's own scripts say of an exhibit: the parcel that Python sends, opened and put into words in Node.

* `listened(exhibits, more)`: each panel's words, as `Heard`, where the dial stands and at other rows;
* `listened_live(drawn, message, rows)`: of a run whose rows come in a message.
"""

import base64
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qkdemo.charts.look import row_of
from qkdemo.charts.panels import Panel
from qkdemo.charts.spec import Drawn, Exhibit
from qkdemo.web.lab.exhibit import spoken
from qkdemo.web.lab.parcel import Known, parcel
from tests.javascript import node
from tests.serving import ROOT

# What the scripts ask of a browser as they are loaded.
BROWSER: Final = """
Object.assign(globalThis, {
  document: { createElement: () => ({ getContext: () => ({}) }) },
  window: { matchMedia: () => ({ matches: false }) },
});
"""
# Reads {parcel, or view and message; rows}, one exhibit a line; prints of each panel, at each row, words and cells.
_PROGRAM: Final = """
const { open } = await import("./qkdemo/web/exhibit/rows/parcel.js");
const { LiveSweep } = await import("./qkdemo/web/exhibit/rows/feed.js");
const { Sweep } = await import("./qkdemo/web/exhibit/rows/sweep.js");
const { cellOf, heard, keyNamed } = await import("./qkdemo/web/exhibit/heard/hear.js");
const { placed } = await import("./qkdemo/web/exhibit/heard/cells.js");
const { createInterface } = await import("node:readline");
const up = (n) => Array.from({ length: n }, (_, i) => i);
async function opened({ parcel }) {
  const { view, ...table } = await open(new Uint8Array(Buffer.from(parcel, "base64")));
  return { view, sweep: new Sweep(table, view.dial) };
}
function taken({ view, message }) {
  const sweep = new LiveSweep(view.live);
  sweep.append(message);
  sweep.reveal(true);
  return { view, sweep };
}
for await (const line of createInterface({ input: process.stdin })) {
  const { rows, ...sent } = JSON.parse(line);
  const { view, sweep } = sent.parcel ? await opened(sent) : taken(sent);
  const told = view.panels.map((panel) => rows.map((row) => {
    const scene = { view, panel, sweep, row, selected: panel.selected ?? null, open: [0, sweep.rows - 1] };
    const { words } = view;
    const inHeat = (query) => (key) => [placed([query, key], panel, words), cellOf([query, key], scene)];
    const cells = {
      heat: () => up(panel.rows).flatMap((query) => up(panel.columns).map(inHeat(query))),
      bars: () => panel.labels.map((_, at) => [keyNamed(at, panel, words), cellOf([0, at], scene)]),
    };
    return [heard(scene), (cells[panel.kind] ?? (() => []))()];
  }));
  console.log(JSON.stringify(told));
}
"""


@dataclass(frozen=True)
class Heard:
    """A panel's words at a row of the table, and the name and the words of each of its cells or bars."""

    panel: Panel
    row: int
    words: str
    cells: list[tuple[str, str]]


def listened(exhibits: Sequence[Drawn], more: Sequence[float] = ()) -> list[list[Heard]]:
    """Of each exhibit, what is heard where its dial stands, and at `more` parts of the way along it."""
    asked = []
    for table, view in exhibits:
        places = [row_of(table, view, view["dial"]["at"]), *(round(part * (table.num_rows - 1)) for part in more)]
        sent = parcel(json.dumps(_with_words(view)), table, str(view["dial"]["column"]), Known())
        asked.append({"parcel": base64.b64encode(sent).decode(), "rows": list(dict.fromkeys(places))})
    return _told([view for _, view in exhibits], asked)


def listened_live(view: Exhibit, message: Mapping[str, Any], rows: Sequence[int]) -> list[Heard]:
    """What is heard at some rows of a run."""
    return _told([view], [{"view": _with_words(view), "message": message, "rows": list(rows)}])[0]


def _with_words(view: Exhibit) -> Exhibit:
    return view | {"words": {**view["words"], **spoken(view["panels"])}}


def _told(views: Sequence[Exhibit], asked: Sequence[dict[str, Any]]) -> list[list[Heard]]:
    command = [node(), "--input-type=module", "--eval", BROWSER + _PROGRAM]
    lines = "\n".join(json.dumps(each, allow_nan=False) for each in asked)
    done = subprocess.run(command, cwd=ROOT, input=lines, capture_output=True, encoding="utf-8", check=True)
    return [
        [
            Heard(panel, row, words, [(name, said) for name, said in cells])
            for panel, of_panel in zip(view["panels"], told, strict=True)
            for row, (words, cells) in zip(each["rows"], of_panel, strict=True)
        ]
        for view, each, told in zip(views, asked, map(json.loads, done.stdout.splitlines()), strict=True)
    ]
