// A matrix of attention weights, one query per row, one key per column.
//
// Codes: 0..250 are weight = (code / 250)², 254 is hidden by the causal mask, 255 is undefined (NaN).

import { css3, mix } from "./theme.js";

const TOP = 250;
const UNDEFINED = 255;
const LEAST = 0.05; // share of colour that shows a cell is there at all

const inks = new WeakMap(); // per theme, per role

export function gridOf(box, { panel, theme }) {
  const left = theme.small * 2.7;
  const below = theme.small * 1.5;
  const side = Math.max(2, Math.floor(Math.min((box.w - left - 2) / panel.columns, (box.h - below - 2) / panel.rows) * 2) / 2);
  return { x: box.x + left, y: box.y + 1, side, w: side * panel.columns, h: side * panel.rows };
}

// The [query, key] under a point, or null.
export function cellUnder(x, y, box, scene) {
  const grid = gridOf(box, scene);
  const key = Math.floor((x - grid.x) / grid.side);
  const query = Math.floor((y - grid.y) / grid.side);
  const inside = key >= 0 && query >= 0 && key < scene.panel.columns && query < scene.panel.rows;
  return inside ? [query, key] : null;
}

export function live(pen, box, scene) {
  const { panel, sweep, theme, row } = scene;
  const grid = gridOf(box, scene);
  const codes = sweep.list(panel.column, row);
  pen.cells(grid.x, grid.y, grid.side, panel.columns, codes, inksFor(theme, panel.role));
  for (let i = 1; i < panel.columns; i++) seam(pen, grid.x + i * grid.side, grid.y, 0, grid.h, theme);
  for (let i = 1; i < panel.rows; i++) seam(pen, grid.x, grid.y + i * grid.side, grid.w, 0, theme);
  const undefinedCells = boxesOf(codes, UNDEFINED, grid, panel.columns);
  if (undefinedCells.length) pen.hatch(undefinedCells, theme.role[panel.role]);
  drawSelection(pen, grid, scene);
}

function seam(pen, x, y, w, h, theme) {
  pen.line([x, y, x + w, y + h], { stroke: theme.paper, width: 1 });
}

function drawSelection(pen, grid, { panel, theme, selected }) {
  const size = theme.small;
  const quiet = { fill: theme.muted };
  pen.text(panel.query_label ?? "", grid.x - size * 2.05, grid.y + grid.h / 2, { ...quiet, align: "center", middle: true, turn: -Math.PI / 2 });
  const base = grid.y + grid.h + size * 1.2;
  const labelWidth = pen.width(panel.key_label ?? "");
  pen.text(panel.key_label ?? "", grid.x, base, quiet);
  if (!selected) return;
  const [query, key] = selected;
  const x = grid.x + key * grid.side;
  const y = grid.y + query * grid.side;
  pen.rect(grid.x - 0.5, y - 0.5, grid.w + 1, grid.side + 1, { stroke: theme.text, width: 1 });
  pen.rect(x - 1, y - 1, grid.side + 2, grid.side + 2, { stroke: theme.text, width: 2 });
  pen.text(String(query), grid.x - 5, y + grid.side / 2, { fill: theme.text, align: "right", middle: true, weight: 600 });
  const under = Math.max(x + grid.side / 2, grid.x + labelWidth + size);
  pen.text(String(key), under, base, { fill: theme.text, align: "center", weight: 600 });
}

function boxesOf(codes, wanted, grid, columns) {
  const boxes = [];
  codes.forEach((code, i) => {
    if (code === wanted) boxes.push([grid.x + (i % columns) * grid.side, grid.y + Math.floor(i / columns) * grid.side, grid.side - 1, grid.side - 1]);
  });
  return boxes;
}

// Colour of every code, both as CSS and packed for a pixel.
function inksFor(theme, role) {
  if (!inks.has(theme)) inks.set(theme, new Map());
  const known = inks.get(theme);
  if (!known.has(role)) {
    const ramp = Array.from({ length: TOP + 1 }, (_, code) => mix(theme.background, theme.ink[role], LEAST + ((1 - LEAST) * code) / TOP));
    const css = Array.from({ length: 256 }, (_, code) => (code <= TOP ? css3(ramp[code]) : null));
    const packed = Uint32Array.from({ length: 256 }, (_, code) => (code <= TOP ? pack(ramp[code]) : 0));
    known.set(role, { css, packed });
  }
  return known.get(role);
}

function pack([red, green, blue]) {
  return new Uint32Array(new Uint8ClampedArray([red, green, blue, 255]).buffer)[0];
}
