// Curves on a canvas: what is drawn of a sweep of which not everything is known.

import assert from "node:assert/strict";
import { test } from "node:test";

// There is no page here, and the pen is ours.
const matchMedia = () => ({ matches: false, addEventListener() {} });
Object.assign(globalThis, { document: { createElement: () => ({ getContext: () => null }) }, window: { matchMedia }, matchMedia });
const { rest } = await import("../../qkdemo/web/exhibit/drawn/curves.js");

// What a pen is asked to draw of lines, bands and dots, as places along the dial.
function drawn(columns, line) {
  const places = Array.from(columns[line.column].keys(), (row, _, rows = columns[line.column].length) => row / (rows - 1));
  const found = { lines: [], bands: [], dots: [] };
  const along = (points) => points.filter((_, i) => i % 2 === 0).map((x) => Math.round(x / 10));
  const pen = {
    text() {},
    width: (words) => 6 * words.length,
    clipped: (x, y, w, h, draw) => draw(),
    line: (points, { stroke, dash }) => dash && stroke === "black" && found.lines.push(along(points)),
    polygon: (points) => found.bands.push(along(points)),
    circle: (x) => found.dots.push(Math.round(x / 10)),
  };
  const sweep = { rows: places.length, places, numbers: (name) => columns[name], place: (value) => value, rowOf: () => 0 };
  const role = { plain: "black", norm: "red", other: "blue", bound: "grey" };
  const panel = { kind: "curves", y: { log: false, domain: [0, 1], ticks: [] }, lines: [line], marks: [] };
  const scene = { panel, sweep, gutters: [0, 0], theme: { role, zoom: 1, small: 12, paper: "white", muted: "grey", rule: "grey" } };
  rest(pen, { x: 0, y: 0, w: 10 * (places.length - 1), h: 100 }, { ...scene, view: { dial: { label: "" } } });
  return found;
}

test("a curve is not joined over places that are not known yet, and neither is its band", () => {
  const loss = [0.2, 0.3, NaN, 0.4, 0.5, 0.6, NaN, 0.7];
  const columns = { loss, low: loss.map((x) => x - 0.1), high: loss.map((x) => x + 0.1) };
  const found = drawn(columns, { role: "plain", column: "loss", label: "", low: "low", high: "high", dots: true });
  assert.deepEqual(found.lines.filter((line) => line.length > 1 && new Set(line).size > 1), [[0, 1], [3, 4, 5]]);
  assert.deepEqual(found.bands, [[0, 1, 1, 0], [3, 4, 5, 5, 4, 3]]);
  assert.deepEqual([...new Set(found.dots)].sort(), [0, 1, 3, 4, 5, 7]);
});

test("a curve of which everything is known is one line", () => {
  assert.deepEqual(drawn({ loss: [0.2, 0.3, 0.4] }, { role: "plain", column: "loss", label: "" }).lines, [[0, 1, 2]]);
});
