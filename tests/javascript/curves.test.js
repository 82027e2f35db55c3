// The words that are written beside and into a chart of curves: none on another, whatever lies where.

import assert from "node:assert/strict";
import { test } from "node:test";

Object.assign(globalThis, {
  document: { createElement: () => ({ getContext: () => ({}) }) },
  window: { matchMedia: () => ({ matches: false }) },
  matchMedia: () => ({ matches: false }),
});
const { gutters, rest } = await import("../../qkdemo/web/exhibit/drawn/curves.js");

const dice = (seed) => () => (seed = (seed * 48271) % 2147483647) / 2147483647;
const ROLES = ["plain", "norm", "bound", "other"];

// A pen that keeps the boxes of the words: [words, left, top, right, bottom].
class Ink {
  constructor(theme) {
    this.theme = theme;
    this.boxes = [];
    for (const name of ["line", "lines", "polygon", "rect", "circle"]) this[name] = () => undefined;
  }
  clipped(x, y, w, h, draw) {
    draw();
  }
  width(words, size = this.theme.small) {
    return words.length * size * 0.55;
  }
  text(words, x, y, { size = this.theme.small, align = "left", middle = false }) {
    const w = this.width(words, size);
    const left = x - { left: 0, center: w / 2, right: w }[align];
    const base = middle ? y + size * 0.35 : y;
    this.boxes.push([words, left, base - size * 0.75, left + w, base]); // as high as a digit
  }
}

function sweepOf(columns) {
  const rows = columns.scale.length;
  const places = columns.scale.map((_, row) => row / (rows - 1));
  return { rows, places, numbers: (name) => columns[name], place: (x) => x, rowOf: (x) => Math.round(x * (rows - 1)) };
}

// A chart with lines that cross, and numbers read off them, many at one place.
function drawn(random, small, w, h, { lines, points, marks }) {
  const rows = 41;
  const columns = { scale: Array.from({ length: rows }, (_, i) => i / (rows - 1)) };
  const panel = { kind: "curves", title: "", lines: [], points: [], y: { domain: [0, 1], ticks: [[0, "0"], [1, "1"]] } };
  for (let i = 0; i < lines; i++) {
    const [start, end] = [random(), random()];
    columns[`c${i}`] = columns.scale.map((x) => start + (end - start) * x);
    panel.lines.push({ role: ROLES[i % 4], column: `c${i}`, label: `line ${i}${random() < 0.3 ? ", its name" : ""}` });
  }
  const near = [random(), random()];
  for (let i = 0; i < points; i++) {
    const [x, y] = random() < 0.5 ? near : [random(), random()];
    panel.points.push({ x, y, role: ROLES[i % 4], read: true, label: `${Math.round(1e4 * random()) / 100} %` });
  }
  panel.marks = Array.from({ length: marks }, (_, i) => ({ x: random(), role: "plain", label: `mark ${i}` }));
  const theme = { small, zoom: small / 12, role: {}, soft: {}, paper: "", muted: "", grid: "", rule: "", band: "" };
  const pen = new Ink(theme);
  const scene = { panel, theme, sweep: sweepOf(columns), view: { dial: { label: "weight scale" } }, row: 0 };
  rest(pen, { x: 0, y: 0, w, h }, { ...scene, gutters: gutters([panel], theme, (words, weight) => pen.width(words, small, weight), w) });
  return { boxes: pen.boxes, panel };
}

function clashes(boxes) {
  const found = [];
  boxes.forEach(([one, left, top, right, bottom], i) => {
    for (const [other, left2, top2, right2, bottom2] of boxes.slice(i + 1)) {
      if (left < right2 && left2 < right && top < bottom2 && top2 < bottom) found.push(`${one} | ${other}`);
    }
  });
  return found;
}

test("no words lie on others, in charts of any size", () => {
  const random = dice(11);
  for (let turn = 0; turn < 400; turn++) {
    const [small, w, h] = [10 + 8 * random(), 300 + 900 * random(), 110 + 500 * random()];
    const counts = { lines: 1 + Math.floor(4 * random()), points: Math.floor(6 * random()), marks: Math.floor(3 * random()) };
    const { boxes } = drawn(random, small, w, h, counts);
    assert.deepEqual(clashes(boxes), [], `turn ${turn}: ${w} × ${h}, ${small}`);
  }
});

test("three numbers at one place are all written, in a chart as low as a hall's", () => {
  const random = dice(5);
  for (let turn = 0; turn < 100; turn++) {
    const { boxes, panel } = drawn(random, 18, 500, 130, { lines: 2, points: 3, marks: 0 });
    for (const { label } of panel.points) assert.ok(boxes.some(([words]) => words === label), `turn ${turn}: ${label}`);
  }
});
