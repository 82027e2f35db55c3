// Two-wide attention in the browser; that it is what the lab computes is tested from Python, over thousands of states.

import assert from "node:assert/strict";
import { test } from "node:test";

import { attend, softmax } from "../../qkdemo/web/arrows/plane.js";
import { short } from "../../qkdemo/web/arrows/words.js";

const STATE = { scale: 1, gain: 4, format: "float64", query: [2, 30], keys: [[1, 30], [3, 75], [2, -150]] };

test("shares are one together, and large logits do not overflow", () => {
  assert.deepEqual(softmax([1000, 1000]), [0.5, 0.5]);
  assert.ok(Math.abs(softmax([1, 2, 3]).reduce((sum, share) => sum + share) - 1) < 1e-15);
});

test("with one infinite score no share is defined", () => {
  assert.ok(softmax([Infinity, 1]).every(Number.isNaN));
});

test("the norm takes lengths out: only the angle and the gain count", () => {
  const longer = { ...STATE, scale: 100, keys: STATE.keys.map(([length, angle]) => [7 * length, angle]) };
  const [here, there] = [attend(STATE).norm.shares, attend(longer).norm.shares];
  here.forEach((share, at) => assert.ok(Math.abs(share - there[at]) < 1e-12));
});

test("plain attention follows the longest arrow, the normalised one the arrow that agrees", () => {
  const { plain, norm } = attend(STATE);
  const leader = (shares) => shares.indexOf(Math.max(...shares));
  assert.deepEqual([leader(plain.shares), leader(norm.shares)], [1, 0]);
});

test("a length is written as 0 if it is 0, and only then", () => {
  const texts = [0, 0.0005, 0.0149, 0.25, 1.5, 31.52, 3000].map((length) => short(length, {}));
  assert.deepEqual(texts, ["0", "0.0005", "0.015", "0.25", "1.5", "31.5", "3000"]);
});
