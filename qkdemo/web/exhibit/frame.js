// The exhibit's HTML: finding, tiles, scrubber, panels. Built once per structure; afterwards only its words change.
//
// Words that follow the cursor stand in `Steady` spans, which keep room for their longest text: nothing jumps.

import { Grid } from "./drawn/grid.js";
import { nameOf } from "./heard/hear.js";

const PICKED = new Set(["arcs", "bars", "heat"]);

// What must be equal for the DOM to be kept.
export function structureOf(/** @type {Spec.Exhibit} */ view) {
  const shapeOf = { cells: (p) => [p.roles, p.rows.length, p.strong, p.breaks], grid: Grid.shapeOf };
  return JSON.stringify([
    view.heading ?? 2,
    Boolean(view.stop),
    Boolean(view.live),
    Boolean(view.fold),
    view.tiles.map((tile) => tile.lines.map((line) => line.role)),
    view.panels.map((p) => [p.kind, p.wide, Boolean(p.tall), Boolean(p.matters), Boolean(p.subtitle), shapeOf[p.kind]?.(p)]),
  ]);
}

// Builds everything inside `root` and returns the parts that are filled later.
export function build(root, /** @type {Spec.Exhibit} */ view) {
  const level = (view.heading ?? 2) + (view.stop ? 1 : 0); // at a stop of a track the page's title is that of the stop
  const parts = { finding: new Steady(`h${level}`, "finding"), alt: element("p", "unseen") };
  parts.tiles = view.tiles.map(buildTile);
  parts.scrubber = buildScrubber(!view.live); // a run has controls of its own
  parts.bar = view.live ? buildBar() : null;
  parts.panels = view.panels.map((panel) => buildPanel(panel, `h${level + 1}`));
  parts.fold = view.fold ? element("button", "fold") : null;
  if (parts.fold) parts.fold.type = "button";
  const tiles = (parts.tiled = element("div", "tiles", ...parts.tiles.map((tile) => tile.node)));
  tiles.style.setProperty("--tiles", view.tiles.length);
  root.replaceChildren(
    parts.finding.node,
    parts.alt,
    ...(parts.bar ? [parts.bar.node, parts.bar.notice] : [tiles]),
    parts.scrubber.node,
    ...(parts.bar ? [tiles] : []),
    element("div", "panels", ...parts.panels.map((panel) => panel.node)),
    ...(parts.fold ? [parts.fold] : []),
  );
  return parts;
}

// Writes the words of this view and returns what has to follow the cursor.
export function fill(parts, /** @type {Spec.Exhibit} */ view, sweep) {
  const steady = [];
  // `within` is what has to be seen for the words to be.
  const follow = (part, words, within = null) => {
    part.follow(words, sweep);
    part.within = within;
    steady.push(part);
  };
  follow(parts.finding, view.finding);
  parts.finding.keep(view.room ?? "");
  view.tiles.forEach((tile, i) => {
    parts.tiles[i].label.textContent = tile.label;
    tile.lines.forEach((line, k) => {
      const name = nameOf(line.role, view);
      parts.tiles[i].names[k].textContent = name && tile.lines.length > 1 ? `${name}: ` : "";
      follow(parts.tiles[i].lines[k], line.column, parts.tiled);
    });
  });
  fillScrubber(parts.scrubber, view, sweep);
  follow(parts.scrubber.text, view.dial.text);
  view.panels.forEach((panel, i) => fillPanel(parts.panels[i], panel, view.words, (part, words) => follow(part, words, parts.panels[i].node)));
  return steady;
}

// A span whose text follows the cursor. The style sheet lays its longest text, unseen, under the shown one.
class Steady {
  constructor(tag, name) {
    this.shown = document.createTextNode("");
    this.steady = element("span", "steady", element("span", "", this.shown));
    this.node = element(tag, name, this.steady);
  }

  // `words`: the name of a string column, {text: constant}, or a constant that names no column.
  follow(words, sweep) {
    const constant = words?.text ?? (sweep.has(words) ? null : words);
    this.column = constant === null ? words : null;
    this.texts = constant === null ? sweep.texts(words) : [constant];
    this.room = -1;
    this.keep(this.texts.reduce((longest, text) => (text.length > longest.length ? text : longest), ""));
  }

  // Keeps room for this text too: another one may come later.
  keep(text) {
    if (text.length <= this.room) return;
    this.room = text.length;
    this.steady.dataset.longest = text;
  }

  // `instead`: texts by column that stand there for a while.
  show(row, instead) {
    const text = instead?.[this.column] ?? this.texts[Math.min(row, this.texts.length - 1)] ?? "";
    if (text === this.shown.nodeValue) return;
    this.shown.nodeValue = text;
    this.keep(text); // texts may still arrive
  }
}

function buildTile(/** @type {Spec.Tile} */ { lines }) {
  const label = element("span", "label");
  const names = lines.map(() => element("span", "unseen")); // which side it is, for those who see neither colour nor dash
  const parts = lines.map((line) => new Steady("span", `value role-${line.role}`));
  return { node: element("div", "tile", label, ...parts.flatMap((part, i) => [names[i], part.node])), label, names, lines: parts };
}

function buildScrubber(plays) {
  const range = element("input", "");
  Object.assign(range, { type: "range", id: "dial", min: 0, step: 1 });
  range.setAttribute("aria-describedby", "hint");
  const label = element("label", "label");
  label.htmlFor = "dial";
  const hint = element("span", "hint");
  hint.id = "hint";
  const text = new Steady("span", "reading");
  text.node.setAttribute("aria-hidden", "true"); // the range says it as its value
  const play = plays ? element("button", "play") : null;
  if (play) play.type = "button";
  const rail = element("div", "rail", range); // of its own: its thumb is laid out alone
  const parts = [label, ...(play ? [play] : []), rail, text.node, hint];
  return { node: element("div", `scrubber${play ? " plays" : ""}`, ...parts), range, label, hint, text, play };
}

// The controls of a run: what they say and do is for the stage to know.
function buildBar() {
  const buttons = ["play", "step", "stop", "train"].map((name) => element("button", name));
  for (const button of buttons) button.type = "button";
  const [play, step, stop, train] = buttons;
  const text = element("span", "status");
  const notice = element("p", "notice");
  notice.hidden = true;
  const lead = element("span", "lead");
  const forks = element("div", "bar forks", lead);
  const both = element("div", "bars", element("div", "bar", ...buttons, text), forks);
  return { node: both, play, step, stop, train, text, notice, forks, lead };
}

function fillScrubber({ range, label, hint }, /** @type {Spec.Exhibit} */ view, sweep) {
  range.max = (view.live?.steps ?? sweep.rows) - 1;
  label.textContent = view.dial.label;
  hint.textContent = view.words.hint ?? "";
}

function buildPanel(/** @type {Spec.Panel} */ panel, tag) {
  const title = element(tag, "title");
  const subtitle = panel.subtitle ? element("p", "subtitle") : null;
  const caption = element("figcaption", "", title, ...(subtitle ? [subtitle] : []));
  const body = panel.kind === "grid" ? buildGrid(panel) : panel.kind === "cells" ? buildCells(panel) : buildPlot(panel);
  const node = element("figure", `panel ${panel.kind}${panel.tall ? " tall" : ""}`, caption, ...body.nodes);
  node.classList.toggle("focus", Boolean(panel.matters));
  node.style.setProperty("--wide", panel.wide ?? 6);
  return { node, title, subtitle, ...body };
}

function buildPlot(/** @type {Spec.Panel} */ panel) {
  const canvas = element("canvas", "");
  canvas.setAttribute("role", "img");
  const stage = element("div", "plot", canvas);
  if (PICKED.has(panel.kind)) {
    stage.tabIndex = 0;
    stage.setAttribute("role", "application");
  }
  const png = element("button", "");
  const svg = element("button", "");
  png.type = svg.type = "button";
  const ear = panel.kind === "curves" ? element("button", "") : null;
  if (ear) ear.type = "button";
  return { nodes: [stage, element("div", "save", ...(ear ? [ear] : []), png, svg)], canvas, stage, png, svg, ear };
}

function buildGrid(/** @type {Spec.Grid} */ panel) {
  const grid = new Grid(panel);
  return { nodes: [grid.node], grid };
}

function buildCells(/** @type {Spec.Cells} */ panel) {
  const roleOf = (i) => (panel.roles[i] ? `role-${panel.roles[i]}` : "");
  const cell = (tag, i, strong) => new Steady(tag, `${roleOf(i)} ${strong ? "strong" : ""} ${panel.breaks?.includes(i) ? "breaks" : ""}`.trim());
  const head = panel.head.map((words, i) => cell(words ? "th" : "td", i, false));
  head.filter((part) => part.node.tagName === "TH").forEach((part) => (part.node.scope = "col"));
  const rows = panel.rows.map((row, r) => row.map((_, i) => cell(i ? "td" : "th", i, r === panel.strong)));
  rows.forEach(([first]) => (first.node.scope = "row"));
  const line = (cells) => element("tr", "", ...cells.map((part) => part.node));
  const table = element("table", "", element("thead", "", line(head)), element("tbody", "", ...rows.map(line)));
  const scroller = element("div", panel.breaks ? "scroller" : "sideways", table);
  scroller.setAttribute("role", panel.breaks ? "region" : "group");
  return { nodes: [scroller], head, rows, table, scroller };
}

function fillPanel(parts, /** @type {Spec.Panel} */ panel, words, follow) {
  parts.node.classList.toggle("rest", Boolean(panel.rest));
  parts.node.style.setProperty("--folded", panel.folded ?? panel.wide ?? 6);
  parts.title.textContent = panel.title;
  if (parts.subtitle) parts.subtitle.textContent = panel.subtitle;
  if (parts.canvas) {
    parts.png.textContent = words.png;
    parts.svg.textContent = words.svg;
    if (parts.ear) parts.ear.textContent = words.listen ?? "";
    for (const button of [parts.png, parts.svg, parts.ear].filter(Boolean)) button.setAttribute("aria-label", `${button.textContent}: ${panel.title}`);
    if (parts.stage.tabIndex === 0) parts.stage.setAttribute("aria-label", `${panel.title}. ${words[panel.kind] ?? ""}`);
  } else if (parts.grid) {
    parts.grid.name(`${panel.title}. ${words.grid ?? ""}`);
    follow(parts.grid, panel);
  } else if (panel.kind === "cells") {
    for (const named of [parts.table, parts.scroller]) named.setAttribute("aria-label", panel.title);
    panel.head.forEach((cell, i) => follow(parts.head[i], cell));
    panel.rows.forEach((row, r) => row.forEach((cell, i) => follow(parts.rows[r][i], cell)));
  }
}

function element(tag, name, ...children) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  node.append(...children);
  return node;
}
