// A line without the points that nobody can see: of those in one column of pixels the first, lowest, highest and last.
//
// What is painted is the same, and a run of thousands of steps costs no more than the width of its frame.

const ENOUGH = 4; // points in a column

// `points` is a flat list [x, y, x, y, …] whose x rises.
export function thinned(points) {
  const span = points.at(-2) - points[0];
  if (points.length / 2 <= ENOUGH * Math.max(1, span)) return points;
  const kept = [];
  for (let start = 0; start < points.length; ) {
    const column = Math.floor(points[start]);
    let [low, high, end] = [start, start, start];
    for (; end < points.length && Math.floor(points[end]) === column; end += 2) {
      if (points[end + 1] < points[low + 1]) low = end;
      if (points[end + 1] > points[high + 1]) high = end;
    }
    for (const at of new Set([start, low, high, end - 2].sort((a, b) => a - b))) kept.push(points[at], points[at + 1]);
    start = end;
  }
  return kept;
}
