// Curves over the dial: lines with their labels, marks, and one cursor that all curve panels share.
//
// `rest` draws what stays while the cursor moves; `live` draws the cursor. +∞ leaves the frame through its top, NaN is a gap.

import { drawGuess, drawVeil, veiled } from "../lesson.js";
import { alongLine, around, besideRule, freest, leader, sampled, spread } from "./labels.js";
import { DOT, drawBand, drawInfinity, drawLine, drawPoint, drawRule, pointsOf, traced } from "./lines.js";
import { clamp, placeOf, within, xOf, yOf } from "./places.js";

const GAP = 7; // between the frame and the words outside it
const beyondDot = ({ zoom }) => GAP * Math.max(1, zoom); // a dot at the frame grows on a projector

const top = ({ theme }) => Math.max(6, theme.small * 0.6); // half a tick label

// Room for the ticks under the frame, and for the axis title where it has a row of its own.
const bottom = ({ theme, axis }) => theme.small * (axis === "below" ? 2.9 : 1.5);

// What the widest words beside the frames of these panels need: [left, right]. Long labels go inside the frame.
export function gutters(panels, theme, measure, width) {
  const longest = Math.min(width * 0.2, theme.small * 8);
  const ticks = panels.flatMap((panel) => (panel.y.ticks ?? []).map(([, words]) => measure(words)));
  const beside = panels.filter((panel) => panel.labels !== "apart");
  const labels = beside.flatMap((panel) => panel.lines.map((line) => measure(line.label ?? "", 600)));
  return [Math.max(0, ...ticks) + GAP, Math.max(DOT, ...labels.filter((w) => w <= longest)) + beyondDot(theme)];
}

export function frameOf(box, /** @type {Scene<Spec.Curves>} */ scene) {
  const [left, right] = scene.gutters;
  return { left: box.x + left, right: box.x + box.w - right, top: box.y + top(scene), bottom: box.y + box.h - bottom(scene) };
}

// The row under a point of the canvas.
export function rowUnder(x, box, /** @type {Scene<Spec.Curves>} */ scene) {
  const frame = frameOf(box, scene);
  return scene.sweep.rowAt((x - frame.left) / (frame.right - frame.left));
}

export function rest(pen, box, /** @type {Scene<Spec.Curves>} */ scene) {
  const frame = frameOf(box, scene);
  drawAxes(pen, box, frame, scene);
  drawVeil(pen, frame, scene);
  const lines = scene.panel.lines.map((line) => ({ ...line, ...traced(line, frame, scene) }));
  for (const line of [...lines].reverse()) if (line.low) drawBand(pen, line, frame, scene);
  for (const line of [...lines].reverse()) drawLine(pen, line, frame, scene); // the first line lies on top
  const levels = (scene.panel.levels ?? []).map((level) => ({ ...level, at: yOf(level.y, scene.panel.y, frame) }));
  const shown = levels.filter(({ at }) => at >= frame.top && at <= frame.bottom);
  for (const { at } of shown) pen.line([frame.left, at, frame.right, at], { stroke: scene.theme.role.bound, dash: [1, 3], width: 1.5 });
  const seen = ({ x }) => within(scene.sweep.place(x)) && isOpen(scene, scene.sweep.rowOf(x));
  const marks = (scene.panel.marks ?? []).filter(seen);
  for (const mark of marks) drawRule(pen, xOf(scene.sweep.place(mark.x), frame), frame, scene.theme.role[mark.role ?? "other"]);
  const points = (scene.panel.points ?? []).filter(seen);
  for (const point of points) drawPoint(pen, point, frame, scene);
  const named = shown.map(({ at, label }) => ({ label, y: besideLevel(at, frame, scene.theme) }));
  const size = scene.theme.small;
  const taken = named.map(({ label, y }) => [frame.right - 4 - pen.width(label), y - size * 0.95, pen.width(label), size * 1.25]);
  drawLabels(pen, lines, marks, points, frame, scene, taken);
  for (const { label, y } of named) pen.text(label, frame.right - 4, y, { fill: scene.theme.role.bound, align: "right", halo: scene.theme.paper });
}

// The base line of a level's label: above its line, or below where there is no room.
function besideLevel(at, frame, theme) {
  return at - theme.small * 0.35 > frame.top + theme.small * 0.8 ? at - theme.small * 0.35 : at + theme.small * 1.05;
}

// Between which uprights `live` draws; null: anywhere.
export function touched(box, /** @type {Scene<Spec.Curves>} */ scene) {
  if (scene.row < 0 || scene.guesses?.length) return null;
  const x = xOf(scene.sweep.places[scene.row], frameOf(box, scene));
  const reach = 2 * DOT * scene.theme.zoom + 2.5 * scene.theme.small; // a dot, and an ∞ beside it
  return [x - reach, x + reach];
}

export function live(pen, box, /** @type {Scene<Spec.Curves>} */ scene) {
  if (scene.row < 0) return;
  const frame = frameOf(box, scene);
  const { sweep, theme, panel, row } = scene;
  const x = xOf(sweep.places[row], frame);
  pen.line([x, frame.top - 4, x, frame.bottom], { stroke: theme.rule });
  for (const line of [...panel.lines].reverse()) {
    const value = sweep.numbers(line.column)[row];
    if (Number.isNaN(value)) continue;
    const y = yOf(value, panel.y, frame);
    const shown = clamp(y, frame.top, frame.bottom);
    const colour = theme.role[line.role];
    const filling = y === shown ? { fill: colour, stroke: theme.paper } : { fill: theme.paper, stroke: colour };
    pen.circle(x, shown, DOT * theme.zoom, { ...filling, width: 1.5 * theme.zoom });
    if (Math.abs(value) === Infinity) drawInfinity(pen, x, value, frame, colour, theme);
  }
  for (const guess of scene.guesses ?? []) {
    const y = clamp(yOf(guess.y, panel.y, frame), frame.top, frame.bottom);
    drawGuess(pen, xOf(sweep.place(guess.x), frame), y, guess.label, frame, theme);
  }
}

// The value at a point that the veil covers, as a prediction of it; null elsewhere.
export function guessUnder(x, y, box, /** @type {Scene<Spec.Curves>} */ scene) {
  const frame = frameOf(box, scene);
  const span = veiled(scene, frame);
  const { veil } = scene.view;
  if (!span || x < span[0] || x > span[1] || !scene.panel.lines.some(({ column }) => column === veil.column)) return null;
  const { log, domain: [low, high] } = scene.panel.y;
  const share = (frame.bottom - y) / (frame.bottom - frame.top);
  return clamp(log ? low * (high / low) ** share : low + (high - low) * share, veil.low, veil.high);
}

function isOpen({ open, sweep }, row) {
  return row >= (open?.[0] ?? 0) && row <= (open?.[1] ?? sweep.rows - 1);
}

function drawAxes(pen, box, frame, /** @type {Scene<Spec.Curves>} */ { panel, sweep, theme, view, axis }) {
  const size = theme.small;
  let last = Infinity;
  const rising = [...(panel.y.ticks ?? [])].sort((a, b) => a[0] - b[0]);
  for (const [value, words] of rising) {
    const y = yOf(value, panel.y, frame);
    if (!(y >= frame.top - 1 && y <= frame.bottom + 1)) continue;
    pen.line([frame.left, y, frame.right, y], { stroke: theme.grid });
    if (last - y < size) continue;
    pen.text(words, frame.left - GAP, y, { fill: theme.muted, align: "right", middle: true });
    last = y;
  }
  const base = frame.bottom + size * 1.25;
  let free = box.x;
  for (const [value, words] of panel.x?.ticks ?? []) {
    const place = sweep.place(value);
    if (!within(place)) continue;
    const half = pen.width(words) / 2;
    const x = clamp(xOf(place, frame), box.x + half, box.x + box.w - half);
    if (x - half < free) continue;
    pen.text(words, x, base, { fill: theme.muted, align: "center" });
    free = x + half + 6;
  }
  if (axis === "below") pen.text(view.dial.label, frame.right, base + size * 1.4, { fill: theme.muted, align: "right" });
  else if (box.x + box.w - pen.width(view.dial.label) > free + 6)
    pen.text(view.dial.label, box.x + box.w, base, { fill: theme.muted, align: "right" });
}

// Words at the ends of the lines, beside the frame where they fit, else inside it where it is emptiest; or, where lines
// end together ("apart"), inside the frame where each line is far from the others.
function drawLabels(pen, lines, marks, points, frame, { panel, sweep, theme, gutters: [, right] }, levels) {
  const size = theme.small;
  let dots = null; // formed where words have to find a place among them: not while a run goes on
  const reach = 2 * DOT * theme.zoom; // of a diamond or a ring
  const diamonds = points.map((point) => placeOf(point, frame, { sweep, panel })).map(([x, y]) => [x - reach, y - reach, 2 * reach, 2 * reach]);
  const exitBox = ({ x, value }) => [x, value > 0 ? frame.top : frame.bottom - size, size * 1.6, size];
  const named = lines.filter((line) => line.label && line.runs.length);
  const apart = panel.labels === "apart";
  const beside = named.filter((line) => !apart && line.ends && pen.width(line.label, size, 600) <= right - beyondDot(theme) + 0.5);
  const ends = beside.map((line) => clamp(line.runs.at(-1).at(-1), frame.top, frame.bottom));
  const middles = spread(ends, size * 1.15, frame.top - 4, frame.bottom + 4);
  middles.forEach((y, i) =>
    pen.text(beside[i].label, frame.right + beyondDot(theme), y, { fill: theme.role[beside[i].role], weight: 600, middle: true }),
  );
  const names = middles.map((y) => [frame.right, y - size / 2, right, size]);
  const taken = [...names, ...levels, ...diamonds, ...lines.flatMap((line) => line.exits.map(exitBox))];
  const write = (words, fill, candidates) => {
    dots ??= lines.flatMap((line) => line.runs.flatMap((run) => sampled(run)));
    const box = freest(candidates, dots, taken, frame);
    if (!box) return null; // words on words say nothing
    taken.push(box);
    pen.text(words, box[0] + 2, box[1] + size * 0.95, { fill, halo: theme.paper });
    return box;
  };
  const inside = named.filter((one) => !beside.includes(one));
  const placed = apart ? farthestFirst(inside) : inside.map((line) => ({ line, places: pointsOf(line).reverse() }));
  for (const { line, places } of placed) {
    const candidates = alongLine(places, pen.width(line.label, size) + 4, size * 1.25, frame);
    write(line.label, theme.role[line.role], candidates);
  }
  for (const point of points) {
    const [x, y] = placeOf(point, frame, { sweep, panel });
    const fill = theme.role[point.role];
    const box = write(point.label, fill, around(x, y, pen.width(point.label, size) + 4, size * 1.25, reach, frame));
    const lead = box && leader(x, y, box, reach);
    if (lead) pen.line(lead, { stroke: fill });
  }
  for (const mark of marks) {
    const x = xOf(sweep.place(mark.x), frame);
    write(mark.label, theme.role[mark.role ?? "other"], besideRule(x, pen.width(mark.label, size) + 4, size * 1.25, frame));
  }
}

// Every line with its points, those far above or below all other lines first; the line that gets farthest comes first.
function farthestFirst(lines) {
  const heights = lines.map((line) => new Map(pointsOf(line)));
  const ranked = lines.map((line, i) => {
    const others = heights.filter((_, k) => k !== i);
    const far = ([x, y]) => Math.min(...others.map((other) => (other.has(x) ? Math.abs(other.get(x) - y) : Infinity)));
    const points = pointsOf(line).map((point) => ({ point, far: far(point) }));
    points.sort((one, two) => two.far - one.far);
    return { line, farthest: points[0]?.far ?? 0, places: points.map(({ point }) => point) };
  });
  return ranked.sort((one, two) => two.farthest - one.farthest);
}
