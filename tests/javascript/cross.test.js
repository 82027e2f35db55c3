// Keys move a cell over the map, and never out of it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { moved } from "../../qkdemo/web/cross/cross.js";

const PLACES = [[0.1, 1, 10], [1, 2]];

test("a step goes to the next cell", () => {
  assert.deepEqual(moved([0, 0], [1, 0], PLACES), [1, 0]);
  assert.deepEqual(moved([1, 0], [0, 1], PLACES), [1, 1]);
});

test("at the border it stays", () => {
  assert.deepEqual(moved([2, 1], [1, 0], PLACES), [2, 1]);
  assert.deepEqual(moved([0, 0], [0, -1], PLACES), [0, 0]);
});

test("End goes to the last cell of the row", () => {
  assert.deepEqual(moved([0, 1], [1e6, 0], PLACES), [2, 1]);
});
