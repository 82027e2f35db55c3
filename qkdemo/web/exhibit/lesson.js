// What a track lays over the exhibit: a veil over what is still to be predicted, and the predictions.

import { CALM } from "./play.js";

const RUN_MS = 1600; // how long the dial takes to where the answer is
const FADED = 0.75;

// The first and the last row that may be seen: from where the question is asked, away from where the answer is.
export function openRows(/** @type {Spec.Exhibit} */ { veil }, sweep) {
  const last = sweep.rows - 1;
  if (!veil) return [0, last];
  const at = sweep.rowOf(veil.from);
  return veil.x < veil.from ? [at, last] : [0, at];
}

// The predictions that belong to a panel: those of its lines.
export function guessesOf(/** @type {{lines?: Spec.Line[]}} */ { lines = [] }, /** @type {Spec.Guess[]} */ guesses = []) {
  return guesses.filter(({ column }) => lines.some((line) => line.column === column));
}

// Moves the dial from one row to another, as a hand would; `show` gets rows, and returns false to end it.
export function runDial(sweep, from, to, show, done) {
  if (CALM.matches) {
    done();
    return;
  }
  const began = performance.now();
  const [start, end] = [sweep.places[from], sweep.places[to]];
  const tick = (now) => {
    const share = Math.min(1, (now - began) / RUN_MS);
    const eased = share * share * (3 - 2 * share);
    if (!show(sweep.rowAt(start + (end - start) * eased))) return;
    if (share < 1) requestAnimationFrame(tick);
    else done();
  };
  requestAnimationFrame(tick);
}

// The part of a frame that the veil covers: [left, right], or null.
export function veiled({ view, open, sweep }, frame) {
  if (!view.veil) return null;
  const x = (row) => frame.left + sweep.places[row] * (frame.right - frame.left);
  return open[0] > 0 ? [frame.left, x(open[0])] : [x(open[1]), frame.right];
}

export function drawVeil(pen, frame, scene) {
  const span = veiled(scene, frame);
  if (!span) return;
  const { theme } = scene;
  const [left, right] = span;
  pen.rect(left, frame.top, right - left, frame.bottom - frame.top, { fill: theme.band });
  const size = theme.small * 2.4;
  const middle = (frame.top + frame.bottom) / 2;
  if (right - left > size) pen.text("?", (left + right) / 2, middle, { fill: theme.muted, size, weight: 700, align: "center", middle: true });
}

export function drawGuess(pen, x, y, label, frame, theme) {
  const r = 6 * theme.zoom;
  const points = [x - r, y, x, y - r, x + r, y, x, y + r];
  pen.line([x, frame.top, x, frame.bottom], { stroke: theme.text, dash: [1, 4] });
  pen.polygon(points, { fill: theme.paper });
  pen.line([...points, x - r, y, x, y - r], { stroke: theme.text, width: 2 * theme.zoom });
  const right = x + r + 4 + pen.width(label, theme.small, 600) < frame.right;
  const style = { fill: theme.text, weight: 600, middle: true, halo: theme.paper, align: right ? "left" : "right" };
  pen.text(label, right ? x + r + 4 : x - r - 4, y, style);
}

// A line's colour and width while words in a text point at the lines of one role.
export function lit(line, scene, width) {
  const { theme } = scene;
  if (!scene.lit) return { stroke: theme.role[line.role], width };
  return line.role === scene.lit ? { stroke: theme.role[line.role], width: width * 1.8 } : { stroke: theme.soft[line.role], width: width * FADED };
}
