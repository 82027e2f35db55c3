// What can be picked in a panel, and what its buttons do: the cells of a heat map, a row of bars or words, a table.

import { wordUnder } from "./drawn/arcs.js";
import { keyUnder } from "./drawn/bars.js";
import { guessUnder, rowUnder } from "./drawn/curves.js";
import { cellUnder } from "./drawn/heat.js";
import { holdCurves, holdGrid, holdTable } from "./hands.js";
import { placed } from "./heard/cells.js";
import { cellOf, keyNamed } from "./heard/hear.js";
import { savePng, saveSvg } from "./pens/save.js";

// Puts the panel numbered `i` into the visitor's hands.
export function hold(stage, plot, i) {
  const { grid } = stage.parts.panels[i];
  if (grid) holdTable(grid, tableGrid(stage, i), stage);
  if (plot) holdPlot(stage, plot, i);
}

function holdPlot(stage, plot, i) {
  const { canvas, stage: area, png, svg, ear } = stage.parts.panels[i];
  const scene = () => stage.scene(i);
  if (ear) ear.onclick = () => import("./heard/ear.js").then(({ listen }) => listen(stage, scene()));
  png.onclick = () => savePng(plot, scene());
  svg.onclick = () => saveSvg(plot, scene());
  const { kind } = stage.view.panels[i];
  if (kind === "curves") {
    const guessAt = (x, y) => guessUnder(x, y, plot.box, scene());
    const rowAt = (x) => {
      stage.pace.under = i;
      return rowUnder(x, plot.box, scene());
    };
    holdCurves(canvas, rowAt, guessAt, stage);
  }
  if (kind === "heat") holdGrid(area, canvas, heatGrid(stage, plot, i), stage);
  if (kind === "bars") holdGrid(area, canvas, barsGrid(stage, plot, i, keyUnder), stage);
  if (kind === "arcs") holdGrid(area, canvas, barsGrid(stage, plot, i, wordUnder), stage);
}

function heatGrid(stage, plot, i) {
  return {
    under: (x, y) => cellUnder(x, y, plot.box, stage.scene(i)),
    point: (cell) => stage.panel(i).details && stage.details.point(stage.panel(i), cell),
    now: () => stage.selected(stage.panel(i)),
    get size() {
      return [stage.panel(i).rows, stage.panel(i).columns];
    },
    choice: ([query, key]) => ({ query, key, from: "heat" }),
    name(cell) {
      const held = cellOf(cell, stage.scene(i));
      return `${placed(cell, stage.panel(i), stage.view.words)}${held && `: ${held}`}`;
    },
  };
}

// What stands in one row: bars, or the words under arcs.
function barsGrid(stage, plot, i, under) {
  const key = (at) => (at === null ? null : [0, at]);
  return {
    under: (x) => key(under(x, plot.box, stage.scene(i))),
    now: () => key(stage.selected(stage.panel(i)) ?? 0),
    get size() {
      return [1, stage.panel(i).labels.length];
    },
    choice: ([, at]) => ({ key: at, from: "bars" }),
    name: ([, at]) => `${keyNamed(at, stage.panel(i), stage.view.words)}: ${cellOf([0, at], stage.scene(i))}`,
  };
}

function tableGrid(stage, i) {
  return {
    now: () => stage.selected(stage.panel(i)) ?? [0, 0],
    get size() {
      return [stage.panel(i).rows.length, stage.panel(i).head.length];
    },
    choice: ([row, column]) => ({ row, column, from: "grid" }),
    name: () => "", // the focus is on the cell, which says itself
  };
}
