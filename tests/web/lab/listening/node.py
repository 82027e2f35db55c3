"""What the browser's own scripts say of an exhibit: the parcel that Python sends, opened and put into words in Node.

* `listened(drawn, more=…)`: each panel's words, as `Heard`, where the dial stands and at `more` rows.
"""

import base64
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qkdemo.charts.look import row_of
from qkdemo.charts.panels import Panel
from qkdemo.charts.spec import Drawn
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
# Reads [parcel, rows] of an exhibit a line; prints, for each panel and row, its words, and those of its cells.
_PROGRAM: Final = """
const { open } = await import("./qkdemo/web/exhibit/rows/parcel.js");
const { Sweep } = await import("./qkdemo/web/exhibit/rows/sweep.js");
const { cellOf, heard, keyNamed } = await import("./qkdemo/web/exhibit/heard/hear.js");
const { placed } = await import("./qkdemo/web/exhibit/heard/cells.js");
const { createInterface } = await import("node:readline");
const up = (n) => Array.from({ length: n }, (_, i) => i);
for await (const line of createInterface({ input: process.stdin })) {
  const [text, rows] = JSON.parse(line);
  const { view, ...table } = await open(new Uint8Array(Buffer.from(text, "base64")));
  const sweep = new Sweep(table, view.dial);
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
    asked, lines = [], []
    for table, view in exhibits:
        places = [row_of(table, view, view["dial"]["at"]), *(round(part * (table.num_rows - 1)) for part in more)]
        rows = list(dict.fromkeys(places))
        text = json.dumps(view | {"words": {**view["words"], **spoken()}}, allow_nan=False)
        sent = parcel(text, table, str(view["dial"]["column"]), Known())
        asked.append(rows)
        lines.append(json.dumps([base64.b64encode(sent).decode(), rows]))
    command = [node(), "--input-type=module", "--eval", BROWSER + _PROGRAM]
    done = subprocess.run(command, cwd=ROOT, input="\n".join(lines), capture_output=True, encoding="utf-8", check=True)
    return [
        [
            Heard(panel, row, words, [(name, said) for name, said in cells])
            for panel, of_panel in zip(view["panels"], told, strict=True)
            for row, (words, cells) in zip(rows, of_panel, strict=True)
        ]
        for (_, view), rows, told in zip(exhibits, asked, map(json.loads, done.stdout.splitlines()), strict=True)
    ]
