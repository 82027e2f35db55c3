// The drawing: two planes of arrows and their bars, in SVG, so that every arrow is an element that can be focused.
//
// Built once; afterwards only attributes and words change. Sizes are the page's own pixels, so that text keeps its size.

import { besideTip } from "./labels.js";
import { fill, percent, short } from "./words.js";

const REACH = 2.6; // lengths from the centre to the edge of the plain side
const STOP_REACH = 3.9; // at a stop of a track, to where arrows are cut: there all of them are drawn whole when doubled
const RING = 0.68; // the circle of the other side, as a share of that distance
const HEAD = 13; // px
const MARGIN = 26; // px from the edge, where an arrow is cut
const LINE = 1.2; // height of a word's line, in font sizes
const SPACE = 0.3; // between two words, likewise
const BASELINE = 0.35; // from the middle of a line down to where its letters stand, likewise
const BOLD = 700;
const PEN = globalThis.document?.createElement("canvas").getContext("2d"); // measures words, without a layout
const NAMESPACE = "http://www.w3.org/2000/svg";

export function build(root, view) {
  const level = view.heading ?? 2;
  const finding = html(`h${level}`, "finding");
  const controls = buildControls(view);
  const sides = ["plain", "norm"].map((role) => buildSide(role, view, `h${level + 1}`));
  const hint = html("p", "hint");
  hint.textContent = view.words.hint;
  const pair = html("div", "sides");
  pair.append(...sides.map((side) => side.node));
  root.style.minHeight = "";
  root.replaceChildren(finding, controls.dial, pair, controls.more, hint);
  return { finding, controls, sides, keys: view.names.keys.length };
}

function buildControls({ words, limits }) {
  const [play, turn, infinity, again] = ["play", "turn", "infinity", "again"].map((name) => {
    const button = html("button", name, { type: "button" });
    call(button, words[name]);
    return button;
  });
  const range = html("input", "", { type: "range", id: "arrows-scale", step: "any" });
  range.min = Math.log10(limits.scale.shown[0]);
  range.max = Math.log10(limits.scale.shown[1]);
  range.step = 0.01;
  const label = html("label", "label", { for: "arrows-scale" });
  label.textContent = words.scale;
  const reading = html("span", "reading", { "aria-hidden": "true" }); // the range says it as its value
  const dial = html("div", "dial");
  dial.append(play, label, range, reading);
  const more = html("div", "more");
  more.append(turn, infinity, again);
  return { dial, more, play, turn, infinity, again, range, reading, buttons: [play, turn, infinity, again] };
}

function buildSide(role, { names, words }, tag) {
  const node = html("figure", `side ${role}`);
  const caption = html("figcaption", "");
  const title = html(tag, "title");
  title.textContent = words[`${role}_title`];
  const subtitle = html("p", "subtitle");
  subtitle.textContent = words[`${role}_subtitle`];
  caption.append(title, subtitle);
  const svg = tagged("svg", "plane");
  if (role === "plain") place(svg, { role: "group", "aria-label": words[`${role}_title`] });
  else place(svg, { "aria-hidden": "true" }); // the same arrows at one length: the figure's words and its shares say it
  const ring = tagged("circle", "ring");
  const centre = tagged("g", "keys");
  const arrows = [...names.keys.map((name, place) => buildArrow(name, place, role)), buildArrow(fill(words.query_label, { name: names.query }), -1, role)];
  centre.append(...arrows.map((arrow) => arrow.handle));
  svg.append(ring, centre);
  const bars = buildBars(names.keys);
  node.append(caption, svg, bars.node);
  const side = { node, svg, ring, arrows, bars, role, freeLength: role === "plain" };
  side.toArrow = (x, y) => {
    const [dx, dy] = [x - side.x, side.y - y];
    return [Math.hypot(dx, dy) / side.unit, (Math.atan2(dy, dx) * 180) / Math.PI];
  };
  side.nearest = (x, y) => {
    const away = side.tips.map((tip) => Math.hypot(tip.x - x, tip.y - y));
    return side.arrows[away.indexOf(Math.min(...away))];
  };
  return side;
}

// The plain side's arrows are the ones that the keyboard takes hold of: the same arrows stand in both.
function buildArrow(name, place, role) {
  const handle = tagged("g", place < 0 ? "arrow query" : "arrow");
  if (role === "plain") {
    handle.setAttribute("tabindex", "0");
    handle.setAttribute("role", "slider");
    handle.setAttribute("aria-valuemin", "-180");
    handle.setAttribute("aria-valuemax", "180");
    handle.setAttribute("aria-orientation", "horizontal");
  } else {
    handle.setAttribute("aria-hidden", "true");
  }
  const [shaft, head, label, grip, frame] = ["line", "polygon", "text", "circle", "circle"].map((tag) => tagged(tag, ""));
  label.textContent = name;
  grip.setAttribute("class", "grip");
  frame.setAttribute("class", "frame");
  handle.append(shaft, head, frame, label, grip);
  return { handle, shaft, head, label, grip, frame, place };
}

function buildBars(names) {
  const node = html("div", "bars");
  const count = html("p", "subtitle count");
  const row = html("div", "row", { role: "list" });
  const bars = names.map((name) => {
    const bar = html("div", "bar", { role: "listitem" });
    const [share, room, word] = [html("span", "share"), html("span", "room"), html("span", "word")];
    const body = html("i", "");
    word.textContent = name;
    room.append(body);
    bar.append(word, share, room); // as it is heard: whose share it is, then how large
    row.append(bar);
    return { share, body };
  });
  node.append(count, row);
  return { node, count, bars };
}

// ---- what changes with the state

export function draw(parts, state, found, view, going) {
  const { controls } = parts;
  const exponent = Math.log10(state.scale);
  if (Math.abs(Number(controls.range.value) - exponent) > 1e-3) controls.range.value = exponent;
  tell(controls.reading, `× ${short(state.scale, view.words)}`);
  place(controls.range, { "aria-valuetext": `× ${short(state.scale, view.words)}` });
  call(controls.play, going ? view.words.pause : view.words.play);
  // All sizes are read before anything is written: a size that is read in between is laid out for.
  const sizes = parts.sides.map(({ svg, arrows }) => [svg.clientWidth, svg.clientHeight, fontOf(arrows[0].label)]);
  parts.sides.forEach((side, at) => drawSide(side, sizes[at], { state, found, view }));
}

function fontOf(label) {
  const { fontSize, fontFamily } = getComputedStyle(label);
  return { px: parseFloat(fontSize), family: fontFamily };
}

function drawSide(side, [width, height, font], { state, found, view }) {
  if (side.role === "plain") side.arrows.forEach((arrow) => speak(arrow, state, found, view));
  if (!width) return;
  const half = Math.min(width, height) / 2;
  const { shares, counting } = found[side.role];
  const free = view.stop ? (half - MARGIN) / STOP_REACH : half / REACH;
  Object.assign(side, { x: width / 2, y: height / 2, unit: side.freeLength ? free : half * RING });
  place(side.ring, { cx: side.x, cy: side.y, r: side.freeLength ? 0 : side.unit });
  const undefinedShares = shares.some(Number.isNaN);
  const top = undefinedShares ? -1 : shares.indexOf(Math.max(...shares));
  side.tips = side.arrows.map((arrow) => tipOf(arrow.place, side, state, [width, height]));
  side.arrows.forEach((arrow, at) => {
    const share = arrow.place < 0 ? 1 : undefinedShares ? 0 : shares[arrow.place];
    drawArrow(arrow, side, side.tips[at], { share, strong: at === top });
  });
  const standing = { words: [], arrows: side.tips, centre: side, size: [width, height] };
  const order = side.arrows.map((_, at) => at).sort((a, b) => Number(b === top) - Number(a === top)); // it is named first
  for (const at of order) standing.words.push(drawLabel(side.arrows[at], side.tips[at], { standing, font, strong: at === top }));
  const counted = { counting: short(Number(counting.toFixed(1)), view.words), keys: shares.length };
  tell(side.bars.count, undefinedShares ? view.words.no_shares : fill(view.words.counting, counted));
  side.bars.bars.forEach((bar, at) => {
    tell(bar.share, percent(shares[at]));
    bar.body.style.height = `${undefinedShares ? 0 : 100 * shares[at]}%`;
    bar.body.parentElement.parentElement.classList.toggle("strong", at === top);
  });
  side.node.classList.toggle("undefined", undefinedShares);
}

// Where an arrow ends on the drawing, and whether it is cut at the edge.
function tipOf(at, side, state, [width, height]) {
  const [length, degrees] = at < 0 ? state.query : state.keys[at];
  const [dx, dy] = [Math.cos((degrees * Math.PI) / 180), -Math.sin((degrees * Math.PI) / 180)];
  const wanted = side.freeLength ? length * state.scale * side.unit : length > 0 ? side.unit : 0;
  const most = Math.min((width / 2 - MARGIN) / Math.max(1e-9, Math.abs(dx)), (height / 2 - MARGIN) / Math.max(1e-9, Math.abs(dy)));
  const shown = Math.min(wanted, most);
  return { dx, dy, shown, cut: wanted > most, x: side.x + dx * shown, y: side.y + dy * shown };
}

function drawArrow(arrow, side, tip, { share, strong }) {
  const thick = arrow.place < 0 ? 4 : 1.5 + 5.5 * share;
  const head = tip.cut ? 0 : Math.min(HEAD + thick * 0.8, tip.shown);
  const [bx, by] = [tip.x - tip.dx * head, tip.y - tip.dy * head];
  const [nx, ny] = [-tip.dy * head * 0.45, tip.dx * head * 0.45];
  place(arrow.shaft, { x1: side.x, y1: side.y, x2: bx + tip.dx, y2: by + tip.dy, "stroke-width": thick });
  arrow.shaft.style.opacity = arrow.place < 0 ? 1 : 0.35 + 0.65 * Math.sqrt(share);
  place(arrow.head, { points: `${tip.x},${tip.y} ${bx + nx},${by + ny} ${bx - nx},${by - ny}` });
  for (const circle of [arrow.grip, arrow.frame]) place(circle, { cx: tip.x, cy: tip.y });
  arrow.handle.classList.toggle("strong", strong);
}

// A word at a tip; the box that it takes.
function drawLabel({ label, place: at }, tip, { standing, font, strong }) {
  PEN.font = `${at < 0 || strong ? BOLD : 400} ${font.px}px ${font.family}`;
  const wide = PEN.measureText(label.textContent).width + SPACE * font.px;
  const box = besideTip(tip, [wide / 2, (LINE * font.px) / 2], standing);
  place(label, { x: box.x, y: box.y + BASELINE * font.px });
  return box;
}

// What a screen reader hears of an arrow: its name, length, angle, and the shares that it has.
function speak({ handle, place: at }, state, { plain, norm }, { names, words }) {
  const [length, degrees] = at < 0 ? state.query : state.keys[at];
  const values = { length: short(length * state.scale, words), degrees: short(degrees, words), name: names.keys[at] ?? names.query };
  const shares = at < 0 ? {} : { plain: percent(plain.shares[at]), norm: percent(norm.shares[at]) };
  place(handle, {
    "aria-label": fill(at < 0 ? words.query_name : words.key_name, values),
    "aria-valuenow": degrees,
    "aria-valuetext": fill(at < 0 ? words.query_value : words.key_value, { ...values, ...shares }),
  });
}

// What is as it was is not written: a written attribute is drawn anew, and a written word laid out anew.
function place(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

export function tell(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

// What a button shows, and without its sign what it is called: a sign would be read as "black right-pointing triangle".
function call(button, words) {
  tell(button, words);
  place(button, { "aria-label": words.replace(/^[^\p{L}]+/u, "") });
}

function tagged(tag, name) {
  const element = document.createElementNS(NAMESPACE, tag);
  if (name) element.setAttribute("class", name);
  return element;
}

function html(tag, name, attributes = {}) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
