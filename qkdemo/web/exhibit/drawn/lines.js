// Lines over the dial, with what belongs to them: bands, points, rules, and the ∞ where a line leaves the frame.

import { lit } from "../lesson.js";
import { DASH } from "../pens/theme.js";
import { placeOf, xOf, yOf } from "./places.js";
import { thinned } from "./thinned.js";

export const DOT = 4;
const WIDTH = { bound: 1.5, other: 1.5 }; // the others are 2.25 wide

// The line as runs of points inside the frame, and the places where it leaves for infinity.
export function traced(line, frame, /** @type {Scene<Spec.Curves>} */ { sweep, panel, open = [0, sweep.rows - 1] }) {
  const values = sweep.numbers(line.column);
  const runs = [];
  const exits = [];
  let run = null;
  const [first, last] = open;
  for (let row = first; row <= last; row++) {
    const value = values[row];
    const x = xOf(sweep.places[row], frame);
    if (Number.isNaN(value)) {
      run = null; // nothing is drawn across what is not known
    } else if (Number.isFinite(value)) {
      if (!run) runs.push((run = infiniteBefore(values, row) ? edge(values[row - 1], sweep, row - 1, frame) : []));
      run.push(x, yOf(value, panel.y, frame));
    } else {
      if (run) run.push(...edge(value, sweep, row, frame));
      if (!infiniteBefore(values, row)) exits.push({ x, value });
      run = null;
    }
  }
  return { runs: runs.map(thinned), exits, ends: last === sweep.rows - 1 && Number.isFinite(values[last]) };
}

// The room between two columns, over rows that follow one another and where both are known; of a lone row an upright.
export function drawBand(pen, /** @type {Spec.Line} */ { role, low, high }, frame, /** @type {Scene<Spec.Curves>} */ { sweep, panel, theme }) {
  const [lows, highs] = [sweep.numbers(low), sweep.numbers(high)];
  const known = Array.from(lows.keys()).filter((row) => Number.isFinite(lows[row]) && Number.isFinite(highs[row]));
  const along = (values, rows) => rows.flatMap((row) => [xOf(sweep.places[row], frame), yOf(values[row], panel.y, frame)]);
  const fill = translucent(theme.role[role]);
  pen.clipped(frame.left - 2, frame.top - 1, frame.right - frame.left + 4, frame.bottom - frame.top + 2, () => {
    for (const rows of stretches(known)) {
      if (rows.length > 1) pen.polygon([...along(highs, rows), ...along(lows, [...rows].reverse())], { fill });
      else pen.line([...along(highs, rows), ...along(lows, rows)], { stroke: fill, width: 2 * DOT * theme.zoom });
    }
  });
}

// Whole numbers that rise, cut wherever one is missing.
function stretches(numbers) {
  const cut = [];
  for (const number of numbers) {
    if (number !== cut.at(-1)?.at(-1) + 1) cut.push([]);
    cut.at(-1).push(number);
  }
  return cut;
}

// One measured point: on no line, as a diamond; on one, where a sentence reads it, as a ring.
export function drawPoint(pen, point, frame, /** @type {Scene<Spec.Curves>} */ scene) {
  const { theme } = scene;
  const [at, up] = placeOf(point, frame, scene);
  if (point.read) {
    pen.circle(at, up, DOT * theme.zoom, { fill: theme.paper, stroke: theme.role[point.role], width: 2 * theme.zoom });
    return;
  }
  const r = 1.9 * DOT * theme.zoom;
  const s = r - 2 * theme.zoom;
  pen.polygon([at, up - r, at + r, up, at, up + r, at - r, up], { fill: theme.paper });
  pen.polygon([at, up - s, at + s, up, at, up + s, at - s, up], { fill: theme.role[point.role] });
}

function infiniteBefore(values, row) {
  return row > 0 && Math.abs(values[row - 1]) === Infinity;
}

function edge(value, sweep, row, frame) {
  return [xOf(sweep.places[row], frame), value > 0 ? frame.top : frame.bottom];
}

export function drawLine(pen, line, frame, /** @type {Scene<Spec.Curves>} */ scene) {
  const { theme } = scene;
  const { stroke, width } = lit(line, scene, (WIDTH[line.role] ?? 2.25) * theme.zoom);
  pen.clipped(frame.left, frame.top - 1, frame.right - frame.left + 1, frame.bottom - frame.top + 2, () => {
    for (const run of line.runs) {
      if (run.length > 2) pen.line(run, { stroke, width, dash: DASH[line.role].map((length) => length * theme.zoom) });
      else pen.circle(run[0], run[1], 1.5 * theme.zoom, { fill: stroke });
    }
  });
  const dots = line.dots ? pointsOf(line) : [];
  for (const [x, y] of dots) if (y > frame.top - 2) pen.circle(x, y, 2.5 * theme.zoom, { fill: stroke });
  for (const { x, value } of line.exits) drawInfinity(pen, x, value, frame, stroke, theme);
}

export function drawInfinity(pen, x, value, frame, fill, theme) {
  const size = theme.small * 1.15;
  const y = value > 0 ? frame.top + size * 0.45 : frame.bottom - size * 0.45;
  const where = x + size > frame.right ? x - size * 0.7 : x + size * 0.7;
  pen.text(value > 0 ? "∞" : "−∞", where, y, { fill, size, weight: 700, align: "center", middle: true, halo: theme.paper });
}

export function drawRule(pen, x, frame, stroke) {
  pen.line([x, frame.top, x, frame.bottom], { stroke, dash: [1, 3], width: 1.5 });
}

export function pointsOf(line) {
  return line.runs.flatMap((run) => Array.from({ length: run.length / 2 }, (_, i) => [run[2 * i], run[2 * i + 1]]));
}

function translucent(colour) {
  return `color-mix(in srgb, ${colour} 18%, transparent)`;
}
