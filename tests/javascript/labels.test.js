// Words beside lines: apart, in their order, inside the frame, off the lines.

import assert from "node:assert/strict";
import { test } from "node:test";

import { freest, sampled, spread } from "../../qkdemo/web/exhibit/drawn/labels.js";

const dice = (seed) => () => (seed = (seed * 48271) % 2147483647) / 2147483647;

test("labels stand apart, inside, and in the order in which they were wanted", () => {
  const random = dice(7);
  for (let turn = 0; turn < 500; turn++) {
    const wanted = Array.from({ length: 1 + Math.floor(random() * 8) }, () => random() * 240 - 20);
    const [height, low, high] = [18, 0, 200];
    const middles = spread(wanted, height, low, high);
    const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
    for (let k = 1; k < order.length; k++) {
      assert.ok(middles[order[k]] - middles[order[k - 1]] >= height - 1e-9, `${wanted}`);
    }
    assert.ok(Math.min(...middles) >= low + height / 2 - 1e-9);
    assert.ok(Math.max(...middles) <= high - height / 2 + 1e-9);
  }
});

test("a label that is free stands where it was wanted", () => {
  assert.deepEqual(spread([50, 120], 18, 0, 200), [50, 120]);
});

test("the place that covers least wins, the first of equals", () => {
  const frame = { left: 0, top: 0, right: 100, bottom: 100 };
  const [free, outside, other] = [[10, 10, 20, 10], [90, 10, 20, 10], [60, 60, 20, 10]];
  assert.equal(freest([outside, free, other], [], [], frame), free);
  assert.equal(freest([free, other], [[15, 15]], [], frame), other);
  assert.equal(freest([free, other], [], [[12, 12, 5, 5]], frame), other);
});

test("a line is sampled from end to end", () => {
  const dots = sampled([0, 0, 30, 40], 5);
  assert.deepEqual([dots[0], dots.at(-1), dots.length], [[0, 0], [30, 40], 11]);
});
