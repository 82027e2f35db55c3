// A matrix of attention weights, one query per row, one key per column.
//
// Codes: 0..250 are weight = (code / 250)², 254 is hidden by the causal mask, 255 is undefined (NaN).

import { css3, mix } from "../pens/theme.js";
import { spanOf } from "./places.js";

export const [TOP, MASKED, UNDEFINED] = [250, 254, 255]; // as the first lines say
const LEAST = 0.05; // share of colour that shows a cell is there at all

const inks = new WeakMap(); // per theme, per role

export function gridOf(box, /** @type {Scene<Spec.Heat>} */ { panel, theme }) {
  const left = theme.small * 2.7;
  const below = theme.small * 1.5;
  const side = Math.max(2, Math.floor(Math.min((box.w - left - 2) / panel.columns, (box.h - below - 2) / panel.rows) * 2) / 2);
  return { x: box.x + left, y: box.y + 1, side, w: side * panel.columns, h: side * panel.rows };
}

// The [query, key] under a point, or null.
export function cellUnder(x, y, box, /** @type {Scene<Spec.Heat>} */ scene) {
  const grid = gridOf(box, scene);
  const key = Math.floor((x - grid.x) / grid.side);
  const query = Math.floor((y - grid.y) / grid.side);
  const inside = key >= 0 && query >= 0 && key < scene.panel.columns && query < scene.panel.rows;
  return inside ? [query, key] : null;
}

// Axis labels, and the numbers of the selected query and key, or of all that the selected cell stands for.
export function rest(pen, box, /** @type {Scene<Spec.Heat>} */ scene) {
  const { panel, theme, selected } = scene;
  const grid = gridOf(box, scene);
  const size = theme.small;
  const quiet = { fill: theme.muted };
  const turned = { ...quiet, align: "center", middle: true, turn: -Math.PI / 2 };
  const base = grid.y + grid.h + size * 1.2;
  pen.text(panel.query_label ?? "", grid.x - size * 2.05, grid.y + grid.h / 2, turned);
  pen.text(panel.key_label ?? "", grid.x, base, quiet);
  if (!selected) return;
  const [query, key] = selected;
  const { pooled } = panel;
  const [queries, keys] = [spanOf(query, pooled), spanOf(key, pooled)];
  const chosen = { fill: theme.text, weight: 600 };
  const half = pen.width(keys, size, 600) / 2;
  const words = grid.x + pen.width(panel.key_label ?? "") + size * 0.6; // the numbers stand behind these
  const under = Math.max(grid.x + (key + 0.5) * grid.side, words + half);
  const beside = grid.y + (query + 0.5) * grid.side;
  if (pooled) pen.text(queries, grid.x - size * 0.8, beside, { ...turned, ...chosen }); // two numbers are too wide
  else pen.text(queries, grid.x - 5, beside, { ...chosen, align: "right", middle: true });
  pen.text(keys, Math.min(under, Math.max(words, box.x + box.w) - half), base, { ...chosen, align: "center" });
}

// What is drawn here: the same codes are the same picture. Of a run each step is another one.
export function shownOf(/** @type {Scene<Spec.Heat>} */ { panel, sweep, row }) {
  return sweep.stepOfList ? null : [sweep.list(panel.column, row)];
}

export function live(pen, box, /** @type {Scene<Spec.Heat>} */ scene) {
  const { panel, sweep, theme, row, selected } = scene;
  const grid = gridOf(box, scene);
  const codes = sweep.list(panel.column, row);
  if (!codes) return;
  const step = sweep.stepOfList?.(row); // not every step of a long run has a matrix
  if (step !== undefined && step !== row + 1) {
    const words = `${scene.view.dial.label} ${step}`;
    pen.text(words, grid.x + grid.w, grid.y + grid.h + theme.small * 1.2, { fill: theme.muted, align: "right" });
  }
  pen.cells(grid.x, grid.y, grid.side, panel.columns, codes, inksFor(theme, panel.role));
  pen.lines(seams(grid, panel), { stroke: theme.paper });
  const undefinedCells = boxesOf(codes, UNDEFINED, grid, panel.columns);
  if (undefinedCells.length) pen.hatch(undefinedCells, theme.role[panel.role]);
  if (selected) outline(pen, grid, selected, theme);
}

function seams({ x, y, w, h, side }, { rows, columns }) {
  const upright = Array.from({ length: columns - 1 }, (_, i) => [x + (i + 1) * side, y, x + (i + 1) * side, y + h]);
  const level = Array.from({ length: rows - 1 }, (_, i) => [x, y + (i + 1) * side, x + w, y + (i + 1) * side]);
  return [...upright, ...level];
}

function outline(pen, grid, [query, key], theme) {
  const y = grid.y + query * grid.side;
  pen.rect(grid.x - 0.5, y - 0.5, grid.w + 1, grid.side + 1, { stroke: theme.text, width: 1 });
  pen.rect(grid.x + key * grid.side - 1, y - 1, grid.side + 2, grid.side + 2, { stroke: theme.text, width: 2 });
}

function boxesOf(codes, wanted, grid, columns) {
  const boxes = [];
  codes.forEach((code, i) => {
    if (code !== wanted) return;
    const [x, y] = [grid.x + (i % columns) * grid.side, grid.y + Math.floor(i / columns) * grid.side];
    boxes.push([x, y, grid.side - 1, grid.side - 1]);
  });
  return boxes;
}

// Colour of every code, both as CSS and packed for a pixel.
function inksFor(theme, role) {
  if (!inks.has(theme)) inks.set(theme, new Map());
  const known = inks.get(theme);
  if (!known.has(role)) {
    const ink = (code) => mix(theme.background, theme.ink[role], LEAST + ((1 - LEAST) * code) / TOP);
    const ramp = Array.from({ length: TOP + 1 }, (_, code) => ink(code));
    const css = Array.from({ length: 256 }, (_, code) => (code <= TOP ? css3(ramp[code]) : null));
    const packed = Uint32Array.from({ length: 256 }, (_, code) => (code <= TOP ? pack(ramp[code]) : 0));
    known.set(role, { css, packed });
  }
  return known.get(role);
}

function pack([red, green, blue]) {
  return new Uint32Array(new Uint8ClampedArray([red, green, blue, 255]).buffer)[0];
}
