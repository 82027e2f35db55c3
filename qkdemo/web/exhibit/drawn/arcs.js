// A sentence with its attention as arcs: from the word that asks to the words it looks at, one side above, one below.
//
// An arc is as thick as its weight. The arcs of the selected word are in its side's colour, the others are faint; a word
// that looks at itself has a dot.

const LEAST = 0.03; // a weight that can be seen
const FAINT = 0.15; // and one of another word's
const THICKEST = 9;
const STEPS = 28;
const TURNED = -Math.PI / 2;

// Where everything lies: the words stand in a band, turned where they would touch.
export function frameOf(box, /** @type {Scene<Spec.Arcs>} */ { panel, theme, measure }) {
  const count = panel.labels.length;
  const pitch = Math.min(box.w / count, theme.small * 9);
  const widest = Math.max(...panel.labels.map((words) => measure(words, 600)));
  const turned = widest + theme.small * 0.5 > pitch;
  const band = turned ? widest + theme.small * 0.9 : theme.small * 2;
  const above = panel.lines.length > 1 ? (box.h - band) / 2 : box.h - band;
  const left = box.x + (box.w - pitch * count) / 2;
  return { left, pitch, turned, band, above, top: box.y + above, bottom: box.y + above + band, box };
}

// The word under a point, or null.
export function wordUnder(x, box, /** @type {Scene<Spec.Arcs>} */ scene) {
  const { left, pitch } = frameOf(box, scene);
  const word = Math.floor((x - left) / pitch);
  return word >= 0 && word < scene.panel.labels.length ? word : null;
}

// The words, and the band behind the selected one.
export function rest(pen, box, /** @type {Scene<Spec.Arcs>} */ scene) {
  const { panel, theme, selected } = scene;
  const frame = frameOf(box, scene);
  const middle = frame.top + frame.band / 2;
  if (selected !== null) pen.rect(centre(frame, selected) - frame.pitch / 2, frame.top, frame.pitch, frame.band, { fill: theme.band });
  panel.labels.forEach((words, at) => {
    const chosen = at === selected;
    const style = { fill: chosen ? theme.text : theme.muted, weight: chosen ? 650 : 400, align: "center", middle: true };
    pen.text(words, centre(frame, at), middle, frame.turned ? { ...style, turn: TURNED } : style);
  });
}

export function live(pen, box, /** @type {Scene<Spec.Arcs>} */ scene) {
  const { panel, sweep, theme, row, selected, view } = scene;
  const frame = frameOf(box, scene);
  const count = panel.labels.length;
  panel.lines.forEach((line, side) => {
    const up = side === 0;
    const weights = sweep.list(line.column, row);
    const of = (query) => weights.slice(query * count, (query + 1) * count);
    for (let query = 0; query < count; query++) {
      if (query !== selected) drawRow(pen, frame, of(query), query, { up, least: FAINT, most: THICKEST / 3, stroke: theme.soft[line.role] });
    }
    if (selected !== null) drawRow(pen, frame, of(selected), selected, { up, least: LEAST, most: THICKEST, stroke: theme.role[line.role] });
    const style = { fill: theme.role[line.role], weight: 600, halo: theme.paper };
    const y = up ? box.y + theme.small : box.y + box.h - theme.small * 0.4;
    pen.text(line.label, box.x, y, style);
    if (selected !== null && of(selected).some(Number.isNaN)) {
      const place = up ? box.y + frame.above / 2 : frame.bottom + frame.above / 2;
      pen.text(view.words.undefined, box.x + box.w / 2, place, { ...style, align: "center", middle: true });
    }
  });
}

function centre(frame, word) {
  return frame.left + (word + 0.5) * frame.pitch;
}

function drawRow(pen, frame, weights, query, { up, least, most, stroke }) {
  weights.forEach((weight, key) => {
    if (!(weight >= least)) return; // also where it is NaN
    const width = Math.max(0.75, weight * most);
    if (key === query) drawSelf(pen, frame, query, up, width, stroke);
    else pen.line(arc(frame, query, key, up), { stroke, width });
  });
}

function drawSelf(pen, frame, word, up, width, stroke) {
  const radius = 1.5 + width * 0.6;
  pen.circle(centre(frame, word), up ? frame.top - radius - 1 : frame.bottom + radius + 1, radius, { fill: stroke });
}

// Half an ellipse over two words; the farther they are apart, the higher.
function arc(frame, query, key, up) {
  const [from, to] = [centre(frame, query), centre(frame, key)];
  const [middle, half] = [(from + to) / 2, Math.abs(from - to) / 2];
  const span = Math.max(1, Math.round(frame.box.w / frame.pitch) - 1);
  const room = frame.above - THICKEST;
  const tall = room * Math.min(1, 0.18 + (0.82 * Math.abs(query - key)) / span);
  const base = up ? frame.top - 2 : frame.bottom + 2;
  const points = [];
  for (let step = 0; step <= STEPS; step++) {
    const angle = (Math.PI * step) / STEPS;
    points.push(middle - half * Math.cos(angle), base + (up ? -1 : 1) * tall * Math.sin(angle));
  }
  return points;
}
