// What a cell of a matrix says: its weight, with no more digits than its code has, and for which queries and keys it stands.

import { MASKED, TOP, UNDEFINED } from "../drawn/heat.js";
import { spanOf } from "../drawn/places.js";
import { fill, written } from "./numbers.js";

const FEW = 4; // below that code, half a step is more than a fourth of the weight: not one digit is held
const COARSE = 0.01; // a weight from which on a code holds a second digit
const NAMED = 3; // places that are named, where they look alike

// The weight of a code, as `coded` in `qkdemo/charts/columns.py` writes it. `step`: from one code that was kept to the next.
export function weight(code, words, step = 1) {
  if (code === MASKED) return words.hidden ?? "";
  if (code === undefined || code === UNDEFINED) return words.undefined;
  const [low, here, high] = [code - step / 2, code, code + step / 2].map((part) => (part / TOP) ** 2);
  if (code < FEW * step) return fill(words.less, { x: written(high, 2, words) });
  if (code === TOP) return fill(words.more, { x: written(low, 3, words) });
  return fill(words.about, { x: written(here, here < COARSE || step > 1 ? 1 : 2, words) });
}

// From one code to the next: runs that came with the app hold fewer codes.
export function stepOf(codes, { coarse = 1 }) {
  return codes.every((code) => code > TOP || code % coarse === 0) ? coarse : 1;
}

// The query and the key of a cell, or all those of which it holds the largest weight.
export function placed(cell, panel, words) {
  const where = whereOf(cell, panel);
  return panel.pooled ? fill(words.pooled, { where }) : where;
}

export function whereOf([query, key], panel) {
  return `${queriesOf(query, panel)}, ${keysOf(key, panel)}`;
}

function queriesOf(at, { query_label, pooled }) {
  return `${pooled?.queries ?? query_label} ${spanOf(at, pooled)}`;
}

export function keysOf(at, { key_label, pooled }) {
  return `${pooled?.keys ?? key_label} ${spanOf(at, pooled)}`;
}

// One place, or that it is one of several: they look alike, and which has the largest weight cannot be told.
export function oneOf(places, words) {
  if (places.length === 1) return places[0];
  return places.length <= NAMED ? fill(words.one_of, { places: places.join("; ") }) : fill(words.one_of_many, { count: places.length });
}

// The largest code there is, and where; null if there is none.
export function largestOf(codes) {
  const top = codes.reduce((most, code) => (code <= TOP && code > most ? code : most), -1);
  return top < 0 ? null : { code: top, at: [...codes.keys()].filter((at) => codes[at] === top) };
}
