// Where a value stands in a frame: its place along the dial, its height on an axis.

export function placeOf({ x, y }, frame, { sweep, panel }) {
  return [xOf(sweep.place(x), frame), clamp(yOf(y, panel.y, frame), frame.top, frame.bottom)];
}

export function xOf(place, frame) {
  return frame.left + place * (frame.right - frame.left);
}

// Where a value lies in the frame; beyond it for what the axis cannot show.
export function yOf(value, axis, frame) {
  if (value === Infinity || value === -Infinity) return value > 0 ? frame.top - 1 : frame.bottom + 1;
  if (axis.log && value <= 0) return frame.bottom + 1;
  return frame.bottom - clamp(shareOf(value, axis), -2, 3) * (frame.bottom - frame.top);
}

// How far up an axis a value lies, from 0 to 1 between its ends.
export function shareOf(value, { log, domain: [low, high] }) {
  return log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
}

export function within(place) {
  return place >= -1e-9 && place <= 1 + 1e-9;
}

// The numbers of the queries, or keys, for which a cell or a bar stands.
export function spanOf(at, /** @type {Spec.Pooled | undefined} */ pooled) {
  if (!pooled) return String(at);
  const [first, last] = [at * pooled.each, Math.min((at + 1) * pooled.each, pooled.of) - 1];
  return first === last ? String(first) : `${first}–${last}`;
}

export function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}
