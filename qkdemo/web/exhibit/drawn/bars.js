// One query's attention weights: a pair of bars per key, one for each role, from 0 to 1.

/** @type {[number, string][]} */
const TICKS = [[0, "0"], [1, "1"]];

export function frameOf(box, /** @type {Scene<Spec.Bars>} */ { panel, theme, measure }) {
  const ticks = panel.y?.ticks ?? TICKS;
  const left = Math.max(...ticks.map(([, words]) => measure(words))) + 6;
  return { left: box.x + left, right: box.x + box.w - 2, top: box.y + 7, bottom: box.y + box.h - theme.small * 1.5 };
}

// The key under a point, or null.
export function keyUnder(x, box, /** @type {Scene<Spec.Bars>} */ scene) {
  const frame = frameOf(box, scene);
  const count = scene.panel.labels.length;
  const key = Math.floor(((x - frame.left) / (frame.right - frame.left)) * count);
  return key >= 0 && key < count ? key : null;
}

// Axes, and the band behind the selected key.
export function rest(pen, box, /** @type {Scene<Spec.Bars>} */ scene) {
  const { panel, theme, selected } = scene;
  const frame = frameOf(box, scene);
  const group = groupWidth(frame, panel);
  const tall = frame.bottom - frame.top;
  if (selected !== null) pen.rect(frame.left + selected * group, frame.top - 4, group, tall + 4, { fill: theme.band });
  drawAxes(pen, frame, group, scene);
}

// What is drawn here: the same numbers are the same picture.
export function shownOf(/** @type {Scene<Spec.Bars>} */ { panel, sweep, row }) {
  return panel.notes?.length ? null : panel.lines.map((line) => sweep.list(line.column, row));
}

export function live(pen, box, /** @type {Scene<Spec.Bars>} */ scene) {
  const { panel, sweep, theme, row } = scene;
  const frame = frameOf(box, scene);
  const group = groupWidth(frame, panel);
  const width = Math.max(1, (group * 0.78) / panel.lines.length);
  let missing = 0;
  panel.lines.forEach((line, i) => {
    const weights = sweep.list(line.column, row);
    const boxes = [];
    weights.forEach((weight, key) => {
      const tall = Math.min(1, weight) * (frame.bottom - frame.top);
      if (tall > 0) boxes.push([frame.left + (key + 0.11) * group + i * width, frame.bottom - tall, width - 0.5, tall]);
    });
    pen.rects(boxes, { fill: theme.role[line.role] });
    if (weights.some(Number.isNaN)) drawUndefined(pen, frame, missing++, line, scene);
  });
  drawNotes(pen, frame, group, scene);
}

// The numbers that a sentence reads off these bars, each while the dial stands where it is read: over its bar, the sides
// apart where both stand over one key; beside bars that leave no room above them.
function drawNotes(pen, frame, group, /** @type {Scene<Spec.Bars>} */ { panel, sweep, theme, row }) {
  const notes = (panel.notes ?? []).filter(({ x }) => sweep.rowOf(x) === row);
  const keyOf = ({ column, entry }) => entry ?? largest(sweep.list(column, row));
  const [line, said] = [theme.small * 1.2, new Map()];
  for (const note of notes) {
    const key = keyOf(note);
    const before = said.get(key) ?? 0;
    const all = notes.filter((other) => keyOf(other) === key).length;
    const top = Math.min(frame.bottom, ...panel.lines.map(({ column }) => topOf(sweep.list(column, row)[key], frame)));
    const above = top - frame.top > all * line;
    const half = pen.width(note.label, theme.small, 600) / 2;
    const middle = frame.left + (key + 0.5) * group;
    const beside = group / 2 + half + 3;
    const x = above ? middle : middle - beside - half > frame.left ? middle - beside : middle + beside;
    const y = above ? top - theme.small * 0.4 - before * line : frame.top + (before + 1) * line;
    const within = Math.max(frame.left + half + 2, Math.min(frame.right - half - 2, x));
    pen.text(note.label, within, y, { fill: theme.role[note.role], weight: 600, align: "center", halo: theme.paper });
    said.set(key, before + 1);
  }
}

const largest = (weights) => weights.indexOf(Math.max(...weights));

function topOf(weight, frame) {
  return frame.bottom - Math.min(1, weight || 0) * (frame.bottom - frame.top);
}

function groupWidth(frame, panel) {
  return (frame.right - frame.left) / panel.labels.length;
}

function drawAxes(pen, frame, group, /** @type {Scene<Spec.Bars>} */ { panel, theme, selected }) {
  for (const [value, words] of panel.y?.ticks ?? TICKS) {
    const y = frame.bottom - value * (frame.bottom - frame.top);
    pen.line([frame.left, y, frame.right, y], { stroke: theme.grid });
    pen.text(words, frame.left - 5, y, { fill: theme.muted, align: "right", middle: true });
  }
  const widest = Math.max(...panel.labels.map((words) => pen.width(words)));
  const every = Math.max(1, Math.ceil((widest + 6) / group));
  panel.labels.forEach((words, key) => {
    const chosen = key === selected;
    const crowded = selected !== null && !chosen && Math.abs(key - selected) * group < widest + 6;
    if (chosen || (key % every === 0 && !crowded)) {
      const style = { fill: chosen ? theme.text : theme.muted, weight: chosen ? 600 : 400, align: "center" };
      const x = Math.min(frame.left + (key + 0.5) * group, frame.right + 2 - pen.width(words) / 2);
      pen.text(words, x, frame.bottom + theme.small * 1.25, style);
    }
  });
}

function drawUndefined(pen, frame, above, line, /** @type {Scene<Spec.Bars>} */ { theme, view }) {
  const y = frame.top + (frame.bottom - frame.top) / 3 + above * theme.small * 1.4;
  const style = { fill: theme.role[line.role], weight: 600, align: "center", middle: true, halo: theme.paper };
  pen.text(view.words.undefined, (frame.left + frame.right) / 2, y, style);
}
