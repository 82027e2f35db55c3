// What a picture says to those who hear it: places that cannot be told apart, and lines that cross.

import assert from "node:assert/strict";
import { test } from "node:test";

const matchMedia = () => ({ matches: false });
Object.assign(globalThis, { document: { createElement: () => ({ getContext: () => ({}) }) }, window: { matchMedia } });
const { crossings } = await import("../../qkdemo/web/exhibit/heard/crossings.js");
const { heard } = await import("../../qkdemo/web/exhibit/heard/hear.js");

const WORDS = {
  at: "At {dial}: {values}.",
  most: "The largest: {value}, at {where}.",
  most_of: "The largest of these: {value}, at {where}.",
  pooled: "largest of {where}",
  one_of: "one of these: {places}",
  one_of_many: "one of {count} alike",
  less: "less than {x}",
  about: "about {x}",
  more: "more than {x}",
};

function crossed(one, other, y = { log: false, domain: [0, 1] }, noise = 0) {
  const columns = { one: Float64Array.from(one), other: Float64Array.from(other) };
  const lines = [{ name: "one", column: "one" }, { name: "other", column: "other" }];
  const scene = { sweep: { numbers: (name) => columns[name] }, panel: { y, noise }, open: [0, one.length - 1] };
  return crossings(lines, scene).map(({ at }) => at);
}

test("lines cross where the sign of their difference changes", () => {
  assert.deepEqual(crossed([0, 0.1, 0.4, 0.6], [0.3, 0.3, 0.3, 0.3]), [2]);
});

test("two curves that are one function but for rounding do not cross", () => {
  assert.deepEqual(crossed([66.1082448735236, 66.1, 66.1], [66.10824487352362, 66.09999999999999, 66.1]), []);
  assert.deepEqual(crossed([0.24999999687, 0.25, 0.2], [0.24999999674, 0.25000000001, 0.3]), []);
});

test("what crosses below the foot of a log axis is not seen to cross", () => {
  const y = { log: true, domain: [0.01, 10] };
  assert.deepEqual(crossed([1e-9, 2e-9], [2e-9, 1e-9], y), []);
  assert.deepEqual(crossed([0.1, 1], [1, 0.1], y), [1]);
});

test("numbers of a narrow format cross if more than its rounding parts them", () => {
  assert.deepEqual(crossed([0.5, 0.51], [0.505, 0.505], undefined, 0.02), []);
  assert.deepEqual(crossed([0.5, 0.6], [0.55, 0.55], undefined, 0.02), [1]);
});

test("lines that lie on each other for a while cross in the middle of it; over a gap they do not", () => {
  assert.deepEqual(crossed([0.1, 0.3, 0.3, 0.3, 0.6], [0.3, 0.3, 0.3, 0.3, 0.3]), [2]);
  assert.deepEqual(crossed([0.1, NaN, 0.6], [0.3, 0.3, 0.3]), []);
  assert.deepEqual(crossed([0.1, 0.2, Infinity], [0.3, 0.3, 0.3]), [2]);
});

function matrix(codes, columns, more = {}) {
  const panel = { kind: "heat", column: "heat", rows: codes.length / columns, columns, query_label: "query", key_label: "key", ...more };
  const sweep = { rows: 1, list: () => Uint8Array.from(codes) };
  return heard({ view: { words: WORDS }, panel, sweep, row: 0, selected: [0, 0], open: [0, 0] });
}

test("keys of one colour are not told apart", () => {
  assert.equal(matrix([100, 100, 50, 50], 4), "query 0, key 0: about 0.16. The largest: about 0.16, at one of these: key 0; key 1.");
  assert.equal(matrix([100, 100, 100, 100], 4), "query 0, key 0: about 0.16. The largest: about 0.16, at one of 4 alike.");
});

test("a cell that stands for several says for which", () => {
  const pooled = { each: 8, of: 12, queries: "queries", keys: "keys" };
  const words = "largest of queries 0–7, keys 0–7: less than 4·10⁻⁶. The largest of these: more than 0.996, at keys 8–11.";
  assert.equal(matrix([0, 250, 0, 0], 2, { pooled }), words);
});

test("a bar says its number where its height is another, and the largest is that of the numbers", () => {
  const numbers = { "a.error": [7], "b.error": [12] };
  const sweep = { rows: 1, numbers: (name) => numbers[name], text: (name) => `said ${name}`, list: () => [1, 1] };
  const line = { role: "right", column: "bars", label: "off", numbers: ["a.error", "b.error"] };
  const panel = { kind: "bars", lines: [line], labels: ["1", "2"], key_label: "mistake", selected: 0 };
  const words = { ...WORDS, largest: "Largest: {values}." };
  const told = heard({ view: { words, panels: [panel] }, panel, sweep, row: 0, selected: 0, open: [0, 0] });
  assert.equal(told, "mistake 1: off: said a.error.text. Largest: off: said b.error.text, mistake 2.");
});
