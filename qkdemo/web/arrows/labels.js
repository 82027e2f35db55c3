// Where the words at the arrows' tips stand: beside their tip, inside the drawing, and if possible on nothing else.

const AWAY = 8; // px from a tip to its word
const SIDES = [[1, 0], [1, -1], [0, -1], [-1, -1], [-1, 0], [-1, 1], [0, 1], [1, 1]]; // around a tip; y grows downwards

// The middle of a word of half-size `half` at `tip` ({x, y, dx, dy}: where an arrow ends, and its direction). Of eight
// places around the tip it is the one that covers least; of those alike, the one that goes on in the arrow's direction.
// `words` are the boxes that stand already ({x, y, half}), `arrows` all tips, which begin at `centre`; `size` is the
// drawing's.
export function besideTip(tip, half, { words, arrows, centre, size }) {
  const places = SIDES.map(([sx, sy]) => {
    const away = sx && sy ? AWAY / 2 : AWAY;
    const box = { x: tip.x + sx * (half[0] + away), y: tip.y + sy * (half[1] + away), half };
    const turned = (sx * tip.dx + sy * tip.dy) / Math.hypot(sx, sy); // cosine of the angle between place and arrow
    return { box, costs: cost(box, { words, arrows, centre, size }) - turned };
  });
  const { box } = places.reduce((best, other) => (other.costs < best.costs ? other : best));
  return inside(box, size);
}

// More than the cosine can make good: a place outside costs most, then a word, then an arrow.
function cost(box, { words, arrows, centre, size }) {
  const out = [0, 1].some((axis) => Math.abs(along(box, axis) - size[axis] / 2) + box.half[axis] > size[axis] / 2);
  const covered = words.filter((word) => [0, 1].every((axis) => apart(box, word, axis) < box.half[axis] + word.half[axis]));
  const crossed = arrows.filter((end) => crosses(centre, end, box));
  return 100 * Number(out) + 10 * covered.length + 3 * crossed.length;
}

function along({ x, y }, axis) {
  return axis ? y : x;
}

function apart(one, other, axis) {
  return Math.abs(along(one, axis) - along(other, axis));
}

// Whether the line from `start` to `end` enters the box: it is cut to the box's strip along x, then along y.
function crosses(start, end, box) {
  let [from, to] = [0, 1];
  for (const axis of [0, 1]) {
    const [begin, way] = [along(start, axis), along(end, axis) - along(start, axis)];
    const edges = [along(box, axis) - box.half[axis], along(box, axis) + box.half[axis]];
    if (way === 0) {
      if (begin <= edges[0] || begin >= edges[1]) return false;
      continue;
    }
    const [near, far] = edges.map((edge) => (edge - begin) / way).sort((a, b) => a - b);
    [from, to] = [Math.max(from, near), Math.min(to, far)];
  }
  return from < to;
}

function inside({ x, y, half }, size) {
  const [left, top] = [x, y].map((at, axis) => Math.max(half[axis], Math.min(size[axis] - half[axis], at)));
  return { x: left, y: top, half };
}
