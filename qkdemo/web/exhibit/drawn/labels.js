// Where the words beside lines go: apart from each other, off the lines, inside the frame.

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
export function freest(candidates, dots, taken, frame) {
  let best = null;
  let least = Infinity;
  for (const [rank, box] of candidates.entries()) {
    const words = taken.filter((other) => overlap(box, other)).length;
    const cost = outside(box, frame) * 1000 + words * 100 + covered(box, dots) + rank * 0.01;
    if (cost < least) [best, least] = [box, cost];
  }
  return best;
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
