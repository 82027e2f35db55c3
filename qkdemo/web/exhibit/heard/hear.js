// What a picture says to those who do not see it: its values where the dial stands, at both ends, and where lines cross.
//
// Formed when the dial rests, never while it moves. `scene` is what the picture is drawn from; its words come from Python.

import { keysOf, largestOf, oneOf, placed, stepOf, weight, whereOf } from "./cells.js";
import { crossings } from "./crossings.js";
import { fill, written } from "./numbers.js";

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
  if (panel.kind === "heat") {
    const codes = ofWeights(panel) ? sweep.list(panel.column, row) : null;
    return codes ? weight(codes[cell[0] * panel.columns + cell[1]], scene.view.words, stepOf(codes, panel)) : "";
  }
  return sides(scene, (line) => toldAt(scene, line, cell[1]));
}

// A bar, or a word under arcs: its name, or those of all keys of which it holds the largest weight.
export function keyNamed(at, panel, words) {
  if (panel.pooled) return fill(words.pooled, { where: keysOf(at, panel) });
  return `${panel.key_label ?? ""} ${panel.labels[at]}`.trim();
}

function curves(scene) {
  const { view, sweep, panel, open: [first, last], row } = scene;
  const lines = named(scene);
  if (!lines.length) return [];
  const place = (at) => sweep.text(view.dial.text, at);
  const told = ({ column, texts }, at) => (texts ? sweep.text(texts, at) : valued(sweep.numbers(column)[at], 4, view));
  const values = (at) => lines.map((line) => `${line.name}: ${told(line, at)}`).join(", ");
  const end = (words, at) => (first < last ? fill(words, { dial: place(at), values: values(at) }) : "");
  const marks = (panel.marks ?? []).map((mark) => [mark, sweep.rowOf(mark.x)]).filter(([, at]) => at >= first && at <= last);
  const several = new Set(marks.map(([{ role }]) => role)).size > 1;
  const whose = ({ role }) => (several ? `${nameOf(role, view)}: ` : ""); // to the eye its colour says it
  return [
    fill(view.words.at, { dial: `${view.dial.label} ${place(row)}`, values: values(row) }),
    end(view.words.first, first),
    end(view.words.last, last),
    ...crossings(lines, scene).map(({ one, other, at }) => fill(view.words.cross, { one, other, dial: place(at) })),
    // A label with a number says where it stands already, and more exactly.
    ...marks.map(([mark, at]) => whose(mark) + (/\d/.test(mark.label) ? `${mark.label}.` : `${mark.label}: ${place(at)}.`)),
  ];
}

function ofHeat(scene) {
  const { panel, sweep, row, selected, view } = scene;
  const { words } = view;
  const codes = sweep.list(panel.column, row);
  if (!codes || !ofWeights(panel)) return [];
  const step = sweep.stepOfList?.(row) ?? row + 1; // not every step of a long run has a matrix
  const when = step === row + 1 ? "" : `${view.dial.label} ${step}.`;
  if (!selected) return [when, overall(codes, scene)];
  const [query] = selected;
  const here = `${placed(selected, panel, words)}: ${cellOf(selected, scene)}.`;
  const most = largestOf(codes.subarray(query * panel.columns, (query + 1) * panel.columns));
  if (!most) return [when, here];
  const where = oneOf(most.at.map((key) => keysOf(key, panel)), words);
  const sentence = panel.pooled ? words.most_of : words.most;
  return [when, here, fill(sentence, { where, value: weight(most.code, words, stepOf(codes, panel)) })];
}

// Where nothing is chosen: the largest weight of all.
function overall(codes, { panel, view: { words } }) {
  const most = largestOf(codes);
  if (!most) return words.undefined;
  const where = oneOf(most.at.map((at) => whereOf([Math.floor(at / panel.columns), at % panel.columns], panel)), words);
  return fill(words.largest, { values: `${weight(most.code, words, stepOf(codes, panel))}, ${where}` });
}

function ofRow(scene) {
  const { panel, view, selected } = scene;
  const { words } = view;
  const at = selected ?? 0;
  const most = sides(scene, (line) => {
    const all = panel.labels.map((_, place) => entry(scene, line, place));
    const largest = Math.max(...all);
    if (Number.isNaN(largest)) return words.undefined;
    const places = [...all.keys()].filter((place) => all[place] === largest);
    const where = (place) => (panel.pooled ? keysOf(place, panel) : keyNamed(place, panel, words));
    return `${toldAt(scene, line, places[0])}, ${oneOf(places.map(where), words)}`;
  }, "; ");
  return [`${keyNamed(at, panel, words)}: ${cellOf([0, at], scene)}.`, fill(words.largest, { values: most })];
}

function ofArrows({ panel, sweep, row, selected, view }) {
  if (selected === null) return [];
  const [length, angle] = [panel.lengths, panel.angles].map((column) => sweep.list(column, row)[selected]);
  const flat = length === 0 || sweep.numbers(panel.query)[row] === 0;
  const key = panel.keys?.[selected] ?? selected; // not all of them may be drawn
  return [fill(flat ? view.words.no_angle : view.words.arrow, { key, length: valued(length, 3, view), angle: Math.round((angle * 180) / Math.PI) })];
}

function named({ panel, view }) {
  return panel.lines.map((line) => ({ ...line, name: line.name ?? (line.label || nameOf(line.role, view)) })).filter(({ name }) => name);
}

function sides(scene, value, between = ", ") {
  return scene.panel.lines.map((line) => [line.label || nameOf(line.role, scene.view), value(line)].filter(Boolean).join(": ")).join(between);
}

// The number of a place: of arcs the weight that the word which asks gives it.
function entry({ panel, sweep, row, selected }, line, place) {
  if (line.numbers) return sweep.numbers(line.numbers[place])[row];
  const list = sweep.list(line.column, row);
  return panel.kind === "arcs" ? list[(selected ?? 0) * panel.labels.length + place] : list[place];
}

function toldAt(scene, line, place) {
  if (line.numbers) return scene.sweep.text(`${line.numbers[place]}.text`, scene.row);
  return valued(entry(scene, line, place), 3, scene.view);
}

function ofWeights({ ramp }) {
  return !ramp;
}

function valued(x, digits, { words }) {
  return Number.isNaN(x) ? words.undefined : written(x, digits, words);
}
