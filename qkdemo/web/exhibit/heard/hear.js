// What a picture says to those who do not see it: its values where the dial stands, at both ends, and where lines cross.
//
// Formed when the dial rests, never while it moves. `scene` is what the picture is drawn from; its words come from Python.

import { MASKED, numbersOf, TOP, UNDEFINED } from "../drawn/heat.js";
import { written } from "./numbers.js";

const MOST = 3; // crossings that are named; lines that cross more often are near each other

const KINDS = { curves, heat: ofHeat, bars: ofRow, arcs: ofRow, arrows: ofArrows };

// A picture in words: everything after its title.
export function heard(scene) {
  const { words } = scene.view;
  return words.at && scene.row >= 0 && scene.sweep.rows ? (KINDS[scene.panel.kind]?.(scene) ?? []).filter(Boolean).join(" ") : "";
}

// The name of a side: that of its line in the first chart that has one.
export function nameOf(role, { panels }) {
  return panels.flatMap(({ kind, lines }) => (kind === "curves" ? lines : [])).find((line) => line.role === role && line.label)?.label ?? "";
}

// What a cell of a matrix, or a place in a row, holds.
export function cellOf(cell, scene) {
  const { panel, sweep, row } = scene;
  if (panel.kind === "heat") return ofWeights(panel) ? weight(sweep.list(panel.column, row)?.[cell[0] * panel.columns + cell[1]], scene.view) : "";
  return sides(scene, (line) => valued(entry(scene, line, cell[1]), 3, scene.view));
}

function curves(scene) {
  const { view, sweep, panel, open: [first, last], row } = scene;
  const lines = named(scene);
  if (!lines.length) return [];
  const place = (at) => sweep.text(view.dial.text, at);
  const values = (at) => lines.map(({ name, column }) => `${name}: ${valued(sweep.numbers(column)[at], 4, view)}`).join(", ");
  const end = (words, at) => (first < last ? fill(words, { dial: place(at), values: values(at) }) : "");
  const marks = (panel.marks ?? []).map((mark) => [mark, sweep.rowOf(mark.x)]).filter(([, at]) => at >= first && at <= last);
  return [
    fill(view.words.at, { dial: `${view.dial.label} ${place(row)}`, values: values(row) }),
    end(view.words.first, first),
    end(view.words.last, last),
    ...crossings(lines, scene).map(({ one, other, at }) => fill(view.words.cross, { one, other, dial: place(at) })),
    ...marks.map(([{ label }, at]) => (/\d/.test(label) ? `${label}.` : `${label}: ${place(at)}.`)), // where it stands already, and more exactly
  ];
}

function crossings(lines, { sweep, open: [first, last] }) {
  const found = [];
  for (const [i, a] of lines.entries()) {
    for (const b of lines.slice(i + 1)) {
      const [one, other] = [sweep.numbers(a.column), sweep.numbers(b.column)];
      let before = 0;
      for (let at = first; at <= last; at++) {
        const sign = Math.sign(one[at] - other[at]);
        if (!sign || Number.isNaN(sign)) continue;
        if (before && sign !== before) found.push({ one: a.name, other: b.name, at });
        before = sign;
      }
    }
  }
  return found.length <= MOST ? found : [];
}

function ofHeat(scene) {
  const { panel, sweep, row, selected, view } = scene;
  const codes = sweep.list(panel.column, row);
  if (!codes || !ofWeights(panel)) return [];
  if (!selected) return [overall(codes, scene)];
  const [query] = selected;
  const along = Array.from(codes.subarray(query * panel.columns, (query + 1) * panel.columns), (code) => (code <= TOP ? code : -1));
  const most = along.indexOf(Math.max(...along));
  const here = `${placed(selected, panel)}: ${cellOf(selected, scene)}.`;
  if (along[most] < 0) return [here];
  const where = `${panel.key_label} ${numbersOf([query, most], panel)[1]}`;
  return [here, fill(view.words.most, { where, value: weight(along[most], view) })];
}

// Where nothing is chosen: the largest weight of all.
function overall(codes, { panel, view }) {
  const known = Array.from(codes, (code) => (code <= TOP ? code : -1));
  const most = known.indexOf(Math.max(...known));
  if (known[most] < 0) return view.words.undefined;
  const where = placed([Math.floor(most / panel.columns), most % panel.columns], panel);
  return fill(view.words.largest, { values: `${weight(known[most], view)}, ${where}` });
}

function ofRow(scene) {
  const { panel, view, selected } = scene;
  const at = selected ?? 0;
  const where = (place) => `${panel.key_label ?? ""} ${panel.labels[place]}`.trim();
  const most = sides(scene, (line) => {
    const all = panel.labels.map((_, place) => entry(scene, line, place));
    const place = all.indexOf(Math.max(...all));
    return place < 0 ? view.words.undefined : `${written(all[place], 3, view.words)}, ${where(place)}`;
  }, "; ");
  return [`${where(at)}: ${cellOf([0, at], scene)}.`, fill(view.words.largest, { values: most })];
}

function ofArrows({ panel, sweep, row, selected, view }) {
  if (selected === null) return [];
  const [length, angle] = [panel.lengths, panel.angles].map((column) => sweep.list(column, row)[selected]);
  return [fill(view.words.arrow, { key: selected, length: written(length, 3, view.words), angle: Math.round((angle * 180) / Math.PI) })];
}

function named({ panel, view }) {
  return panel.lines.map((line) => ({ ...line, name: line.label || nameOf(line.role, view) })).filter(({ name }) => name);
}

function sides(scene, value, between = ", ") {
  return scene.panel.lines.map((line) => [line.label || nameOf(line.role, scene.view), value(line)].filter(Boolean).join(": ")).join(between);
}

// The weight of a place: in a matrix of arcs that of the word that asks.
function entry({ panel, sweep, row, selected }, line, place) {
  const list = sweep.list(line.column, row);
  return panel.kind === "arcs" ? list[(selected ?? 0) * panel.labels.length + place] : list[place];
}

// The query and the key of a cell of a matrix.
export function placed(cell, panel) {
  const [query, key] = numbersOf(cell, panel);
  return `${panel.query_label} ${query}, ${panel.key_label} ${key}`;
}

function ofWeights({ ramp }) {
  return !ramp;
}

function valued(x, digits, { words }) {
  return Number.isNaN(x) ? words.undefined : written(x, digits, words);
}

function weight(code, { words }) {
  if (code === MASKED) return words.hidden ?? "";
  return code === undefined || code === UNDEFINED ? words.undefined : written((code / TOP) ** 2, 2, words);
}

function fill(words, values) {
  return words.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}
