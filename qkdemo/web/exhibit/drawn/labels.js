// Where the words beside lines go: apart from each other, off the lines, inside the frame.

const FARTHEST = 6; // half boxes of words away from a point
const LATER = 0.01; // what a place costs for every one before it, in points of lines

// Middles of labels of one height, as near to `wanted` as possible, none nearer than `height`, all between low and high.
export function spread(wanted, height, low, high) {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  const middles = [...wanted];
  let floor = low + height / 2;
  for (const i of order) {
    middles[i] = Math.max(middles[i], floor);
    floor = middles[i] + height;
  }
  let ceiling = high - height / 2;
  for (const i of [...order].reverse()) {
    middles[i] = Math.min(middles[i], ceiling);
    ceiling = middles[i] - height;
  }
  return middles;
}

// The candidate [x, y, w, h] that covers least: `dots` are points of lines, `taken` boxes of words. Earlier ones win ties.
// Null if each would cover words.
export function freest(candidates, dots, taken, frame) {
  let best = null;
  let least = Infinity;
  for (const [rank, box] of candidates.entries()) {
    if (rank * LATER >= least) break;
    if (taken.some((other) => overlap(box, other))) continue;
    const cost = outside(box, frame) * 1000 + covered(box, dots) + rank * LATER;
    if (cost < least) [best, least] = [box, cost];
  }
  return best;
}

// Boxes before and behind each point of a line, above and below it.
export function alongLine(points, w, h, frame) {
  const candidates = [];
  for (const [at, y] of points) {
    const x = Math.max(frame.left + 2, Math.min(frame.right - w, at - w));
    candidates.push([x, y - h - 3, w, h], [x, y + 4, w, h]);
    if (at + w < frame.right) candidates.push([at, y - h - 3, w, h], [at, y + 4, w, h]);
  }
  return candidates;
}

// Boxes around a lone point, inside the frame, the nearest first, and those beside it first: the cursor often stands on it.
export function around(x, y, w, h, reach, frame) {
  const [left, right, middle, level] = [x - w - reach, x + reach, x - w / 2, y - h / 2];
  const [over, under] = [y - reach - h, y + reach];
  const near = [[right, over], [left, over], [right, under], [left, under], [right, level], [left, level], [middle, over], [middle, under]];
  const far = [];
  for (let row = -2 * FARTHEST; row <= 2 * FARTHEST; row++) {
    for (let column = -FARTHEST; column <= FARTHEST; column++) far.push([middle + (column * w) / 2, level + (row * h) / 4]);
  }
  const away = (corner) => Math.hypot(corner[0] - middle, corner[1] - level);
  far.sort((one, two) => away(one) - away(two));
  return [...near, ...far].map(([at, up]) => box(at, up, w, h)).filter((one) => !outside(one, frame));
}

// From a lone point to the box of its words, [x, y, x, y], if other words would have room between them; else null.
export function leader(x, y, [left, top, w, h], reach) {
  const [across, down] = [Math.max(left, Math.min(left + w, x)), Math.max(top, Math.min(top + h, y))];
  const length = Math.hypot(across - x, down - y);
  if (length < reach + h / 2) return null;
  return [x + ((across - x) * reach) / length, y + ((down - y) * reach) / length, across, down];
}

// Boxes on both sides of an upright, from above, inside the frame.
export function besideRule(x, w, h, frame) {
  const candidates = [];
  for (let y = frame.top + 1; y + h <= frame.bottom; y += h / 2) candidates.push(box(x + 3, y, w, h), box(x - w - 3, y, w, h));
  return candidates.filter((one) => !outside(one, frame));
}

// Points every few pixels along a flat list of points.
export function sampled(points, step = 3) {
  const dots = [];
  for (let i = 0; i + 3 < points.length; i += 2) {
    const [x1, y1, x2, y2] = points.slice(i, i + 4);
    const count = Math.max(1, Math.ceil(Math.hypot(x2 - x1, y2 - y1) / step));
    for (let k = 0; k <= count; k++) dots.push([x1 + ((x2 - x1) * k) / count, y1 + ((y2 - y1) * k) / count]);
  }
  return dots;
}

/** @returns {[number, number, number, number]} */
function box(x, y, w, h) {
  return [x, y, w, h];
}

function outside([x, y, w, h], frame) {
  return x < frame.left || y < frame.top || x + w > frame.right || y + h > frame.bottom ? 1 : 0;
}

function overlap([x, y, w, h], [x2, y2, w2, h2]) {
  return x < x2 + w2 && x2 < x + w && y < y2 + h2 && y2 < y + h;
}

function covered([x, y, w, h], dots) {
  let count = 0;
  for (const [dx, dy] of dots) if (dx >= x && dx <= x + w && dy >= y && dy <= y + h) count++;
  return count;
}
