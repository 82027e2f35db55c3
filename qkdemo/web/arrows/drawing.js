// The drawing: two planes of arrows and their bars, in SVG, so that every arrow is an element that can be focused.
//
// Built once; afterwards only attributes and words change. Sizes are the page's own pixels, so that text keeps its size.

import { fill, percent, short } from "./words.js";

const REACH = 2.6; // lengths from the centre to the edge of the plain side
const RING = 0.68; // the circle of the other side, as a share of that distance
const HEAD = 13; // px
const GAP = 15; // px from a tip to the middle of its label
const LETTER = 0.56; // width of a letter, in font sizes
const LINE = 1.2; // height of a label's line, likewise
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
    button.textContent = words[name];
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
  svg.setAttribute("role", "group");
  svg.setAttribute("aria-label", words[`${role}_title`]);
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
    bar.append(share, room, word);
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
  tell(controls.play, going ? view.words.pause : view.words.play);
  // All sizes are read before anything is written: a size that is read in between is laid out for.
  const sizes = parts.sides.map(({ svg, arrows }) => [svg.clientWidth, svg.clientHeight, parseFloat(getComputedStyle(arrows[0].label).fontSize)]);
  parts.sides.forEach((side, at) => drawSide(side, sizes[at], { state, found, view }));
}

function drawSide(side, [width, height, font], { state, found, view }) {
  if (!width) return;
  const half = Math.min(width, height) / 2;
  const { shares, counting } = found[side.role];
  Object.assign(side, { x: width / 2, y: height / 2, unit: side.freeLength ? half / REACH : half * RING });
  place(side.ring, { cx: side.x, cy: side.y, r: side.freeLength ? 0 : side.unit });
  const undefinedShares = shares.some(Number.isNaN);
  const top = undefinedShares ? -1 : shares.indexOf(Math.max(...shares));
  const taken = [];
  side.tips = side.arrows.map((arrow) => tipOf(arrow.place, side, state, [width, height]));
  const order = side.arrows.map((_, at) => at).sort((a, b) => Number(b === top) - Number(a === top));
  for (const at of order) {
    const arrow = side.arrows[at];
    const share = arrow.place < 0 ? 1 : undefinedShares ? 0 : shares[arrow.place];
    drawArrow(arrow, side, side.tips[at], { share, strong: at === top, taken, font, size: [width, height] });
    if (side.role === "plain") speak(arrow, state, found, view);
  }
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
  const margin = 26;
  const most = Math.min((width / 2 - margin) / Math.max(1e-9, Math.abs(dx)), (height / 2 - margin) / Math.max(1e-9, Math.abs(dy)));
  const shown = Math.min(wanted, most);
  return { dx, dy, shown, cut: wanted > most, x: side.x + dx * shown, y: side.y + dy * shown };
}

function drawArrow(arrow, side, tip, { share, strong, taken, font, size }) {
  const thick = arrow.place < 0 ? 4 : 1.5 + 5.5 * share;
  const head = tip.cut ? 0 : Math.min(HEAD + thick * 0.8, tip.shown);
  const [bx, by] = [tip.x - tip.dx * head, tip.y - tip.dy * head];
  const [nx, ny] = [-tip.dy * head * 0.45, tip.dx * head * 0.45];
  place(arrow.shaft, { x1: side.x, y1: side.y, x2: bx + tip.dx, y2: by + tip.dy, "stroke-width": thick });
  arrow.shaft.style.opacity = arrow.place < 0 ? 1 : 0.35 + 0.65 * Math.sqrt(share);
  place(arrow.head, { points: `${tip.x},${tip.y} ${bx + nx},${by + ny} ${bx - nx},${by - ny}` });
  for (const circle of [arrow.grip, arrow.frame]) place(circle, { cx: tip.x, cy: tip.y });
  arrow.handle.classList.toggle("strong", strong);
  label(arrow, tip, { taken, font, size });
}

// A label stands beyond its tip, and steps aside for those that stand already.
function label(arrow, tip, { taken, font, size: [width, height] }) {
  const anchor = tip.dx > 0.35 ? "start" : tip.dx < -0.35 ? "end" : "middle";
  const long = (arrow.label.textContent.length + 1) * LETTER * font;
  const line = LINE * font;
  let [x, y] = [tip.x + tip.dx * GAP, tip.y + tip.dy * GAP];
  const left = () => (anchor === "start" ? x : anchor === "end" ? x - long : x - long / 2);
  const clash = () => taken.some((box) => left() < box.right && left() + long > box.left && Math.abs(y - box.y) < line);
  for (let tries = 0; tries < 6 && clash(); tries++) y += tip.dy >= 0 ? line / 2 : -line / 2;
  x = Math.min(Math.max(x, left() < 2 ? x + 2 - left() : x), left() + long > width - 2 ? x - (left() + long - width + 2) : x);
  y = Math.min(Math.max(y, line * 0.7), height - 4);
  taken.push({ left: left(), right: left() + long, y });
  place(arrow.label, { x, y: y + font * 0.35, "text-anchor": anchor });
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
