// The query and its keys as arrows from one point: the query to the right, each key at its true angle to it.
//
// Keys lie by turns above and below the query, so that equal angles do not cover each other.

const HEAD = 7;

export function rest(pen, box, /** @type {Scene<Spec.Arrows>} */ { panel, theme }) {
  const frame = frameOf(box);
  pen.rect(frame.x - frame.half, frame.y - frame.half, 2 * frame.half, 2 * frame.half, { stroke: theme.grid });
  if (panel.ring) drawRing(pen, frame, (panel.ring * frame.half) / panel.reach, theme);
}

// What is drawn here: the same numbers are the same picture.
export function shownOf(/** @type {Scene<Spec.Arrows>} */ { panel, sweep, row }) {
  return [...[panel.lengths, panel.angles].map((column) => sweep.list(column, row)), [sweep.numbers(panel.query)[row]]];
}

export function live(pen, box, /** @type {Scene<Spec.Arrows>} */ scene) {
  const { panel, sweep, theme, row, selected } = scene;
  const frame = frameOf(box);
  const [lengths, angles] = [panel.lengths, panel.angles].map((column) => sweep.list(column, row));
  const arm = (key) => reach(angles[key] * (key % 2 ? 1 : -1), lengths[key], frame, panel);
  const others = Array.from(angles.keys(), (key) => (key === selected ? null : arm(key))).filter(Boolean);
  drawArrows(pen, frame, others, { stroke: theme.soft[panel.role], width: 1 });
  drawArrow(pen, frame, reach(0, sweep.numbers(panel.query)[row], frame, panel), { stroke: theme.text, width: 2.5 });
  if (selected !== null && Number.isNaN(lengths[selected])) drawUndefined(pen, frame, scene);
  else if (selected !== null) drawArrow(pen, frame, arm(selected), { stroke: theme.role[panel.role], width: 3 });
  drawLabel(pen, frame, scene);
}

function frameOf(box) {
  const half = Math.max(10, Math.floor(Math.min(box.w, box.h) / 2) - 1);
  return { x: box.x + half + 1, y: box.y + half + 1, half };
}

function drawLabel(pen, frame, /** @type {Scene<Spec.Arrows>} */ { panel, sweep, theme, row }) {
  if (!panel.label) return;
  const words = sweep.has(panel.label) ? sweep.text(panel.label, row) : panel.label;
  const [left, base] = [frame.x - frame.half + 6, frame.y - frame.half + theme.small * 1.3];
  // A box behind it costs far less than a halo around its letters, which are others in every frame.
  pen.rect(left - 2, base - theme.small, pen.width(words, theme.small, 600) + 4, theme.small * 1.3, { fill: theme.paper });
  pen.text(words, left, base, { fill: theme.role[panel.role], weight: 600 });
}

function drawRing(pen, frame, radius, theme) {
  pen.clipped(frame.x - frame.half, frame.y - frame.half, 2 * frame.half, 2 * frame.half, () =>
    pen.circle(frame.x, frame.y, radius, { stroke: theme.rule, dash: [3, 3] }),
  );
}

// The tip of an arrow, cut at the frame where it is longer; null where its length is undefined.
function reach(angle, length, frame, panel) {
  if (Number.isNaN(length)) return null;
  const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
  const wanted = (length / panel.reach) * frame.half;
  const most = frame.half / Math.max(Math.abs(dx), Math.abs(dy));
  const shown = Math.min(wanted, most);
  return { x: frame.x + dx * shown, y: frame.y + dy * shown, dx, dy, shown, cut: wanted > most };
}

function drawArrow(pen, frame, tip, style) {
  if (tip) drawArrows(pen, frame, [tip], style);
}

function drawArrows(pen, frame, tips, { stroke, width }) {
  const heads = tips.map(({ cut, shown }) => (cut ? 0 : Math.min(HEAD * Math.min(1.6, 0.6 + width * 0.3), shown)));
  const shaft = (tip, i) => [frame.x, frame.y, tip.x - tip.dx * heads[i] * 0.8, tip.y - tip.dy * heads[i] * 0.8];
  pen.lines(tips.map(shaft), { stroke, width });
  tips.forEach((tip, i) => heads[i] && drawHead(pen, tip, heads[i], stroke));
}

function drawHead(pen, tip, head, stroke) {
  const [bx, by] = [tip.x - tip.dx * head, tip.y - tip.dy * head];
  const [nx, ny] = [-tip.dy * head * 0.42, tip.dx * head * 0.42];
  pen.polygon([tip.x, tip.y, bx + nx, by + ny, bx - nx, by - ny], { fill: stroke });
}

function drawUndefined(pen, frame, /** @type {Scene<Spec.Arrows>} */ { theme, panel, view }) {
  const style = { fill: theme.role[panel.role], weight: 600, align: "center", middle: true, halo: theme.paper };
  pen.text(view.words.undefined, frame.x, frame.y + frame.half * 0.6, style);
}
